//! From an answer to a [`Verdict`].
//!
//! A [`Classifier`] reads the head of a response, and only where the head asks
//! for it the beginning of its body or its trailers. [`HttpClassifier`] is the
//! default one, and stands at the end of every chain.
//!
//! # Writing one's own
//!
//! | what tells | take |
//! | --- | --- |
//! | a status or a header field, in one place | [`classify_fn`] |
//! | a word in an error body | [`classify_body_fn`] |
//! | codes, waits and quotas, as an API's documentation lists them | a [`Profile`] |
//! | the state of a program, trailers, errors of the inner service | the [trait](Classifier) |
//!
//! The rule is: the first row that suffices. A closure is right for one fact. With
//! the third `if` it has become a table, and a profile is the better table: it
//! reads hints in every unit without overflowing, keeps codes and request ids,
//! and knows a hard quota from a rate. The trait is for what neither can say.
//!
//! Whichever it is, it speaks only of what it knows, and says `None` of the rest:
//!
//! - a refusal is a throttle if waiting helps, and [exhausted](crate::verdict::Exhausted) if it
//!   does not: a client that waits for money waits for ever;
//! - a wait is a lower bound, so a doubtful one is rounded up, and one that can't
//!   be read is none;
//! - [`RetryAdvice::Unprocessed`] repeats even a `POST`, so it is for what the
//!   service's documentation promises, and for nothing else;
//! - codes are compared, words only where there is no code.
//!
//! [`Profile`]: #a-profile
//! [`RetryAdvice::Unprocessed`]: crate::verdict::RetryAdvice::Unprocessed
//!
//! ## A closure
//!
//! ```
//! use std::time::Duration;
//! use http::response::Parts;
//! use tower_retry_after::{RetryAfterLayer, classify_fn};
//! use tower_retry_after::verdict::{Hint, Throttle, ThrottleKind};
//!
//! let layer = RetryAfterLayer::new().classifier(classify_fn(|head: &Parts| {
//!     let secs = head.headers.get("x-busy")?.to_str().ok()?.parse().ok()?;
//!     let hint = Hint::new(Duration::from_secs(secs), "x-busy");
//!     Some(Throttle::new(ThrottleKind::Overloaded).hint(hint).into())
//! }));
//! # let _ = layer;
//! ```
//!
//! A closure that is first kept in a `let` does not infer; hand it over at once.
//!
//! ## A profile
//!
//! The feature `providers` has those of well-known services, and the builder
//! they are made with: see its module `providers`. A service under one's own
//! name takes ten lines.
//!
#![cfg_attr(
    feature = "providers",
    doc = r##"
```
use tower_retry_after::classifier::providers::{Meaning, Profile, code, header, json, status};
use tower_retry_after::hint::Unit;

let profile = Profile::new("acme")
    .host("api.acme.test")
    .code(json("/error/code"))
    .rule(code(["OUT_OF_CREDITS"]), Meaning::EXHAUSTED)
    .rule(status([429]), Meaning::RATE_LIMITED)
    .wait(header("x-backoff-ms"), Unit::Millis);
# let _ = profile;
```
"##
)]
//!
//! ## The trait
//!
//! ```
//! use http::{StatusCode, response::Parts};
//! use tower_retry_after::classifier::{Classifier, Phase, Receipt};
//! use tower_retry_after::verdict::{ThrottleKind, Verdict};
//!
//! /// A service that answers 423 while it is being maintained.
//! struct Maintenance;
//!
//! impl Classifier for Maintenance {
//!     fn head(&self, head: &Parts, _: &Receipt<'_>) -> Option<Phase> {
//!         let verdict = Verdict::throttled(ThrottleKind::Overloaded);
//!         (head.status == StatusCode::LOCKED).then(|| verdict.into())
//!     }
//! }
//! ```
//!
//! ## A chain
//!
//! [`or`](Classifier::or) asks one after another. The first with something to
//! say decides, so what is more special stands in front.
//!
//! ```
//! use http::{HeaderMap, Response};
//! use tower_retry_after::classifier::{Classifier, HttpClassifier, Receipt, classify_fn};
//! use tower_retry_after::verdict::{ThrottleKind, Verdict};
//!
//! let teapot = classify_fn(|head| {
//!     (head.status == 418).then(|| Verdict::throttled(ThrottleKind::Overloaded))
//! });
//! let classifier = teapot.or(HttpClassifier::new());
//!
//! // As a test of one's own would ask it.
//! let (head, body) = Response::builder().status(418).body("").unwrap().into_parts();
//! let at = Receipt::at(std::time::SystemTime::UNIX_EPOCH);
//! let verdict = classifier.judge(&head, body.as_bytes(), &HeaderMap::new(), &at);
//! assert!(verdict.unwrap().throttle().is_some());
//! ```
//!
//! # Streams
//!
//! A stream is never held back to look into it. Whoever reads it and meets an
//! error asks the classifier of it, as of a body, and hands the verdict to the
//! scope: [`ScopeHandle::report`](crate::ScopeHandle::report).

mod closure;
mod findings;
#[cfg(feature = "grpc")]
mod grpc;
mod http;
mod or;
#[cfg(feature = "providers")]
pub mod providers;

use std::{error::Error as StdError, fmt, sync::Arc, time::SystemTime};

use ::http::{HeaderMap, Uri, response::Parts};

#[cfg(feature = "grpc")]
pub use self::grpc::GrpcClassifier;
pub use self::{
    closure::{ClassifyBodyFn, ClassifyFn, classify_body_fn, classify_fn},
    http::HttpClassifier,
    or::Or,
};
use crate::{time::Clock, verdict::Verdict};

/// What the head of an answer decides.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// The head says it all.
    Decided(Verdict),
    /// The body decides; until it is read, `meanwhile` holds for everyone.
    NeedBody {
        /// What the head says: settled at once, for others must not run on
        /// while a slow error body is being read.
        meanwhile: Verdict,
    },
    /// The trailers decide; until they are read, `meanwhile` holds.
    NeedTrailers {
        /// What the head says.
        meanwhile: Verdict,
    },
}

impl Phase {
    /// What is known from the head alone.
    pub fn into_verdict(self) -> Verdict {
        match self {
            Self::Decided(verdict)
            | Self::NeedBody { meanwhile: verdict }
            | Self::NeedTrailers { meanwhile: verdict } => verdict,
        }
    }
}

impl From<Verdict> for Phase {
    fn from(verdict: Verdict) -> Self {
        Self::Decided(verdict)
    }
}

/// Judges outcomes.
///
/// Each method may answer `None`, "I have nothing to say": then the next one
/// of a chain built by [`or`](Self::or) is asked. The layer puts
/// [`HttpClassifier`] at the end of every chain, so what no classifier claims
/// is judged by the general rules.
///
/// All methods are pure and quick: they run on the request path. None of them
/// is called under a lock, and a panic in one is the caller's own.
pub trait Classifier: Send + Sync + 'static {
    /// Judges the head of an answer.
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase>;

    /// Judges the beginning of the body, at most 64 KiB, when [`head`] asked
    /// for it. With `None` what the head said holds; so it does where the body
    /// could not be read in time.
    ///
    /// [`head`]: Classifier::head
    fn body(&self, head: &Parts, body: &[u8], at: &Receipt<'_>) -> Option<Verdict> {
        let _ = (head, body, at);
        None
    }

    /// Judges the trailers when [`head`](Classifier::head) asked for them.
    /// With `None` what the head said holds.
    fn trailers(&self, head: &Parts, trailers: &HeaderMap, at: &Receipt<'_>) -> Option<Verdict> {
        let _ = (head, trailers, at);
        None
    }

    /// Judges an error of the inner service; neutral if nobody does.
    fn error(&self, error: &(dyn StdError + 'static)) -> Option<Verdict> {
        let _ = error;
        None
    }

    /// Whether [`Receipt::requested`] is wanted; it costs a clone of the URI.
    fn needs_uri(&self) -> bool {
        false
    }

    /// Whether a refusal of what is `requested` may say that it was not
    /// processed, so that even a `POST` has to be kept to be sent again.
    fn may_be_unprocessed(&self, requested: &Uri) -> bool {
        let _ = requested;
        false
    }

    /// Asks `next` wherever this one has nothing to say.
    fn or<C: Classifier>(self, next: C) -> Or<Self, C>
    where
        Self: Sized,
    {
        Or::new(self, next)
    }

    /// Judges a whole answer at once, as the layer does step by step.
    ///
    /// For tools and for tests of one's own classifier.
    fn judge(
        &self,
        head: &Parts,
        body: &[u8],
        trailers: &HeaderMap,
        at: &Receipt<'_>,
    ) -> Option<Verdict> {
        let (read, meanwhile) = match self.head(head, at)? {
            Phase::Decided(verdict) => return Some(verdict),
            Phase::NeedBody { meanwhile } => (self.body(head, body, at), meanwhile),
            Phase::NeedTrailers { meanwhile } => (self.trailers(head, trailers, at), meanwhile),
        };
        Some(read.unwrap_or(meanwhile))
    }
}

/// When an answer was received, and to what.
#[derive(Clone, Copy, Debug)]
pub struct Receipt<'a> {
    uri: Option<&'a Uri>,
    wall: Wall<'a>,
}

/// Wall time is read only when a date asks for it, never for a plain success.
#[derive(Clone, Copy, Debug)]
enum Wall<'a> {
    Read(&'a Clock),
    At(SystemTime),
}

impl<'a> Receipt<'a> {
    /// An answer received at `wall`.
    pub const fn at(wall: SystemTime) -> Self {
        Self {
            uri: None,
            wall: Wall::At(wall),
        }
    }

    pub(crate) const fn now(clock: &'a Clock) -> Self {
        Self {
            uri: None,
            wall: Wall::Read(clock),
        }
    }

    /// Adds the URI that was asked for.
    #[must_use]
    pub const fn uri(mut self, uri: Option<&'a Uri>) -> Self {
        self.uri = uri;
        self
    }

    /// The URI that was asked for, if [`Classifier::needs_uri`] asked for it.
    pub const fn requested(&self) -> Option<&'a Uri> {
        self.uri
    }

    /// The wall time at receipt, for dates without a `Date` beside them.
    pub fn wall(&self) -> SystemTime {
        match self.wall {
            Wall::Read(clock) => clock.wall(),
            Wall::At(wall) => wall,
        }
    }
}

impl fmt::Debug for dyn Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dyn Classifier")
    }
}

impl<C: Classifier + ?Sized> Classifier for Arc<C> {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        (**self).head(head, at)
    }

    fn body(&self, head: &Parts, body: &[u8], at: &Receipt<'_>) -> Option<Verdict> {
        (**self).body(head, body, at)
    }

    fn trailers(&self, head: &Parts, trailers: &HeaderMap, at: &Receipt<'_>) -> Option<Verdict> {
        (**self).trailers(head, trailers, at)
    }

    fn error(&self, error: &(dyn StdError + 'static)) -> Option<Verdict> {
        (**self).error(error)
    }

    fn needs_uri(&self) -> bool {
        (**self).needs_uri()
    }

    fn may_be_unprocessed(&self, requested: &Uri) -> bool {
        (**self).may_be_unprocessed(requested)
    }
}
