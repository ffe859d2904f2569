//! What is decided under the lock and done after it.

use std::{sync::Arc, task::Waker};

use super::{Refusal, Scope, driver};
use crate::{observe, trust::Observed};

/// What is to be done once the lock is released.
#[derive(Debug, Default)]
#[must_use = "what was decided under the lock must be done after it"]
pub(super) struct After(Vec<Deed>);

/// One thing that is not done under a lock.
#[derive(Debug)]
enum Deed {
    Wake(Waker),
    /// Start the driver of this number.
    Drive(Arc<Scope>, u64),
    /// Tell the drivers to look again.
    Change(Arc<Scope>),
    /// Tell that the gate has opened.
    Open(Arc<Scope>),
    /// Give back a slot that was held for too long.
    Release(Arc<Scope>),
    /// Tell what an episode has shown.
    Observe(Arc<Scope>, Box<Observed>),
    /// Tell that refusals go on although the law has settled.
    Contest(Arc<Scope>),
    /// Tell that the law has panicked.
    Break(Arc<Scope>),
}

impl After {
    /// Wakes a waiter, if it can be.
    pub(super) fn wake(&mut self, waker: Option<Waker>) {
        self.0.extend(waker.map(Deed::Wake));
    }

    /// Starts driver `number` of `scope`.
    pub(super) fn drive(&mut self, scope: &Arc<Scope>, number: u64) {
        self.0.push(Deed::Drive(Arc::clone(scope), number));
    }

    /// Tells the drivers of `scope` to look again.
    pub(super) fn changed(&mut self, scope: &Arc<Scope>) {
        self.0.push(Deed::Change(Arc::clone(scope)));
    }

    /// Tells that the gate of `scope` has opened.
    pub(super) fn opened(&mut self, scope: &Arc<Scope>) {
        self.0.push(Deed::Open(Arc::clone(scope)));
    }

    /// Gives back a slot of `scope`.
    pub(super) fn freed(&mut self, scope: Arc<Scope>) {
        self.0.push(Deed::Release(scope));
    }

    /// Tells what an episode of `scope` has shown, if anything.
    pub(super) fn observed(&mut self, scope: &Arc<Scope>, seen: Option<Observed>) {
        let deed = |seen| Deed::Observe(Arc::clone(scope), Box::new(seen));
        self.0.extend(seen.map(deed));
    }

    /// Tells that refusals go on in `scope` although its law has settled.
    pub(super) fn contested(&mut self, scope: &Arc<Scope>) {
        self.0.push(Deed::Contest(Arc::clone(scope)));
    }

    /// Tells that the law of `scope` has panicked.
    pub(super) fn broken(&mut self, scope: &Arc<Scope>) {
        self.0.push(Deed::Break(Arc::clone(scope)));
    }

    /// Does it.
    ///
    /// # Errors
    ///
    /// Returns an error if a driver is needed and no runtime is there.
    #[inline]
    pub(super) fn run(self) -> Result<(), Refusal> {
        // There is nothing to be done after most calls.
        if self.0.is_empty() {
            Ok(())
        } else {
            self.run_all()
        }
    }

    fn run_all(self) -> Result<(), Refusal> {
        let mut started = Ok(());
        for deed in self.0 {
            match deed {
                Deed::Wake(waker) => waker.wake(),
                Deed::Drive(scope, number) => started = started.and(driver::start(scope, number)),
                Deed::Change(scope) => scope.changed.notify_waiters(),
                Deed::Open(scope) => {
                    observe::resumed(&scope.key());
                    scope.opened.notify_waiters();
                    scope.changed.notify_waiters();
                }
                Deed::Release(scope) => scope.release(),
                Deed::Observe(scope, seen) => observe::observed(&scope.key(), &seen),
                Deed::Contest(scope) => observe::contested(&scope.key()),
                Deed::Break(scope) => observe::law_panicked(&scope.key()),
            }
        }
        started
    }
}
