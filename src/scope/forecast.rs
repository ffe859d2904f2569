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
            let probes = self.would_probe(level, ask);
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
            let ahead = awake.queue.ahead_of(ask.place);
            // A probe waits for no token.
            let paced = match probes {
                true => Duration::ZERO,
                false => awake.least_wait(now, opens, ahead.requests, ask.costs.requests),
            };
            let named = match i {
                0 => awake.buckets.least_wait(opens, &ahead, &ask.costs),
                _ => Duration::ZERO,
            };
            let queued = paced.max(named);
            let then = opens + queued;
            // Whom the rate turns away wants it as much as who waits for it.
            let late = ask.deadline == Instant::NEVER && paced > policy.max_pause
                || opens + paced >= ask.deadline;
            awake.held_up |= late && !paced.is_zero();
            // A pause has its own bound; this one is for what comes after it.
            if ask.deadline == Instant::NEVER && queued > policy.max_pause {
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

    /// Whether a call would be the next probe of `level`: the first to come that
    /// was not throttled in this episode.
    fn would_probe(&self, level: &Scope, ask: &Ask) -> bool {
        let node = self.nodes.get(level.node);
        let Some(awake) = node.and_then(|node| node.awake.as_deref()) else {
            return false;
        };
        let episode = awake.gate.episode().unwrap_or(u64::MAX);
        let was_spared = |ask: &Ask| ask.throttled < episode;
        let waiter = |id| self.waiters.get(id).map(|waiter| &waiter.ask);
        // From behind: those who were throttled came first.
        let mut waiting = awake.queue.iter().rev().filter_map(waiter);
        awake.gate.awaits_probe() && was_spared(ask) && !waiting.any(was_spared)
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
