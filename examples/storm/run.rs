//! What was measured of one way.

use std::time::Duration;

use crate::{Way, callers::Call, server::Arrival};

/// By then a way should have found the quota.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) struct Run {
    pub(crate) way: Way,
    /// Calls that were to be made.
    pub(crate) total: usize,
    pub(crate) seconds: f64,
    /// Requests per second that the server accepts.
    pub(crate) quota: u32,
    /// The calls as the callers saw them.
    pub(crate) calls: Vec<Call>,
    /// The attempts as the server saw them.
    pub(crate) arrivals: Vec<Arrival>,
}

impl Run {
    pub(crate) fn served(&self) -> usize {
        self.calls.iter().filter(|call| call.result.is_ok()).count()
    }

    /// Calls that ended without success, or were never made.
    pub(crate) fn failed(&self) -> usize {
        self.total - self.served()
    }

    pub(crate) fn first_failure(&self) -> Option<&str> {
        self.calls
            .iter()
            .find_map(|call| Some(call.result.as_ref().err()?.as_str()))
    }

    pub(crate) fn refused(&self) -> usize {
        self.arrivals
            .iter()
            .filter(|arrival| !arrival.accepted)
            .count()
    }

    /// The latency, in seconds, that `share` of the calls did not exceed.
    pub(crate) fn latency(&self, share: f64) -> f64 {
        let mut seconds: Vec<f64> = self
            .calls
            .iter()
            .map(|call| call.latency.as_secs_f64())
            .collect();
        seconds.sort_unstable_by(f64::total_cmp);
        let rank = (share * seconds.len() as f64).ceil() as usize;
        seconds
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// Per cent of the quota that were not used once the way had settled.
    pub(crate) fn unused(&self) -> f64 {
        let settled = self.settled();
        let (Some(first), Some(last)) = (settled.first(), settled.last()) else {
            return f64::NAN;
        };
        // The first one only starts the clock.
        let served = settled[1..].iter().filter(|arrival| arrival.accepted);
        let quota = (last.at - first.at).as_secs_f64() * f64::from(self.quota);
        100.0 * (1.0 - served.count() as f64 / quota)
    }

    /// Per cent of the attempts that were refused once the way had settled.
    pub(crate) fn refused_since(&self) -> f64 {
        let settled = self.settled();
        let refused = settled.iter().filter(|arrival| !arrival.accepted).count();
        100.0 * refused as f64 / settled.len() as f64
    }

    fn settled(&self) -> &[Arrival] {
        let first = self
            .arrivals
            .partition_point(|arrival| arrival.at < SETTLED);
        &self.arrivals[first..]
    }
}
