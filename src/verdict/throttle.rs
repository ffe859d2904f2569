//! Refusals: throttles and spent quotas.

use super::Hint;

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
