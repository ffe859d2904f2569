//! The retry budget of a scope.

use crate::time::Instant;

/// How many retries a scope may make over all its calls.
///
/// # Why a budget and not only a number of attempts
///
/// Four attempts a call are right when one call in a hundred is refused, and
/// make four times the load when all are. The budget bounds what retries add,
/// however many calls there are.
///
/// # The bound
///
/// Time is cut into slots of a second. A retry at `t` is granted only if with
/// it the retries of the last eleven slots are at most 100 plus a fifth of the
/// attempts of the last ten. Eleven slots cover the 10 s before `t`, ten never
/// reach beyond them, so for every retry:
///
/// > retries in [t − 10 s, t] ≤ 100 + attempts in (t − 10 s, t] ÷ 5
///
/// A count of attempts counts for a fifth of a retry: all in whole numbers.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// The newest slot.
    slot: u32,
    /// The slot in which attempts were counted last.
    counted: u32,
    attempts: [u32; 10],
    retries: [u32; 11],
}

impl Budget {
    /// Attempts that pay for one retry: 20 %.
    const PER_RETRY: u64 = 5;

    /// Retries that need no attempts to pay for them: 10/s over 10 s.
    const FREE: u64 = 100;

    /// A budget that counts from `since` on.
    pub(crate) fn new(since: Instant) -> Self {
        let slot = slot(since);
        Self {
            slot,
            counted: slot,
            attempts: [0; 10],
            retries: [0; 11],
        }
    }

    /// Counts `n` attempts sent since the last count.
    ///
    /// They are spread evenly over that time: a scope that has nothing to learn
    /// need not count one by one, and what was sent an hour ago pays nothing.
    pub(crate) fn attempts(&mut self, now: Instant, n: u32) {
        self.advance(now);
        let slots = (self.slot - self.counted).max(1);
        let recent = slots.min(self.attempts.len() as u32);
        self.counted = self.slot;
        // n · recent ÷ slots of them are recent enough, and that is at most n.
        let n = (u64::from(n) * u64::from(recent) / u64::from(slots)) as u32;
        for back in 0..recent {
            let rest = if back == 0 { n % recent } else { 0 };
            let count = at(&mut self.attempts, self.slot - back);
            *count = count.saturating_add(n / recent + rest);
        }
    }

    /// Pays for one retry sent at `now`, if there is anything to pay with.
    pub(crate) fn withdraw(&mut self, now: Instant) -> bool {
        let granted = self.has(now);
        if granted {
            let count = at(&mut self.retries, self.slot);
            *count = count.saturating_add(1);
        }
        granted
    }

    /// Whether a retry could be paid for at `now`.
    pub(crate) fn has(&mut self, now: Instant) -> bool {
        self.advance(now);
        let sum = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>();
        let spent = Self::PER_RETRY * (sum(&self.retries) + 1);
        spent <= Self::PER_RETRY * Self::FREE + sum(&self.attempts)
    }

    /// Forgets what is too old at `now`. An earlier `now` counts as the newest.
    fn advance(&mut self, now: Instant) {
        let passed = slot(now).saturating_sub(self.slot);
        self.slot += passed;
        for back in 0..passed.min(self.retries.len() as u32) {
            *at(&mut self.attempts, self.slot - back) = 0;
            *at(&mut self.retries, self.slot - back) = 0;
        }
    }
}

/// The slot of `now`: seconds, for 136 years.
fn slot(now: Instant) -> u32 {
    u32::try_from(now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}

/// The count of `slot` in a ring of the last `N`.
fn at<const N: usize>(ring: &mut [u32; N], slot: u32) -> &mut u32 {
    &mut ring[slot as usize % N]
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::RngSeed};

    use super::*;

    fn at_ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_budget_is_small() {
        assert!(size_of::<Budget>() <= 100, "{}", size_of::<Budget>());
    }

    #[test]
    fn without_attempts_a_hundred_retries_are_free_in_ten_seconds() {
        let mut budget = Budget::new(Instant::ZERO);
        let granted = (0..1_000).filter(|_| budget.withdraw(at_ms(0))).count();
        assert_eq!(granted, 100);
        assert!(!budget.has(at_ms(10_999)));
        assert!(budget.has(at_ms(11_000)));
    }

    #[test]
    fn five_attempts_pay_for_one_retry() {
        let mut budget = Budget::new(Instant::ZERO);
        budget.attempts(at_ms(0), 54);
        let granted = (0..1_000).filter(|_| budget.withdraw(at_ms(9_999))).count();
        assert_eq!(granted, 110);
    }

    #[test]
    fn attempts_of_more_than_ten_seconds_ago_pay_nothing() {
        let mut budget = Budget::new(Instant::ZERO);
        budget.attempts(at_ms(0), 1_000_000);
        let granted = (0..1_000)
            .filter(|_| budget.withdraw(at_ms(10_000)))
            .count();
        assert_eq!(granted, 100);
    }

    #[test]
    fn attempts_counted_after_an_hour_pay_for_its_last_ten_seconds() {
        let mut budget = Budget::new(Instant::ZERO);
        // 10/s; the last ten seconds are a hundred, which pay for twenty.
        budget.attempts(at_ms(3_600_000), 36_000);
        let granted = (0..1_000)
            .filter(|_| budget.withdraw(at_ms(3_600_000)))
            .count();
        assert_eq!(granted, 120);
    }

    #[test]
    fn attempts_are_spread_over_the_time_since_the_last_count_only() {
        let mut budget = Budget::new(Instant::ZERO);
        budget.attempts(at_ms(3_600_000), 0);
        budget.attempts(at_ms(3_601_000), 50);
        let granted = (0..1_000)
            .filter(|_| budget.withdraw(at_ms(3_601_000)))
            .count();
        assert_eq!(granted, 110);
    }

    #[test]
    fn a_budget_made_late_counts_from_then_on() {
        let mut budget = Budget::new(at_ms(3_600_000));
        budget.attempts(at_ms(3_600_500), 50);
        let granted = (0..1_000)
            .filter(|_| budget.withdraw(at_ms(3_600_500)))
            .count();
        assert_eq!(granted, 110);
    }

    #[test]
    fn counts_and_clocks_at_their_ends_do_not_overflow() {
        let mut budget = Budget::new(Instant::ZERO);
        for now in [Instant::ZERO, Instant::NEVER, at_ms(5_000), Instant::NEVER] {
            budget.attempts(now, u32::MAX);
            budget.attempts(now, u32::MAX);
            assert!(budget.withdraw(now));
        }
    }

    /// What is done to a budget, and milliseconds since the step before.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Attempts(u32),
        Withdraw(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
        let passed = prop_oneof![6 => 0..300_u64, 2 => 0..3_000_u64, 1 => 9_000..30_000_u64];
        let step = prop_oneof![
            (0..400_u32).prop_map(Step::Attempts),
            (1..150_u32).prop_map(Step::Withdraw),
        ];
        prop::collection::vec((passed, step), 0..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(429),
            ..ProptestConfig::default()
        })]

        #[test]
        fn retries_of_ten_seconds_are_a_hundred_and_a_fifth_of_the_attempts(steps in steps()) {
            const WINDOW: u64 = 10_000;
            let mut budget = Budget::new(Instant::ZERO);
            let (mut attempts, mut retries) = (Vec::new(), Vec::new());
            let mut now = 0;
            for (passed, step) in steps {
                now += passed;
                match step {
                    Step::Attempts(n) => {
                        budget.attempts(at_ms(now), n);
                        attempts.extend(vec![now; n as usize]);
                    }
                    Step::Withdraw(n) => {
                        let granted = (0..n).take_while(|_| budget.withdraw(at_ms(now))).count();
                        retries.extend(vec![now; granted]);
                        if granted > 0 {
                            let made = retries.iter().filter(|at| **at + WINDOW >= now).count();
                            let paid = attempts.iter().filter(|at| **at + WINDOW > now).count();
                            prop_assert!(made <= 100 + paid / 5, "{made} for {paid} at {now}");
                        }
                    }
                }
            }
        }

        #[test]
        fn a_retry_is_refused_only_when_eleven_seconds_have_had_their_hundred(steps in steps()) {
            // The bound from the other side: ten a second stay free.
            let mut budget = Budget::new(Instant::ZERO);
            let mut retries = Vec::new();
            let mut now = 0;
            for (passed, step) in steps {
                now += passed;
                let Step::Withdraw(n) = step else { continue };
                let granted = (0..n).take_while(|_| budget.withdraw(at_ms(now))).count();
                retries.extend(vec![now; granted]);
                if granted < n as usize {
                    let made = retries.iter().filter(|at| **at + 11_000 >= now).count();
                    prop_assert!(made >= 100, "{made} at {now}");
                }
            }
        }
    }
}
