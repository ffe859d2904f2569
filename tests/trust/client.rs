//! One client that always has something to send, played without a clock.

use std::time::{Duration, SystemTime};

use tower_retry_after::{
    time::Instant,
    trust::{Bounds, Category, LongPause, Observed, Reading, Sent, Trust, TrustSnapshot},
    verdict::Hint,
};

/// `secs` seconds.
pub(crate) fn seconds(secs: f64) -> Duration {
    Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX)
}

/// One client that always has something to send, and its scope's trust.
pub(crate) struct Client {
    pub(crate) trust: Trust,
    pub(crate) now: f64,
    pub(crate) bounds: Bounds,
    /// Time for which the scope stayed closed although it would be served.
    pub(crate) wasted: f64,
    pub(crate) refused: u32,
    pub(crate) last: Option<Observed>,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self {
            trust: Trust::new(),
            now: 1.0,
            bounds: Bounds::default(),
            wasted: 0.0,
            refused: 0,
            last: None,
        }
    }

    pub(crate) fn at(&self, secs: f64) -> Reading {
        let wait = seconds(secs);
        Reading {
            now: Instant::ZERO + wait,
            wall: SystemTime::UNIX_EPOCH + wait,
        }
    }

    /// Runs one episode of a server that serves again after `truth` seconds
    /// and asks for `asks(seconds left)` until then.
    pub(crate) fn episode(
        &mut self,
        truth: f64,
        mut asks: impl FnMut(f64) -> Option<f64>,
    ) -> &mut Self {
        let (began, serves) = (self.now, self.now + truth);
        let (mut sent, mut until, mut step) = (self.now, 0.0, 1.0);
        let mut waited = true;
        while sent < serves {
            self.refused += 1;
            let now = self.at(sent).now;
            let hint = asks(serves - sent).map(|wait| {
                let raw = format!("{wait}");
                Hint::new(seconds(wait), "retry-after").raw(raw.as_bytes())
            });
            self.trust.on_throttle(
                self.at(sent),
                Sent { at: now, waited },
                hint.as_ref(),
                Some(429),
            );
            let backoff = seconds(step);
            step = f64::min(step * 2.0, 30.0);
            let decision = self
                .trust
                .sanitise(now, hint.as_ref(), backoff, &self.bounds);
            until = f64::max(until, sent + decision.wait.as_secs_f64());
            let pause = LongPause {
                began: self.at(began).now,
                until: self.at(until).now,
                backoff,
            };
            let early = self.trust.early_probe(&pause, now, &self.bounds);
            // In a pause that is too long nobody waits: the next that comes
            // along is the probe.
            waited = early.is_none();
            sent = early.map_or(until, |at| at.as_nanos() as f64 / 1e9);
        }
        self.wasted += sent - serves;
        let now = self.at(sent);
        self.last = self.trust.on_accepted(
            now,
            Sent {
                at: now.now,
                waited,
            },
        );
        self.now = sent + 1.0;
        self
    }

    pub(crate) fn category(&self) -> Category {
        self.trust.category(self.at(self.now).now)
    }

    pub(crate) fn snapshot(&self) -> TrustSnapshot {
        self.trust.snapshot(self.at(self.now).now)
    }

    /// Forgets what the episodes until now have cost.
    pub(crate) fn settled(&mut self) -> &mut Self {
        (self.wasted, self.refused) = (0.0, 0);
        self
    }
}
