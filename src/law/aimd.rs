//! The textbook law: halve at a throttle, climb a little while there is none.
//!
//! # The law
//!
//! With a target *T*, a floor *F* and the rate *r*, which starts at *T*:
//!
//! ```text
//! throttled:                                r ← max(F, r / 2)
//! a clean minute in which callers waited:   r ← min(T, r + T / 20)
//! ```
//!
//! It cuts once per epoch: of a burst that was refused as one, the first
//! answer cuts and the others are stale. It never exceeds its target, and a
//! throttle that speaks of concurrency leaves it alone.
//!
//! # What it costs
//!
//! A saw tooth: each climb ends in a refusal and is paid with half the rate.
//! Against a steady quota it serves about three quarters of what could be had.
//! What it offers is a bound and an equation that fit on one line.

use std::time::Duration;

use crate::{
    law::{Attempt, Ended, Law, LawConfig, Rate},
    time::Instant,
    verdict::ThrottleKind,
};

/// How long nothing may be refused before the rate grows, pauses apart.
const CLEAN: Duration = Duration::from_secs(60);

/// What is left of the rate after a throttle.
const KEEP: f64 = 0.5;

/// The share of the target that one clean minute adds.
const STEP: f64 = 0.05;

/// Additive increase, multiplicative decrease: the settings of that law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    start: Option<Rate>,
    floor: Rate,
}

impl Aimd {
    /// Starts at `per_second` requests a second and never exceeds that.
    pub const fn per_second(per_second: f64) -> Self {
        Self {
            start: Some(Rate::per_second(per_second)),
            floor: Rate::FLOOR,
        }
    }

    /// Leaves a scope alone until its first throttle, then takes the rate that
    /// was measured until then as its target.
    pub const fn measured() -> Self {
        Self {
            start: None,
            floor: Rate::FLOOR,
        }
    }

    /// Sets the rate, per second, below which no throttle cuts.
    ///
    /// Defaults to one request per second.
    #[must_use]
    pub const fn floor(mut self, per_second: f64) -> Self {
        self.floor = Rate::per_second(per_second);
        self
    }
}

/// As [`Aimd::measured`].
impl Default for Aimd {
    fn default() -> Self {
        Self::measured()
    }
}

impl LawConfig for Aimd {
    fn start(&self) -> Option<Rate> {
        self.start
    }

    fn build(&self, now: Instant, rate: Rate) -> Box<dyn Law> {
        let target = rate.at_least(self.floor);
        Box::new(SawTooth {
            floor: self.floor,
            target,
            rate: target,
            minute: Minute::starting(now),
        })
    }
}

/// The law that [`Aimd`] builds.
#[derive(Debug)]
struct SawTooth {
    floor: Rate,
    target: Rate,
    rate: Rate,
    minute: Minute,
}

/// The minute that is being lived through.
#[derive(Debug)]
struct Minute {
    since: Instant,
    waited: bool,
    paused: Option<Instant>,
}

impl Minute {
    const fn starting(now: Instant) -> Self {
        Self {
            since: now,
            waited: false,
            paused: None,
        }
    }
}

impl Law for SawTooth {
    fn on_attempt(&mut self, attempt: &Attempt) {
        if attempt.stale {
            return;
        }
        match attempt.ended {
            Ended::Accepted => {
                if attempt.now - self.minute.since >= CLEAN && self.minute.paused.is_none() {
                    if self.minute.waited {
                        self.grow();
                    }
                    self.minute = Minute::starting(attempt.now);
                }
                self.minute.waited |= attempt.waiting;
            }
            Ended::Throttled {
                kind: ThrottleKind::ConcurrencyLimited,
                ..
            } => {}
            Ended::Throttled { .. } => {
                self.cut();
                self.minute = Minute {
                    paused: self.minute.paused,
                    ..Minute::starting(attempt.now)
                };
            }
        }
    }

    fn on_pause(&mut self, now: Instant, _: Instant) {
        self.minute.paused.get_or_insert(now);
    }

    fn on_resume(&mut self, now: Instant) {
        // Nothing is sent in a pause, so it is no part of a clean minute.
        if let Some(paused) = self.minute.paused.take() {
            self.minute.since += now - paused.max(self.minute.since);
        }
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.target = rate.at_least(self.floor);
        self.rate = self.target;
        self.minute = Minute {
            paused: self.minute.paused,
            ..Minute::starting(now)
        };
    }

    fn rate(&mut self, _: Instant) -> Rate {
        self.rate
    }
}

impl SawTooth {
    fn cut(&mut self) {
        // r ← max(F, r / 2)
        self.rate = Rate::per_second(self.rate.get() * KEEP).at_least(self.floor);
    }

    fn grow(&mut self) {
        // r ← min(T, r + T / 20)
        let grown = self.rate.get() + self.target.get() * STEP;
        self.rate = Rate::per_second(grown).at_most(self.target);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REFUSED: Ended = Ended::Throttled {
        kind: ThrottleKind::RateLimited,
        asked: None,
    };

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn ended(secs: u64, ended: Ended) -> Attempt {
        Attempt::new(at(secs), at(secs), ended).waiting(true)
    }

    fn law(config: Aimd) -> Box<dyn Law> {
        let rate = config.start().unwrap_or(Rate::per_second(100.0));
        config.build(at(0), rate)
    }

    #[test]
    fn a_throttle_halves_and_a_clean_minute_adds_a_twentieth() {
        let mut law = law(Aimd::per_second(100.0));
        law.on_attempt(&ended(10, REFUSED));
        for (secs, rate) in [(10, 50.0), (69, 50.0), (70, 55.0), (129, 55.0), (130, 60.0)] {
            law.on_attempt(&ended(secs, Ended::Accepted));
            assert_eq!(law.rate(at(secs)).get(), rate, "at {secs} s");
        }
    }

    #[test]
    fn a_burst_refused_as_one_cuts_once() {
        let mut law = law(Aimd::per_second(100.0));
        law.on_attempt(&ended(1, REFUSED));
        for _ in 0..63 {
            law.on_attempt(&ended(1, REFUSED).stale(true));
        }
        assert_eq!(law.rate(at(1)).get(), 50.0);
    }

    #[test]
    fn an_idle_hour_is_no_evidence_of_capacity() {
        let mut law = law(Aimd::per_second(100.0));
        law.on_attempt(&ended(0, REFUSED));
        for secs in 0..3600 {
            law.on_attempt(&ended(secs, Ended::Accepted).waiting(false));
        }
        assert_eq!(law.rate(at(3600)).get(), 50.0);
    }

    #[test]
    fn a_pause_is_no_part_of_a_clean_minute() {
        let mut law = law(Aimd::per_second(100.0));
        law.on_attempt(&ended(0, REFUSED));
        law.on_pause(at(0), at(50));
        law.on_resume(at(50));
        for secs in 50..110 {
            law.on_attempt(&ended(secs, Ended::Accepted));
            assert_eq!(law.rate(at(secs)).get(), 50.0);
        }
        law.on_attempt(&ended(110, Ended::Accepted));
        assert_eq!(law.rate(at(110)).get(), 55.0);
    }

    #[test]
    fn a_limit_on_concurrency_leaves_the_rate_alone() {
        let mut law = law(Aimd::per_second(100.0));
        let kind = ThrottleKind::ConcurrencyLimited;
        law.on_attempt(&ended(1, Ended::Throttled { kind, asked: None }));
        assert_eq!(law.rate(at(1)).get(), 100.0);
    }

    #[test]
    fn it_sleeps_until_the_first_throttle_unless_told_a_rate() {
        assert_eq!(Aimd::default().start(), None);
        assert_eq!(Aimd::per_second(7.0).start(), Some(Rate::per_second(7.0)));
        let mut law = Aimd::measured().build(at(5), Rate::per_second(30.0));
        law.on_attempt(&ended(5, REFUSED));
        assert_eq!(law.rate(at(5)).get(), 15.0);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Attempt(Ended, bool, bool),
        Pause,
        Resume,
        Set(f64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let kind = prop_oneof![
            Just(ThrottleKind::RateLimited),
            Just(ThrottleKind::ConcurrencyLimited),
            Just(ThrottleKind::Overloaded),
        ];
        let ended = prop_oneof![
            6 => Just(Ended::Accepted),
            1 => kind.prop_map(|kind| Ended::Throttled { kind, asked: None }),
        ];
        prop_oneof![
            12 => (ended, any::<bool>(), any::<bool>()).prop_map(|(e, s, w)| Step::Attempt(e, s, w)),
            1 => Just(Step::Pause),
            1 => Just(Step::Resume),
            1 => any::<f64>().prop_map(Step::Set),
        ]
    }

    fn feed(law: &mut dyn Law, now: Instant, step: Step) {
        match step {
            Step::Attempt(ended, stale, waiting) => {
                law.on_attempt(&Attempt::new(now, now, ended).stale(stale).waiting(waiting));
            }
            Step::Pause => law.on_pause(now, now + CLEAN),
            Step::Resume => law.on_resume(now),
            Step::Set(rate) => law.set_rate(now, Rate::per_second(rate)),
        }
    }

    proptest! {
        /// The rate stays a number within floor and target, and two laws that
        /// saw the same give the same.
        #[test]
        fn whatever_happens_the_rate_keeps_within_its_bounds(
            start in any::<f64>(),
            floor in any::<f64>(),
            steps in prop::collection::vec((any::<u64>(), any_step()), 0..300),
        ) {
            let config = Aimd::per_second(start).floor(floor);
            let (mut law, mut twin) = (law(config), law(config));
            let mut now = Instant::ZERO;
            let mut ceiling = Rate::per_second(start).at_least(Rate::per_second(floor));
            for (nanos, step) in steps {
                now += Duration::from_nanos(nanos % 100_000_000_000);
                if let Step::Set(rate) = step {
                    ceiling = Rate::per_second(rate).at_least(Rate::per_second(floor));
                }
                feed(&mut *law, now, step);
                feed(&mut *twin, now, step);
                let rate = law.rate(now);
                prop_assert_eq!(rate, twin.rate(now));
                prop_assert!(rate >= Rate::per_second(floor) && rate <= ceiling, "{:?}", rate);
            }
        }
    }
}
