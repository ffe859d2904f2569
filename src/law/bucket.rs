//! The token bucket that turns a rate into instants.
//!
//! The rate is an argument of each question, since a law may change it at any
//! time; what was refilled until then was refilled at the old one.

use crate::{
    law::Rate,
    time::{Instant, seconds},
};

/// Tokens that are refilled at a rate, up to a depth, and taken by attempts.
///
/// A token is taken when it is granted and never owed: who is told to wait
/// leaves nothing behind. The one exception is a cost beyond the depth, which
/// is granted at a full bucket and makes the next attempt wait for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// The level at `at`: infinite for "full", negative after a cost beyond
    /// the depth.
    tokens: f64,
    at: Instant,
    /// At which rate it has been refilled since `at`; `None` until asked.
    rate: Option<Rate>,
}

impl Bucket {
    /// A bucket without a token at `now`.
    pub(crate) const fn empty(now: Instant) -> Self {
        Self {
            tokens: 0.0,
            at: now,
            rate: None,
        }
    }

    /// A bucket as full as it can be at `now`.
    pub(crate) const fn full(now: Instant) -> Self {
        Self {
            tokens: f64::INFINITY,
            at: now,
            rate: None,
        }
    }

    /// The most tokens that wait to be taken.
    ///
    /// A tenth of a second of the rate, at least one token. Tokio's timers have
    /// a grain of a millisecond: a bucket that could not hold what two grains
    /// refill would overflow between two wake-ups and never reach its rate.
    pub(crate) fn depth(rate: Rate) -> f64 {
        (0.1 * rate.get()).max(1.0 + 0.002 * rate.get())
    }

    /// Takes `cost` tokens at `now`, from a bucket refilled at `rate`.
    ///
    /// # Errors
    ///
    /// Returns the first instant at which they can be taken, if nobody else
    /// takes any and the rate stays. It is exact: taking is granted then, and
    /// not a nanosecond before.
    pub(crate) fn take(&mut self, now: Instant, rate: Rate, cost: u32) -> Result<(), Instant> {
        if cost == 0 {
            return Ok(());
        }
        self.follow(now, rate);
        let cost = f64::from(cost);
        let missing = cost.min(Self::depth(rate)) - self.tokens;
        // One formula both grants and promises, so that the two agree to the
        // nanosecond; nothing is stored on a refusal, so that they go on to.
        let granted = self.at + seconds(missing / rate.get());
        // `now` may have been read before that of an attempt that has come
        // first: what is there is there for both.
        if missing > 0.0 && now < granted {
            return Err(granted);
        }
        self.tokens = self.level(now) - cost;
        self.at = self.at.max(now);
        Ok(())
    }

    /// The tokens that are missing at `now`, from a bucket refilled at `rate`,
    /// for `cost` of them once `ahead` were taken; negative if there are more.
    pub(crate) fn missing(mut self, now: Instant, rate: Rate, ahead: u64, cost: u32) -> f64 {
        self.follow(now, rate);
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let ahead = ahead as f64;
        ahead + f64::from(cost).min(Self::depth(rate)) - self.level(now)
    }

    /// Gives back what was taken for an attempt that was never sent.
    pub(crate) fn give_back(&mut self, cost: u32) {
        self.tokens += f64::from(cost);
    }

    /// Takes what an attempt turned out to cost beyond what was taken for it.
    /// The next one waits for it.
    pub(crate) fn charge(&mut self, cost: u32) {
        if cost > 0 {
            // What is full is full of its depth, and no more.
            self.tokens = self.tokens.min(self.rate.map_or(1.0, Self::depth));
            self.tokens -= f64::from(cost);
        }
    }

    /// Empties the bucket as of `now`: what a pause refilled is no capacity.
    pub(crate) fn drain(&mut self, now: Instant) {
        self.tokens = self.level(now).min(0.0);
        self.at = self.at.max(now);
        self.rate = None;
    }

    /// Refills at `rate` from `now` on.
    fn follow(&mut self, now: Instant, rate: Rate) {
        let old = *self.rate.get_or_insert(rate);
        if old != rate {
            self.tokens = self.level(now);
            self.at = self.at.max(now);
            self.rate = Some(rate);
        }
    }

    /// The level at `now`, within the depth.
    fn level(&self, now: Instant) -> f64 {
        let Some(rate) = self.rate else {
            return self.tokens;
        };
        (self.tokens + rate.get() * now.secs_since(self.at)).min(Self::depth(rate))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn any_rate() -> impl Strategy<Value = Rate> {
        // Every order of magnitude alike.
        (-6.0..9.0f64).prop_map(|exponent| Rate::per_second(10f64.powf(exponent)))
    }

    fn any_cost() -> impl Strategy<Value = u32> {
        prop_oneof![4 => Just(1u32), 1 => 0..20u32, 1 => any::<u32>()]
    }

    /// Waits, rates, costs: what a bucket meets.
    fn any_steps() -> impl Strategy<Value = Vec<(u64, Rate, u32)>> {
        let wait = prop_oneof![
            Just(0u64),
            0..1_000_000u64,
            0..10_000_000_000u64,
            any::<u64>()
        ];
        prop::collection::vec((wait, any_rate(), any_cost()), 1..60)
    }

    #[test]
    fn a_bucket_grants_at_the_rate_and_never_early() {
        let mut bucket = Bucket::empty(Instant::ZERO);
        let rate = Rate::per_second(7.0);
        let mut now = Instant::ZERO;
        for nth in 1..=10_000u64 {
            now = bucket.take(now, rate, 1).unwrap_err();
            bucket.take(now, rate, 1).unwrap();
            let due = u128::from(nth) * 1_000_000_000;
            let at = u128::from(now.as_nanos()) * 7;
            assert!(at >= due, "token {nth} came early, at {now:?}");
            assert!(at < due + 14, "token {nth} came late, at {now:?}");
        }
    }

    #[test]
    fn a_full_bucket_holds_its_depth_and_no_more() {
        let mut bucket = Bucket::full(Instant::ZERO);
        let rate = Rate::per_second(50.0);
        let now = Instant::ZERO + Duration::from_secs(3600);
        let granted = (0..100).take_while(|_| bucket.take(now, rate, 1).is_ok());
        assert_eq!(granted.count(), 5);
    }

    #[test]
    fn a_cost_beyond_the_depth_waits_for_a_full_bucket_and_delays_the_next() {
        let mut bucket = Bucket::empty(Instant::ZERO);
        let rate = Rate::per_second(100.0);
        let full = bucket.take(Instant::ZERO, rate, 1000).unwrap_err();
        assert_eq!(full, Instant::ZERO + Duration::from_millis(100));
        bucket.take(full, rate, 1000).unwrap();
        let next = bucket.take(full, rate, 1).unwrap_err();
        assert_eq!(next, full + Duration::from_millis(9910));
    }

    #[test]
    fn time_before_a_change_of_rate_counts_at_the_old_rate() {
        let mut bucket = Bucket::empty(Instant::ZERO);
        let (slow, fast) = (Rate::per_second(0.1), Rate::per_second(100.0));
        let almost = Instant::ZERO + Duration::from_secs(9);
        bucket.take(Instant::ZERO, slow, 1).unwrap_err();
        let soon = bucket.take(almost, fast, 1).unwrap_err();
        assert_eq!(soon, almost + Duration::from_millis(1));
    }

    #[test]
    fn a_drained_bucket_keeps_its_debt_and_what_is_given_back_is_there() {
        let mut bucket = Bucket::full(Instant::ZERO);
        let rate = Rate::per_second(1.0);
        bucket.take(Instant::ZERO, rate, 3).unwrap();
        bucket.drain(Instant::ZERO);
        let next = bucket.take(Instant::ZERO, rate, 1).unwrap_err();
        assert!(
            next > Instant::ZERO + Duration::from_millis(2990),
            "{next:?}"
        );
        bucket.give_back(3);
        bucket.take(Instant::ZERO, rate, 1).unwrap();
    }

    /// Two threads read the clock and then come to the lock the other way
    /// round: neither is told to wait for what is there.
    #[test]
    fn an_attempt_that_comes_late_to_the_lock_finds_the_tokens_there() {
        let rate = Rate::per_second(1000.0);
        let (early, late) = (Instant::from_nanos(10), Instant::from_nanos(20));
        let mut bucket = Bucket::full(Instant::ZERO);
        assert_eq!(bucket.take(late, rate, 1), Ok(()));
        assert_eq!(bucket.take(early, rate, 1), Ok(()));
        // And time that has been counted once is not counted again.
        assert_eq!(bucket.at, late);
    }

    proptest! {
        /// A promise is the first instant at which a token is granted.
        #[test]
        fn what_is_promised_is_granted_then_and_not_before(steps in any_steps(), rate in any_rate()) {
            let mut bucket = Bucket::empty(Instant::ZERO);
            let mut now = Instant::ZERO;
            for (wait, other, cost) in steps {
                now += Duration::from_nanos(wait);
                let _ = bucket.take(now, other, cost);
                let Err(at) = bucket.take(now, rate, 1) else { continue };
                prop_assert!(at > now);
                let before = Instant::from_nanos(at.as_nanos() - 1);
                prop_assert_eq!(bucket.take(before, rate, 1), Err(at));
                prop_assert_eq!(bucket.take(at, rate, 1), Ok(()));
                now = at;
            }
        }

        /// Whatever is asked and when, the level is a number within the depth.
        #[test]
        fn a_bucket_is_total(steps in any_steps(), back in any_cost()) {
            let mut bucket = Bucket::full(Instant::ZERO);
            let mut now = Instant::ZERO;
            for (nth, (wait, rate, cost)) in steps.into_iter().enumerate() {
                now += Duration::from_nanos(wait);
                let _ = bucket.take(now, rate, cost);
                match nth % 7 {
                    3 => bucket.give_back(back),
                    5 => bucket.drain(now),
                    _ => {}
                }
                let level = bucket.level(now);
                prop_assert!(!level.is_nan());
                prop_assert!(bucket.rate.is_none_or(|rate| level <= Bucket::depth(rate)));
            }
        }

        /// Between any two instants at most the depth and the refill go out.
        #[test]
        fn no_interval_grants_more_than_depth_and_refill(
            rate in any_rate(),
            asks in prop::collection::vec((0.0..3.0f64, 0..5u32), 1..200),
        ) {
            let mut bucket = Bucket::full(Instant::ZERO);
            let mut now = Instant::ZERO;
            let mut granted: Vec<(Instant, f64)> = Vec::new();
            for (tokens, cost) in asks {
                now += seconds(tokens / rate.get());
                if bucket.take(now, rate, cost).is_ok() && cost > 0 {
                    granted.push((now, f64::from(cost)));
                }
            }
            for (first, (since, _)) in granted.iter().enumerate() {
                let mut sum = 0.0;
                for (at, cost) in &granted[first..] {
                    let allowed = Bucket::depth(rate).max(*cost) + rate.get() * at.secs_since(*since);
                    // What comes before the last one fits; the last one may
                    // be beyond the depth.
                    prop_assert!(sum <= allowed * (1.0 + 1e-9), "{sum} of {allowed}");
                    sum += cost;
                    let fits = *cost <= Bucket::depth(rate);
                    prop_assert!(!fits || sum <= allowed * (1.0 + 1e-9), "{sum} of {allowed}");
                }
            }
        }
    }
}
