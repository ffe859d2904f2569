//! Classify: listens to the answer, and settles the attempt by what it means.
//!
//! The head decides at once wherever it can. Where only the body can, the
//! scope is settled provisionally by the head, for others must not run on while
//! a slow error body is read; then at most 64 KiB of the body are read within
//! 5 s, and given to the caller untouched. Where the trailers can, the first
//! frame is awaited for 50 ms, in case they come at once; trailers that come
//! later are watched for in the [`ResponseBody`], and settle the scope then.

mod future;
mod judge;

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

pub use self::future::ResponseFuture;
use self::judge::Judge;
use crate::{
    body::ResponseBody,
    classifier::{Classifier, HttpClassifier},
    error::BoxError,
    scope::{Classified, Scoped},
    time::Instant,
};

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
        let judge = Judge {
            ticket,
            classifier: Arc::clone(classifier),
            uri,
            timer,
            tunnel,
        };
        ResponseFuture::new(self.inner.call(request), judge)
    }
}
