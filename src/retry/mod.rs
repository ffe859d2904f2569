//! Retry: sends a refused call again, if it may be and when its turn comes.
//!
//! A throttled call is sent again if it can be sent whole *and* sending it
//! twice is safe: its method is idempotent, or it carries an `Idempotency-Key`,
//! or its caller marked it, or the service's documentation says that a refused
//! request was not processed. Else the server's answer goes back as it came.
//! The waiting is not done here: the next attempt goes through the services
//! below like any other, with the place of its call's first arrival.
//!
//! # Why the answer is drained before the wait
//!
//! A refused answer's small body is read to its end, so that an HTTP/1
//! connection can be used again, and kept: should the call be refused later,
//! while it waits, its caller gets the server's last answer after all.
//!
//! What became of the call is told in an [`Outcome`](crate::Outcome).

mod between;
mod future;
mod head;

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

pub use self::future::ResponseFuture;
use self::{
    future::{Again, Told},
    head::HeadCopy,
};
use crate::{
    body::{Bodies, Kept, RecordBody, ReplayBody, ResponseBody},
    call_options::CallOptions,
    classifier::Classifier,
    error::BoxError,
    outcome::OutcomeHandle,
    retry_policy::{Call, is_idempotent},
    scope::{Classified, Scoped},
};

/// Applies [`Retry`].
#[derive(Clone, Debug)]
pub struct RetryLayer {
    settings: Arc<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    max_attempts: u32,
    /// Whose refusals may say that the request was not processed.
    judged_by: Option<Arc<dyn Classifier>>,
    bodies: Bodies,
}

impl Default for RetryLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryLayer {
    /// A layer of four attempts a call.
    pub fn new() -> Self {
        Self {
            settings: Arc::new(Settings {
                max_attempts: 4,
                judged_by: None,
                bodies: Bodies::default(),
            }),
        }
    }

    /// Sets how many attempts are made in all, at least one. Defaults to 4.
    #[must_use]
    pub fn max_attempts(mut self, most: u32) -> Self {
        Arc::make_mut(&mut self.settings).max_attempts = most.max(1);
        self
    }

    /// Keeps what `classifier` may say was refused
    /// [unprocessed](crate::verdict::RetryAdvice::Unprocessed), whatever its
    /// method. Without, only what may be sent twice is kept.
    #[must_use]
    pub fn judged_by(mut self, classifier: Arc<dyn Classifier>) -> Self {
        Arc::make_mut(&mut self.settings).judged_by = Some(classifier);
        self
    }

    /// Says how bodies of type `B` are copied, if one can be.
    #[must_use]
    pub fn replay_body<B, F>(mut self, copy: F) -> Self
    where
        B: 'static,
        F: Fn(&B) -> Option<B> + Send + Sync + 'static,
    {
        let settings = Arc::make_mut(&mut self.settings);
        settings.bodies = settings.bodies.clone().copied(copy);
        self
    }

    /// Says how bodies of type `B` are recorded: `wrap` makes a `B` of one
    /// that is recorded while it streams, `replay` of a recording.
    #[must_use]
    pub fn record_body<B, W, R>(mut self, wrap: W, replay: R) -> Self
    where
        B: Body<Data = Bytes> + 'static,
        W: Fn(RecordBody<B>) -> B + Send + Sync + 'static,
        R: Fn(ReplayBody<B::Error>) -> B + Send + Sync + 'static,
    {
        let settings = Arc::make_mut(&mut self.settings);
        settings.bodies = settings.bodies.clone().recorded(wrap, replay);
        self
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry {
            inner,
            settings: Arc::clone(&self.settings),
        }
    }
}

/// Sends refused calls again.
///
/// See the [module docs](self).
#[derive(Clone, Debug)]
pub struct Retry<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> Retry<S> {
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

impl<S, B, RB> Service<Scoped<Request<B>>> for Retry<S>
where
    S: Service<Scoped<Request<B>>, Response = Classified<Response<ResponseBody<RB>>>> + Clone,
    S::Error: Into<BoxError>,
    B: 'static,
    RB: Body<Data = Bytes>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, S::Future, B, RB>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, mut scoped: Scoped<Request<B>>) -> Self::Future {
        let Scoped { request, ticket } = &mut scoped;
        let settings = &*self.settings;
        let options = request.extensions().get::<CallOptions>();
        let handle = request.extensions().get::<OutcomeHandle>();
        let told = handle.map(|handle| Box::new(Told::new(handle.clone(), ticket.progress(0))));
        let marked = options.is_some_and(|options| options.idempotent);
        let max_attempts = options
            .and_then(|options| options.attempts)
            .unwrap_or(settings.max_attempts);
        let retry = max_attempts > 1 && !options.is_some_and(|options| options.no_retry);
        let call = Call {
            attempts: 1,
            max_attempts,
            idempotent: is_idempotent(request.method(), request.headers(), marked),
            retry: retry && ticket.may_wait(),
            deadline: ticket.deadline(),
        };
        let judge = settings.judged_by.as_ref();
        let is_kept =
            call.idempotent || judge.is_some_and(|judge| judge.may_be_unprocessed(request.uri()));
        let mut again = None;
        if call.retry && is_kept {
            let mut kept = settings.bodies.copy(request.body());
            // Apart, for a request is long, and is moved for this.
            if settings.bodies.are_recorded::<B>() {
                (scoped, kept) = record(scoped, &settings.bodies);
            }
            again = kept.map(|kept| {
                let head = HeadCopy::of(&scoped.request);
                // `poll_ready` made `self.inner` ready, and not its clone.
                Box::new(Again::new(self.inner.clone(), head, kept))
            });
        }
        let response = self.inner.call(scoped);
        ResponseFuture::new(response, call, again, told)
    }
}

/// Has the body of a call recorded while it is sent.
fn record<B: 'static>(
    scoped: Scoped<Request<B>>,
    bodies: &Bodies,
) -> (Scoped<Request<B>>, Option<Kept<B>>) {
    let Scoped { request, ticket } = scoped;
    let (head, body) = request.into_parts();
    let (body, kept) = bodies.record(body, ticket.allowance());
    (Scoped::new(Request::from_parts(head, body), ticket), kept)
}
