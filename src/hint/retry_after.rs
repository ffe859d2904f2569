//! `Retry-After` (RFC 9110, section 10.2.3), read totally.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header::RETRY_AFTER};

use super::{ServerClock, number};
use crate::verdict::{Hint, IgnoredHint, IgnoredReason};

/// The name under which its hints are known.
const SOURCE: &str = "retry-after";

/// Reads the wait that the `Retry-After` of an answer asks for.
///
/// `None` if there is no such field. `wall` tells the local wall time, and is
/// asked only where a date has no readable `Date` beside it.
///
/// What is read, always rounded up and never down:
///
/// - delay-seconds, and decimals (`1.5`), which several APIs send; more than
///   a `u64` holds is [`Duration::MAX`], longer than anything;
/// - an HTTP-date in each of its three forms, relative to the answer's own
///   `Date`; one in the past is a wait of zero;
/// - digits that can only be a Unix time near now, in seconds or milliseconds,
///   as that instant;
/// - a field that was repeated, or joined by commas: the longest wait counts.
///
/// # Errors
///
/// Returns the value with [`IgnoredReason::Unreadable`] if it is anything
/// else: `-1`, `30s`, `"30"`, `1e3`, a word or nothing.
///
/// # Example
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tower_retry_after::hint::retry_after;
///
/// let mut headers = http::HeaderMap::new();
/// assert!(retry_after(&headers, SystemTime::now).is_none());
///
/// headers.insert("retry-after", "1.5".parse().unwrap());
/// let hint = retry_after(&headers, SystemTime::now).unwrap().unwrap();
/// assert_eq!(hint.wait(), Duration::from_millis(1500));
///
/// headers.insert("retry-after", "soon".parse().unwrap());
/// assert!(retry_after(&headers, SystemTime::now).unwrap().is_err());
/// ```
pub fn retry_after(
    headers: &HeaderMap,
    wall: impl Fn() -> SystemTime,
) -> Option<Result<Hint, IgnoredHint>> {
    let first = headers.get(RETRY_AFTER)?;
    let clock = ServerClock::new(headers, &wall);
    let longest = headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(members)
        .filter_map(|member| Some((wait(member, &clock)?, member)))
        .max_by_key(|((wait, _), _)| *wait);
    Some(match longest {
        Some(((wait, is_instant), member)) => {
            let hint = Hint::new(wait, SOURCE).raw(member.as_bytes());
            Ok(match clock.skew().filter(|_| is_instant) {
                Some(skew) => hint.skew(skew),
                None => hint,
            })
        }
        None => Err(IgnoredHint::new(
            SOURCE,
            first.as_bytes(),
            IgnoredReason::Unreadable,
        )),
    })
}

/// The wait that one member asks for, and whether it names an instant.
pub(super) fn wait(member: &str, clock: &ServerClock<'_>) -> Option<(Duration, bool)> {
    match number::seconds(member) {
        Some(count) => {
            let instant = clock.until_unix(count);
            Some((instant.unwrap_or(count), instant.is_some()))
        }
        None => Some((clock.until(httpdate::parse_http_date(member).ok()?), true)),
    }
}

/// The members of a field value joined by commas, without their blanks.
///
/// The comma after the name of a day is part of a date.
fn members(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let value = rest?;
        let mut commas = value.match_indices(',').map(|(at, _)| at);
        let end = commas.next().and_then(|comma| {
            let day = value[..comma].trim_start();
            let in_date = !day.is_empty() && day.bytes().all(|b| b.is_ascii_alphabetic());
            if in_date { commas.next() } else { Some(comma) }
        });
        let member = match end {
            Some(end) => {
                rest = Some(&value[end + 1..]);
                &value[..end]
            }
            None => {
                rest = None;
                value
            }
        };
        Some(member.trim())
    })
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{HeaderValue, header::DATE};
    use proptest::prelude::*;

    use super::*;

    /// 2026-10-05T18:00:00Z.
    const NOW: u64 = 1_791_223_200;

    fn wall() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(NOW)
    }

    fn headers<'a>(fields: impl IntoIterator<Item = (http::HeaderName, &'a str)>) -> HeaderMap {
        let value = |(name, value): (_, &str)| (name, value.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in fields.into_iter().map(value) {
            headers.append(name, value);
        }
        headers
    }

    fn read(value: &str) -> Result<Duration, IgnoredReason> {
        read_all([value])
    }

    fn read_all<const N: usize>(values: [&str; N]) -> Result<Duration, IgnoredReason> {
        let headers = headers(values.map(|value| (RETRY_AFTER, value)));
        let read = retry_after(&headers, wall).unwrap();
        read.map(|hint| hint.wait()).map_err(|hint| hint.reason)
    }

    fn secs(secs: u64) -> Result<Duration, IgnoredReason> {
        Ok(Duration::from_secs(secs))
    }

    const UNREADABLE: Result<Duration, IgnoredReason> = Err(IgnoredReason::Unreadable);

    #[test]
    fn delay_seconds_and_decimals_are_read_and_blanks_do_not_matter() {
        assert_eq!(read("120"), secs(120));
        assert_eq!(read("0"), secs(0));
        assert_eq!(read(" 30 "), secs(30));
        assert_eq!(read("\t42 "), secs(42));
        assert_eq!(read("2.0"), secs(2));
        assert_eq!(read("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(read("2.128"), Ok(Duration::from_millis(2128)));
    }

    #[test]
    fn what_is_outside_the_grammar_is_absent_with_a_reason() {
        for value in [
            "",
            " ",
            ",",
            "-1",
            "30s",
            "1m0s",
            "\"30\"",
            "NaN",
            "1e3",
            "soon",
            "Mon, soon",
            "1.",
            "2026-10-05T18:01:30Z",
            "Mon, 05 Oct 2026 18:01:00 +0000",
        ] {
            assert_eq!(read(value), UNREADABLE, "{value:?}");
        }
    }

    #[test]
    fn all_three_forms_of_a_date_are_read() {
        assert_eq!(read("Mon, 05 Oct 2026 18:01:00 GMT"), secs(60));
        assert_eq!(read("Monday, 05-Oct-26 18:02:00 GMT"), secs(120));
        assert_eq!(read("Mon Oct  5 18:01:30 2026"), secs(90));
    }

    #[test]
    fn a_date_in_the_past_is_a_wait_of_zero() {
        assert_eq!(read("Mon, 05 Oct 2026 17:59:30 GMT"), secs(0));
    }

    #[test]
    fn a_date_is_relative_to_the_answers_own_date() {
        let wait = |date| {
            let fields = [(RETRY_AFTER, "Mon, 05 Oct 2026 18:01:00 GMT"), (DATE, date)];
            retry_after(&headers(fields), wall).unwrap().unwrap().wait()
        };
        let hour_behind = "Mon, 05 Oct 2026 17:00:30 GMT";
        assert_eq!(wait(hour_behind), Duration::from_secs(3630));
        assert_eq!(wait("yesterday"), Duration::from_secs(60));
    }

    #[test]
    fn what_the_clocks_differ_by_is_told_with_an_instant() {
        let skew = |value, date| {
            let fields = [(RETRY_AFTER, value), (DATE, date)];
            let hint = retry_after(&headers(fields), wall).unwrap().unwrap();
            hint.observed_skew()
        };
        let behind = "Mon, 05 Oct 2026 17:55:00 GMT";
        assert_eq!(skew("Mon, 05 Oct 2026 18:01:00 GMT", behind), Some(300));
        let ahead = "Mon, 05 Oct 2026 18:05:00 GMT";
        assert_eq!(skew("1791223245", ahead), Some(-300));
        assert_eq!(skew("60", behind), None);
        assert_eq!(skew("Mon, 05 Oct 2026 18:01:00 GMT", "yesterday"), None);
    }

    #[test]
    fn the_longest_of_several_waits_counts() {
        assert_eq!(read("120, 120"), secs(120));
        assert_eq!(read("5,, 7 ,soon"), secs(7));
        assert_eq!(read_all(["120", "30"]), secs(120));
        assert_eq!(read_all(["never", "30", "-1", "4, 9"]), secs(30));
        let dates = "Mon, 05 Oct 2026 18:01:00 GMT, 5, Monday, 05-Oct-26 18:02:00 GMT";
        assert_eq!(read(dates), secs(120));
        assert_eq!(read(&format!("240,{dates}")), secs(240));
    }

    #[test]
    fn a_unix_time_near_now_is_an_instant() {
        assert_eq!(read("1791223245"), secs(45));
        assert_eq!(read("1791223245.000"), secs(45));
        assert_eq!(read("1791223245250"), Ok(Duration::from_millis(45_250)));
        assert_eq!(read("1791223199"), secs(0));
        // A day and more of delay is no instant, nor is the end of 32 bits.
        assert_eq!(read("86400"), secs(86_400));
        assert_eq!(read("2147483647"), secs(2_147_483_647));
    }

    #[test]
    fn a_delay_is_a_delay_where_the_clock_was_never_set() {
        let headers = headers([(RETRY_AFTER, "120")]);
        let hint = retry_after(&headers, || UNIX_EPOCH).unwrap().unwrap();
        assert_eq!(hint.wait(), Duration::from_secs(120));
    }

    #[test]
    fn digits_beyond_counting_are_longer_than_anything() {
        assert_eq!(read("99999999999999999999"), Ok(Duration::MAX));
        assert_eq!(read("18446744073709551615"), secs(u64::MAX));
    }

    #[test]
    fn the_raw_value_is_kept() {
        let raw = |value| match retry_after(&headers([(RETRY_AFTER, value)]), wall).unwrap() {
            Ok(hint) => hint.raw_value().to_owned(),
            Err(ignored) => ignored.raw.into(),
        };
        assert_eq!(raw("5, 2.50"), "5");
        assert_eq!(raw("30s"), "30s");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(values in prop::collection::vec("[ -~\t\u{80}-\u{ff}]{0,40}", 1..4)) {
            let mut headers = HeaderMap::new();
            for value in values {
                let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) else { continue };
                headers.append(RETRY_AFTER, value.clone());
                headers.append(DATE, value);
            }
            let _ = retry_after(&headers, wall);
        }

        #[test]
        fn no_number_is_read_short(secs in any::<u64>(), nanos in 0..1_000_000_000_u32) {
            let text = format!("{secs}.{nanos:09}");
            let literal = Duration::new(secs, nanos);
            let now = Duration::from_secs(NOW);
            let instant = [literal, literal / 1000]
                .into_iter()
                .any(|at| at.abs_diff(now) < Duration::from_secs(400 * 86_400));
            prop_assume!(!instant);
            prop_assert_eq!(read(&text), Ok(literal));
        }

        #[test]
        fn a_date_is_read_to_the_second(ahead in 0..100_000_000_u64, form in 0..2) {
            let at = wall() + Duration::from_secs(ahead);
            let date = httpdate::fmt_http_date(at);
            let value = if form == 0 { date } else { format!("1, {date},2") };
            prop_assert_eq!(read(&value), secs(ahead.max(if form == 0 { 0 } else { 2 })));
        }
    }
}
