//! An HTTP/1 server that enforces a quota and keeps a record.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Response, StatusCode, Uri, header::RETRY_AFTER, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::args::RetryAfter;

/// What the server enforces: a token bucket.
#[derive(Clone, Copy)]
pub(crate) struct Quota {
    pub(crate) per_second: u32,
    pub(crate) burst: u32,
    pub(crate) retry_after: RetryAfter,
}

/// One request, as the server met it.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// Since the server started.
    pub(crate) at: Duration,
    pub(crate) accepted: bool,
}

/// A running server; it stops accepting connections when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    books: Arc<Mutex<Books>>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts on a free loopback port, with a full bucket.
    pub(crate) async fn start(quota: Quota) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let books = Arc::new(Mutex::new(Books::open(quota)));
        let accepting = tokio::spawn(accept(listener, books.clone()));
        Ok(Self {
            address,
            books,
            accepting,
        })
    }

    pub(crate) fn uri(&self) -> Uri {
        Uri::builder()
            .scheme("http")
            .authority(self.address.to_string())
            .path_and_query("/")
            .build()
            .expect("a socket address is an authority")
    }

    /// Refusals so far.
    pub(crate) fn refused(&self) -> usize {
        lock(&self.books).refused
    }

    /// All requests so far, in order.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        lock(&self.books).arrivals.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, books: Arc<Mutex<Books>>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                eprintln!("the server cannot accept: {error}");
                return;
            }
        };
        let books = books.clone();
        let service = service_fn(move |_| {
            let answer = answer(lock(&books).admit(Instant::now()));
            async { Ok::<_, Infallible>(answer) }
        });
        // Ends with the client's connection; how that ended, the client tells.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn answer(admitted: Result<(), Option<u64>>) -> Response<Full<Bytes>> {
    let Err(retry_after) = admitted else {
        return Response::new(Full::from("served\n"));
    };
    let mut refusal = Response::new(Full::from("slow down\n"));
    *refusal.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    if let Some(seconds) = retry_after {
        refusal.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    refusal
}

/// The bucket and the record of what came.
struct Books {
    quota: Quota,
    tokens: f64,
    filled: Instant,
    opened: Instant,
    arrivals: Vec<Arrival>,
    refused: usize,
}

impl Books {
    fn open(quota: Quota) -> Self {
        let now = Instant::now();
        Self {
            quota,
            tokens: quota.burst.into(),
            filled: now,
            opened: now,
            arrivals: Vec::new(),
            refused: 0,
        }
    }

    /// Takes a token, or says what `Retry-After` is to be sent.
    fn admit(&mut self, now: Instant) -> Result<(), Option<u64>> {
        let rate = f64::from(self.quota.per_second);
        let gained = (now - self.filled).as_secs_f64() * rate;
        self.tokens = (self.tokens + gained).min(self.quota.burst.into());
        self.filled = now;

        let accepted = self.tokens >= 1.0;
        self.arrivals.push(Arrival {
            at: now - self.opened,
            accepted,
        });
        if accepted {
            self.tokens -= 1.0;
            return Ok(());
        }
        self.refused += 1;
        let wait = Duration::from_secs_f64((1.0 - self.tokens) / rate);
        Err(self.quota.retry_after.header(wait))
    }
}

fn lock(books: &Mutex<Books>) -> std::sync::MutexGuard<'_, Books> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}
