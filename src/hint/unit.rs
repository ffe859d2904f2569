//! Units: what the text of a wait means.

use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

use super::{ServerClock, number};

/// What the text of a wait, or of a reset, means.
///
/// Reading is total: what is not of the unit's form is no wait at all, never
/// zero. Fractions are rounded up, so that no wait is read short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A delay in seconds: `2`, `64.57`. What is too large to be one is read
    /// as a [`Unix`](Self::Unix) time.
    Seconds,
    /// A delay in milliseconds: `1204`.
    Millis,
    /// A delay in minutes: `19`.
    Minutes,
    /// A delay with its units: `6m0s`, `20ms`, `34.07s`, as Go and the JSON
    /// form of protobuf write it.
    Duration,
    /// A Unix time in seconds or milliseconds, told apart by magnitude:
    /// `1791194400`, `1791198064.570`.
    Unix,
    /// An instant as RFC 3339 writes it, seconds optional:
    /// `2026-10-05T12:00:17Z`.
    Timestamp,
}

impl Unit {
    /// The wait that `text` means on the server's clock.
    pub(crate) fn read(self, text: &str, clock: &ServerClock<'_>) -> Option<Duration> {
        let text = text.trim();
        match self {
            Self::Seconds => {
                let count = number::seconds(text)?;
                Some(clock.until_unix(count).unwrap_or(count))
            }
            Self::Millis => number::seconds(text).map(thousandth),
            Self::Minutes => Some(number::seconds(text)?.saturating_mul(60)),
            Self::Duration => {
                let delay: SignedDuration = text.parse().ok()?;
                Duration::try_from(delay).ok()
            }
            Self::Unix => clock.until_unix(number::seconds(text)?),
            Self::Timestamp => {
                let at: Timestamp = text.parse().ok()?;
                Some(clock.until(SystemTime::try_from(at).ok()?))
            }
        }
    }
}

/// A thousandth, rounded up; of what is too long to count, that.
fn thousandth(wait: Duration) -> Duration {
    if wait == Duration::MAX {
        return wait;
    }
    let nanos = wait.as_nanos().div_ceil(1000);
    let secs = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    let rest = u64::try_from(nanos % 1_000_000_000).unwrap_or(0);
    Duration::from_secs(secs).saturating_add(Duration::from_nanos(rest))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;

    const ALL: [Unit; 6] = [
        Unit::Seconds,
        Unit::Millis,
        Unit::Minutes,
        Unit::Duration,
        Unit::Unix,
        Unit::Timestamp,
    ];

    /// As of 2026-10-05T18:00:00Z.
    fn read(unit: Unit, text: &str) -> Option<Duration> {
        let wall = || UNIX_EPOCH + Duration::from_secs(1_791_223_200);
        unit.read(text, &ServerClock::new(&HeaderMap::new(), &wall))
    }

    #[test]
    fn each_unit_reads_its_own_form() {
        for (unit, text, millis) in [
            (Unit::Seconds, "64.57", 64_570),
            (Unit::Seconds, "1791223245", 45_000),
            (Unit::Millis, "1204", 1_204),
            (Unit::Millis, "0.5", 1),
            (Unit::Minutes, "19", 1_140_000),
            (Unit::Duration, "6m0s", 360_000),
            (Unit::Duration, "2m59.56s", 179_560),
            (Unit::Duration, "20ms", 20),
            (Unit::Duration, "1h0m1s", 3_601_000),
            (Unit::Unix, "1791223200.5", 500),
            (Unit::Unix, "1791223248000", 48_000),
            (Unit::Timestamp, "2026-10-05T18:00:17Z", 17_000),
            (Unit::Timestamp, "2026-10-05T18:01Z", 60_000),
            (Unit::Timestamp, "2026-10-05T17:59:59.5+00:00", 0),
        ] {
            let wait = read(unit, text).unwrap();
            assert_eq!(
                wait.as_nanos().div_ceil(1_000_000),
                millis,
                "{unit:?} {text}"
            );
        }
    }

    #[test]
    fn a_part_of_a_nanosecond_is_rounded_up() {
        let shortest = Some(Duration::from_nanos(1));
        for (unit, text) in [(Unit::Seconds, "0.0000000001"), (Unit::Millis, "0.0000001")] {
            assert_eq!(read(unit, text), shortest, "{unit:?}");
        }
    }

    #[test]
    fn what_is_of_another_form_is_no_wait() {
        for (unit, text) in [
            (Unit::Seconds, "-1"),
            (Unit::Millis, "1s"),
            (Unit::Duration, "12"),
            (Unit::Duration, "-5s"),
            (Unit::Unix, "0"),
            (Unit::Unix, "-1"),
            (Unit::Unix, "30"),
            (Unit::Timestamp, "tomorrow"),
            (Unit::Timestamp, "2026-10-05"),
        ] {
            assert_eq!(read(unit, text), None, "{unit:?} {text}");
        }
        for unit in ALL {
            assert_eq!(read(unit, ""), None, "{unit:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9.:a-zTZ+ -]{0,30}|.{0,20}") {
            for unit in ALL {
                let _ = read(unit, &text);
            }
        }

        #[test]
        fn milliseconds_are_never_read_short(millis in any::<u64>()) {
            let wait = read(Unit::Millis, &millis.to_string()).unwrap();
            prop_assert!(wait >= Duration::from_millis(millis));
        }
    }
}
