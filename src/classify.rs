//! Classify: listens to the answer, and settles the attempt by what it means.
//!
//! The head decides at once wherever it can. Where only the body can, the
//! scope is settled provisionally by the head, for others must not run on while
//! a slow error body is read; then at most 64 KiB of the body are read within
//! 5 s, and given to the caller untouched. Where the trailers can, the first
//! frame is awaited for 50 ms, in case they come at once; trailers that come
//! later are watched for in the [`ResponseBody`], and settle the scope then.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header, response::Parts};
use http_body::{Body, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    body::{Peek, ResponseBody, Watch},
    classifier::{Classifier, HttpClassifier, Phase, Receipt},
    error::BoxError,
    scope::{Classified, Scoped, Ticket},
    time::Instant,
    verdict::Verdict,
};

/// How long the body of an answer is read ahead at most.
const PEEK: Duration = Duration::from_secs(5);

/// How long that may take where the answer may be a stream: one that is silent
/// at first must not have its head held back.
const PEEK_FRAME: Duration = Duration::from_millis(50);

/// The largest body that is read ahead whole.
const PEEK_BYTES: u64 = 64 * 1024;

/// Tells the server how much time is left, in a request that already says so.
pub(crate) type TellTimeout = fn(&mut HeaderMap, Duration);

/// Applies [`Classify`].
#[derive(Clone, Debug)]
pub struct ClassifyLayer {
    classifier: Arc<dyn Classifier>,
    tell_timeout: Option<TellTimeout>,
}

impl ClassifyLayer {
    /// A layer that judges by `classifier`, and by [`HttpClassifier`] where
    /// that has nothing to say.
    pub fn new(classifier: impl Classifier) -> Self {
        Self::shared(Arc::new(classifier.or(HttpClassifier::new())))
    }

    pub(crate) const fn shared(classifier: Arc<dyn Classifier>) -> Self {
        Self {
            classifier,
            tell_timeout: None,
        }
    }

    /// Sets how an attempt that had to wait tells what is left of its time.
    pub(crate) const fn telling(mut self, tell: Option<TellTimeout>) -> Self {
        self.tell_timeout = tell;
        self
    }
}

impl Default for ClassifyLayer {
    /// A layer that judges by [`HttpClassifier`].
    fn default() -> Self {
        Self::shared(Arc::new(HttpClassifier::new()))
    }
}

impl<S> Layer<S> for ClassifyLayer {
    type Service = Classify<S>;

    fn layer(&self, inner: S) -> Classify<S> {
        Classify {
            inner,
            settings: self.clone(),
        }
    }
}

/// Judges answers and settles their attempts.
///
/// See the [module docs](self).
#[derive(Clone, Debug)]
pub struct Classify<S> {
    inner: S,
    settings: ClassifyLayer,
}

impl<S> Classify<S> {
    /// Judges the answers of `inner`. See [`ClassifyLayer::new`].
    pub fn new(inner: S, classifier: impl Classifier) -> Self {
        ClassifyLayer::new(classifier).layer(inner)
    }

    /// The wrapped service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The wrapped service.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Gives the wrapped service back.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, RB> Service<Scoped<Request<B>>> for Classify<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body<Data = Bytes>,
{
    type Response = Classified<Response<ResponseBody<RB>>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    // A call is hundreds of bytes, and each function that is not inlined on its
    // way moves it once more.
    #[inline(always)]
    fn call(&mut self, scoped: Scoped<Request<B>>) -> Self::Future {
        let Scoped {
            mut request,
            mut ticket,
        } = scoped;
        let ClassifyLayer {
            classifier,
            tell_timeout,
        } = &self.settings;
        ticket.ensure_sent();
        let uri = classifier
            .needs_uri()
            .then(|| Box::new(request.uri().clone()));
        let deadline = ticket.deadline();
        let mut timer = None;
        if deadline < Instant::NEVER {
            if let Some(tell) = tell_timeout {
                tell(request.headers_mut(), deadline - ticket.clock().now());
            }
            timer = Some(Box::pin(ticket.clock().sleep_until(deadline)));
        }
        let tunnel = request.method() == Method::CONNECT;
        ResponseFuture {
            state: State::Head {
                response: self.inner.call(request),
            },
            judge: Some(Judge {
                ticket,
                classifier: Arc::clone(classifier),
                uri,
                timer,
                tunnel,
            }),
        }
    }
}

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

struct Peeking<RB: Body> {
    head: Parts,
    peek: Option<Peek<RB>>,
    /// What decides is in the trailers, not in the body.
    trailers: bool,
    meanwhile: Verdict,
    timer: Pin<Box<Sleep>>,
}

struct Judge {
    ticket: Ticket,
    classifier: Arc<dyn Classifier>,
    /// Boxed, for few classifiers ask for it.
    uri: Option<Box<Uri>>,
    /// Ends the attempt at the call's deadline.
    timer: Option<Pin<Box<Sleep>>>,
    /// A `CONNECT`: what follows its head is no body.
    tunnel: bool,
}

impl Judge {
    /// Whether the deadline has passed.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> bool {
        let timer = self.timer.as_mut();
        timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
    }

    fn receipt(&self) -> Receipt<'_> {
        Receipt::now(self.ticket.clock()).uri(self.uri.as_deref())
    }

    /// What the head says.
    fn head(&self, head: &Parts) -> Phase {
        let phase = self.classifier.head(head, &self.receipt());
        phase.unwrap_or(Phase::Decided(Verdict::NEUTRAL))
    }

    /// Begins to read `body` ahead, for `most` or until the deadline.
    fn peeking<RB: Body>(
        &self,
        head: Parts,
        peek: Peek<RB>,
        meanwhile: Verdict,
        most: Duration,
    ) -> Peeking<RB> {
        let clock = self.ticket.clock();
        let ends = (clock.now() + most).min(self.ticket.deadline());
        Peeking {
            head,
            peek: Some(peek),
            trailers: false,
            meanwhile,
            timer: Box::pin(clock.sleep_until(ends)),
        }
    }

    /// What was read says of the answer, if more than its head did.
    fn peeked<RB: Body>(&self, peeking: &Peeking<RB>, peek: &Peek<RB>) -> Option<Verdict> {
        if !peeking.trailers {
            return self.body(&peeking.head, peek);
        }
        let trailers = peek.trailers()?;
        self.classifier
            .trailers(&peeking.head, trailers, &self.receipt())
    }

    /// What the body says, if it says more than the head did.
    fn body<RB: Body>(&self, head: &Parts, peek: &Peek<RB>) -> Option<Verdict> {
        // What broke off or never ended is no answer to judge by.
        if !peek.is_readable() {
            return None;
        }
        self.classifier.body(head, &peek.bytes(), &self.receipt())
    }

    /// Settles by `verdict`, and again by the trailers when they come.
    fn close_watched<RB: Body>(
        mut self,
        verdict: Verdict,
        head: Parts,
        body: ResponseBody<RB>,
    ) -> Classified<Response<ResponseBody<RB>>> {
        self.ticket.settle(&verdict);
        let body = match self.ticket.late() {
            Some(late) => {
                let mut seen = Response::new(()).into_parts().0;
                seen.status = head.status;
                seen.headers = head.headers.clone();
                body.watched(Watch::new(late, Arc::clone(&self.classifier), seen))
            }
            None => body,
        };
        self.close(verdict, head, body)
    }

    /// Settles by `verdict`, and gives the answer to the services above.
    fn close<RB: Body>(
        mut self,
        mut verdict: Verdict,
        head: Parts,
        body: ResponseBody<RB>,
    ) -> Classified<Response<ResponseBody<RB>>> {
        if verdict.is_refusal() || verdict.ignored().is_some() {
            verdict = verdict.with_status(head.status.as_u16());
        }
        self.ticket.settle(&verdict);
        // These have no body that would show the end of the attempt.
        let bodiless = self.tunnel || head.status == StatusCode::SWITCHING_PROTOCOLS;
        let slot = self.ticket.take_slot().filter(|_| !bodiless);
        let body = body.holding(slot);
        // Of a call to which nothing has happened there is nothing to tell.
        let uneventful = matches!(self.ticket.attempt(), 1)
            && self.ticket.waited().is_zero()
            && !verdict.is_refusal();
        Classified {
            response: Response::from_parts(head, body),
            verdict,
            ticket: (!uneventful).then(|| Box::new(self.ticket)),
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
