//! Points in time, however they are written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::{Timestamp, civil, fmt::strtime, tz::TimeZone};

/// How web servers write a time in their access logs.
const COMMON_LOG: &str = "%d/%b/%Y:%H:%M:%S %z";

/// Reads a time: RFC 3339, the same without a zone (taken as UTC), an
/// HTTP-date, that of a web server's log, or a Unix time.
pub(crate) fn read(text: &str) -> Option<SystemTime> {
    let text = text.trim().trim_matches(['[', ']']);
    if let Ok(unix) = text.parse::<f64>() {
        return from_unix(unix);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return time.try_into().ok();
    }
    if let Ok(time) = text.parse::<civil::DateTime>() {
        return TimeZone::UTC.to_timestamp(time).ok()?.try_into().ok();
    }
    if let Ok(time) = httpdate::parse_http_date(text) {
        return Some(time);
    }
    let time = strtime::parse(COMMON_LOG, text).ok()?;
    time.to_timestamp().ok()?.try_into().ok()
}

/// A Unix time in seconds, milli-, micro- or nanoseconds, told apart by
/// magnitude: each of them is a time between 1973 and 5138.
fn from_unix(unix: f64) -> Option<SystemTime> {
    const LARGEST: f64 = 1e11;
    let unit = [1.0, 1e3, 1e6, 1e9]
        .into_iter()
        .find(|unit| unix / unit < LARGEST)?;
    let since = Duration::try_from_secs_f64(unix / unit).ok()?;
    UNIX_EPOCH.checked_add(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(text: &str) -> Option<f64> {
        Some(read(text)?.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
    }

    #[test]
    fn a_time_is_read_in_every_usual_form() {
        for text in [
            "2026-10-05T18:00:00Z",
            "2026-10-05T20:00:00+02:00",
            "2026-10-05 18:00:00Z",
            "2026-10-05 18:00:00",
            "2026-10-05T18:00:00",
            "Mon, 05 Oct 2026 18:00:00 GMT",
            "[05/Oct/2026:20:00:00 +0200]",
            "1791223200",
            "1791223200000",
            "1791223200000000",
            "1791223200000000000",
            " 1791223200.0 ",
        ] {
            assert_eq!(unix(text), Some(1_791_223_200.0), "{text:?}");
        }
        assert_eq!(unix("2026-10-05T18:00:00.250Z"), Some(1_791_223_200.25));
        assert_eq!(unix("1791223200.25"), Some(1_791_223_200.25));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "soon",
            "NaN",
            "inf",
            "-5",
            "1e300",
            "2026-13-01T00:00:00Z",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
