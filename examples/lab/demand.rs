//! When callers want something, and how long the way to the server is.

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::scenario::{Demand, Scenario};

/// The instants at which the callers of one replica arrive.
///
/// Saturating callers arrive once, and again whenever they have their answer.
#[derive(Debug)]
pub(crate) struct Arrivals {
    demand: Demand,
    callers: usize,
    until: f64,
    nth: usize,
    last: f64,
    rng: StdRng,
}

impl Arrivals {
    pub(crate) fn new(scenario: &Scenario, seed: u64, replica: usize) -> Self {
        Self {
            demand: scenario.demand,
            callers: scenario.callers,
            until: scenario.duration_s,
            nth: 0,
            last: 0.0,
            rng: StdRng::seed_from_u64(seed ^ 0xca11 ^ ((replica as u64) << 32)),
        }
    }
}

impl Iterator for Arrivals {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let nth = self.nth;
        self.nth += 1;
        match self.demand {
            Demand::Saturating => (nth < self.callers).then_some(0.0),
            Demand::Poisson(rate) => {
                let uniform: f64 = self.rng.random();
                self.last += -(1.0 - uniform).ln() / rate;
                (self.last < self.until).then_some(self.last)
            }
            Demand::Bursts(calls, period) => {
                let at = (nth / calls) as f64 * period;
                (at < self.until).then_some(at)
            }
        }
    }
}

/// The way to the server and back.
#[derive(Debug)]
pub(crate) struct Path {
    half: f64,
    jitter: f64,
    rng: StdRng,
}

impl Path {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        Self {
            half: scenario.rtt_ms / 2000.0,
            jitter: scenario.rtt_jitter,
            rng: StdRng::seed_from_u64(seed ^ 0x9a7b),
        }
    }

    /// Seconds that one message takes.
    pub(crate) fn one_way(&mut self) -> f64 {
        self.half * self.rng.random_range(1.0 - self.jitter..=1.0 + self.jitter)
    }
}
