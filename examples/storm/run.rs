//! What was measured of one way.

use crate::{Way, callers::Call, server::Arrival};

pub(crate) struct Run {
    pub(crate) way: Way,
    /// Calls that were to be made.
    pub(crate) total: usize,
    pub(crate) seconds: f64,
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
}
