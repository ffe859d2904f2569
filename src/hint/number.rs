//! Decimal numbers, read exactly.

use std::time::Duration;

/// Reads `1*DIGIT [ "." 1*DIGIT ]` as seconds, rounded up to a nanosecond.
///
/// More seconds than a `u64` holds are [`Duration::MAX`]. Anything else, a
/// sign, a unit, an exponent or a quote, is `None`.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if digits(fraction) => (whole, fraction),
        Some(_) => return None,
        None => (text, ""),
    };
    if !digits(whole) {
        return None;
    }
    let Ok(whole) = whole.parse() else {
        return Some(Duration::MAX);
    };
    Some(Duration::from_secs(whole).saturating_add(Duration::from_nanos(nanos(fraction))))
}

/// Reads a number of units; of a fraction, the whole ones.
#[cfg(feature = "providers")]
pub(crate) fn units(text: &str) -> Option<u64> {
    seconds(text).map(|count| count.as_secs())
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The nanoseconds of a fraction of a second, rounded up.
fn nanos(fraction: &str) -> u64 {
    let (kept, cut) = fraction.as_bytes().split_at(fraction.len().min(9));
    let kept = kept
        .iter()
        .chain(std::iter::repeat(&b'0'))
        .take(9)
        .fold(0, |nanos, digit| nanos * 10 + u64::from(digit - b'0'));
    kept + u64::from(cut.iter().any(|digit| *digit != b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_exact_and_rounded_up() {
        for (text, secs, nanos) in [
            ("0", 0, 0),
            ("0.493", 0, 493_000_000),
            ("2.0", 2, 0),
            ("34.074824224", 34, 74_824_224),
            ("0.0000000001", 0, 1),
            ("1.9999999999", 2, 0),
            ("00000000000000000000000000007", 7, 0),
        ] {
            assert_eq!(seconds(text), Some(Duration::new(secs, nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_too_long_to_count_is_longer_than_anything() {
        for text in [
            "18446744073709551616",
            "99999999999999999999",
            "99999999999999999999.5",
            "18446744073709551615.9999999999",
        ] {
            assert_eq!(seconds(text), Some(Duration::MAX), "{text}");
        }
    }

    #[test]
    fn only_digits_and_one_point_are_a_number() {
        for text in [
            "", ".", "1.", ".5", "-1", "+1", "1e3", "NaN", "inf", "1_0", "1.5.2", "0x1", " 1", "١",
        ] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
    }
}
