//! Rules: if an answer looks like this, it means that.

use std::time::Duration;

use super::source::{Answer, Source, Text};
use crate::verdict::{Exhausted, Level, RetryAdvice, Ruling, Throttle, ThrottleKind};

/// What an answer has to look like for a rule to hold.
///
/// Made by [`status`], [`code`] and the methods of [`Source`]; letters match
/// whatever their case.
#[derive(Clone, Debug)]
pub struct Test(Vec<Check>);

#[derive(Clone, Debug)]
enum Check {
    Status(Vec<u16>),
    Code(Vec<Text>),
    Is(Source, Vec<Text>),
    Contains(Source, Vec<Text>),
    Present(Source),
}

/// The status is one of `statuses`.
pub fn status(statuses: impl IntoIterator<Item = u16>) -> Test {
    Check::Status(statuses.into_iter().collect()).into()
}

/// One of the answer's codes, see [`Profile::code`], is one of `codes`.
///
/// [`Profile::code`]: super::Profile::code
pub fn code<T: Into<Text>>(codes: impl IntoIterator<Item = T>) -> Test {
    Check::Code(codes.into_iter().map(Into::into).collect()).into()
}

impl Source {
    /// A value is one of `values`.
    pub fn is<T: Into<Text>>(self, values: impl IntoIterator<Item = T>) -> Test {
        Check::Is(self, values.into_iter().map(Into::into).collect()).into()
    }

    /// A value contains one of `parts`: for services that tell by nothing but
    /// their messages.
    pub fn contains<T: Into<Text>>(self, parts: impl IntoIterator<Item = T>) -> Test {
        let lower = |part: T| part.into().to_ascii_lowercase().into();
        Check::Contains(self, parts.into_iter().map(lower).collect()).into()
    }

    /// There is a value.
    pub fn is_present(self) -> Test {
        Check::Present(self).into()
    }
}

impl From<Check> for Test {
    fn from(check: Check) -> Self {
        Self(vec![check])
    }
}

impl Test {
    /// Both have to hold.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn holds(&self, answer: &Answer<'_>, codes: &[Source]) -> bool {
        self.0.iter().all(|check| check.holds(answer, codes))
    }

    /// Whether it looks into the body.
    pub(super) fn in_body(&self) -> bool {
        self.0.iter().any(|check| match check {
            Check::Status(_) | Check::Code(_) => false,
            Check::Is(source, _) | Check::Contains(source, _) | Check::Present(source) => {
                source.in_body()
            }
        })
    }
}

impl Check {
    fn holds(&self, answer: &Answer<'_>, codes: &[Source]) -> bool {
        let is = |source: &Source, values: &[Text]| {
            let is_one = |text: &str| values.iter().any(|value| value.eq_ignore_ascii_case(text));
            source
                .find(answer, |text| is_one(text.trim()).then_some(()))
                .is_some()
        };
        match self {
            Self::Status(statuses) => statuses.contains(&answer.head.status.as_u16()),
            Self::Code(values) => codes.iter().any(|source| is(source, values)),
            Self::Is(source, values) => is(source, values),
            Self::Contains(source, parts) => {
                let has_one = |text: &str| {
                    let text = text.to_ascii_lowercase();
                    parts
                        .iter()
                        .any(|part| text.contains(&**part))
                        .then_some(())
                };
                source.find(answer, has_one).is_some()
            }
            Self::Present(source) => source.find(answer, |_| Some(())).is_some(),
        }
    }
}

/// What an answer means for which a rule holds.
#[derive(Clone, Debug)]
pub struct Meaning {
    sort: Sort,
    level: Option<Level>,
    ban: bool,
    retry: RetryAdvice,
    window: Option<Duration>,
    documented: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum Sort {
    Throttle(ThrottleKind),
    Exhausted,
    NotThrottled,
}

impl Meaning {
    /// Too many requests in a time.
    pub const RATE_LIMITED: Self = Self::new(Sort::Throttle(ThrottleKind::RateLimited));

    /// Too many requests at once.
    pub const CONCURRENCY_LIMITED: Self =
        Self::new(Sort::Throttle(ThrottleKind::ConcurrencyLimited));

    /// The server has more work than it can do.
    pub const OVERLOADED: Self = Self::new(Sort::Throttle(ThrottleKind::Overloaded));

    /// A throttle, and nobody knows why.
    pub const UNKNOWN: Self = Self::new(Sort::Throttle(ThrottleKind::Unknown));

    /// A hard quota or the money is spent.
    pub const EXHAUSTED: Self = Self::new(Sort::Exhausted);

    /// It says nothing of rate, whatever its status looks like.
    pub const NOT_THROTTLED: Self = Self::new(Sort::NotThrottled);

    const fn new(sort: Sort) -> Self {
        Self {
            sort,
            level: None,
            ban: false,
            retry: RetryAdvice::Default,
            window: None,
            documented: None,
        }
    }

    /// Sets the level of the scope's path that is meant.
    ///
    /// Defaults to the leaf for a throttle; for a hard quota to the level that
    /// holds a credential, and to none if there is no such level.
    #[must_use]
    pub const fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// Marks a ban that is lengthened for repeat offenders.
    #[must_use]
    pub const fn ban(mut self) -> Self {
        self.ban = true;
        self
    }

    /// Marks a refusal that is documented as not processed, so that sending
    /// the request again is safe whatever its method.
    #[must_use]
    pub const fn unprocessed(mut self) -> Self {
        self.retry = RetryAdvice::Unprocessed;
        self
    }

    /// Sets the window of the quota that ran out, where the answer does not
    /// tell it.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// Sets the wait that the service's documentation asks for where the
    /// answer names none.
    #[must_use]
    pub const fn documented_wait(mut self, wait: Duration) -> Self {
        self.documented = Some(wait);
        self
    }

    /// The ruling, but for its hint; `None` if it is no refusal.
    pub(super) fn ruling(&self) -> Option<Ruling> {
        let level = self.level.unwrap_or_default();
        Some(match self.sort {
            Sort::Throttle(kind) => {
                let throttle = Throttle::new(kind)
                    .level(level)
                    .ban(self.ban)
                    .retry(self.retry);
                Ruling::Throttled(throttle)
            }
            Sort::Exhausted => Ruling::Exhausted(Exhausted {
                resets: None,
                level: self.level,
            }),
            Sort::NotThrottled => return None,
        })
    }

    pub(super) const fn told_window(&self) -> Option<Duration> {
        self.window
    }

    pub(super) const fn told_wait(&self) -> Option<Duration> {
        self.documented
    }

    pub(super) fn is_unprocessed(&self) -> bool {
        self.retry == RetryAdvice::Unprocessed
    }
}
