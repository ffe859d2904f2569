//! What is decided under the lock and done after it.

use std::{sync::Arc, task::Waker};

use super::{Refusal, Scope, driver};
use crate::trust::Observed;

/// What is to be done once the lock is released.
#[derive(Debug, Default)]
#[must_use = "what was decided under the lock must be done after it"]
pub(super) struct After {
    pub(super) wakers: Vec<Waker>,
    /// Drivers to be started, each with its generation.
    pub(super) drivers: Vec<(Arc<Scope>, u64)>,
    /// Scopes whose gates have opened.
    pub(super) opened: Vec<Arc<Scope>>,
    /// Scopes whose drivers must look again.
    pub(super) changed: Vec<Arc<Scope>>,
    /// Scopes whose law has panicked.
    pub(super) broken: Vec<Arc<Scope>>,
    /// Episodes that ended, and what they showed.
    pub(super) observed: Vec<(Arc<Scope>, Observed)>,
    /// Scopes in which refusals go on although the law has settled.
    pub(super) contested: Vec<Arc<Scope>>,
    /// Scopes of which a slot came free.
    pub(super) freed: Vec<Arc<Scope>>,
}

impl After {
    /// Whether there is nothing to be done, as after most calls.
    const fn is_empty(&self) -> bool {
        self.wakers.is_empty()
            && self.drivers.is_empty()
            && self.opened.is_empty()
            && self.changed.is_empty()
            && self.broken.is_empty()
            && self.observed.is_empty()
            && self.contested.is_empty()
            && self.freed.is_empty()
    }

    /// Does it.
    ///
    /// # Errors
    ///
    /// Returns an error if a driver is needed and no runtime is there.
    #[inline]
    pub(super) fn run(self) -> Result<(), Refusal> {
        if self.is_empty() {
            Ok(())
        } else {
            self.run_all()
        }
    }

    fn run_all(self) -> Result<(), Refusal> {
        for scope in self.broken {
            crate::observe::law_panicked(&scope.key());
        }
        for (scope, seen) in self.observed {
            crate::observe::observed(&scope.key(), &seen);
        }
        for scope in self.contested {
            crate::observe::contested(&scope.key());
        }
        for scope in self.freed {
            scope.release();
        }
        for scope in self.opened {
            crate::observe::resumed(&scope.key());
            scope.opened.notify_waiters();
            scope.changed.notify_waiters();
        }
        for scope in self.changed {
            scope.changed.notify_waiters();
        }
        let mut started = Ok(());
        for (scope, generation) in self.drivers {
            if let Err(error) = driver::start(scope, generation) {
                started = Err(error);
            }
        }
        self.wakers.into_iter().for_each(Waker::wake);
        started
    }
}
