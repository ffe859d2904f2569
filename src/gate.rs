//! The gate: holds calls back while their scope is paused.
//!
//! A call that arrives at an open gate passes, whatever the rate; one that
//! meets a pause waits in its scope's queue, in order of arrival, and is let go
//! with all that it needs: it waits once, also with a [`Rate`](crate::Rate)
//! below.
//!
//! # Why the wait is in the future and not in `poll_ready`
//!
//! A call names its scope, and `poll_ready` has not seen it yet. A pause lasts
//! minutes, so what the inner service reserved in `poll_ready` is given up when
//! the call has to wait, and its readiness is asked for anew when the turn
//! comes. What keyed waiting gives up in backpressure, bounded queues give back.

use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

pub use crate::scope::AdmitFuture as ResponseFuture;
use crate::{
    error::BoxError,
    scope::{Scoped, Want},
};

/// Applies [`Gate`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct GateLayer {}

impl GateLayer {
    /// A layer of gates. The state is in the scopes, not in the layer.
    pub const fn new() -> Self {
        Self {}
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate::new(inner)
    }
}

/// Holds calls back while their scope is paused.
///
/// See the [module docs](self).
#[derive(Clone, Copy, Debug)]
pub struct Gate<S> {
    inner: S,
}

impl<S> Gate<S> {
    /// Holds back the calls of `inner`.
    pub const fn new(inner: S) -> Self {
        Self { inner }
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

impl<S, Req> Service<Scoped<Req>> for Gate<S>
where
    S: Service<Scoped<Req>> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, S::Future, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    // A call is hundreds of bytes, and each function that is not inlined on its
    // way moves it once more.
    #[inline(always)]
    fn call(&mut self, scoped: Scoped<Req>) -> Self::Future {
        ResponseFuture::call(&mut self.inner, scoped, Want::Pause)
    }
}
