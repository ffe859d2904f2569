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
    HeaderMap, Request,
    uri::{Authority, Scheme},
};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    call_options::CallOptions,
    cost::Cost,
    error::{BoxError, Error},
    scope::{Classified, Mode, Scope, Scoped, Scopes, Ticket},
    scope_key::{Head, ScopeKey},
};

/// Computes the key of a request's scope.
type ScopeFn = dyn for<'a> Fn(&Head<'a>) -> Option<ScopeKey<'a>> + Send + Sync;

/// Computes what each attempt of a request costs.
type CostFn = dyn Fn(&Head<'_>) -> Cost + Send + Sync;

/// Applies [`Resolve`].
#[derive(Clone, Debug)]
pub struct ResolveLayer {
    scopes: Scopes,
    how: How,
}

/// How calls are put under tickets: what a layer may settle before its scopes.
#[derive(Clone)]
pub(crate) struct How {
    scope_by: ScopeBy,
    cost_fn: Option<Arc<CostFn>>,
    deadline: Option<Duration>,
    mode: Mode,
    protocol: Protocol,
}

/// How a request's scope is found.
#[derive(Clone)]
enum ScopeBy {
    Host,
    Function(Arc<ScopeFn>),
    Name(Arc<ScopeKey<'static>>),
}

/// What a protocol on top of HTTP does in its own way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Protocol {
    /// Reads how long a call may take.
    pub(crate) timeout: Option<fn(&HeaderMap) -> Option<Duration>>,
    /// Gives an error the form in which its callers expect it.
    pub(crate) error: Option<fn(Error) -> Error>,
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

    /// Puts all calls into one scope, whatever their requests say.
    #[must_use]
    pub fn scope(mut self, scope: ScopeKey<'static>) -> Self {
        self.how.name_scope(scope);
        self
    }

    /// Sets what each attempt of a request takes of its scope's buckets.
    /// Defaults to one request.
    #[must_use]
    pub fn cost_fn<F>(mut self, f: F) -> Self
    where
        F: Fn(&Head<'_>) -> Cost + Send + Sync + 'static,
    {
        self.how.cost_by(f);
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
        scope_by: ScopeBy::Host,
        cost_fn: None,
        deadline: None,
        mode: Mode::Govern,
        protocol: Protocol {
            timeout: None,
            error: None,
        },
    };

    pub(crate) fn scope_by<F>(&mut self, f: F)
    where
        F: for<'a> Fn(&Head<'a>) -> Option<ScopeKey<'a>> + Send + Sync + 'static,
    {
        self.scope_by = ScopeBy::Function(Arc::new(f));
    }

    pub(crate) fn cost_by<F>(&mut self, f: F)
    where
        F: Fn(&Head<'_>) -> Cost + Send + Sync + 'static,
    {
        self.cost_fn = Some(Arc::new(f));
    }

    pub(crate) fn name_scope(&mut self, scope: ScopeKey<'static>) {
        self.scope_by = ScopeBy::Name(Arc::new(scope));
    }

    #[cfg(feature = "grpc")]
    pub(crate) const fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
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
        let mut ticket = scope.ticket();
        let how = &self.settings.how;
        match (
            options.and_then(|options| options.cost.as_ref()),
            &how.cost_fn,
        ) {
            (Some(cost), _) => ticket.set_cost(cost),
            (None, Some(f)) => ticket.set_cost(&f(&Head::of(request))),
            (None, None) => {}
        }
        let deadlines = [
            options.and_then(|options| options.deadline),
            how.protocol
                .timeout
                .and_then(|read| read(request.headers())),
            how.deadline,
        ];
        if let Some(deadline) = deadlines.into_iter().flatten().min() {
            ticket.set_deadline(ticket.arrived() + deadline);
        }
        match options {
            Some(options) if options.bypass => ticket.set_mode(Mode::Bypass),
            _ => ticket.set_mode(self.settings.how.mode),
        }
        ticket
    }

    fn scope(&mut self, head: &Head<'_>) -> Arc<Scope> {
        let how = &self.settings.how;
        let key = match &how.scope_by {
            ScopeBy::Function(f) => f(head),
            ScopeBy::Name(_) | ScopeBy::Host => None,
        };
        if let Some(Last { origin, scope }) = &self.last {
            let same = match (&how.scope_by, origin) {
                // Comparing the spelling, byte by byte, saves parsing it.
                (ScopeBy::Host, Some((scheme, authority))) => {
                    let authority_of = head.uri().authority().map(Authority::as_str);
                    head.uri().scheme() == Some(scheme) && authority_of == Some(authority.as_str())
                }
                (ScopeBy::Name(_), _) => true,
                (ScopeBy::Function(_), _) => key.as_ref().is_some_and(|key| scope.is(key)),
                (ScopeBy::Host, None) => false,
            };
            if same {
                return Arc::clone(scope);
            }
        }
        let key = match (&how.scope_by, key) {
            (ScopeBy::Name(name), _) => ScopeKey::clone(name),
            (_, Some(key)) => key,
            // What names no host at all shares one scope.
            (_, None) => ScopeKey::host(head).unwrap_or_else(|| ScopeKey::new("-")),
        };
        let scope = self.settings.scopes.find(&key);
        let uri = head.uri();
        let origin = uri.scheme().cloned().zip(uri.authority().cloned());
        self.last = Some(Last {
            origin,
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
            dress: self.settings.how.protocol.error,
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
        dress: Option<fn(Error) -> Error>,
    }
}

impl<F, Res, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Classified<Res>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Res, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.response.poll(cx).map(|answer| match answer {
            Ok(classified) => Ok(classified.response),
            Err(error) => {
                let error = Error::inner(error.into());
                Err(match this.dress {
                    Some(dress) => dress(error),
                    None => error,
                })
            }
        })
    }
}
