//! A scripted server in paused time, and what its tests ask of it.

#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

mod answer;
#[cfg(feature = "tracing")]
mod log;
mod server;

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinHandle;
use tower::{Layer as _, Service, ServiceExt as _};
use tower_retry_after::{
    Error, Fixed, Head, Outcome, Policy, RetryAfter, RetryAfterLayer, ScopeKey, body::ResponseBody,
};

#[cfg(feature = "tracing")]
pub(crate) use self::log::Log;
pub(crate) use self::{
    answer::{
        After, Answer, AnswerBody, bare_refusal, broken_off, endless, failed, never, ok, refusal,
        status,
    },
    server::{Send, Server, quota},
};

/// The body of a plain request.
pub(crate) type Body = Full<Bytes>;

/// A client of the scripted server: all five services.
pub(crate) type Client = RetryAfter<Server>;

/// What a client gives back.
pub(crate) type Reply = Result<http::Response<ResponseBody<AnswerBody>>, Error>;

/// Tokio's time: paused in every test.
#[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
#[allow(clippy::disallowed_types, reason = "a test has no other clock")]
pub(crate) fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) async fn sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(crate) fn get(uri: &str) -> Request<Body> {
    Request::get(uri).body(Full::default()).unwrap()
}

pub(crate) fn post(uri: &str) -> Request<Body> {
    Request::post(uri).body(Full::from("order")).unwrap()
}

/// Whose jitter is the same every time.
pub(crate) fn policy() -> Policy {
    Policy::new().seed(7)
}

/// The same, with a law that is fast enough to stand in nobody's way.
pub(crate) fn fast() -> Policy {
    policy().law(Fixed::per_second(1000.0))
}

/// Sends `request` now, in a task of its own.
pub(crate) fn send<B>(client: &Client, request: Request<B>) -> JoinHandle<Reply>
where
    Client: Service<
            Request<B>,
            Response = http::Response<ResponseBody<AnswerBody>>,
            Error = Error,
            Future: std::marker::Send,
        >,
    B: std::marker::Send + 'static,
{
    tokio::spawn(client.clone().oneshot(request))
}

/// Sends `n` requests to `uri` now.
pub(crate) fn send_all(n: usize, client: &Client, uri: &str) -> Vec<JoinHandle<Reply>> {
    (0..n).map(|_| send(client, get(uri))).collect()
}

/// The statuses of calls that all get an answer, which is read to its end.
pub(crate) async fn statuses(calls: Vec<JoinHandle<Reply>>) -> Vec<u16> {
    let calls = calls.into_iter().map(|call| async {
        let (head, body) = reply(call).await.unwrap().into_parts();
        body.collect().await.unwrap();
        head.status.as_u16()
    });
    futures_util::future::join_all(calls).await
}

/// How far apart they are.
pub(crate) fn gaps(times: &[Duration]) -> Vec<Duration> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Scopes by the segments of the path.
pub(crate) fn by_path(layer: RetryAfterLayer) -> RetryAfterLayer {
    layer.scope_fn(|head| {
        let mut segments = head.uri().path().split('/').skip(1);
        let root = ScopeKey::new(segments.next()?);
        segments.try_fold(root, |key, segment| key.and(segment))
    })
}

/// The key of the scope that `uri` belongs to by default.
pub(crate) fn scope_of(uri: &str) -> ScopeKey<'static> {
    let request = get(uri);
    ScopeKey::host(&Head::of(&request)).unwrap().into_owned()
}

/// A client of `server` by a layer of `policy`, and its layer.
pub(crate) fn client_of(server: &Server, policy: Policy) -> (Client, RetryAfterLayer) {
    let layer = RetryAfterLayer::new().policy(policy);
    (layer.layer(server.clone()), layer)
}

/// The reply of a task that sends.
pub(crate) async fn reply(task: JoinHandle<Reply>) -> Reply {
    task.await.unwrap()
}

/// The status of a reply that is an answer.
pub(crate) fn status_of(reply: &Reply) -> u16 {
    reply.as_ref().unwrap().status().as_u16()
}

pub(crate) fn outcome(reply: &Reply) -> Outcome {
    let extensions = reply.as_ref().unwrap().extensions();
    extensions.get::<Outcome>().unwrap().clone()
}

/// The body of a reply that is an answer.
pub(crate) async fn text(reply: Reply) -> String {
    let bytes = reply.unwrap().into_body().collect().await.unwrap();
    String::from_utf8(bytes.to_bytes().to_vec()).unwrap()
}

/// What `future` gives without any time passing.
pub(crate) async fn at_once<F: Future>(future: F) -> F::Output {
    let began = now();
    let output = future.await;
    assert_eq!(now() - began, Duration::ZERO, "it took time");
    output
}
