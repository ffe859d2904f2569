//! The server's own time, by which its instants are meant.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, header::DATE};

/// A server's clock as of one answer, read only when an instant asks for it.
///
/// It is the answer's own `Date` where that can be read, so that a local clock
/// that is wrong does no harm; else the wall time.
#[derive(Clone, Copy)]
pub(crate) struct ServerClock<'a> {
    headers: &'a HeaderMap,
    wall: &'a dyn Fn() -> SystemTime,
}

impl<'a> ServerClock<'a> {
    pub(crate) const fn new(headers: &'a HeaderMap, wall: &'a dyn Fn() -> SystemTime) -> Self {
        Self { headers, wall }
    }

    /// From now until `at`; zero if that is past.
    pub(crate) fn until(&self, at: SystemTime) -> Duration {
        since_epoch(at).saturating_sub(self.now())
    }

    /// From now until a Unix time in seconds or milliseconds, told apart by
    /// magnitude; `None` if `count` can't be either.
    ///
    /// # What counts as an instant
    ///
    /// What lies within a year of now. The next greater number of note, the
    /// 2038 of a signed 32-bit counter, is a sentinel and no instant.
    pub(crate) fn until_unix(&self, count: Duration) -> Option<Duration> {
        const YEAR: Duration = Duration::from_secs(366 * 86_400);
        // Thirty years. A shorter count is a delay even on a machine whose
        // clock was never set, and for which 1970 is now.
        const FIRST: Duration = Duration::from_secs(1_000_000_000);
        if count < FIRST {
            return None;
        }
        let now = self.now();
        [count, count / 1000]
            .into_iter()
            .find(|at| *at >= FIRST && at.abs_diff(now) <= YEAR)
            .map(|at| at.saturating_sub(now))
    }

    /// Seconds by which the wall time is ahead of the answer's `Date`.
    pub(crate) fn skew(&self) -> Option<i64> {
        let (wall, date) = (since_epoch((self.wall)()), since_epoch(self.date()?));
        let apart = i64::try_from(wall.abs_diff(date).as_secs()).ok()?;
        Some(if wall < date { -apart } else { apart })
    }

    fn now(&self) -> Duration {
        since_epoch(self.date().unwrap_or_else(self.wall))
    }

    fn date(&self) -> Option<SystemTime> {
        let date = self.headers.get(DATE)?.to_str().ok()?;
        httpdate::parse_http_date(date).ok()
    }
}

impl fmt::Debug for ServerClock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerClock").field(&self.now()).finish()
    }
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}
