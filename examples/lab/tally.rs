//! What one run did, second by second.

use crate::scenario::Scenario;

/// What happened in one run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Per second of simulated time.
    pub(crate) seconds: Vec<Second>,
    /// From arrival to answer, in seconds, of calls after the warm-up.
    pub(crate) waits: Vec<f32>,
    /// Accepted after the warm-up, per caller and per replica.
    pub(crate) callers: Vec<f64>,
    pub(crate) replicas: Vec<f64>,
    /// Sends before the instant that the server asked for, probes apart, unless
    /// it has since accepted what was sent later than what it refused.
    pub(crate) early: u64,
    warmup: f64,
}

/// What happened in one second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    pub(crate) accepted: u32,
    pub(crate) rejected: u32,
    /// Requests per second that the law allowed at its end, all replicas.
    pub(crate) rate: f64,
}

impl Tally {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            seconds: vec![Second::default(); scenario.duration_s.ceil() as usize],
            callers: vec![0.0; scenario.replicas * scenario.callers],
            replicas: vec![0.0; scenario.replicas],
            warmup: scenario.warmup_s,
            ..Self::default()
        }
    }

    /// The server answered a request of `caller` at `now`.
    pub(crate) fn answered(&mut self, now: f64, accepted: bool, replica: usize, caller: usize) {
        let Some(second) = self.seconds.get_mut(now as usize) else {
            return;
        };
        if !accepted {
            second.rejected += 1;
            return;
        }
        second.accepted += 1;
        if now >= self.warmup {
            self.replicas[replica] += 1.0;
            let callers = self.callers.len() / self.replicas.len();
            if let Some(count) = self.callers.get_mut(replica * callers + caller) {
                *count += 1.0;
            }
        }
    }

    /// A call that arrived at `arrived` had its answer at `now`.
    pub(crate) fn waited(&mut self, arrived: f64, now: f64) {
        if arrived >= self.warmup {
            self.waits.push((now - arrived) as f32);
        }
    }

    /// At the end of `second` a replica's law allowed `rate`.
    pub(crate) fn paced(&mut self, second: u64, rate: Option<f64>) {
        if let Some(second) = self.seconds.get_mut(second as usize) {
            second.rate += rate.unwrap_or(0.0);
        }
    }

    pub(crate) fn accepted(&self, from: f64, to: f64) -> f64 {
        self.sum(from, to, |second| second.accepted)
    }

    fn sum(&self, from: f64, to: f64, of: impl Fn(&Second) -> u32) -> f64 {
        let (from, to) = (from as usize, (to as usize).min(self.seconds.len()));
        let some = self.seconds.get(from..to).unwrap_or_default();
        some.iter().map(|second| f64::from(of(second))).sum()
    }

    pub(crate) fn rejected_share(&self, from: f64) -> f64 {
        let rejected = self.sum(from, f64::MAX, |second| second.rejected);
        share(rejected, rejected + self.accepted(from, f64::MAX))
    }

    pub(crate) fn percentile(&mut self, share: f64) -> Option<f64> {
        let last = self.waits.len().checked_sub(1)?;
        let nth = (share * last as f64).round() as usize;
        let (_, wait, _) = self.waits.select_nth_unstable_by(nth, f32::total_cmp);
        Some(f64::from(*wait))
    }
}

/// `part` of `whole`; zero of nothing.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
