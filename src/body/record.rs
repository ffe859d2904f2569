//! Recording a body while it streams, and playing the recording back.
//!
//! # When a recording is whole
//!
//! Only once the end of the stream was *seen*: as `None`, as trailers, or as
//! `is_end_stream()` after a frame, for a reader that knows the length does not
//! ask again. An error is not an end, and neither is a reader that stops.
//!
//! A client may go on reading a request body after an early answer, even one
//! that was dropped (hyper does). So the question whether the recording is
//! whole closes it: what the old attempt reads later is not recorded any more,
//! and half an upload can never come to look like a whole one.

use std::{
    fmt,
    marker::PhantomData,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::spool::Spool;
use crate::retry_policy::Allowance;

/// The most bytes recorded of one body, trailers included.
pub(super) const MOST_PER_CALL: usize = 64 * 1024;

/// What was taken of an [`Allowance`], given back when dropped.
#[derive(Debug)]
struct Grant {
    allowance: Allowance,
    bytes: usize,
}

impl Grant {
    /// Takes `bytes` more, if call and allowance have them.
    fn extend(&mut self, bytes: usize) -> bool {
        let fits = bytes <= MOST_PER_CALL - self.bytes && self.allowance.take(bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.allowance.give_back(self.bytes);
    }
}

/// One recording, seen by the body that is recorded and by who keeps it.
#[derive(Debug)]
enum Recording {
    /// The stream has not ended yet.
    Open(Take),
    /// The stream has ended, and all of it is here.
    Whole(Arc<Take>),
    /// Given up: too long, broken off, asked for too early, or wanted no more.
    Void,
}

/// What has been recorded.
#[derive(Debug)]
struct Take {
    data: Spool,
    trailers: Option<HeaderMap>,
    grant: Grant,
}

type Shared = Arc<Mutex<Recording>>;

fn lock(recording: &Shared) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a recording that is written to. Dropped before the end of the
/// stream, it leaves nothing behind.
#[derive(Debug)]
struct Writer(Shared);

impl Writer {
    /// Records `frame`, and tells whether there is any use in going on.
    fn write(&self, frame: &Frame<Bytes>) -> bool {
        let mut recording = lock(&self.0);
        let Recording::Open(take) = &mut *recording else {
            return false;
        };
        if let Some(data) = frame.data_ref() {
            let fits = take.grant.extend(data.len());
            if fits {
                take.data.push(data);
            }
            return fits;
        }
        if let Some(trailers) = frame.trailers_ref() {
            let fits = take.grant.extend(weight(trailers));
            if fits {
                take.trailers = Some(trailers.clone());
            }
            return fits;
        }
        // A kind of frame that is not known cannot be repeated.
        false
    }

    /// The stream has ended.
    fn end(self) {
        let mut recording = lock(&self.0);
        if let Recording::Open(mut take) = mem::replace(&mut *recording, Recording::Void) {
            take.data.seal();
            *recording = Recording::Whole(Arc::new(take));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut recording = lock(&self.0);
        if let Recording::Open(_) = *recording {
            *recording = Recording::Void;
        }
    }
}

/// The end of a recording that is read from. Dropped, it ends the recording.
#[derive(Debug)]
pub(super) struct Reader(Shared);

impl Reader {
    /// What to play back, if all of it is here. If not, it never will be.
    pub(super) fn play(&self) -> Option<Playback> {
        let mut recording = lock(&self.0);
        match &*recording {
            Recording::Whole(take) => Some(Playback::of(take)),
            Recording::Open(_) | Recording::Void => {
                *recording = Recording::Void;
                None
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        *lock(&self.0) = Recording::Void;
    }
}

/// Begins to record `body`.
///
/// `None` if its lower size hint says that it is too long; then `body` comes
/// back as it was.
pub(super) fn record<B>(body: B, allowance: &Allowance) -> Result<(RecordBody<B>, Reader), B>
where
    B: Body<Data = Bytes>,
{
    if body.size_hint().lower() > MOST_PER_CALL as u64 {
        return Err(body);
    }
    let shared = Arc::new(Mutex::new(Recording::Open(Take {
        data: Spool::default(),
        trailers: None,
        grant: Grant {
            allowance: allowance.clone(),
            bytes: 0,
        },
    })));
    let writer = Some(Writer(shared.clone()));
    Ok((RecordBody { body, writer }, Reader(shared)))
}

/// Bytes that header fields take, names included.
fn weight(fields: &HeaderMap) -> usize {
    let fields = fields.iter();
    fields.fold(0, |sum, (name, value)| {
        sum.saturating_add(name.as_str().len())
            .saturating_add(value.len())
    })
}

pin_project! {
    /// A request body that is recorded while it streams.
    ///
    /// It passes on what the body gives, frame by frame.
    pub struct RecordBody<B> {
        #[pin]
        body: B,
        writer: Option<Writer>,
    }
}

impl<B: Body<Data = Bytes>> Body for RecordBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let polled = ready!(this.body.as_mut().poll_frame(cx));
        if let Some(writer) = this.writer.take() {
            match &polled {
                Some(Ok(frame)) if !writer.write(frame) => {}
                Some(Ok(frame)) if frame.is_trailers() || this.body.is_end_stream() => {
                    writer.end();
                }
                Some(Ok(_)) => *this.writer = Some(writer),
                Some(Err(_)) => {}
                None => writer.end(),
            }
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> fmt::Debug for RecordBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBody")
            .field("recording", &self.writer.is_some())
            .finish_non_exhaustive()
    }
}

/// What a recorded body gave, to be given again.
#[derive(Debug, Default)]
pub(super) struct Playback {
    data: Spool,
    trailers: Option<HeaderMap>,
    // Keeps the bytes accounted for as long as they are kept.
    _take: Option<Arc<Take>>,
}

impl Playback {
    fn of(take: &Arc<Take>) -> Self {
        Self {
            data: take.data.clone(),
            trailers: take.trailers.clone(),
            _take: Some(take.clone()),
        }
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        match self.data.pop() {
            Some(data) => Some(Frame::data(data)),
            None => self.trailers.take().map(Frame::trailers),
        }
    }
}

/// A request body played back from a recording: the same bytes and trailers.
///
/// Its size is known exactly, and it never fails; `E` is the error type of the
/// body that it stands for.
pub struct ReplayBody<E> {
    playback: Playback,
    error: PhantomData<fn() -> E>,
}

impl<E> ReplayBody<E> {
    pub(super) const fn new(playback: Playback) -> Self {
        Self {
            playback,
            error: PhantomData,
        }
    }
}

impl<E> Body for ReplayBody<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        Poll::Ready(self.playback.next().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.playback.data.is_empty() && self.playback.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.playback.data.len() as u64)
    }
}

impl<E> fmt::Debug for ReplayBody<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody")
            .field("left", &self.playback.data.len())
            .finish_non_exhaustive()
    }
}
