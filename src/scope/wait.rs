//! Waiting: a call's way from the first question to its turn.

use std::{
    sync::Arc,
    task::{Poll, Waker},
};

use super::{
    Refusal, Scope, Want,
    after::After,
    cell::Admission,
    driver,
    queue::{Ask, Costs, Grant, Place, Turn, Waiter, WaiterId},
};
use crate::{
    error::{Error, ErrorKind},
    time::Instant,
};

/// The answer to one who would rather wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queued {
    Granted(Grant),
    Pass,
    /// It waits, as this waiter.
    Place(WaiterId),
    Refused(Refusal),
}

impl Scope {
    /// Asks to pass at once.
    pub(super) fn admit(self: &Arc<Self>, ask: &Ask, now: Instant, want: Want) -> Admission {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let admission = tree.admit(self, ask, now, want, None, &mut after);
        drop(tree);
        // Nobody began to wait, so that no driver is started.
        let _ = after.run();
        admission
    }

    /// Asks to pass, or to wait for it.
    pub(super) fn admit_or_queue(
        self: &Arc<Self>,
        place: &mut Place,
        mut ask: Ask,
        was_sent: bool,
        now: Instant,
        want: Want,
        waker: &Waker,
    ) -> Queued {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let node = match tree.admit(self, &ask, now, want, None, &mut after) {
            Admission::Wait { node, .. } => node,
            decided => {
                drop(tree);
                let _ = after.run();
                return match decided {
                    Admission::Granted(grant) => Queued::Granted(grant),
                    Admission::Refused(refusal) => Queued::Refused(refusal),
                    _ => Queued::Pass,
                };
            }
        };
        place.number(&mut tree.calls, was_sent);
        ask.place = *place;
        if let Err(refusal) = tree.forecast(self, &ask, now) {
            return Queued::Refused(refusal);
        }
        let waiter = Waiter {
            scope: Arc::clone(self),
            ask,
            node,
            runtime: driver::runtime_id(),
            waker: Some(waker.clone()),
            turn: Turn::Waiting,
        };
        let runtime = waiter.runtime;
        let id = tree.waiters.insert(waiter);
        tree.stand(id, runtime, now, &mut after);
        drop(tree);
        match after.run() {
            Ok(()) => Queued::Place(id),
            Err(refusal) => {
                self.leave(id);
                Queued::Refused(refusal)
            }
        }
    }

    /// Whether waiter `id` may go.
    pub(super) fn poll_turn(
        self: &Arc<Self>,
        id: WaiterId,
        now: Instant,
        waker: &Waker,
    ) -> Poll<Result<Grant, Refusal>> {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let Some(waiter) = tree.waiters.get_mut(id) else {
            // Not reached: a ticket forgets its place when it gives it up.
            return Poll::Ready(Err(Refusal::new(ErrorKind::QueueFull, None)));
        };
        let turn = waiter.turn;
        let polled = match turn {
            Turn::Granted { grant, .. } => Poll::Ready(Ok(grant)),
            Turn::Refused(refusal) => Poll::Ready(Err(refusal)),
            Turn::Waiting | Turn::Aside if waiter.ask.deadline <= now => {
                Poll::Ready(Err(Refusal::new(ErrorKind::Deadline, None)))
            }
            Turn::Waiting | Turn::Aside => Poll::Pending,
        };
        if polled.is_ready() {
            let gone = tree.forget(id);
            drop(tree);
            // Its waker may be the last of a task that holds tickets.
            drop(gone);
            return polled;
        }
        let old = match &mut waiter.waker {
            Some(old) if old.will_wake(waker) => None,
            slot => slot.replace(waker.clone()),
        };
        waiter.runtime = driver::runtime_id();
        let (ask, node, runtime) = (waiter.ask, waiter.node, waiter.runtime);
        if matches!(turn, Turn::Aside) {
            // It is polled again: back to its place.
            waiter.turn = Turn::Waiting;
            if let Some(queue) = tree.queue(node) {
                queue.remove(id, &ask, &Turn::Aside);
            }
        }
        let served = tree
            .nodes
            .get(node)
            .and_then(|node| node.awake.as_deref())
            .is_some_and(|awake| awake.drivers.serve(runtime));
        if !served || matches!(turn, Turn::Aside) {
            tree.stand(id, runtime, now, &mut after);
        }
        drop(tree);
        drop(old);
        match after.run() {
            Ok(()) => Poll::Pending,
            Err(refusal) => {
                self.leave(id);
                Poll::Ready(Err(refusal))
            }
        }
    }

    /// Gives up the place of waiter `id`, and what it was granted.
    pub(super) fn leave(self: &Arc<Self>, id: WaiterId) {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let gone = tree.forget(id);
        if let Some(waiter) = &gone {
            if let Turn::Granted { grant, .. } = waiter.turn {
                tree.give_back(&waiter.scope, &waiter.ask.costs, grant, &mut after);
            }
            // The next one may be due earlier than the driver expects.
            if let Some(level) = waiter.scope.path().find(|level| level.node == waiter.node) {
                after.changed(level);
            }
        }
        drop(tree);
        let _ = after.run();
    }

    /// Gives back what was granted and claimed.
    pub(super) fn give_back(self: &Arc<Self>, costs: &Costs, grant: Grant) {
        let mut after = After::default();
        self.root.lock().give_back(self, costs, grant, &mut after);
        let _ = after.run();
    }

    /// The last check before a granted attempt is sent: no gate has closed
    /// meanwhile, and the budget `pays` for it, as of now, if it is a retry.
    ///
    /// Gives the epoch in which it is sent: one that begins after this look has
    /// not been seen. `None` says that it has to wait again.
    pub(super) fn confirm(
        self: &Arc<Self>,
        grant: &Grant,
        pays: Option<Instant>,
    ) -> Result<Option<u64>, Error> {
        let epoch = self.root.word.read().epoch();
        if epoch == grant.epoch && pays.is_none() {
            return Ok(Some(epoch));
        }
        let mut tree = self.root.lock();
        if epoch != grant.epoch && tree.has_closed_since(self, grant.epoch) {
            return Ok(None);
        }
        let paid = pays.is_none_or(|now| {
            let awake = tree.awake(self);
            awake.is_none_or(|awake| awake.budget.withdraw(now))
        });
        drop(tree);
        match paid {
            true => Ok(Some(epoch)),
            false => Err(Refusal::new(ErrorKind::Budget, None).error(self)),
        }
    }
}
