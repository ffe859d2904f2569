//! What a scope has counted: for people who set a limit by hand, and to tell
//! when somebody else uses the quota.

use std::time::Duration;

use crate::{law::Rate, time::Instant};

/// How long a window of the observed ceiling is.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// What share of the observed ceiling is suggested.
const SUGGESTED: f64 = 0.8;

/// How far apart two readings are, at least.
const APART: Duration = Duration::from_secs(1);

/// How many readings are kept: a window, and one before it.
const READINGS: usize = 62;

/// For how long refusals are watched before it is said that they go on.
const WATCHED: Duration = Duration::from_secs(600);

/// Counts of attempts served over the last minute, read about once a second.
///
/// Nothing but its birth is kept of a scope that was never read.
#[derive(Debug, Default)]
pub(super) struct Meter {
    born: Instant,
    readings: Option<Box<Readings>>,
}

#[derive(Debug)]
struct Readings {
    /// When, and how many had been served by then; a ring.
    ring: [(Instant, u64); READINGS],
    newest: usize,
}

impl Meter {
    /// Nothing was served before `born`.
    pub(super) const fn new(born: Instant) -> Self {
        Self {
            born,
            readings: None,
        }
    }

    /// Reads the count of attempts served, if that is due; says whether it was.
    pub(super) fn read(&mut self, now: Instant, served: u64) -> bool {
        let born = (self.born, 0);
        let readings = self.readings.get_or_insert_with(|| {
            let ring = [born; READINGS];
            Box::new(Readings { ring, newest: 0 })
        });
        let due = now - readings.ring[readings.newest].0 >= APART;
        if due {
            readings.newest = (readings.newest + 1) % READINGS;
            readings.ring[readings.newest] = (now, served);
        }
        due
    }

    /// The reading before which `back` had passed by `now`, or the oldest.
    fn before(&self, now: Instant, back: Duration) -> (Instant, u64) {
        let Some(readings) = &self.readings else {
            return (self.born, 0);
        };
        let mut oldest = readings.ring[readings.newest];
        for i in 1..READINGS {
            if now - oldest.0 >= back {
                break;
            }
            let before = readings.ring[(readings.newest + READINGS - i) % READINGS];
            if before.0 > oldest.0 {
                break;
            }
            oldest = before;
        }
        oldest
    }

    /// The rate at which attempts were served until `now`, over a second at
    /// least.
    pub(super) fn rate(&self, now: Instant, served: u64) -> Rate {
        let (at, count) = self.before(now, APART);
        let time = now.secs_since(at).max(1.0);
        #[allow(clippy::cast_precision_loss, reason = "a measurement")]
        let served = served.saturating_sub(count) as f64;
        Rate::per_second(served / time)
    }

    /// How many were served in the window that ends at `now`.
    pub(super) fn in_window(&self, now: Instant, served: u64) -> u64 {
        served.saturating_sub(self.before(now, WINDOW).1)
    }
}

/// What a scope that was throttled has counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The most that was accepted in a window.
    ceiling: u64,
    /// Where the watched time began: when, sent and throttled by then.
    watched: (Instant, u64, u64),
    /// How often in a row refusals went on over a watched time.
    over: u32,
}

impl Tally {
    /// A window ends at `now` with `accepted` in it.
    pub(super) fn window(&mut self, accepted: u64) {
        self.ceiling = self.ceiling.max(accepted);
    }

    /// The most that was accepted in a window of 60 s.
    pub(super) const fn ceiling(&self) -> Option<u64> {
        match self.ceiling {
            0 => None,
            ceiling => Some(ceiling),
        }
    }

    /// The rate to set by hand, per second: 80 % of the ceiling.
    pub(super) fn suggested_rate(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a suggestion")]
        let ceiling = self.ceiling()? as f64;
        Some(SUGGESTED * ceiling / WINDOW.as_secs_f64())
    }

    /// Looks at the counts after a refusal. Says whether more than 1 % have
    /// been refused over and over: the law has settled, so that somebody else
    /// must be using the quota.
    pub(super) fn refused(&mut self, now: Instant, sent: u64, throttled: u64) -> bool {
        let (since, sent_before, throttled_before) = self.watched;
        if self.watched == (Instant::ZERO, 0, 0) {
            self.watched = (now, sent, throttled);
            return false;
        }
        if now - since < WATCHED {
            return false;
        }
        self.watched = (now, sent, throttled);
        let sent = sent.saturating_sub(sent_before);
        let throttled = throttled.saturating_sub(throttled_before);
        let many = throttled >= 3 && throttled.saturating_mul(100) > sent;
        self.over = if many { self.over + 1 } else { 0 };
        let tell = self.over >= 2;
        if tell {
            self.over = 0;
        }
        tell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn a_window_counts_what_was_served_in_its_minute() {
        let mut meter = Meter::default();
        for second in 0..600 {
            meter.read(at(second), second * 5);
        }
        let counted = meter.in_window(at(600), 3_000);
        assert!((300..=305).contains(&counted), "{counted}");
        assert!((meter.rate(at(600), 3_000).get() - 5.0).abs() < 0.1);
    }

    #[test]
    fn a_scope_that_was_never_read_counts_from_its_birth() {
        let meter = Meter::new(at(1_000));
        assert_eq!(meter.in_window(at(1_030), 40), 40);
        assert_eq!(meter.rate(at(1_004), 40), Rate::per_second(10.0));
    }

    #[test]
    fn refusals_that_go_on_are_told_and_rare_ones_are_not() {
        let mut tally = Tally::default();
        let mut told = 0;
        for second in 1..=3_600_u64 {
            told += u64::from(tally.refused(at(second), second * 50, second));
        }
        assert!(told >= 1);
        let mut tally = Tally::default();
        for second in 1..=3_600_u64 {
            assert!(!tally.refused(at(second), second * 500, second));
        }
    }
}
