//! Hostile answers over real sockets: whatever a server sends, the caller gets
//! just that, what is kept of it is bounded, and nobody else is stopped.
//!
//! Nothing depends on how long anything takes: where a server is slow, the
//! call's own deadline ends the reading ahead.

#![cfg(all(feature = "grpc", feature = "providers"))]

#[path = "../support/real.rs"]
mod real;

mod bodies;
mod heads;
mod http2;
mod raw;
mod successes;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tower::ServiceExt as _;
use tower_retry_after::{
    Classifier, HttpClassifier, Outcome, RetryAfter, RetryAfterLayer, body::ResponseBody,
    classifier::GrpcClassifier,
};

use self::real::Socket;

type Client = RetryAfter<Socket<Full<Bytes>>>;
type Reply = Response<ResponseBody<Incoming>>;

/// A layer that reads the bodies of all refusals: those of a 429 that nobody
/// knows are kept for a sample.
fn layer() -> RetryAfterLayer {
    RetryAfterLayer::new().classifier(GrpcClassifier::new().or(HttpClassifier::new().providers()))
}

/// A call that is sent once, for nobody said that it may be repeated.
async fn call(client: &Client, uri: &str) -> Reply {
    let request = Request::post(uri).body(Full::default()).unwrap();
    client.clone().oneshot(request).await.unwrap()
}

fn outcome(reply: &Reply) -> Outcome {
    reply.extensions().get::<Outcome>().unwrap().clone()
}

/// What is kept of a body without a declared length before anybody reads it.
fn held(reply: &Reply) -> u64 {
    reply.body().size_hint().lower()
}

/// Reads a body to its end, or to the error that it breaks off with.
async fn read(reply: Reply) -> (Vec<u8>, bool) {
    let mut body = reply.into_body();
    let mut data = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(|frame| frame.into_data()) {
            Ok(Ok(bytes)) => data.extend_from_slice(&bytes),
            Ok(Err(_)) => {}
            Err(_) => return (data, true),
        }
    }
    (data, false)
}
