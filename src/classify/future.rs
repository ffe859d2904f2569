//! One attempt, from its sending to the verdict on its answer.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Response, header, response::Parts};
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::judge::Judge;
use crate::{
    body::{Peek, ResponseBody},
    classifier::Phase,
    error::BoxError,
    scope::Classified,
    verdict::Verdict,
};

/// How long the body of an answer is read ahead at most.
const PEEK: Duration = Duration::from_secs(5);

/// How long that may take where the answer may be a stream: one that is silent
/// at first must not have its head held back.
const PEEK_FRAME: Duration = Duration::from_millis(50);

/// The largest body that is read ahead whole.
const PEEK_BYTES: u64 = 64 * 1024;

pin_project! {
    /// The response future of [`Classify`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the attempt: its slot is given back, its outcome
    /// teaches nothing.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, RB: Body> {
        #[pin]
        state: State<F, RB>,
        judge: Option<Judge>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, RB: Body> {
        // The attempt is out; its response head is awaited.
        Head { #[pin] response: F },
        // The head has asked for the body, which is being read.
        Peeking { peeking: Box<Peeking<RB>> },
    }
}

pub(super) struct Peeking<RB: Body> {
    pub(super) head: Parts,
    pub(super) peek: Option<Peek<RB>>,
    /// What decides is in the trailers, not in the body.
    pub(super) trailers: bool,
    pub(super) meanwhile: Verdict,
    pub(super) timer: Pin<Box<Sleep>>,
}

impl<F, RB: Body> ResponseFuture<F, RB> {
    #[inline(always)]
    pub(super) const fn new(response: F, judge: Judge) -> Self {
        Self {
            state: State::Head { response },
            judge: Some(judge),
        }
    }
}

impl<F, RB, E> Future for ResponseFuture<F, RB>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
    RB: Body<Data = Bytes>,
{
    type Output = Result<Classified<Response<ResponseBody<RB>>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let Some(judge) = this.judge else {
                // Polled again after it was done.
                return Poll::Pending;
            };
            let peeking = match this.state.as_mut().project() {
                StateProj::Head { response } => {
                    let Poll::Ready(response) = response.poll(cx) else {
                        return match judge.poll_deadline(cx) {
                            true => Poll::Ready(Err(judge.ticket.timed_out().into())),
                            false => Poll::Pending,
                        };
                    };
                    let response = match response.map_err(Into::into) {
                        Ok(response) => response,
                        Err(error) => {
                            let verdict = judge.classifier.error(&*error);
                            judge.ticket.settle(&verdict.unwrap_or(Verdict::NEUTRAL));
                            *this.judge = None;
                            return Poll::Ready(Err(error));
                        }
                    };
                    let (head, body) = response.into_parts();
                    let body = ResponseBody::new(body, None);
                    match judge.head(&head) {
                        Phase::NeedBody { meanwhile }
                            if is_plain(&head) && is_bounded(&meanwhile, &body.size_hint()) =>
                        {
                            judge.ticket.settle_meanwhile(&meanwhile);
                            let most = patience(&meanwhile, &body.size_hint());
                            Box::new(judge.peeking(head, body.peek(), meanwhile, most))
                        }
                        Phase::NeedTrailers { meanwhile } => {
                            let peek = body.peek().one_frame();
                            let mut peeking = judge.peeking(head, peek, meanwhile, PEEK_FRAME);
                            peeking.trailers = true;
                            Box::new(peeking)
                        }
                        phase => {
                            let Some(judge) = this.judge.take() else {
                                return Poll::Pending;
                            };
                            let verdict = phase.into_verdict();
                            return Poll::Ready(Ok(judge.close(verdict, head, body)));
                        }
                    }
                }
                StateProj::Peeking { peeking } => {
                    let Some(peek) = &mut peeking.peek else {
                        return Poll::Pending;
                    };
                    if Pin::new(peek).poll(cx).is_pending() {
                        ready!(peeking.timer.as_mut().poll(cx));
                    }
                    let (Some(peek), Some(judge)) = (peeking.peek.take(), this.judge.take()) else {
                        return Poll::Pending;
                    };
                    let verdict = judge.peeked(peeking, &peek);
                    let awaited = peeking.trailers && peek.trailers().is_none();
                    let verdict = verdict.unwrap_or_else(|| peeking.meanwhile.clone());
                    let nothing = Response::new(()).into_parts().0;
                    let head = std::mem::replace(&mut peeking.head, nothing);
                    let body = peek.into_body();
                    return Poll::Ready(Ok(match awaited {
                        true => judge.close_watched(verdict, head, body),
                        false => judge.close(verdict, head, body),
                    }));
                }
            };
            this.state.set(State::Peeking { peeking });
        }
    }
}

/// Whether the body is what it seems: one that is encoded is not parsed.
fn is_plain(head: &Parts) -> bool {
    let coding = head.headers.get(header::CONTENT_ENCODING);
    coding.is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Whether reading ahead can tell something: what is known to be cut off does
/// not parse, and only of a refusal is the beginning worth keeping.
fn is_bounded(meanwhile: &Verdict, size: &SizeHint) -> bool {
    meanwhile.is_refusal() || size.lower() <= PEEK_BYTES
}

/// How long to wait for a body. A success that does not declare its size may be
/// a stream, which must not be held back: what comes along with its head is
/// read, and no more.
fn patience(meanwhile: &Verdict, size: &SizeHint) -> Duration {
    match meanwhile.is_accepted() && size.exact().is_none() {
        true => PEEK_FRAME,
        false => PEEK,
    }
}

impl<F, RB: Body> fmt::Debug for ResponseFuture<F, RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peeking = matches!(self.state, State::Peeking { .. });
        f.debug_struct("ResponseFuture")
            .field("peeking", &peeking)
            .finish_non_exhaustive()
    }
}
