//! The callers: each makes its next call when the last is answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response, Uri, body::Body};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tower::{BoxError, Service, ServiceExt};

pub(crate) type HyperClient = Client<HttpConnector, Empty<Bytes>>;

/// A client with a connection pool, as the three ways share it.
pub(crate) fn client() -> HyperClient {
    Client::builder(TokioExecutor::new()).build_http()
}

/// What is to be called, by how many, how often.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) uri: Uri,
    pub(crate) callers: usize,
    pub(crate) calls: usize,
    /// When callers stop, whatever is left.
    pub(crate) until: Instant,
}

/// One call, as its caller saw it.
pub(crate) struct Call {
    /// From asking to the end of the answer's body, waits and retries included.
    pub(crate) latency: Duration,
    pub(crate) result: Result<(), String>,
}

/// Makes the calls of `load`, each through a clone of `service`, and counts
/// in `done` those that have ended.
pub(crate) async fn drive<S, B>(service: S, load: &Load, done: &Arc<AtomicUsize>) -> Vec<Call>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let taken = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..load.callers {
        let (service, load) = (service.clone(), load.clone());
        let (taken, done) = (taken.clone(), done.clone());
        callers.spawn(async move {
            let mut calls = Vec::new();
            while Instant::now() < load.until && taken.fetch_add(1, Ordering::Relaxed) < load.calls
            {
                let started = Instant::now();
                let called = timeout_at(load.until, call(service.clone(), &load.uri)).await;
                calls.push(Call {
                    latency: started.elapsed(),
                    result: called.unwrap_or_else(|_| Err("not done in time".into())),
                });
                done.fetch_add(1, Ordering::Relaxed);
            }
            calls
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

async fn call<S, B>(service: S, uri: &Uri) -> Result<(), String>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = uri.clone();
    let response = service.oneshot(request).await.map_err(describe)?;
    let status = response.status();
    response.into_body().collect().await.map_err(describe)?;
    if status.is_success() {
        Ok(())
    } else {
        Err(status.to_string())
    }
}

fn describe(error: impl Into<BoxError>) -> String {
    error.into().to_string()
}
