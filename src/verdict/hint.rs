//! The wait that a server asks for, and texts of its that are safe to show.

use std::{borrow::Cow, fmt, time::Duration};

/// The wait that a server asks for, and where it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Hint {
    wait: Duration,
    source: Cow<'static, str>,
    raw: Raw,
    skew: Option<i64>,
}

impl Hint {
    /// A hint of `wait`, read from the field or body member `source`.
    ///
    /// [`Duration::MAX`] stands for "longer than anything".
    pub fn new(wait: Duration, source: impl Into<Cow<'static, str>>) -> Self {
        Self {
            wait,
            source: source.into(),
            raw: Raw::default(),
            skew: None,
        }
    }

    /// Keeps the raw value for diagnostics, bounded and escaped.
    #[must_use]
    pub fn raw(mut self, raw: &[u8]) -> Self {
        self.raw = Raw::new(raw);
        self
    }

    /// Keeps by how many seconds the local clock is ahead of the answer's `Date`.
    #[must_use]
    pub const fn skew(mut self, seconds: i64) -> Self {
        self.skew = Some(seconds);
        self
    }

    /// The wait asked for, from the receipt of the answer on.
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// The header field or body member it was read from, in lower case.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The value as it was sent, at most 64 escaped bytes; empty if not kept.
    pub fn raw_value(&self) -> &str {
        &self.raw.0
    }

    /// Seconds by which the local wall clock is ahead of the server's, if the
    /// answer told.
    pub const fn observed_skew(&self) -> Option<i64> {
        self.skew
    }
}

impl fmt::Debug for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({}: {})", self.wait, self.source, self.raw.0)
    }
}

/// A server's text that is safe to log: at most 64 bytes, escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) Box<str>);

impl Raw {
    /// The longest text kept, in bytes after escaping.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn new(bytes: &[u8]) -> Self {
        let is_plain = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\'' | b'\\');
        if bytes.len() <= Self::MOST
            && bytes.iter().all(is_plain)
            && let Ok(text) = str::from_utf8(bytes)
        {
            return Self(text.into());
        }
        let mut text = String::new();
        for byte in bytes {
            let escaped = std::ascii::escape_default(*byte);
            if text.len() + escaped.len() > Self::MOST {
                break;
            }
            text.extend(escaped.map(char::from));
        }
        Self(text.into())
    }
}

/// A hint that was there and is not followed, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredHint {
    /// The header field or body member, in lower case.
    pub source: Cow<'static, str>,
    /// The value as it was sent, at most 64 escaped bytes.
    pub raw: Box<str>,
    /// Why it is not followed.
    pub reason: IgnoredReason,
}

impl IgnoredHint {
    /// A hint in `source` that is not followed for `reason`.
    pub fn new(source: impl Into<Cow<'static, str>>, raw: &[u8], reason: IgnoredReason) -> Self {
        Self {
            source: source.into(),
            raw: Raw::new(raw).0,
            reason,
        }
    }
}

/// Why a hint is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IgnoredReason {
    /// It cannot be read: neither digits nor a date.
    Unreadable,
    /// It stands on an answer on which it has no meaning (a 200, say).
    NotAThrottle,
    /// A sentinel by which the service says "unknown".
    Sentinel,
}

impl IgnoredReason {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Self; 3] = [Self::Unreadable, Self::NotAThrottle, Self::Sentinel];

    /// A static name for events and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::NotAThrottle => "not_a_throttle",
            Self::Sentinel => "sentinel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_is_bounded_and_escaped() {
        let raw = Raw::new(&[b'\n'; 1000]);
        assert_eq!(raw.0.len(), Raw::MOST);
        assert!(raw.0.bytes().all(|b| b.is_ascii_graphic()));
        assert_eq!(&*Raw::new(b"\x1b[31m\xff").0, "\\x1b[31m\\xff");
    }
}
