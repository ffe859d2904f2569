//! What is known of a scope, as plain data.

use std::{sync::Arc, time::Duration};

use super::{HintCounts, Scope};
use crate::{scope_key::ScopeKey, trust::TrustSnapshot};

/// What is known of one scope at one instant.
///
/// Attempts are counted, not calls: a call that was throttled twice before it
/// was accepted is three attempts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScopeSnapshot {
    /// The scope's key.
    pub key: ScopeKey<'static>,
    /// Attempts sent.
    pub sent: u64,
    /// Attempts throttled.
    pub throttled: u64,
    /// Hints that were there and not followed to the letter, by reason.
    pub hints: HintCounts,
    /// How far its hints are believed, and why.
    pub trust: TrustSnapshot,
    /// Attempts in flight, the reading of their response bodies included.
    pub in_flight: u64,
    /// Calls that wait.
    pub waiting: usize,
    /// For how long the gate is still closed, as was asked; `None` if it is
    /// open. [`Duration::MAX`] means that nobody knows.
    pub paused_for: Option<Duration>,
    /// For how long the gate has been closed in all, the running pause not
    /// included.
    pub paused: Duration,
    /// Requests per second that the law allows; `None` while it is dormant.
    pub rate: Option<f64>,
    /// How many attempts may be in flight.
    pub limit: Option<u32>,
    /// The most that the server accepted in 60 s; `None` until it refused.
    pub observed_ceiling: Option<u64>,
    /// A rate to set by hand, in requests per second: 80 % of that ceiling.
    ///
    /// It means little until callers have asked for all of the quota for a
    /// minute.
    pub suggested_rate: Option<f64>,
}

impl ScopeSnapshot {
    /// Throttled attempts as a share of those sent.
    pub fn throttled_share(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let share = self.throttled as f64 / self.sent.max(1) as f64;
        share
    }

    pub(super) fn of(scope: &Arc<Scope>) -> Self {
        let now = scope.root.common.clock.now();
        let mut snapshot = Self {
            key: scope.key(),
            sent: scope.flight.total(),
            throttled: 0,
            hints: HintCounts::default(),
            trust: TrustSnapshot::default(),
            in_flight: scope.flight.in_flight(),
            waiting: 0,
            paused_for: None,
            paused: Duration::ZERO,
            rate: None,
            limit: None,
            observed_ceiling: None,
            suggested_rate: None,
        };
        let mut tree = scope.root.lock();
        let Some(node) = tree.node(scope) else {
            return snapshot;
        };
        snapshot.throttled = node.throttled;
        snapshot.hints = node.hints.as_deref().copied().unwrap_or_default();
        if let Some(awake) = node.awake.as_deref_mut() {
            snapshot.trust = awake.trust.snapshot(now);
            snapshot.waiting = awake.queue.len();
            let closed = awake
                .gate
                .closed_until()
                .filter(|_| awake.gate.over(now).is_none());
            snapshot.paused_for = closed.map(|until| until - now);
            snapshot.paused = awake.ended_pauses(now);
            snapshot.rate = awake.pace.as_mut().map(|pace| pace.rate(now).get());
            snapshot.limit = awake.limit(now);
            if node.throttled > 0 {
                snapshot.observed_ceiling = awake.tally.ceiling();
                snapshot.suggested_rate = awake.tally.suggested_rate();
            }
        }
        snapshot
    }
}
