//! `grpc-timeout`: how long a gRPC call may take.
//!
//! PROTOCOL-HTTP2 of gRPC, "Requests": at most eight digits and a unit.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header::Entry};

const TIMEOUT: &str = "grpc-timeout";

/// Reads `grpc-timeout`; `None` for one that is not there or is no timeout.
pub(crate) fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let fits = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| fits)?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Rewrites a `grpc-timeout` to the time `left`, if that is less.
pub(crate) fn shorten_grpc_timeout(headers: &mut HeaderMap, left: Duration) {
    if grpc_timeout(headers).is_none_or(|timeout| timeout <= left) {
        return;
    }
    // The finest unit in which eight digits are enough; the server may give
    // up a little early, but not late.
    let units = [
        (left.as_nanos(), 'n'),
        (left.as_micros(), 'u'),
        (left.as_millis(), 'm'),
    ];
    let fits = |(count, _): &(u128, char)| *count < 100_000_000;
    let (count, unit) = units
        .into_iter()
        .find(fits)
        .unwrap_or((left.as_secs().into(), 'S'));
    if let Ok(value) = HeaderValue::try_from(format!("{count}{unit}"))
        && let Entry::Occupied(mut entry) = headers.entry(TIMEOUT)
    {
        entry.insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(TIMEOUT, value.parse().unwrap());
        headers
    }

    #[test]
    fn every_unit_is_read_and_nothing_else() {
        let read = |value| grpc_timeout(&headers(value));
        assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(read("3M"), Some(Duration::from_secs(180)));
        assert_eq!(read("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(read("250m"), Some(Duration::from_millis(250)));
        assert_eq!(read("7u"), Some(Duration::from_micros(7)));
        assert_eq!(read("0n"), Some(Duration::ZERO));
        for bad in [
            "",
            "S",
            "1",
            "1x",
            "-1S",
            "+1S",
            "1.5S",
            "123456789S",
            "1 S",
            "1é",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_timeout_is_rewritten_to_what_is_left_and_never_to_more() {
        let rewritten = |value, left| {
            let mut headers = headers(value);
            shorten_grpc_timeout(&mut headers, left);
            grpc_timeout(&headers).unwrap()
        };
        let left = Duration::from_nanos(1_234_567_891);
        let told = rewritten("5S", left);
        assert!(
            told <= left && left - told < Duration::from_micros(1),
            "{told:?}"
        );
        assert_eq!(rewritten("1S", left), Duration::from_secs(1));
    }
}
