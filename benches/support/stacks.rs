//! What is called: this crate's layer and its peers, each over one service.

use std::{
    convert::Infallible,
    fmt::Debug,
    future::{Ready, ready},
    hint::black_box,
    pin::pin,
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::{runtime::Runtime, task::unconstrained};
use tower::{
    Layer, Service, ServiceBuilder, ServiceExt,
    retry::{Policy, RetryLayer},
    service_fn,
};
use tower_resilience_adaptive::{AdaptiveLimiterLayer, Aimd};
use tower_resilience_ratelimiter::RateLimiterLayer;
use tower_retry_after::RetryAfterLayer;

/// The service itself, which answers at once.
pub(crate) const BARE: &str = "bare service";
pub(crate) const BARE_POST: &str = "bare service, POST";
/// With a policy that clones the request.
pub(crate) const TOWER_RETRY: &str = "tower::retry";
/// `tower::retry`, a rate limit and an adaptive limit: the nearest to this
/// crate that can be assembled.
pub(crate) const PEER: &str = "assembled peer";
pub(crate) const OURS: &str = "RetryAfterLayer";
/// A call that can't be repeated, so that nothing of it is kept.
pub(crate) const OURS_POST: &str = "RetryAfterLayer, POST";

/// What the row `name` is measured against.
pub(crate) fn bare_of(name: &str) -> &'static str {
    match name {
        BARE_POST | OURS_POST => BARE_POST,
        _ => BARE,
    }
}

type Body = Full<Bytes>;

/// Calls a service once with each request, one after another.
pub(crate) type Caller<'a> = Box<dyn FnMut(Vec<Request<Body>>) + 'a>;

/// A name, the method that is called with, and the service.
pub(crate) type Stack<'a> = (&'static str, Method, Caller<'a>);

/// All that is compared, each after the bare service that it is measured
/// against.
pub(crate) fn all(runtime: &Runtime) -> Vec<Stack<'_>> {
    // Both limits are too wide to hold a call back.
    let rate = RateLimiterLayer::builder()
        .limit_for_period(usize::MAX / 2)
        .build()
        .expect("a rate limit");
    let adaptive = Aimd::builder()
        .initial_limit(1_000)
        .max_limit(1_000)
        .latency_threshold(Duration::from_secs(60))
        .build()
        .expect("an adaptive limit");
    let assembled = ServiceBuilder::new()
        .layer(RetryLayer::new(Cloning { attempts: 3 }))
        .layer(rate)
        .layer(AdaptiveLimiterLayer::new(adaptive))
        .service_fn(answer);
    let retry = ServiceBuilder::new()
        .layer(RetryLayer::new(Cloning { attempts: 3 }))
        .service_fn(answer);

    let ours = || RetryAfterLayer::new().layer(service_fn(answer));
    let bare = || service_fn(answer);

    vec![
        (BARE, Method::GET, caller(runtime, bare())),
        (TOWER_RETRY, Method::GET, caller(runtime, retry)),
        (PEER, Method::GET, caller(runtime, assembled)),
        (OURS, Method::GET, caller(runtime, ours())),
        (BARE_POST, Method::POST, caller(runtime, bare())),
        (OURS_POST, Method::POST, caller(runtime, ours())),
    ]
}

/// Requests as users write them, with the builder: every header value has a
/// buffer of its own.
pub(crate) fn requests(method: &Method, count: usize) -> Vec<Request<Body>> {
    let body = match *method {
        Method::POST => Bytes::from_static(br#"{"colour":"blue"}"#),
        _ => Bytes::new(),
    };
    let request = |_| {
        Request::builder()
            .method(method)
            .uri("https://api.example.com/v1/items?page=7")
            .header("accept", "application/json")
            .header("accept-encoding", "gzip, br")
            .header("authorization", "Bearer 0123456789abcdef")
            .header("content-type", "application/json")
            .header("user-agent", "bench/1.0")
            .header("x-request-id", "7d0f3b1e-95c4-4f0e-a7de-1b7cb9a3c1f2")
            .body(Full::new(body.clone()))
            .expect("a request")
    };
    (0..count).map(request).collect()
}

/// Answers at once, with a plain success.
fn answer(request: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    drop(request);
    let response = Response::builder()
        .header("content-type", "application/json")
        .body(Full::from("{}"))
        .expect("a response");
    ready(Ok(response))
}

/// Calls `service` and reads each answer to its end.
fn caller<'a, S, RB>(runtime: &'a Runtime, mut service: S) -> Caller<'a>
where
    S: Service<Request<Body>, Response = Response<RB>, Error: Debug> + 'a,
    RB: http_body::Body<Error: Debug>,
{
    Box::new(move |requests| {
        // Unconstrained: tokio's semaphore would make its users yield.
        runtime.block_on(unconstrained(async {
            for request in requests {
                let ready = service.ready().await.expect("a ready service");
                let response = ready.call(request).await.expect("a response");
                let mut body = pin!(response.into_body());
                while let Some(frame) = body.frame().await {
                    drop(black_box(frame.expect("a frame")));
                }
            }
        }));
    })
}

/// The policy that tower's documentation shows: keep a clone, look at the
/// status, make a few attempts.
#[derive(Clone, Debug)]
struct Cloning {
    attempts: usize,
}

impl<B: Clone, RB, E> Policy<Request<B>, Response<RB>, E> for Cloning {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<B>,
        result: &mut Result<Response<RB>, E>,
    ) -> Option<Self::Future> {
        let response = result.as_ref().ok()?;
        if response.status() != StatusCode::TOO_MANY_REQUESTS {
            return None;
        }
        self.attempts = self.attempts.checked_sub(1)?;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}
