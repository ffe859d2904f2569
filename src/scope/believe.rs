//! How a scope's gate follows hints: trust is asked under the lock.

use std::{sync::Arc, time::Duration};

use super::{Policy, Scope, awake::Awake, cell::Sent};
use crate::{
    time::Instant,
    trust::{self, Decision, LongPause, Observed, Reading},
    verdict::Throttle,
};

/// A throttled attempt as trust sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused<'a> {
    pub(super) throttle: &'a Throttle,
    pub(super) status: Option<u16>,
    pub(super) sent: &'a Sent,
    /// How many levels above the leaf it is about.
    pub(super) height: usize,
}

impl Scope {
    /// Both clocks, at `now`.
    pub(super) fn reading(&self, now: Instant) -> Reading {
        Reading {
            now,
            wall: self.root.common.clock.wall(),
        }
    }
}

impl Sent {
    /// The attempt as trust sees it, at the level `height` above the leaf.
    fn at_level(&self, height: usize) -> trust::Sent {
        trust::Sent {
            at: self.at,
            waited: self.waited & (1 << height) != 0,
        }
    }
}

impl Awake {
    /// Learns from a throttle that is not stale.
    pub(super) fn distrust(&mut self, refused: &Refused<'_>, at: Reading) {
        let sent = refused.sent.at_level(refused.height);
        let hint = refused.throttle.hint.as_ref();
        self.trust.on_throttle(at, sent, hint, refused.status);
    }

    /// Learns from an accepted attempt that is not stale.
    pub(super) fn observe(
        &mut self,
        level: &Arc<Scope>,
        sent: &Sent,
        height: usize,
        now: Instant,
    ) -> Option<Observed> {
        if !self.trust.is_observing() {
            return None;
        }
        let at = level.reading(now);
        self.trust.on_accepted(at, sent.at_level(height))
    }

    /// How long the gate closes for a throttle that is not stale.
    pub(super) fn decide(
        &mut self,
        throttle: &Throttle,
        now: Instant,
        policy: &Policy,
    ) -> Decision {
        let backoff = self.gate.backoff(policy);
        let hint = throttle.hint.as_ref();
        self.trust.sanitise(now, hint, backoff, &policy.bounds())
    }

    /// How long it closes for a stale one: no longer than was asked.
    pub(super) fn lengthen(
        &self,
        throttle: &Throttle,
        now: Instant,
        policy: &Policy,
    ) -> Option<Decision> {
        let hint = throttle.hint.as_ref()?;
        let bounds = policy.bounds();
        let mut decision = self
            .trust
            .sanitise(now, Some(hint), Duration::ZERO, &bounds);
        decision.wait = decision.wait.min(hint.wait());
        Some(decision)
    }

    /// When a pause until `until` may be probed before its end.
    pub(super) fn early_probe(
        &self,
        now: Instant,
        until: Instant,
        policy: &Policy,
    ) -> Option<Instant> {
        let pause = LongPause {
            began: self.gate.began().unwrap_or(now),
            until: self.gate.closed_until().map_or(until, |old| old.max(until)),
            backoff: self.gate.least(policy),
        };
        self.trust.early_probe(&pause, now, &policy.bounds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        law::{Attempt, Law, LawConfig, Rate},
        scope::Scopes,
        scope_key::ScopeKey,
        time::sleep_through,
        verdict::{Hint, ThrottleKind, Verdict},
    };

    /// A law whose rate tells how often the machine was suspended.
    #[derive(Clone, Debug)]
    struct Nights(u32);

    impl LawConfig for Nights {
        fn start(&self) -> Option<Rate> {
            None
        }

        fn build(&self, _: Instant, _: Rate) -> Box<dyn Law> {
            Box::new(self.clone())
        }
    }

    impl Law for Nights {
        fn on_attempt(&mut self, _: &Attempt) {}

        fn on_suspended(&mut self, _: Instant) {
            self.0 += 1;
        }

        fn set_rate(&mut self, _: Instant, _: Rate) {}

        fn rate(&mut self, _: Instant) -> Rate {
            Rate::per_second(self.0.into())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_machine_shortens_no_wait_and_shows_nothing() {
        for asleep in [0, 5, 6, 30_000] {
            let scopes = Scopes::new(Policy::new().law(Nights(1)));
            let scope = scopes.find(&ScopeKey::new("a"));
            let settle = |verdict| Arc::clone(&scope).ticket().settle(&verdict);
            let hint = Hint::new(Duration::from_secs(20), "retry-after");
            let throttle = Throttle::new(ThrottleKind::RateLimited).hint(hint);
            settle(Verdict::from(throttle));

            sleep_through(Duration::from_secs(asleep));
            let left = scopes.get("a").snapshot().paused_for;
            assert_eq!(left, Some(Duration::from_secs(20)), "{asleep}");

            tokio::time::advance(Duration::from_secs(15)).await;
            settle(Verdict::ACCEPTED);
            let seen = scopes.get("a").snapshot();
            let was_suspended = asleep > 5;
            assert_eq!(seen.trust.observations, usize::from(!was_suspended));
            assert_eq!(seen.rate, Some(if was_suspended { 2.0 } else { 1.0 }));
        }
    }
}
