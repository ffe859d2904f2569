//! The services by themselves, stacked by hand.
//!
//! [`RetryAfterLayer`](tower_retry_after::RetryAfterLayer) is a stack of small
//! services. Whoever wants fewer of them, or a layer of another crate between
//! them, builds the stack: here gate, rate and classifier with a concurrency
//! limit between, and then gate and rate alone over what is not HTTP at all.
//!
//! ```text
//! cargo run --example services
//! ```

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use tokio::task::JoinSet;
use tower::{
    BoxError, Service, ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer, service_fn,
};
use tower_retry_after::{
    ClassifyLayer, GateLayer, Policy, RateLayer, Scoped, Scopes, Verdict,
    law::Fixed,
    verdict::{Hint, Throttle, ThrottleKind},
};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    with_a_foreign_layer_between().await?;
    without_http().await
}

/// Gate, a concurrency limit of tower, rate, and a classifier over HTTP.
///
/// The limit stands below the gate: no permit is held through a pause. It
/// takes requests as they come, so it fits between; what looks into an
/// `http::Request` does not, and belongs above or below all of them.
async fn with_a_foreign_layer_between() -> Result<(), BoxError> {
    println!("Gate, ConcurrencyLimit, Rate, Classify over HTTP:");
    let scopes = Scopes::new(Policy::new());
    let mut client = ServiceBuilder::new()
        .layer(GateLayer::new())
        .layer(ConcurrencyLimitLayer::new(8))
        .layer(RateLayer::new())
        .layer(ClassifyLayer::default())
        .service(service_fn(refuse_the_first));

    let scope = scopes.get("api.example.com");
    for call in 1..=3 {
        // Without `Resolve`, the scope is named by hand; without `Retry`, a
        // refusal is the caller's, and the gate is closed all the same.
        let scoped = Scoped::new(Request::new(()), scope.ticket());
        let answer = client.ready().await?.call(scoped).await?;
        let status = answer.response.status();
        let waited = answer
            .ticket
            .map_or(Duration::ZERO, |ticket| ticket.waited());
        match answer.verdict.hint() {
            Some(hint) => println!("  call {call}: {status}, asked to wait {hint:?}"),
            None => println!("  call {call}: {status}, waited {waited:.1?}"),
        }
    }
    Ok(())
}

async fn refuse_the_first(_: Request<()>) -> Result<Response<Empty<Bytes>>, http::Error> {
    static SEEN: AtomicUsize = AtomicUsize::new(0);

    let answer = match SEEN.fetch_add(1, Ordering::Relaxed) {
        0 => Response::builder().status(429).header("retry-after", 1),
        _ => Response::builder(),
    };
    answer.body(Empty::new())
}

/// Gate and rate over a service that answers words with their lengths, twenty
/// times a second, and is busy once.
async fn without_http() -> Result<(), BoxError> {
    println!("Gate and Rate over words:");
    let scopes = Scopes::new(Policy::new().law(Fixed::per_second(20.0)));
    let lengths = ServiceBuilder::new()
        .layer(GateLayer::new())
        .layer(RateLayer::new())
        .service(service_fn(length));

    let scope = scopes.get("words");
    let mut callers = JoinSet::new();
    for word in ["pause", "queue", "probe", "ramp", "rate", "law"] {
        let scoped = Scoped::new(word, scope.ticket());
        callers.spawn(lengths.oneshot(scoped));
    }
    while let Some(answer) = callers.join_next().await {
        println!("  {}", answer??);
    }
    let seen = scope.snapshot();
    let (sent, throttled, paused) = (seen.sent, seen.throttled, seen.paused);
    println!("  {sent} sent, {throttled} of them throttled, {paused:.1?} of pause");
    Ok(())
}

async fn length(scoped: Scoped<&'static str>) -> Result<String, Infallible> {
    static SEEN: AtomicUsize = AtomicUsize::new(0);

    // There is no classifier here: the service says itself what happened.
    let Scoped {
        request: word,
        mut ticket,
    } = scoped;
    if SEEN.fetch_add(1, Ordering::Relaxed) == 2 {
        let pause = Hint::new(Duration::from_millis(500), "busy");
        let busy = Throttle::new(ThrottleKind::Overloaded).hint(pause);
        ticket.settle(&busy.into());
        return Ok(format!("{word}: busy"));
    }
    ticket.settle(&Verdict::ACCEPTED);
    Ok(format!(
        "{word}: {} letters, waited {:.1?}",
        word.len(),
        ticket.waited()
    ))
}
