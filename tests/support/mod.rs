//! A scripted server in paused time, and what its tests ask of it.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::Service;
use tower_retry_after::Policy;

pub type Body = Full<Bytes>;
pub type Answer = Response<Body>;

/// A server that answers by a script, and remembers what it was sent.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<dyn Fn(&Send) -> Answer + std::marker::Send + Sync>,
    latency: Duration,
    began: tokio::time::Instant,
    sends: Mutex<Vec<Send>>,
}

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Send {
    /// When it was sent, from the start of the test.
    pub at: Duration,
    /// Its number, from zero.
    pub nth: usize,
    pub method: http::Method,
    pub path: String,
    pub headers: http::HeaderMap,
}

impl Server {
    /// A server that takes `latency` to answer by `script`.
    pub fn new(
        latency: Duration,
        script: impl Fn(&Send) -> Answer + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                script: Box::new(script),
                latency,
                began: now(),
                sends: Mutex::default(),
            }),
        }
    }

    /// What it was sent so far.
    pub fn sends(&self) -> Vec<Send> {
        self.shared.sends.lock().unwrap().clone()
    }

    /// When it was sent what it was sent so far.
    pub fn times(&self) -> Vec<Duration> {
        self.sends().iter().map(|send| send.at).collect()
    }

    pub fn count(&self) -> usize {
        self.shared.sends.lock().unwrap().len()
    }
}

impl<B: 'static> Service<Request<B>> for Server {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + std::marker::Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let mut sends = shared.sends.lock().unwrap();
        let send = Send {
            at: now() - shared.began,
            nth: sends.len(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            headers: request.headers().clone(),
        };
        sends.push(send.clone());
        drop(sends);
        Box::pin(async move {
            tokio::time::sleep(shared.latency).await;
            Ok((shared.script)(&send))
        })
    }
}

/// Tokio's time: paused in every test.
#[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
#[allow(clippy::disallowed_types, reason = "a test has no other clock")]
pub fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn ok() -> Answer {
    Response::new(Full::from("ok"))
}

/// A 429 with a `Retry-After`.
pub fn refusal(retry_after: impl ToString) -> Answer {
    Response::builder()
        .status(429)
        .header("retry-after", retry_after.to_string())
        .body(Full::from("slow down"))
        .unwrap()
}

/// A 429 without a hint.
pub fn bare_refusal() -> Answer {
    Response::builder()
        .status(429)
        .body(Full::from("slow down"))
        .unwrap()
}

pub fn get(uri: &str) -> Request<Body> {
    Request::get(uri).body(Full::default()).unwrap()
}

pub fn post(uri: &str) -> Request<Body> {
    Request::post(uri).body(Full::from("order")).unwrap()
}

/// Whose jitter is the same every time.
pub fn policy() -> Policy {
    Policy::new().seed(7)
}
