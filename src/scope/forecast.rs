//! When a call's turn would come, and who is refused rather than let wait.

use std::{sync::Arc, time::Duration};

use super::{Refusal, Scope, cell::Tree, pause::Answer, queue::Ask};
use crate::{error::ErrorKind, time::Instant};

impl Tree {
    /// When a call's turn would come at the earliest.
    ///
    /// # Errors
    ///
    /// Returns a refusal if that is too late for the call, or if too many wait.
    pub(super) fn forecast(
        &mut self,
        scope: &Arc<Scope>,
        ask: &Ask,
        now: Instant,
    ) -> Result<Instant, Refusal> {
        let policy = &scope.root.common.policy;
        let mut turn = now;
        if let Some(awake) = self.awake(scope)
            && ask.pays
            && !awake.budget.has(now)
        {
            return Err(Refusal::new(ErrorKind::Budget, None));
        }
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            if let Answer::Refuse {
                until, exhausted, ..
            } = awake.gate.ask(now, policy)
            {
                return Err(closed(now, until, exhausted));
            }
            let opens = awake.gate.closed_until().unwrap_or(now).max(now);
            // Who came before those that wait does not wait for all of them.
            let last = awake.queue.last().is_none_or(|last| last < ask.place);
            let ahead = if last { awake.queue.waiting() } else { 0 };
            let (queued, owed) = match &mut awake.pace {
                Some(pace) => (pace.least_wait(now, ahead), pace.owed(now)),
                None => (Duration::ZERO, Duration::ZERO),
            };
            // What was taken beyond a bucket's depth is made up for in a pause
            // too.
            let mut paid = now + owed;
            if i == 0 {
                paid = paid.max(awake.buckets.ready(now, &ask.costs));
            }
            let then = (opens + queued).max(paid);
            // A pause has its own bound; this one is for what comes after it.
            let longest = queued.max(paid - now);
            if ask.deadline == Instant::NEVER && longest > policy.max_pause {
                return Err(Refusal::new(ErrorKind::QueueFull, Some(then - now)));
            }
            if awake.queue.len() >= policy.max_waiters {
                return Err(Refusal::new(ErrorKind::QueueFull, Some(then - now)));
            }
            turn = turn.max(then);
        }
        if turn >= ask.deadline {
            return Err(Refusal::new(ErrorKind::Deadline, Some(turn - now)));
        }
        Ok(turn)
    }
}

/// A refusal by a gate that stays closed.
pub(super) fn closed(now: Instant, until: Instant, exhausted: bool) -> Refusal {
    match (exhausted, until) {
        (true, Instant::NEVER) => Refusal::new(ErrorKind::Exhausted, None),
        (true, _) => Refusal::new(ErrorKind::Exhausted, Some(until - now)),
        (false, _) => Refusal::new(ErrorKind::Paused, Some(until - now)),
    }
}
