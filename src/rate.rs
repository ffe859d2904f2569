//! The adaptive rate: gives a call the token and the slot that it needs.
//!
//! Every attempt pays: first sends, retries and refused ones alike. A token is
//! taken when it is granted and never owed; a slot is held until the response
//! has ended. How many tokens there are is up to the scope's
//! [law](crate::law), how many slots to
//! [`max_in_flight`](crate::Policy::max_in_flight).
//!
//! It honours pauses too: a call that reaches it after a pause has begun waits
//! in the same queue as those that the gate holds back.

use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

pub use crate::scope::AdmitFuture as ResponseFuture;
use crate::{
    error::BoxError,
    scope::{Scoped, Want},
};

/// Applies [`Rate`].
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RateLayer {}

impl RateLayer {
    /// A layer of rates. The state is in the scopes, not in the layer.
    pub const fn new() -> Self {
        Self {}
    }
}

impl<S> Layer<S> for RateLayer {
    type Service = Rate<S>;

    fn layer(&self, inner: S) -> Rate<S> {
        Rate::new(inner)
    }
}

/// Gives calls the token and the slot that they need.
///
/// See the [module docs](self).
#[derive(Clone, Copy, Debug)]
pub struct Rate<S> {
    inner: S,
}

impl<S> Rate<S> {
    /// Paces the calls of `inner`.
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

impl<S, Req> Service<Scoped<Req>> for Rate<S>
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
        ResponseFuture::call(&mut self.inner, scoped, Want::All)
    }
}
