//! What every scope of one registry obeys.

use std::{borrow::Cow, sync::Arc, time::Duration};

use super::queue::NAMED;
use crate::{
    law::{LawConfig, Learned, Rate},
    trust::Bounds,
};

/// What every scope of one [`Scopes`](super::Scopes) obeys.
///
/// # Defaults
///
/// | setting | default |
/// | --- | --- |
/// | [`min_pause`](Self::min_pause) | 1 s |
/// | [`max_pause`](Self::max_pause) | 60 s |
/// | [`law`](Self::law) | [`Learned::new`], dormant until the first throttle |
/// | [`max_in_flight`](Self::max_in_flight) | no limit |
/// | [`max_waiters`](Self::max_waiters) | 10 000 a scope |
/// | [`max_scopes`](Self::max_scopes) | 10 000 |
/// | [`idle`](Self::idle) | 1 h |
/// | [`seed`](Self::seed) | drawn from the system |
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) min_pause: Duration,
    pub(crate) max_pause: Duration,
    pub(crate) law: Arc<dyn LawConfig>,
    pub(crate) max_in_flight: Option<u32>,
    pub(crate) max_waiters: usize,
    pub(crate) max_scopes: usize,
    pub(crate) idle: Duration,
    pub(crate) seed: Option<u64>,
    pub(crate) buckets: Vec<(Cow<'static, str>, Rate)>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(60),
            law: Arc::new(Learned::new()),
            max_in_flight: None,
            max_waiters: 10_000,
            max_scopes: 10_000,
            idle: Duration::from_secs(3600),
            seed: None,
            buckets: Vec::new(),
        }
    }
}

impl Policy {
    /// The defaults above.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the shortest pause, and the first step of the own backoff.
    ///
    /// Defaults to 1 s; at least 1 ms, or a server could make a hot loop of
    /// us.
    #[must_use]
    pub fn min_pause(mut self, pause: Duration) -> Self {
        self.min_pause = pause.max(Duration::from_millis(1));
        self
    }

    /// Sets the longest pause that calls wait out. Defaults to 60 s.
    ///
    /// A longer one is not slept through: it ends the call that met it, and
    /// refuses those that come while it lasts. It is never shortened.
    #[must_use]
    pub fn max_pause(mut self, pause: Duration) -> Self {
        self.max_pause = pause;
        self
    }

    /// Sets the control law. Defaults to [`Learned::new`].
    #[must_use]
    pub fn law(mut self, law: impl LawConfig) -> Self {
        self.law = Arc::new(law);
        self
    }

    /// Sets how many attempts of one scope may be in flight, at least one.
    /// Defaults to no limit.
    ///
    /// An attempt is in flight until its response body has ended.
    #[must_use]
    pub fn max_in_flight(mut self, most: u32) -> Self {
        self.max_in_flight = Some(most.max(1));
        self
    }

    /// Sets how many calls may wait in one scope. Defaults to 10 000.
    #[must_use]
    pub fn max_waiters(mut self, most: usize) -> Self {
        self.max_waiters = most;
        self
    }

    /// Sets how many scopes are kept apart. Defaults to 10 000.
    ///
    /// Beyond that, new keys share the overflow scope of their parent.
    #[must_use]
    pub fn max_scopes(mut self, most: usize) -> Self {
        self.max_scopes = most;
        self
    }

    /// Sets after what time an idle scope may be forgotten. Defaults to 1 h.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Seeds the jitter, so that a test sees the same figures every time.
    /// Drawn from the system by default.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What no hint goes beyond.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            min_pause: self.min_pause_bounded(),
            max_pause: self.max_pause,
        }
    }

    /// Adds a bucket for another unit than requests, refilled at `per_second`:
    /// tokens of a language model, say. None by default, and three at most;
    /// any further one is left out.
    ///
    /// What an attempt takes of it is its [`Cost`](crate::Cost).
    #[must_use]
    pub fn bucket(mut self, name: impl Into<Cow<'static, str>>, per_second: f64) -> Self {
        if self.buckets.len() < NAMED {
            self.buckets
                .push((name.into(), Rate::per_second(per_second)));
        }
        self
    }

    pub(crate) fn min_pause_bounded(&self) -> Duration {
        // A floor above the ceiling would make every pause a refusal.
        self.min_pause
            .min(self.max_pause.max(Duration::from_millis(1)))
    }
}
