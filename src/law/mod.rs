//! Control laws: from throttles and accepted attempts to a rate.
//!
//! A [`Law`] is pure. It owns no clock, no lock and no task: events go in,
//! each with its instant, and a [`Rate`] comes out. It runs under the lock of
//! its scope, so it must be quick; one that panics is replaced by [`Fixed`] at
//! [`Rate::FLOOR`].
//!
//! A [`LawConfig`] is a law's settings, and builds one law for each scope that
//! needs one: at once if it has a [starting rate](LawConfig::start), else at
//! the scope's first throttle, with the rate that was measured until then. A
//! host that never refuses is never slowed.

mod aimd;
mod bucket;
mod concurrency;
mod fixed;
pub mod learned;

use std::{fmt, time::Duration};

pub use self::{aimd::Aimd, fixed::Fixed, learned::Learned};
pub(crate) use self::{bucket::Bucket, concurrency::Concurrency};
use crate::{
    time::{Instant, seconds},
    verdict::ThrottleKind,
};

/// Requests per second: finite and at least a millionth, by construction.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// One request in about twelve days: the slowest rate there is.
    pub const SLOWEST: Self = Self(1e-6);

    /// As fast as a count of nanoseconds can tell.
    pub const FASTEST: Self = Self(1e9);

    /// One request per second: what a law falls back to.
    pub const FLOOR: Self = Self(1.0);

    /// `per_second` requests a second, brought within
    /// [`SLOWEST`](Self::SLOWEST)`..=`[`FASTEST`](Self::FASTEST); NaN is the
    /// slowest.
    pub const fn per_second(per_second: f64) -> Self {
        if per_second > Self::FASTEST.0 {
            Self::FASTEST
        } else if per_second > Self::SLOWEST.0 {
            Self(per_second)
        } else {
            // NaN compares false with everything, and so ends here.
            Self::SLOWEST
        }
    }

    /// Requests per second.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// `self`, at least `floor`.
    pub fn at_least(self, floor: Self) -> Self {
        if self < floor { floor } else { self }
    }

    /// `self`, at most `ceiling`.
    pub fn at_most(self, ceiling: Self) -> Self {
        if self > ceiling { ceiling } else { self }
    }
}

/// Decides how fast one scope may be called.
///
/// The events of a scope come in order of `now`. A law decides its rate as of
/// an instant and may be asked often, also for the same instant.
pub trait Law: fmt::Debug + Send {
    /// Learns from one finished attempt.
    fn on_attempt(&mut self, attempt: &Attempt);

    /// The gate closed at `now`, until `until` at the earliest; a longer pause
    /// may follow before it opens again.
    fn on_pause(&mut self, now: Instant, until: Instant) {
        let _ = (now, until);
    }

    /// The gate opened again at `now`.
    fn on_resume(&mut self, now: Instant) {
        let _ = now;
    }

    /// The machine was suspended for a while before `now`, which no instant
    /// shows: what was counted over time until now tells nothing.
    fn on_suspended(&mut self, now: Instant) {
        let _ = now;
    }

    /// The server announced that it serves `quota` a second. It may be told
    /// often. Ignored by default.
    fn on_quota(&mut self, now: Instant, quota: Rate) {
        let _ = (now, quota);
    }

    /// Begins anew at `rate`, as somebody asked for by hand.
    fn set_rate(&mut self, now: Instant, rate: Rate);

    /// The rate to hold at `now`.
    fn rate(&mut self, now: Instant) -> Rate;

    /// How long it takes at least, from `now` on, to let `attempts` go.
    ///
    /// Who would have to wait for too long is refused. By default as long as at
    /// the rate of `now`; a law that expects to grow knows better.
    fn least_wait(&mut self, now: Instant, attempts: f64) -> Duration {
        seconds(attempts / self.rate(now).get())
    }

    /// How many attempts may be in flight at `now`; zero counts as one. No limit
    /// by default.
    ///
    /// For a server that answers to load and not to rate. One that says so, by
    /// a `ConcurrencyLimited` verdict, is limited without the law's help.
    fn limit(&mut self, now: Instant) -> Option<u32> {
        let _ = now;
        None
    }
}

/// What one finished attempt teaches: named fields, never positional flags.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// When its answer came.
    pub now: Instant,
    /// When it was sent.
    pub sent_at: Instant,
    /// How it ended.
    pub ended: Ended,
    /// It was sent before the scope's last pause or cut: it must neither cut
    /// nor raise the rate. A stale acceptance was served all the same.
    pub stale: bool,
    /// Callers were waiting for the rate; or since the last answer one has waited
    /// for it, or was refused rather than let wait so long. Without, growth means
    /// nothing: an idle hour is no evidence of capacity.
    pub waiting: bool,
    /// How many attempts of the scope are in flight, this one included.
    pub in_flight: u32,
}

impl Attempt {
    /// An attempt sent at `sent_at`, answered at `now`; neither stale nor with
    /// callers waiting.
    pub const fn new(sent_at: Instant, now: Instant, ended: Ended) -> Self {
        Self {
            now,
            sent_at,
            ended,
            stale: false,
            waiting: false,
            in_flight: 1,
        }
    }

    /// Sets whether it is [stale](Self::stale).
    #[must_use]
    pub const fn stale(mut self, stale: bool) -> Self {
        self.stale = stale;
        self
    }

    /// Sets [how many are in flight](Self::in_flight). Defaults to 1.
    #[must_use]
    pub const fn in_flight(mut self, in_flight: u32) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// Sets whether [callers were waiting](Self::waiting).
    #[must_use]
    pub const fn waiting(mut self, waiting: bool) -> Self {
        self.waiting = waiting;
        self
    }
}

/// How an attempt ended, as far as a law is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The server did the work.
    Accepted,
    /// The server refused.
    Throttled {
        /// For what reason.
        kind: ThrottleKind,
        /// The wait that it asked for, if any.
        asked: Option<Duration>,
    },
}

/// A law's settings, which build one law for each scope.
pub trait LawConfig: fmt::Debug + Send + Sync + 'static {
    /// The rate to hold from a scope's first request on.
    ///
    /// `None` leaves a scope alone until its first throttle.
    fn start(&self) -> Option<Rate>;

    /// Builds the law of a scope that runs at `rate` as of `now`: the starting
    /// rate, or the rate measured when the first throttle came. That throttle
    /// is the new law's first event.
    fn build(&self, now: Instant, rate: Rate) -> Box<dyn Law>;
}
