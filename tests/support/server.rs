//! The scripted server.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use tower::Service;

use super::{
    answer::{Answer, Manner, ok, refusal},
    now, sleep,
};

/// A server that answers by a script, and remembers what it was sent.
#[derive(Clone)]
pub(crate) struct Server {
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
pub(crate) struct Send {
    /// When it was sent, from the start of the test.
    pub(crate) at: Duration,
    /// Its number, from zero.
    pub(crate) nth: usize,
    pub(crate) method: http::Method,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) headers: http::HeaderMap,
    /// What it was answered; nothing yet when the script is asked.
    pub(crate) status: u16,
    /// What was read of its body; nothing yet when the script is asked.
    pub(crate) body: Vec<u8>,
    /// The body was read to its end.
    pub(crate) whole: bool,
}

impl Server {
    /// A server that takes `latency` to answer by `script`, which it asks when
    /// a request arrives.
    pub(crate) fn new(
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
    pub(crate) fn sends(&self) -> Vec<Send> {
        self.shared.sends.lock().unwrap().clone()
    }

    /// When it was sent what it was sent so far.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.of(|_| true)
    }

    /// When it was sent those that are `wanted`.
    pub(crate) fn of(&self, wanted: impl Fn(&Send) -> bool) -> Vec<Duration> {
        let sends = self.shared.sends.lock().unwrap();
        let wanted = sends.iter().filter(|send| wanted(send));
        wanted.map(|send| send.at).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.sends.lock().unwrap().len()
    }

    /// The time since the start of the test.
    pub(crate) fn now(&self) -> Duration {
        now() - self.shared.began
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl<B> Service<Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + std::marker::Send + 'static,
    B::Error: fmt::Debug,
{
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + std::marker::Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let (head, body) = request.into_parts();
        let mut sends = shared.sends.lock().unwrap();
        let send = Send {
            at: now() - shared.began,
            nth: sends.len(),
            method: head.method,
            host: head.uri.host().unwrap_or_default().to_owned(),
            path: head.uri.path().to_owned(),
            headers: head.headers,
            status: 0,
            body: Vec::new(),
            whole: false,
        };
        sends.push(send.clone());
        drop(sends);
        let mut answer = (shared.script)(&send);
        shared.sends.lock().unwrap()[send.nth].status = answer.status().as_u16();
        let manner = answer.extensions_mut().remove::<Manner>();
        let manner = manner.unwrap_or_default();
        let mut body = Box::pin(body);
        Box::pin(async move {
            let most = manner.reads.unwrap_or(usize::MAX);
            read(&shared, send.nth, &mut body, most).await;
            sleep(shared.latency.saturating_add(manner.late)).await;
            if manner.reads.is_some() {
                let rest = async move { read(&shared, send.nth, &mut body, usize::MAX).await };
                tokio::spawn(rest);
            }
            match manner.fails {
                true => Err(io::ErrorKind::ConnectionReset.into()),
                false => Ok(answer),
            }
        })
    }
}

/// Reads `body` until `most` bytes were received, or to its end.
async fn read<B>(shared: &Shared, nth: usize, body: &mut Pin<Box<B>>, most: usize)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: fmt::Debug,
{
    let mut received = 0;
    while received < most {
        let frame = body.frame().await;
        let mut sends = shared.sends.lock().unwrap();
        let Some(frame) = frame else {
            sends[nth].whole = true;
            return;
        };
        if let Ok(data) = frame.unwrap().into_data() {
            sends[nth].body.extend_from_slice(&data);
            received += data.len();
        }
    }
}

/// A server's script that allows `rate` requests a second, `burst` at once, and
/// says to those it refuses how many whole seconds to wait.
pub(crate) fn quota(
    rate: f64,
    burst: f64,
) -> impl Fn(&Send) -> Answer + std::marker::Send + Sync + 'static {
    let bucket = Mutex::new((burst, Duration::ZERO));
    move |send| {
        let mut bucket = bucket.lock().unwrap();
        let (tokens, at) = *bucket;
        let tokens = (tokens + rate * (send.at - at).as_secs_f64()).min(burst);
        // A token is there but for the rounding.
        let granted = tokens > 1.0 - 1e-9;
        *bucket = (if granted { tokens - 1.0 } else { tokens }, send.at);
        match granted {
            true => ok(),
            false => refusal(((1.0 - tokens) / rate).ceil()),
        }
    }
}
