//! What an answer means: the [`Verdict`] and the words it is made of.
//!
//! A classifier gives a [`Verdict`] on each outcome. The scope is settled by
//! it, the retry is decided by it, and what became of the call is told to the
//! caller in an [`Outcome`](crate::Outcome).

mod hint;
mod throttle;

use std::time::Duration;

pub(crate) use self::hint::Raw;
pub use self::{
    hint::{Hint, IgnoredHint, IgnoredReason},
    throttle::{Exhausted, Level, RetryAdvice, Throttle, ThrottleKind},
};
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
