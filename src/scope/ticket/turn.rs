//! A ticket's way to its turn: it passes, waits, is confirmed, or steps aside.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use super::{Hold, Mode, Ticket, Want};
use crate::{
    error::{Error, ErrorKind},
    scope::{
        cell::{Admission, Sent},
        queue::{Grant, Probe},
        wait::Queued,
    },
    time::Instant,
};

impl Ticket {
    /// Tries to pass at once. `Ok(false)` says that the call has to wait.
    ///
    /// # Errors
    ///
    /// Returns an error if the call is refused.
    pub(crate) fn try_admit(&mut self, want: Want) -> Result<bool, Error> {
        if !self.is_governed() || self.passes_dormant(want) {
            return Ok(true);
        }
        self.admit_at(self.clock().now(), want)
    }

    fn admit_at(&mut self, now: Instant, want: Want) -> Result<bool, Error> {
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
        if !self.is_governed() {
            return self.confirm(want);
        }
        if self.passes_dormant(want) {
            return Ok(true);
        }
        // To read the clock costs as much as all the rest. A gate is asked as
        // soon as the call arrives; what passes later is stamped once more.
        let now = match (want, self.attempt) {
            (Want::Pause, 1) => self.arrived,
            _ => self.clock().now(),
        };
        Ok(self.admit_at(now, want)? && self.confirm_at(now, want)?)
    }

    /// Whether the call passes because its root is dormant. For [`Want::All`] it
    /// is counted as sent.
    fn passes_dormant(&mut self, want: Want) -> bool {
        !self.scope.root.word.read().is_awake() && (want == Want::Pause || self.send_dormant())
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

    /// When the call's turn would come at the earliest, as of now.
    ///
    /// # Errors
    ///
    /// Returns an error if the call would be refused.
    pub(crate) fn forecast(&self) -> Result<Instant, Error> {
        let now = self.clock().now();
        match self.scope.forecast(&self.ask(now), now) {
            // A call that is paused alone waits as little as any other.
            Ok(_) if self.not_before() - now > self.scope.root.common.policy.max_pause => {
                let wait = Some(self.not_before() - now);
                Err(self.refuse(ErrorKind::Paused, wait))
            }
            Ok(turn) => Ok(turn.max(self.not_before())),
            Err(refusal) => Err(refusal.error(&self.scope)),
        }
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
            self.story().add_waited(now - since);
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
        let (scope, waker) = (Arc::clone(&self.scope), cx.waker());
        let place = &mut self.story().place;
        match scope.admit_or_queue(place, ask, was_sent, now, want, waker) {
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
        match (self.hold, want) {
            // What passes the gate on is checked again where it is sent.
            (Hold::Grant(_), Want::All) => self.confirm_at(self.clock().now(), want),
            _ => self.confirm_at(self.arrived, want),
        }
    }

    fn confirm_at(&mut self, now: Instant, want: Want) -> Result<bool, Error> {
        let Hold::Grant(grant) = self.hold else {
            if self.mode == Mode::Observe && want == Want::All {
                self.ensure_sent();
            }
            return Ok(true);
        };
        let pays = self.story.as_ref().is_some_and(|story| story.pays);
        let pays = (pays && want == Want::All).then_some(now);
        match self.scope.confirm(&grant, pays) {
            Ok(Some(epoch)) if want == Want::All => self.stamp(now, epoch, grant),
            Ok(Some(_)) => {}
            held_back => {
                self.hold = Hold::Nothing;
                self.scope.give_back(&self.costs(), grant);
                return held_back.map(|_| false);
            }
        }
        Ok(true)
    }

    fn stamp(&mut self, at: Instant, epoch: u64, grant: Grant) {
        if let Some(story) = &mut self.story {
            story.pays = false;
        }
        self.hold = Hold::Flight(Sent {
            at,
            epoch,
            probe: grant.probe,
            waited: grant.waited,
        });
        self.note_sent();
    }

    /// Counts the attempt as sent now, where no service above has done so.
    pub(crate) fn ensure_sent(&mut self) {
        match self.hold {
            Hold::Grant(grant) => {
                let epoch = self.scope.root.word.read().epoch();
                self.stamp(self.clock().now(), epoch, grant);
            }
            Hold::Nothing if self.mode != Mode::Bypass => {
                self.scope.count_sent();
                let epoch = self.scope.root.word.read().epoch();
                self.stamp(self.clock().now(), epoch, Grant::default());
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
            Hold::Grant(grant) => self.scope.give_back(&self.costs(), grant),
            held => self.hold = held,
        }
    }
}
