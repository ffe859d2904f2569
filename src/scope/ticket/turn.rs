//! A ticket's way to its turn: it passes, waits, is confirmed, or steps aside.

use std::task::{Context, Poll};

use super::{Hold, Mode, Ticket, Want};
use crate::{
    error::Error,
    scope::{
        cell::{Admission, Sent},
        queue::{Grant, Probe},
        wait::Queued,
    },
};

impl Ticket {
    /// Tries to pass at once. `Ok(false)` says that the call has to wait.
    ///
    /// # Errors
    ///
    /// Returns an error if the call is refused.
    pub(crate) fn try_admit(&mut self, want: Want) -> Result<bool, Error> {
        if !self.is_governed() {
            return Ok(true);
        }
        if !self.scope.root.word.read().is_awake() && (want == Want::Pause || self.send_dormant()) {
            return Ok(true);
        }
        let now = self.clock().now();
        match self.scope.admit(&self.ask(now), now, want) {
            Admission::Granted(grant) => {
                self.hold = Hold::Grant(grant);
                Ok(true)
            }
            Admission::Pass => Ok(true),
            Admission::Wait { .. } => Ok(false),
            Admission::Refused(refusal) => Err(refusal.error(&self.scope)),
        }
    }

    /// Tries to pass and go on at once. `Ok(false)` says that the call has to
    /// wait.
    ///
    /// # Errors
    ///
    /// Returns an error if the call is refused.
    pub(in crate::scope) fn pass(&mut self, want: Want) -> Result<bool, Error> {
        Ok(self.try_admit(want)? && self.confirm(want)?)
    }

    /// Counts the attempt as sent if its root is dormant.
    fn send_dormant(&mut self) -> bool {
        self.scope.count_sent();
        let word = self.scope.root.word.read();
        if word.is_awake() {
            self.scope.count_unsent();
            return false;
        }
        // Nothing was waited for: it is sent as it arrives.
        let at = match self.attempt {
            1 => self.arrived(),
            _ => self.clock().now(),
        };
        self.scope.meter(at);
        self.hold = Hold::Flight(Sent {
            at,
            epoch: word.epoch(),
            probe: Probe::default(),
            waited: 0,
        });
        self.note_sent();
        true
    }

    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// Returns an error if the call is refused, now or while it waits.
    ///
    /// # Cancel safety
    ///
    /// The place is kept while the ticket lives, and given back with it.
    pub(crate) fn poll_admit(
        &mut self,
        cx: &mut Context<'_>,
        want: Want,
    ) -> Poll<Result<(), Error>> {
        let now = self.clock().now();
        if let Hold::Place(id, since) = self.hold {
            let turn = std::task::ready!(self.scope.poll_turn(id, now, cx.waker()));
            self.add_waited(now - since);
            self.hold = Hold::Nothing;
            return Poll::Ready(match turn {
                Ok(grant) => {
                    self.hold = Hold::Grant(grant);
                    Ok(())
                }
                Err(refusal) => Err(refusal.error(&self.scope)),
            });
        }
        if !self.is_governed() {
            return Poll::Ready(Ok(()));
        }
        let (ask, was_sent) = (self.ask(now), self.attempt > 1);
        let place = &mut self.place;
        match self
            .scope
            .admit_or_queue(place, ask, was_sent, now, want, cx.waker())
        {
            Queued::Granted(grant) => self.hold = Hold::Grant(grant),
            Queued::Pass => {}
            Queued::Refused(refusal) => return Poll::Ready(Err(refusal.error(&self.scope))),
            Queued::Place(id) => {
                self.hold = Hold::Place(id, now);
                return Poll::Pending;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The last check, in the very poll that passes the call on: no gate has
    /// closed meanwhile. `Ok(false)` says that it must wait again.
    ///
    /// For [`Want::All`] the attempt is stamped as sent.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing is left in the budget for this retry.
    pub(crate) fn confirm(&mut self, want: Want) -> Result<bool, Error> {
        let Hold::Grant(grant) = self.hold else {
            if self.mode == Mode::Observe && want == Want::All {
                self.ensure_sent();
            }
            return Ok(true);
        };
        // What passes the gate on is checked again where it is sent.
        let pays = (self.pays && want == Want::All).then(|| self.clock().now());
        match self.scope.confirm(&grant, pays) {
            Ok(Some(epoch)) if want == Want::All => self.stamp(epoch, grant),
            Ok(Some(_)) => {}
            held_back => {
                self.hold = Hold::Nothing;
                self.scope.give_back(&self.costs, grant);
                return held_back.map(|_| false);
            }
        }
        Ok(true)
    }

    fn stamp(&mut self, epoch: u64, grant: Grant) {
        self.pays = false;
        self.hold = Hold::Flight(Sent {
            at: self.clock().now(),
            epoch,
            probe: grant.probe,
            waited: grant.waited,
        });
        self.note_sent();
    }

    /// Counts the attempt as sent now, where no service above has done so.
    pub(crate) fn ensure_sent(&mut self) {
        match self.hold {
            Hold::Grant(grant) => self.stamp(self.scope.root.word.read().epoch(), grant),
            Hold::Nothing if self.mode != Mode::Bypass => {
                self.scope.count_sent();
                self.stamp(self.scope.root.word.read().epoch(), Grant::default());
            }
            Hold::Nothing => self.note_sent(),
            _ => {}
        }
    }

    /// Gives back what is held of a turn: others may go first. The place in
    /// the order is kept.
    pub(crate) fn step_aside(&mut self) {
        match std::mem::replace(&mut self.hold, Hold::Nothing) {
            Hold::Place(id, _) => self.scope.leave(id),
            Hold::Grant(grant) => self.scope.give_back(&self.costs, grant),
            held => self.hold = held,
        }
    }
}
