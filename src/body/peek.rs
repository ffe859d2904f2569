//! Reading the beginning of a response body, without taking it from anyone.

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{response::ResponseBody, spool::Spool};
use crate::scope::Slot;

/// The most bytes read ahead unless told otherwise, but for the last frame.
const MOST: usize = 64 * 1024;

/// Reads a response body ahead: a future that is ready when there is no more
/// to read or enough has been read.
///
/// It knows no time. Whoever polls it may stop at any moment, look at what was
/// read until then, and turn it into a [`ResponseBody`] that gives all of it.
///
/// # Bounds
///
/// It stops at the end of the stream, at trailers, at an error, and at the
/// first frame by which its limit is reached, so that it never keeps more than
/// the limit and one frame. A frame counts as one byte at least, so that a
/// stream of empty frames has an end too.
///
/// # Cancel safety
///
/// Dropping it drops the body. Not polling it loses nothing.
#[must_use = "reads nothing unless polled"]
pub(crate) struct Peek<B: Body> {
    ahead: Pin<Box<Ahead<B>>>,
    slot: Option<Slot>,
    limit: usize,
    taken: usize,
}

impl<B: Body> Peek<B> {
    pub(super) fn new(ahead: Pin<Box<Ahead<B>>>, slot: Option<Slot>) -> Self {
        Self {
            ahead,
            slot,
            limit: MOST,
            taken: 0,
        }
    }

    /// Stops after the first frame, whatever it is.
    pub(crate) fn one_frame(mut self) -> Self {
        self.limit = 1;
        self
    }

    /// Whether the body was read to its end, trailers included.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.ahead.rest, Rest::Ended)
    }

    /// Whether what was read can be judged by: the whole body or as much of it
    /// as the limit allows, not one that broke off or is still awaited.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_whole() || self.taken >= self.limit
    }

    /// What was read, at most 64 KiB of it; copied only from several frames.
    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        self.ahead.data.first(MOST)
    }

    /// The trailers, if they were read.
    pub(crate) fn trailers(&self) -> Option<&HeaderMap> {
        self.ahead.trailers.as_ref()
    }

    /// The body: what was read, then the rest or the error it broke off with.
    pub(crate) fn into_body(self) -> ResponseBody<B> {
        ResponseBody::ahead(self.ahead, self.slot)
    }
}

impl<B: Body<Data = Bytes>> Future for Peek<B> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        while this.taken < this.limit {
            let Some(bytes) = ready!(this.ahead.as_mut().poll_ahead(cx)) else {
                break;
            };
            this.taken = this.taken.saturating_add(bytes.max(1));
        }
        if !this.ahead.is_streaming() {
            this.slot = None;
        }
        Poll::Ready(())
    }
}

impl<B: Body> fmt::Debug for Peek<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek")
            .field("read", &self.ahead.data.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// A body of which the beginning has been read.
    pub(super) struct Ahead<B: Body> {
        data: Spool,
        trailers: Option<HeaderMap>,
        #[pin]
        rest: Rest<B>,
    }
}

pin_project! {
    /// What comes after the part that has been read.
    #[project = RestProj]
    #[project_replace = RestOwned]
    enum Rest<B: Body> {
        // More of it.
        Body { #[pin] body: B },
        // The error that the body broke off with, and how much was missing.
        Broken { error: B::Error, missing: SizeHint },
        // Nothing.
        Ended,
    }
}

impl<B: Body> Ahead<B> {
    pub(super) fn new(body: B) -> Self {
        Self {
            data: Spool::default(),
            trailers: None,
            rest: Rest::Body { body },
        }
    }

    /// Whether there may be more than what has been read.
    pub(super) fn is_streaming(&self) -> bool {
        matches!(self.rest, Rest::Body { .. })
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.data.is_empty()
            && self.trailers.is_none()
            && match &self.rest {
                Rest::Body { body } => body.is_end_stream(),
                Rest::Broken { .. } => false,
                Rest::Ended => true,
            }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let rest = match &self.rest {
            Rest::Body { body } => body.size_hint(),
            Rest::Broken { missing, .. } => *missing,
            Rest::Ended => SizeHint::with_exact(0),
        };
        longer(rest, self.data.len() as u64)
    }
}

impl<B: Body<Data = Bytes>> Ahead<B> {
    /// Reads one frame more, and gives its length; `None` if there is no more.
    fn poll_ahead(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let mut this = self.project();
        let RestProj::Body { mut body } = this.rest.as_mut().project() else {
            return Poll::Ready(None);
        };
        let missing = body.size_hint();
        let (length, rest) = match ready!(body.as_mut().poll_frame(cx)) {
            None => (None, Rest::Ended),
            Some(Err(error)) => (None, Rest::Broken { error, missing }),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    this.data.push(&data);
                    if !body.is_end_stream() {
                        return Poll::Ready(Some(data.len()));
                    }
                    (Some(data.len()), Rest::Ended)
                }
                Err(frame) => {
                    *this.trailers = frame.into_trailers().ok();
                    (None, Rest::Ended)
                }
            },
        };
        this.rest.set(rest);
        Poll::Ready(length)
    }

    pub(super) fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        if let Some(data) = this.data.pop() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(trailers) = this.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if let RestProj::Body { body } = this.rest.as_mut().project() {
            return body.poll_frame(cx);
        }
        let broken = match this.rest.project_replace(Rest::Ended) {
            RestOwned::Broken { error, .. } => Some(Err(error)),
            _ => None,
        };
        Poll::Ready(broken)
    }
}

/// `hint`, with `more` bytes before it.
fn longer(hint: SizeHint, more: u64) -> SizeHint {
    let mut longer = SizeHint::new();
    longer.set_lower(hint.lower().saturating_add(more));
    if let Some(upper) = hint.upper().and_then(|upper| upper.checked_add(more)) {
        longer.set_upper(upper.max(longer.lower()));
    }
    longer
}
