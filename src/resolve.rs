//! Resolve: finds a call's scope, and puts the call under a ticket.
//!
//! The outermost service: plain requests go in and plain responses come out;
//! all services below take [`Scoped`] requests. The scope is looked up once for
//! each call, and a client that talks to one scope has it at hand.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{
    Request,
    uri::{Authority, Scheme},
};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    call_options::CallOptions,
    error::{BoxError, Error},
    scope::{Classified, Mode, Scope, Scoped, Scopes, Ticket},
    scope_key::{Head, ScopeKey},
};

/// Computes the key of a request's scope.
type ScopeFn = dyn for<'a> Fn(&Head<'a>) -> Option<ScopeKey<'a>> + Send + Sync;

/// Applies [`Resolve`].
#[derive(Clone, Debug)]
pub struct ResolveLayer {
    scopes: Scopes,
    how: How,
}

/// How calls are put under tickets: what a layer may settle before its scopes.
#[derive(Clone)]
pub(crate) struct How {
    scope_fn: Option<Arc<ScopeFn>>,
    deadline: Option<Duration>,
    mode: Mode,
}

impl ResolveLayer {
    /// Finds scopes in `scopes`, by host.
    pub const fn new(scopes: Scopes) -> Self {
        Self::of(scopes, How::DEFAULT)
    }

    pub(crate) const fn of(scopes: Scopes, how: How) -> Self {
        Self { scopes, how }
    }

    /// Sets how a request's scope is found. Defaults to [`ScopeKey::host`],
    /// which also stands in where the function gives `None`.
    #[must_use]
    pub fn scope_fn<F>(mut self, f: F) -> Self
    where
        F: for<'a> Fn(&Head<'a>) -> Option<ScopeKey<'a>> + Send + Sync + 'static,
    {
        self.how.scope_by(f);
        self
    }

    /// Sets the time from a call's arrival to the head of its answer. Defaults
    /// to none.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.how.set_deadline(deadline);
        self
    }

    /// Counts, judges and learns, but holds nothing back and sends nothing
    /// again. Off by default.
    #[must_use]
    pub fn observe_only(mut self) -> Self {
        self.how.observe_only();
        self
    }
}

impl How {
    pub(crate) const DEFAULT: Self = Self {
        scope_fn: None,
        deadline: None,
        mode: Mode::Govern,
    };

    pub(crate) fn scope_by<F>(&mut self, f: F)
    where
        F: for<'a> Fn(&Head<'a>) -> Option<ScopeKey<'a>> + Send + Sync + 'static,
    {
        self.scope_fn = Some(Arc::new(f));
    }

    pub(crate) const fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = Some(deadline);
    }

    pub(crate) const fn observe_only(&mut self) {
        self.mode = Mode::Observe;
    }
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("How")
            .field("deadline", &self.deadline)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for ResolveLayer {
    type Service = Resolve<S>;

    fn layer(&self, inner: S) -> Resolve<S> {
        Resolve {
            inner,
            settings: self.clone(),
            last: None,
        }
    }
}

/// Finds a call's scope, and puts the call under a ticket.
///
/// See the [module docs](self).
#[derive(Clone, Debug)]
pub struct Resolve<S> {
    inner: S,
    settings: ResolveLayer,
    last: Option<Last>,
}

/// The scope of the last call, and how its request spelled it.
#[derive(Clone, Debug)]
struct Last {
    origin: Option<(Scheme, Authority)>,
    scope: Arc<Scope>,
}

impl<S> Resolve<S> {
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

    /// A ticket for `request`, which arrives now.
    fn ticket<B>(&mut self, request: &Request<B>) -> Ticket {
        let options = request.extensions().get::<CallOptions>();
        let scope = match options.and_then(|options| options.scope.as_ref()) {
            Some(named) => self.settings.scopes.find(named),
            None => self.scope(&Head::of(request)),
        };
        let mut ticket = self.settings.scopes.admit(scope);
        let own = options.and_then(|options| options.deadline);
        if let Some(deadline) = [own, self.settings.how.deadline]
            .into_iter()
            .flatten()
            .min()
        {
            ticket.set_deadline(ticket.arrived() + deadline);
        }
        match options {
            Some(options) if options.bypass => ticket.set_mode(Mode::Bypass),
            _ => ticket.set_mode(self.settings.how.mode),
        }
        ticket
    }

    fn scope(&mut self, head: &Head<'_>) -> Arc<Scope> {
        let key = match &self.settings.how.scope_fn {
            Some(f) => f(head),
            None => {
                // Comparing the spelling saves parsing it.
                if let Some(Last {
                    origin: Some((scheme, authority)),
                    scope,
                }) = &self.last
                    && head.uri().scheme() == Some(scheme)
                    && head.uri().authority() == Some(authority)
                {
                    return Arc::clone(scope);
                }
                None
            }
        };
        let key = key.or_else(|| ScopeKey::host(head));
        // What names no host at all shares one scope.
        let key = key.unwrap_or_else(|| ScopeKey::new("-"));
        if let Some(Last { scope, .. }) = &self.last
            && scope.is(&key)
        {
            return Arc::clone(scope);
        }
        let scope = self.settings.scopes.find(&key);
        let by_host = self.settings.how.scope_fn.is_none();
        let origin = head
            .uri()
            .scheme()
            .cloned()
            .zip(head.uri().authority().cloned());
        self.last = Some(Last {
            origin: origin.filter(|_| by_host),
            scope: Arc::clone(&scope),
        });
        scope
    }
}

impl<S, B, Res> Service<Request<B>> for Resolve<S>
where
    S: Service<Scoped<Request<B>>, Response = Classified<Res>>,
    S::Error: Into<BoxError>,
{
    type Response = Res;
    type Error = Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| Error::inner(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let ticket = self.ticket(&request);
        ResponseFuture {
            response: self.inner.call(Scoped::new(request, ticket)),
        }
    }
}

pin_project! {
    /// The response future of [`Resolve`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the call: its place, token and slot are given back.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        response: F,
    }
}

impl<F, Res, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Classified<Res>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Res, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().response.poll(cx).map(|answer| match answer {
            Ok(classified) => Ok(classified.response),
            Err(error) => Err(Error::inner(error.into())),
        })
    }
}
