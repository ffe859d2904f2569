//! What an answer means: the [`Verdict`] and the words it is made of.
//!
//! A classifier gives a [`Verdict`] on each outcome. The scope is settled by
//! it, the retry is decided by it, and what became of the call is told to the
//! caller in an [`Outcome`](crate::Outcome).

use std::{borrow::Cow, fmt, time::Duration};

use crate::cost::Cost;

/// What one outcome means for the scope and for the retry.
///
/// # Size
///
/// Two words, for one is handed up with every answer. What few answers have (a
/// throttle, [`Quota`], error code, request id) is boxed, so that a plain
/// success allocates nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    accepted: bool,
    more: Option<Box<More>>,
}

/// How the server ruled on one attempt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Ruling {
    /// The attempt was served. It counts as capacity.
    Accepted,
    /// It failed for a reason that says nothing of rate: no growth, no cut.
    Neutral,
    /// It was refused for reasons of rate, concurrency, load or quota.
    Throttled(Throttle),
    /// A hard quota or the money is spent: waiting a little does not help.
    Exhausted(Exhausted),
}

/// A refusal for reasons of rate, concurrency, load or quota.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttle {
    /// What ran out.
    pub kind: ThrottleKind,
    /// The wait that the server asks for, if it names one.
    pub hint: Option<Hint>,
    /// The level of the scope's path that is meant.
    pub level: Level,
    /// The service lengthens its bans for repeat offenders: never probe early.
    pub ban: bool,
    /// Whether the service says something of sending again.
    pub retry: RetryAdvice,
}

impl Throttle {
    /// A throttle of `kind` at the leaf, without hint or advice.
    pub const fn new(kind: ThrottleKind) -> Self {
        Self {
            kind,
            hint: None,
            level: Level::Leaf,
            ban: false,
            retry: RetryAdvice::Default,
        }
    }

    /// Sets the wait that the server asks for.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Option<Hint>>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Sets the level of the scope's path. Defaults to [`Level::Leaf`].
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Marks a ban, which is never probed early. Defaults to `false`.
    #[must_use]
    pub fn ban(mut self, ban: bool) -> Self {
        self.ban = ban;
        self
    }

    /// Sets what the service says of sending again. Defaults to
    /// [`RetryAdvice::Default`].
    #[must_use]
    pub fn retry(mut self, retry: RetryAdvice) -> Self {
        self.retry = retry;
        self
    }
}

/// What a throttle says ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThrottleKind {
    /// Too many requests in a time.
    RateLimited,
    /// Too many requests at once.
    ConcurrencyLimited,
    /// The server has more work than it can do, whoever sent it.
    Overloaded,
    /// A throttle that does not say why.
    Unknown,
}

impl ThrottleKind {
    /// A static name for events and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::ConcurrencyLimited => "concurrency_limited",
            Self::Overloaded => "overloaded",
            Self::Unknown => "unknown_throttle",
        }
    }
}

/// What a service says of sending a refused request again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryAdvice {
    /// Nothing: method and marks decide.
    #[default]
    Default,
    /// It must not be sent again.
    Never,
    /// The service's documentation says that a refused request was not
    /// processed, so that sending it again is safe whatever its method.
    Unprocessed,
    /// It may be sent this many times in all.
    AtMost(u32),
}

/// A hard quota or the money is spent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exhausted {
    /// How long until the quota comes back, if the server names it.
    pub resets: Option<Hint>,
    /// The level that is exhausted, where a service documents it.
    ///
    /// `None` closes the level that holds a credential; a path without one is
    /// not closed, for one key's empty account must not stop all tenants.
    pub level: Option<Level>,
}

/// A level of a scope's path, counted from its root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The scope that the request named.
    #[default]
    Leaf,
    /// The first `n` segments of its path; the leaf if the path is shorter.
    /// `Depth(1)` is the root, and so is `Depth(0)`.
    Depth(u8),
    /// The level that holds a credential: a whole account. The root where none
    /// does, for then nothing tells one account from another.
    Credential,
}

impl Level {
    /// The first segment of the path: the whole host, say.
    pub const ROOT: Self = Self::Depth(1);
}

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

/// What an answer tells of the quota itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Quota {
    /// Requests (or other units) allowed in a window.
    pub limit: Option<u64>,
    /// Units left in the window.
    pub remaining: Option<u64>,
    /// How long until `remaining` is raised again.
    pub reset: Option<Duration>,
    /// How long a window lasts.
    pub window: Option<Duration>,
}

/// What few answers say: anything but that they are plainly accepted or
/// neutral.
#[derive(Clone, Debug, PartialEq)]
struct More {
    ruling: Ruling,
    quota: Option<Quota>,
    code: Option<Box<str>>,
    request_id: Option<Box<str>>,
    cost: Option<Cost>,
    status: Option<u16>,
    ignored: Option<IgnoredHint>,
    sample: Option<Box<str>>,
}

impl Verdict {
    /// The attempt was served.
    pub const ACCEPTED: Self = Self::plain(true);

    /// The attempt failed for a reason that says nothing of rate.
    pub const NEUTRAL: Self = Self::plain(false);

    /// A verdict with nothing but its ruling.
    pub fn new(ruling: Ruling) -> Self {
        match ruling {
            Ruling::Accepted => Self::ACCEPTED,
            Ruling::Neutral => Self::NEUTRAL,
            ruling => Self {
                accepted: false,
                more: Some(Box::new(More::new(ruling))),
            },
        }
    }

    const fn plain(accepted: bool) -> Self {
        Self {
            accepted,
            more: None,
        }
    }

    /// A throttle of `kind`, without a hint.
    pub fn throttled(kind: ThrottleKind) -> Self {
        Self::new(Ruling::Throttled(Throttle::new(kind)))
    }

    /// Adds what the answer tells of the quota.
    #[must_use]
    pub fn with_quota(mut self, quota: impl Into<Option<Quota>>) -> Self {
        if let Some(quota) = quota.into() {
            self.more_mut().quota = Some(quota);
        }
        self
    }

    /// Adds what the attempt really cost, of the named buckets that it names.
    ///
    /// The difference to what was taken before is given back, or delays the
    /// next attempt. What it says of requests does not count: they are taken
    /// when an attempt is sent.
    #[must_use]
    pub fn with_cost(mut self, cost: Cost) -> Self {
        self.more_mut().cost = Some(cost);
        self
    }

    /// Adds the service's own error code, at most 64 bytes, escaped.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        self.more_mut().code = Some(Raw::new(code.as_bytes()).0);
        self
    }

    /// Adds the service's request id, at most 64 bytes, escaped.
    #[must_use]
    pub fn with_request_id(mut self, id: &str) -> Self {
        self.more_mut().request_id = Some(Raw::new(id.as_bytes()).0);
        self
    }

    /// Adds the status of the answer, for events.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.more_mut().status = Some(status);
        self
    }

    /// Adds a hint that is not followed, to be counted by its reason.
    #[must_use]
    pub fn with_ignored(mut self, hint: impl Into<Option<IgnoredHint>>) -> Self {
        if let Some(hint) = hint.into() {
            self.more_mut().ignored = Some(hint);
        }
        self
    }

    /// Adds the beginning of a body that nobody understood, at most 64 bytes,
    /// escaped: enough to write a profile for its service.
    #[must_use]
    pub fn with_sample(mut self, body: &[u8]) -> Self {
        self.more_mut().sample = Some(Raw::new(body).0);
        self
    }

    fn more_mut(&mut self) -> &mut More {
        let ruling = if self.accepted {
            Ruling::Accepted
        } else {
            Ruling::Neutral
        };
        self.more.get_or_insert_with(|| Box::new(More::new(ruling)))
    }

    /// How the server ruled.
    pub const fn ruling(&self) -> &Ruling {
        match &self.more {
            Some(more) => &more.ruling,
            None if self.accepted => &Ruling::Accepted,
            None => &Ruling::Neutral,
        }
    }

    /// Whether the attempt was served.
    pub const fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// Whether the attempt was refused: throttled, or its quota exhausted.
    pub const fn is_refusal(&self) -> bool {
        matches!(self.ruling(), Ruling::Throttled(_) | Ruling::Exhausted(_))
    }

    /// The throttle, if it is one.
    pub const fn throttle(&self) -> Option<&Throttle> {
        match self.ruling() {
            Ruling::Throttled(throttle) => Some(throttle),
            _ => None,
        }
    }

    /// The wait that the server asks for, if it names one.
    pub const fn hint(&self) -> Option<&Hint> {
        match self.ruling() {
            Ruling::Throttled(throttle) => throttle.hint.as_ref(),
            Ruling::Exhausted(exhausted) => exhausted.resets.as_ref(),
            _ => None,
        }
    }

    /// What the answer tells of the quota.
    pub fn quota(&self) -> Option<&Quota> {
        self.more.as_ref()?.quota.as_ref()
    }

    /// What the attempt really cost.
    pub fn cost(&self) -> Option<&Cost> {
        self.more.as_ref()?.cost.as_ref()
    }

    /// Whether there is nothing to it but that the attempt was served.
    pub(crate) const fn is_plain(&self) -> bool {
        self.accepted && self.more.is_none()
    }

    /// The service's own error code.
    pub fn code(&self) -> Option<&str> {
        self.more.as_ref()?.code.as_deref()
    }

    /// The service's request id.
    pub fn request_id(&self) -> Option<&str> {
        self.more.as_ref()?.request_id.as_deref()
    }

    /// The status of the answer, of a refusal.
    pub fn status(&self) -> Option<u16> {
        self.more.as_ref()?.status
    }

    /// A hint that is there but not followed.
    pub fn ignored(&self) -> Option<&IgnoredHint> {
        self.more.as_ref()?.ignored.as_ref()
    }

    /// The beginning of a body that nobody understood.
    pub fn sample(&self) -> Option<&str> {
        self.more.as_ref()?.sample.as_deref()
    }
}

impl More {
    const fn new(ruling: Ruling) -> Self {
        Self {
            ruling,
            quota: None,
            code: None,
            request_id: None,
            cost: None,
            status: None,
            ignored: None,
            sample: None,
        }
    }
}

impl From<Ruling> for Verdict {
    fn from(ruling: Ruling) -> Self {
        Self::new(ruling)
    }
}

impl From<Throttle> for Verdict {
    fn from(throttle: Throttle) -> Self {
        Self::new(Ruling::Throttled(throttle))
    }
}

impl From<Exhausted> for Verdict {
    fn from(exhausted: Exhausted) -> Self {
        Self::new(Ruling::Exhausted(exhausted))
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
