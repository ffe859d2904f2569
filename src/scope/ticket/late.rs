//! Settling once more, by the end of an answer.

use std::{sync::Arc, time::Duration};

use super::{Hold, Ticket};
use crate::{
    observe::{self, Refused},
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
    pub(super) attempt: u32,
    pub(super) waited: Duration,
}

impl Ticket {
    /// What settles the attempt once more when the end of its answer says
    /// something else than its head did. Only after [`settle`](Self::settle).
    pub(crate) fn late(&self) -> Option<Late> {
        match self.hold {
            Hold::Slot(sent) => Some(Late {
                scope: Arc::clone(&self.scope),
                sent,
                place: self.place(),
                throttled: self.story.as_ref().map_or(0, |story| story.throttled),
                attempt: self.attempt,
                waited: self.waited(),
            }),
            _ => None,
        }
    }
}

impl Late {
    pub(crate) fn clock(&self) -> &Clock {
        &self.scope.root.common.clock
    }

    /// Settles it by its end, which is a refusal. By then it may well be stale.
    pub(crate) fn settle(mut self, verdict: &Verdict) {
        let now = self.clock().now();
        let (sent, place) = (&self.sent, &mut self.place);
        let throttled = self
            .scope
            .settle(sent, Stage::Whole, place, self.throttled, verdict, now);
        observe::refused(&Refused {
            scope: &self.scope.key(),
            call: self.place.call(),
            attempt: self.attempt,
            status: verdict.status(),
            content_type: None,
            verdict,
            queued: self.waited,
            deadline_left: None,
            delay: None,
            why: throttled.and_then(|throttled| throttled.why),
            gave_up: None,
            delivered: true,
        });
    }
}
