//! Servers that enforce a quota, in virtual seconds.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::scenario::{Hint, Model, Scenario};

/// One simulated server. Requests arrive in order of time.
#[derive(Debug)]
pub(crate) struct Server {
    scenario: Scenario,
    meter: Meter,
    rng: StdRng,
}

/// What the server says to one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// Whether the request was served.
    pub(crate) accepted: bool,
    /// The wait that a refusal names, in seconds.
    pub(crate) hint: Option<f64>,
    /// What is left of the quota, and how long until it is raised again.
    pub(crate) remaining: f64,
    pub(crate) reset: f64,
}

/// What is counted, and what was counted last.
#[derive(Debug)]
enum Meter {
    Bucket { tokens: f64, at: f64 },
    Window { count: f64, ends: f64 },
    Log(VecDeque<f64>),
    Slots(BinaryHeap<Reverse<u64>>),
}

impl Server {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let meter = match scenario.model {
            Model::TokenBucket => Meter::Bucket {
                tokens: scenario.depth(),
                at: 0.0,
            },
            Model::FixedWindow => Meter::Window {
                count: 0.0,
                ends: f64::NEG_INFINITY,
            },
            Model::SlidingWindow => Meter::Log(VecDeque::new()),
            Model::Concurrency => Meter::Slots(BinaryHeap::new()),
        };
        Self {
            scenario: scenario.clone(),
            meter,
            rng: StdRng::seed_from_u64(seed ^ 0x5e7),
        }
    }

    /// Answers a request that arrives at `now`.
    pub(crate) fn arrive(&mut self, now: f64) -> Answer {
        let opens = self.opens(now);
        let accepted = opens <= now;
        if accepted || self.scenario.rejected_costs {
            self.count(now, accepted);
        }
        let hint = if accepted {
            None
        } else {
            let wait = self.opens(now) - now;
            self.hint(now, wait)
        };
        Answer {
            accepted,
            hint,
            remaining: self.remaining(now),
            reset: self.reset(now),
        }
    }

    /// How long a request that was served occupies the server, in seconds.
    pub(crate) fn service(&self) -> f64 {
        match self.meter {
            Meter::Slots(_) => self.scenario.service_ms / 1000.0,
            _ => 0.0,
        }
    }

    /// The first instant, from `now` on, at which a request would be served.
    pub(crate) fn opens(&mut self, now: f64) -> f64 {
        let limit = self.scenario.limit * self.scenario.factor(now);
        let window = self.scenario.window_s;
        self.pass(now);
        match &self.meter {
            Meter::Bucket { tokens, at } => {
                // A hair of slack, so that a request exactly on time is served.
                let missing = 1.0 - 1e-9 - tokens;
                at.max(now) + (missing / (limit / window)).max(0.0)
            }
            // A request fits while the count stays within the limit.
            Meter::Window { count, ends } if count + 1.0 > limit.max(1.0) => *ends,
            Meter::Log(log) => match log.len().checked_sub(limit.max(1.0) as usize) {
                Some(over) => log[over] + window,
                None => now,
            },
            Meter::Slots(ends) => match ends.len().checked_sub(limit.max(1.0) as usize) {
                Some(over) => {
                    let mut ends: Vec<u64> = ends.iter().map(|Reverse(nanos)| *nanos).collect();
                    ends.sort_unstable();
                    ends[over] as f64 / 1e9
                }
                None => now,
            },
            Meter::Window { .. } => now,
        }
    }

    /// Lets time pass until `now`.
    fn pass(&mut self, now: f64) {
        let scenario = &self.scenario;
        let window = scenario.window_s;
        match &mut self.meter {
            Meter::Bucket { tokens, at } => {
                let refill = scenario.limit * scenario.factor(*at) / window * (now - *at).max(0.0);
                *tokens = (*tokens + refill).min(scenario.depth());
                *at = at.max(now);
            }
            Meter::Window { count, ends } => {
                if now >= *ends {
                    let nth = ((now - scenario.phase_s) / window).floor();
                    *count = 0.0;
                    *ends = scenario.phase_s + (nth + 1.0) * window;
                }
            }
            Meter::Log(log) => {
                while log.front().is_some_and(|at| *at + window <= now) {
                    log.pop_front();
                }
            }
            Meter::Slots(ends) => {
                while ends
                    .peek()
                    .is_some_and(|Reverse(end)| *end as f64 / 1e9 <= now)
                {
                    ends.pop();
                }
            }
        }
    }

    fn count(&mut self, now: f64, accepted: bool) {
        let service = self.service();
        match &mut self.meter {
            // A rejected request empties a bucket, and never owes.
            Meter::Bucket { tokens, .. } => *tokens = (*tokens - 1.0).max(0.0),
            Meter::Window { count, .. } => *count += 1.0,
            Meter::Log(log) => log.push_back(now),
            Meter::Slots(ends) if accepted => ends.push(Reverse(((now + service) * 1e9) as u64)),
            Meter::Slots(_) => {}
        }
    }

    fn hint(&mut self, now: f64, wait: f64) -> Option<f64> {
        match self.scenario.hint {
            Hint::Ceil => Some(wait.ceil()),
            Hint::Exact => Some(wait),
            // Both are whole seconds: the instant rounded up, `Date` down.
            Hint::Date | Hint::DateSkewed(_) => Some((now + wait).ceil() - now.floor()),
            Hint::Zero => Some(0.0),
            Hint::Constant(secs) => Some(secs),
            Hint::Random(low, high) => Some(self.rng.random_range(low..=high).round()),
            Hint::Absent => None,
        }
    }

    fn remaining(&self, now: f64) -> f64 {
        let limit = self.scenario.limit * self.scenario.factor(now);
        match &self.meter {
            Meter::Bucket { tokens, .. } => tokens.floor(),
            Meter::Window { count, .. } => (limit - count).max(0.0).floor(),
            Meter::Log(log) => (limit - log.len() as f64).max(0.0).floor(),
            Meter::Slots(ends) => (limit - ends.len() as f64).max(0.0).floor(),
        }
    }

    /// How long until more remains than now.
    fn reset(&self, now: f64) -> f64 {
        match &self.meter {
            Meter::Bucket { .. } | Meter::Slots(_) => 1.0,
            Meter::Window { ends, .. } => (ends - now).ceil(),
            Meter::Log(log) => log
                .front()
                .map_or(0.0, |at| (at + self.scenario.window_s - now).ceil()),
        }
    }
}
