//! What an answer tells of the quota itself.

use std::{sync::Arc, time::Duration};

use super::{
    Scope,
    after::After,
    cell::{Sent, Tree},
    pause::{Asked, Cause},
    settle::close,
};
use crate::{law::Rate, time::Instant, verdict::Quota};

/// What is told in whole seconds tells nothing of where in a window of one
/// second one is: to pause for a second would cost most of the next.
const ROUNDED: Duration = Duration::from_secs(1);

impl Tree {
    /// Learns from what an answer tells of the quota itself.
    ///
    /// It may pace and pause, but never refuse: a pause is at most as long as
    /// callers wait for one. `remaining` lags while others are in flight, so
    /// that it never grants more than the law does.
    pub(super) fn know(
        &mut self,
        scope: &Arc<Scope>,
        sent: &Sent,
        quota: &Quota,
        accepted: bool,
        now: Instant,
        after: &mut After,
    ) {
        let in_flight = u64::from(scope.in_flight());
        let policy = &scope.root.common.policy;
        let Some(node) = self.node(scope) else {
            return;
        };
        if sent.epoch < node.epoch {
            return;
        }
        node.known = known(quota).or(node.known);
        if let (Some(rate), Some(awake)) = (node.known, node.awake.as_deref_mut())
            && let Some(pace) = &mut awake.pace
        {
            pace.on_quota(now, rate);
        }
        let (Some(remaining), true) = (quota.remaining, accepted) else {
            return;
        };
        // With most of it left there is nothing to be careful of yet: bursts
        // within the quota are what it is for.
        let near = remaining <= (quota.limit.unwrap_or(0) / 4).max(in_flight.saturating_mul(2));
        if near && let Some(rate) = node.known {
            self.wake_law(scope, now, Some(rate));
        }
        let reset = quota
            .reset
            .filter(|reset| !reset.is_zero() && *reset <= policy.max_pause)
            .filter(|_| quota.window.is_none_or(|window| window > ROUNDED));
        if remaining > 0 || reset.is_none() {
            return;
        }
        self.wake(scope, now);
        self.notice(scope, now, after);
        if let Some(node) = self.node(scope)
            && let Some(awake) = node.awake.as_deref_mut()
        {
            node.epoch = scope.root.word.next_epoch();
            let asked = Asked {
                until: now + reset.unwrap_or_default(),
                cause: Cause::Manual,
                ban: false,
                probe: false,
                early: None,
            };
            close(awake, now, asked, policy);
        }
    }
}

/// The rate that a quota allows. Windows over an hour are not paced, and what
/// is slower than one request a minute is not taken for a rate.
fn known(quota: &Quota) -> Option<Rate> {
    const LONGEST: Duration = Duration::from_secs(3600);
    let window = quota
        .window
        .filter(|window| !window.is_zero() && *window <= LONGEST)?;
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let rate = quota.limit? as f64 / window.as_secs_f64();
    (rate >= 1.0 / 60.0).then(|| Rate::per_second(rate))
}
