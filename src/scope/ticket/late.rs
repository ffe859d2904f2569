//! Settling once more, by the end of an answer.

use std::sync::Arc;

use crate::{
    scope::{Scope, cell::Sent, queue::Place, settle::Stage},
    time::Clock,
    verdict::Verdict,
};

/// An attempt that was settled by its head, and whose end is still awaited.
#[derive(Debug)]
pub(crate) struct Late {
    pub(super) scope: Arc<Scope>,
    pub(super) sent: Sent,
    pub(super) place: Place,
    pub(super) throttled: u64,
}

impl Late {
    pub(crate) fn clock(&self) -> &Clock {
        &self.scope.root.common.clock
    }

    /// Settles it by its end. By then it may well be stale.
    pub(crate) fn settle(mut self, verdict: &Verdict) {
        let now = self.clock().now();
        let (sent, place) = (&self.sent, &mut self.place);
        self.scope
            .settle(sent, Stage::Whole, place, self.throttled, verdict, now);
    }
}
