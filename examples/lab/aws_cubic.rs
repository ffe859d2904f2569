//! The law of the AWS SDKs' adaptive retry mode, as the one to beat.
//!
//! Its source is the public "Smithy" retry behaviour: CUBIC on a sending rate,
//! with the measured rate smoothed over half a second.
//!
//! ```text
//! every half second, of n sends in t:  m ← 0.8 · n/t + 0.2 · m
//! throttled:   Wmax ← min(m, r),  K ← ∛(Wmax · (1 − β) / C),  r ← β · Wmax
//! accepted:    r ← C · (t − K)³ + Wmax
//! always:      0.5 ≤ r ≤ 2 m
//! ```
//!
//! As theirs does, it cuts at every throttle, stale or not. It counts answers
//! where they count sends; in the steady state the two are equal.

use tower_retry_after::{
    law::{Attempt, Ended, Law, LawConfig, Rate},
    time::Instant,
};

const BETA: f64 = 0.7;
const C: f64 = 0.4;
const SMOOTH: f64 = 0.8;
const BUCKET_S: f64 = 0.5;
const FLOOR: f64 = 0.5;

#[derive(Clone, Copy, Debug)]
pub(crate) struct AwsCubic;

impl LawConfig for AwsCubic {
    fn start(&self) -> Option<Rate> {
        None
    }

    fn build(&self, now: Instant, rate: Rate) -> Box<dyn Law> {
        Box::new(Cubic {
            rate: rate.get(),
            measured: rate.get(),
            most: rate.get(),
            throttled: now,
            counted: 0.0,
            since: now,
        })
    }
}

#[derive(Debug)]
struct Cubic {
    rate: f64,
    /// The smoothed rate of answers.
    measured: f64,
    /// The rate at the last throttle: Wmax.
    most: f64,
    throttled: Instant,
    counted: f64,
    since: Instant,
}

impl Law for Cubic {
    fn on_attempt(&mut self, attempt: &Attempt) {
        self.measure(attempt.now);
        let calculated = match attempt.ended {
            Ended::Accepted => {
                let k = (self.most * (1.0 - BETA) / C).cbrt();
                let t = attempt.now.secs_since(self.throttled);
                C * (t - k).powi(3) + self.most
            }
            _ => {
                self.most = self.measured.min(self.rate);
                self.throttled = attempt.now;
                BETA * self.most
            }
        };
        self.rate = calculated.min(2.0 * self.measured).max(FLOOR);
    }

    fn set_rate(&mut self, _: Instant, rate: Rate) {
        self.rate = rate.get();
    }

    fn rate(&mut self, _: Instant) -> Rate {
        Rate::per_second(self.rate)
    }
}

impl Cubic {
    fn measure(&mut self, now: Instant) {
        self.counted += 1.0;
        let time = now.secs_since(self.since);
        if time >= BUCKET_S {
            self.measured = SMOOTH * self.counted / time + (1.0 - SMOOTH) * self.measured;
            self.counted = 0.0;
            self.since = now;
        }
    }
}
