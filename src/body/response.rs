//! The response body: untouched, or with its beginning read ahead.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{
    peek::{Ahead, Peek},
    watch::Watch,
};
use crate::scope::Slot;

pin_project! {
    /// A response body as the server sent it.
    ///
    /// It gives the same bytes, trailers and errors as the inner body, with the
    /// same size hint, also where its beginning was read ahead in order to
    /// judge the answer. An untouched body is neither boxed nor copied.
    ///
    /// Until it has ended or is dropped, the attempt counts as one in flight.
    pub struct ResponseBody<B: Body> {
        #[pin]
        state: State<B>,
        slot: Option<Slot>,
        // Reads the trailers that come later; boxed, for few answers have one.
        watch: Option<Box<Watch>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B: Body> {
        // As it came.
        Untouched { #[pin] body: B },
        // Its beginning has been read. Boxed, for a body that has been polled
        // must not move, and few are.
        Ahead { ahead: Pin<Box<Ahead<B>>> },
    }
}

impl<B: Body> State<B> {
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Untouched { body } => body.is_end_stream(),
            Self::Ahead { ahead } => ahead.is_end_stream(),
        }
    }

    /// Whether the inner body has ended, whatever is still to be given of it.
    fn is_received(&self) -> bool {
        match self {
            Self::Untouched { body } => body.is_end_stream(),
            Self::Ahead { ahead } => !ahead.is_streaming(),
        }
    }
}

impl<B: Body> ResponseBody<B> {
    /// `body`, which holds `slot` until it has ended.
    pub(crate) fn new(body: B, slot: Option<Slot>) -> Self {
        let state = State::Untouched { body };
        Self {
            state,
            slot: None,
            watch: None,
        }
        .holding(slot)
    }

    pub(super) fn ahead(ahead: Pin<Box<Ahead<B>>>, slot: Option<Slot>) -> Self {
        let state = State::Ahead { ahead };
        Self {
            state,
            slot: None,
            watch: None,
        }
        .holding(slot)
    }

    /// The body, which holds `slot` from now on until it has ended.
    pub(crate) fn holding(mut self, slot: Option<Slot>) -> Self {
        self.slot = slot.filter(|_| !self.state.is_received());
        self
    }

    /// The body, whose trailers are shown to `watch` when they come.
    pub(crate) fn watched(mut self, watch: Watch) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Begins to read it ahead; what was read before is part of it.
    pub(crate) fn peek(self) -> Peek<B> {
        let ahead = match self.state {
            State::Untouched { body } => Box::pin(Ahead::new(body)),
            State::Ahead { ahead } => ahead,
        };
        Peek::new(ahead, self.slot)
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let polled = ready!(match this.state.as_mut().project() {
            StateProj::Untouched { body } => body.poll_frame(cx),
            StateProj::Ahead { ahead } => ahead.as_mut().poll_frame(cx),
        });
        if let Some(Ok(frame)) = &polled
            && let Some(trailers) = frame.trailers_ref()
            && let Some(watch) = this.watch.take()
        {
            watch.see(trailers);
        }
        if let Some(slot) = this.slot {
            // The end shows in four ways, and a reader that knows the length
            // does not poll again after the last byte.
            match &polled {
                Some(Ok(frame)) if !frame.is_trailers() && !this.state.is_end_stream() => {
                    slot.touch();
                }
                _ => *this.slot = None,
            }
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.state.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Untouched { body } => body.size_hint(),
            State::Ahead { ahead } => ahead.size_hint(),
        }
    }
}

impl<B: Body + Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::new(B::default(), None)
    }
}

impl<B: Body> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ahead = matches!(self.state, State::Ahead { .. });
        f.debug_struct("ResponseBody")
            .field("ahead", &ahead)
            .finish_non_exhaustive()
    }
}
