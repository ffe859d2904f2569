//! From an answer to a [`Verdict`].
//!
//! A [`Classifier`] reads the head of a response, and only where the head asks
//! for it the beginning of its body or its trailers. [`HttpClassifier`] is the
//! default one; [`classify_fn`] makes one from a closure.

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
