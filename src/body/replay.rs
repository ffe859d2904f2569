//! Which request bodies can be sent again, by their type.
//!
//! # Why a registry and not a trait
//!
//! A trait would shut out third-party bodies by the orphan rule, and a blanket
//! implementation over `Clone` would conflict with the boxed ones. So a body
//! need only be `'static`, and what is known of its type is looked up.

use std::{
    any::{Any, TypeId},
    convert::Infallible,
    error::Error as StdError,
    fmt,
    sync::Arc,
};

use bytes::Bytes;
use http_body::Body;
use http_body_util::{
    Empty, Full,
    combinators::{BoxBody, UnsyncBoxBody},
};

use super::record::{Playback, Reader, RecordBody, ReplayBody, record};
use crate::retry_policy::Allowance;

type BoxError = Box<dyn StdError + Send + Sync>;

/// How bodies are kept, by their type. Cheap to clone.
///
/// # Default
///
/// `Full<Bytes>`, `Empty<Bytes>` and `String` are copied; `BoxBody<Bytes, E>`
/// and `UnsyncBoxBody<Bytes, E>` are recorded, `E` being `Infallible` or a
/// boxed error.
#[derive(Clone)]
pub(crate) struct Bodies {
    // By the type `B`, its `Way<B>`; the latest registered comes first.
    ways: Arc<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>,
}

impl Bodies {
    /// Copies bodies of type `B` by `copy`, which may refuse one with `None`.
    #[must_use]
    pub(crate) fn copied<B, F>(self, copy: F) -> Self
    where
        B: 'static,
        F: Fn(&B) -> Option<B> + Send + Sync + 'static,
    {
        self.with(Way::Copy(Arc::new(copy)))
    }

    /// Records bodies of type `B`: `wrap` makes a `B` of one that is recorded,
    /// `replay` of one that is played back.
    #[must_use]
    pub(crate) fn recorded<B, W, R>(self, wrap: W, replay: R) -> Self
    where
        B: Body<Data = Bytes> + 'static,
        W: Fn(RecordBody<B>) -> B + Send + Sync + 'static,
        R: Fn(ReplayBody<B::Error>) -> B + Send + Sync + 'static,
    {
        self.with(Way::<B>::Record(Arc::new(Boxing { wrap, replay })))
    }

    fn with<B: 'static>(mut self, way: Way<B>) -> Self {
        let ways = Arc::make_mut(&mut self.ways);
        ways.insert(0, (TypeId::of::<B>(), Arc::new(way)));
        self
    }

    fn way<B: 'static>(&self) -> Option<&Way<B>> {
        // There are a handful, and most calls find theirs first.
        let mut ways = self.ways.iter();
        let (_, way) = ways.find(|(body, _)| *body == TypeId::of::<B>())?;
        way.downcast_ref()
    }

    /// Keeps a copy of `body`, if bodies of its type are copied and it can be.
    #[inline]
    pub(crate) fn copy<B: 'static>(&self, body: &B) -> Option<Kept<B>> {
        let Some(Way::Copy(copy)) = self.way() else {
            return None;
        };
        let (body, copy) = (copy(body)?, Arc::clone(copy));
        Some(Kept(Keep::Copy { body, copy }))
    }

    /// Whether bodies of type `B` are recorded.
    #[inline]
    pub(crate) fn are_recorded<B: 'static>(&self) -> bool {
        matches!(self.way::<B>(), Some(Way::Record(_)))
    }

    /// Has `body` recorded while it is sent, if bodies of its type are recorded
    /// and it is not too long.
    pub(crate) fn record<B: 'static>(
        &self,
        body: B,
        allowance: &Allowance,
    ) -> (B, Option<Kept<B>>) {
        let Some(Way::Record(recorder)) = self.way() else {
            return (body, None);
        };
        let (body, tape) = recorder.record(body, allowance);
        let recorder = Arc::clone(recorder);
        (body, tape.map(|tape| Kept(Keep::Tape { tape, recorder })))
    }
}

impl Default for Bodies {
    fn default() -> Self {
        let none = Self {
            ways: Arc::default(),
        };
        #[cfg(feature = "grpc")]
        let none = none.recorded(tonic::body::Body::new, tonic::body::Body::new);
        // The most usual one comes last, which is first in the search.
        none.recorded(UnsyncBoxBody::<Bytes, Infallible>::new, UnsyncBoxBody::new)
            .recorded(UnsyncBoxBody::<Bytes, BoxError>::new, UnsyncBoxBody::new)
            .recorded(BoxBody::<Bytes, Infallible>::new, BoxBody::new)
            .recorded(BoxBody::<Bytes, BoxError>::new, BoxBody::new)
            .copied(|body: &String| Some(body.clone()))
            .copied(|body: &Empty<Bytes>| Some(*body))
            .copied(|body: &Full<Bytes>| Some(body.clone()))
    }
}

impl fmt::Debug for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bodies")
            .field("known", &self.ways.len())
            .finish_non_exhaustive()
    }
}

/// A function that copies a body, if it can be copied.
type Copier<B> = dyn Fn(&B) -> Option<B> + Send + Sync;

/// How bodies of one type are kept.
enum Way<B> {
    Copy(Arc<Copier<B>>),
    Record(Arc<dyn Recorder<B>>),
}

/// Records bodies of one type.
///
/// A trait, so that a [`Way`] asks of `B` no more than `'static`.
trait Recorder<B>: Send + Sync {
    /// `body` as it is to be sent, and the tape if it is not too long.
    fn record(&self, body: B, allowance: &Allowance) -> (B, Option<Tape>);

    fn replay(&self, playback: Playback) -> B;
}

/// A [`Recorder`] of a type that boxes bodies.
struct Boxing<W, R> {
    wrap: W,
    replay: R,
}

impl<B, W, R> Recorder<B> for Boxing<W, R>
where
    B: Body<Data = Bytes>,
    W: Fn(RecordBody<B>) -> B + Send + Sync,
    R: Fn(ReplayBody<B::Error>) -> B + Send + Sync,
{
    fn record(&self, body: B, allowance: &Allowance) -> (B, Option<Tape>) {
        if body.is_end_stream() {
            return (body, Some(Tape::Blank));
        }
        match record(body, allowance) {
            Ok((body, reader)) => ((self.wrap)(body), Some(Tape::Running(reader))),
            Err(body) => (body, None),
        }
    }

    fn replay(&self, playback: Playback) -> B {
        (self.replay)(ReplayBody::new(playback))
    }
}

/// What is kept of a body so that it can be sent again.
pub(crate) struct Kept<B>(Keep<B>);

enum Keep<B> {
    /// A copy, to be copied again.
    Copy { body: B, copy: Arc<Copier<B>> },
    /// A recording, whole or not.
    Tape {
        tape: Tape,
        recorder: Arc<dyn Recorder<B>>,
    },
}

/// What a recorded body leaves to play back.
enum Tape {
    /// The body was empty: nothing is recorded, and nothing allocated.
    Blank,
    Running(Reader),
}

impl<B> Kept<B> {
    /// A body for one more send, the same to the last byte.
    ///
    /// `None` if it can't be sent whole: the attempt before has not read it to
    /// its end, or it was too long. That answer is final.
    pub(crate) fn again(&self) -> Option<B> {
        match &self.0 {
            Keep::Copy { body, copy } => copy(body),
            Keep::Tape { tape, recorder } => {
                let playback = match tape {
                    Tape::Blank => Playback::default(),
                    Tape::Running(reader) => reader.play()?,
                };
                Some(recorder.replay(playback))
            }
        }
    }
}

impl<B> fmt::Debug for Kept<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.0 {
            Keep::Copy { .. } => "copy",
            Keep::Tape { .. } => "recording",
        };
        f.debug_tuple("Kept").field(&way).finish()
    }
}
