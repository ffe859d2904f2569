//! The clock that runs while callers wait.

use crate::time::Instant;

/// Counts the seconds in which callers waited for the rate.
///
/// An idle hour is no evidence of capacity, nor is a pause: all that happens
/// by time in this law happens by this clock.
#[derive(Debug)]
pub(super) struct Busy {
    /// Up to `seen`.
    total: f64,
    seen: Instant,
    /// Callers were waiting then.
    waiting: bool,
    /// For how long that may be taken to go on, unseen.
    most: f64,
    paused: bool,
}

impl Busy {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            total: 0.0,
            seen: now,
            waiting: false,
            most: 0.0,
            paused: false,
        }
    }

    /// The reading at `now`, in seconds.
    pub(super) fn at(&self, now: Instant) -> f64 {
        match self.waiting {
            true => self.total + now.secs_since(self.seen).min(self.most),
            false => self.total,
        }
    }

    /// An attempt ended, and callers were `waiting` for `rate`. Gives the
    /// seconds in which it was to be expected, and nobody came.
    pub(super) fn attempted(&mut self, now: Instant, waiting: bool, rate: f64) -> f64 {
        self.total = self.at(now);
        let idle = match self.paused {
            true => 0.0,
            false => (now.secs_since(self.seen) - self.most).max(0.0),
        };
        self.seen = now;
        self.waiting = waiting && !self.paused;
        // While they wait, the next answer is about one interval away.
        self.most = 1.0 + 2.0 / rate;
        idle
    }

    pub(super) fn paused(&mut self, now: Instant) {
        self.total = self.at(now);
        self.waiting = false;
        self.paused = true;
    }

    pub(super) fn resumed(&mut self, now: Instant) {
        self.total = self.at(now);
        self.seen = now;
        self.paused = false;
    }
}
