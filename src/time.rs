//! The one reader of clocks; every other module takes `now` as an argument.
//!
//! # Two clocks
//!
//! Waits are measured on tokio's monotonic clock, which a paused test stops.
//! Wall time is needed for one thing only, an HTTP-date in a header, and is
//! carried along with the monotonic clock: it stands still when that does.
//!
//! # Why an own [`Instant`]
//!
//! `std::time::Instant + Duration` panics on overflow, and durations come from
//! servers. Here time is a count of nanoseconds that saturates: adding is total.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::{
    fmt,
    ops::{Add, AddAssign, Sub},
    time::{Duration, SystemTime},
};

/// A point in monotonic time, in nanoseconds since its [`Scopes`] was made.
///
/// Adding a [`Duration`] saturates at [`Instant::NEVER`]; subtracting a later
/// instant from an earlier one gives zero.
///
/// [`Scopes`]: crate::Scopes
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The instant at which the clock was made.
    pub const ZERO: Self = Self(0);

    /// Later than any instant that will come (584 years on).
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the clock was made.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock was made.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds from `earlier` to `self`, zero if `earlier` is later.
    pub fn secs_since(self, earlier: Self) -> f64 {
        (self - earlier).as_secs_f64()
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, wait: Duration) {
        *self = *self + wait;
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// The time from `earlier` to `self`; [`Duration::MAX`] to [`Instant::NEVER`].
    fn sub(self, earlier: Self) -> Duration {
        if self == Self::NEVER {
            return Duration::MAX;
        }
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER {
            return f.write_str("never");
        }
        fmt::Debug::fmt(&Duration::from_nanos(self.0), f)
    }
}

/// Both clocks, read against one origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: tokio::time::Instant,
    /// The wall time at the origin.
    wall: SystemTime,
}

impl Clock {
    /// A clock that starts at zero now.
    pub(crate) fn new() -> Self {
        Self {
            origin: tokio::time::Instant::now(),
            wall: SystemTime::now(),
        }
    }

    /// The monotonic time.
    pub(crate) fn now(&self) -> Instant {
        Instant(nanos(
            tokio::time::Instant::now().saturating_duration_since(self.origin),
        ))
    }

    /// The wall time; where a test has paused tokio's clock, that of the origin
    /// carried along with it.
    pub(crate) fn wall(&self) -> SystemTime {
        // Tokio's clock is the system's own, read between the two, unless a test
        // has paused it; near to it is not enough, for it may pass by.
        let before = std::time::Instant::now();
        let now = tokio::time::Instant::now();
        let wall = SystemTime::now();
        if (before..=std::time::Instant::now()).contains(&now.into_std()) {
            return wall;
        }
        let passed = now.saturating_duration_since(self.origin);
        #[cfg(test)]
        let passed = passed + tests::ASLEEP.get();
        self.wall.checked_add(passed).unwrap_or(self.wall)
    }

    /// Sleeps until `at`; for ever if that is [`Instant::NEVER`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with time enabled, as tokio's timers do.
    pub(crate) fn sleep_until(&self, at: Instant) -> tokio::time::Sleep {
        tokio::time::sleep_until(self.timer(at))
    }

    /// Where tokio's timers stand for `at`.
    pub(crate) fn timer(&self, at: Instant) -> tokio::time::Instant {
        // Thirty years from now are what tokio itself calls far away.
        const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
        let at = (at < Instant::NEVER).then(|| Duration::from_nanos(at.0));
        let at = at.and_then(|at| self.origin.checked_add(at));
        at.unwrap_or_else(|| tokio::time::Instant::now() + FAR)
    }
}

/// `wait` in nanoseconds, saturating.
pub(crate) const fn nanos(wait: Duration) -> u64 {
    // In 64 bits, for this is a good part of reading the clock.
    wait.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(wait.subsec_nanos() as u64)
}

/// `wait × factor`, rounded up; zero for a factor that is negative or NaN.
pub(crate) fn scale(wait: Duration, factor: f64) -> Duration {
    seconds(wait.as_secs_f64() * factor)
}

/// `secs` seconds, rounded up to a nanosecond: a wait is never shortened.
///
/// Zero for what is negative or NaN, [`Duration::MAX`] for what is too long.
pub(crate) fn seconds(secs: f64) -> Duration {
    if secs.is_nan() || secs <= 0.0 {
        return Duration::ZERO;
    }
    match Duration::try_from_secs_f64(secs) {
        Ok(wait) if wait.as_secs_f64() < secs => wait.saturating_add(Duration::from_nanos(1)),
        Ok(wait) => wait,
        Err(_) => Duration::MAX,
    }
}

/// Lets the machine be suspended for `time` as this test sees it: the wall clock
/// alone goes on.
#[cfg(test)]
pub(crate) fn sleep_through(time: Duration) {
    tests::ASLEEP.set(tests::ASLEEP.get() + time);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static ASLEEP: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    #[test]
    fn adding_saturates_instead_of_panicking() {
        let late = Instant::from_nanos(u64::MAX - 1);
        assert_eq!(late + Duration::from_secs(1), Instant::NEVER);
        assert_eq!(Instant::ZERO + Duration::MAX, Instant::NEVER);
        assert_eq!(Instant::ZERO - late, Duration::ZERO);
        assert_eq!(Instant::NEVER - late, Duration::MAX);
    }

    #[test]
    fn seconds_are_total_and_never_rounded_down() {
        assert_eq!(seconds(f64::NAN), Duration::ZERO);
        assert_eq!(seconds(-1.0), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::MAX);
        for secs in [1e-10, 0.1, 1.0 / 3.0, 1.0, 1e9 + 0.1] {
            assert!(seconds(secs).as_secs_f64() >= secs, "{secs}");
        }
    }

    /// Steps small enough to pass the system's own clock on their way.
    #[tokio::test(start_paused = true)]
    async fn wall_time_is_carried_along_with_a_paused_clock() {
        let clock = Clock::new();
        let began = clock.wall();
        for step in 1..=10_000 {
            tokio::time::advance(Duration::from_micros(100)).await;
            let passed = clock.wall().duration_since(began).unwrap();
            assert_eq!(passed, Duration::from_micros(100) * step);
        }
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), Instant::from_nanos(3_601_000_000_000));
        let passed = clock.wall().duration_since(began).unwrap();
        assert_eq!(passed, Duration::from_secs(3601));
    }
}
