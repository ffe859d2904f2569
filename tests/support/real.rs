//! A real server on a loopback port, and the layer over a real client.

#![allow(unreachable_pub, reason = "every test is a crate of its own")]
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    convert::Infallible,
    error::Error as StdError,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tower::{Layer, ServiceExt};
use tower_retry_after::{RetryAfter, RetryAfterLayer, body::ResponseBody};

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;
pub(crate) type Boxed = UnsyncBoxBody<Bytes, Infallible>;

/// What the server does with one request.
pub(crate) enum Act {
    /// Reads it to its end, and answers.
    Answer(StatusCode, Answer),
    /// Reads it to its end, and answers with fields of its own.
    Give(Response<Answer>),
    /// Refuses it after its first frame.
    RefuseEarly,
}

/// The bodies of answers.
pub(crate) type Answer = UnsyncBoxBody<Bytes, BoxError>;

/// A server on a loopback port that answers by a script.
#[derive(Clone)]
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<dyn Fn(usize) -> Act + Send + Sync>,
    connections: AtomicUsize,
    /// What was read of each request.
    requests: Mutex<Vec<(Vec<u8>, Option<HeaderMap>)>>,
}

impl Server {
    pub(crate) async fn start(
        version: Version,
        script: impl Fn(usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            connections: AtomicUsize::new(0),
            requests: Mutex::default(),
        });
        let server = Self { address, shared };
        let serving = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serving.shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serving.clone().serve(version, TokioIo::new(stream)));
            }
        });
        server
    }

    async fn serve(self, version: Version, stream: TokioIo<TcpStream>) {
        let service = service_fn(move |request| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        // A connection may break off: its client notices.
        let _ = match version {
            Version::HTTP_2 => {
                let builder = conn::http2::Builder::new(TokioExecutor::new());
                builder.serve_connection(stream, service).await
            }
            _ => {
                conn::http1::Builder::new()
                    .serve_connection(stream, service)
                    .await
            }
        };
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let nth = {
            let mut requests = self.shared.requests.lock().unwrap();
            requests.push(Default::default());
            requests.len() - 1
        };
        let mut body = request.into_body();
        let act = (self.shared.script)(nth);
        while let Some(Ok(frame)) = body.frame().await {
            let mut requests = self.shared.requests.lock().unwrap();
            match frame.into_data() {
                Ok(data) => requests[nth].0.extend_from_slice(&data),
                Err(frame) => requests[nth].1 = frame.into_trailers().ok(),
            }
            if matches!(act, Act::RefuseEarly) {
                break;
            }
        }
        let (status, answer) = match act {
            Act::Answer(status, answer) => (status, answer),
            Act::Give(response) => return response,
            Act::RefuseEarly => {
                // Reads on, so that the client's body is pulled to its end.
                tokio::spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
                (StatusCode::TOO_MANY_REQUESTS, full("early"))
            }
        };
        let mut response = Response::new(answer);
        *response.status_mut() = status;
        response
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> Vec<(Vec<u8>, Option<HeaderMap>)> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}/", self.address)
    }
}

pub(crate) fn full(data: impl Into<Bytes>) -> Answer {
    Answer::new(Full::new(data.into()).map_err(BoxError::from))
}

pub(crate) fn refused() -> Act {
    Act::Answer(StatusCode::TOO_MANY_REQUESTS, full("slow down"))
}

/// Refuses the first request, and accepts the others.
pub(crate) fn once(nth: usize) -> Act {
    match nth {
        0 => refused(),
        _ => Act::Answer(StatusCode::OK, full("done")),
    }
}

pub(crate) type Socket<B> = Client<HttpConnector, B>;

/// The layer with pauses of a millisecond.
pub(crate) fn client<B>(version: Version, layer: RetryAfterLayer) -> RetryAfter<Socket<B>>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    layer
        .min_pause(Duration::from_millis(1))
        .layer(socket(version))
}

pub(crate) fn socket<B>(version: Version) -> Socket<B>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    let mut client = Client::builder(TokioExecutor::new());
    client.http2_only(version == Version::HTTP_2).build_http()
}

/// A `POST` that may be repeated.
pub(crate) fn post<B>(server: &Server, body: B) -> Request<B> {
    let request = Request::post(server.uri());
    request
        .header("idempotency-key", "\"1\"")
        .body(body)
        .unwrap()
}

pub(crate) async fn send<B>(
    client: RetryAfter<Socket<B>>,
    request: Request<B>,
) -> Response<ResponseBody<Incoming>>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    B::Data: Send,
{
    client.oneshot(request).await.unwrap()
}

/// A body whose chunks come when the test sends them, without a length.
pub(crate) struct Upload(mpsc::UnboundedReceiver<Frame<Bytes>>);

impl Upload {
    pub(crate) fn open() -> (mpsc::UnboundedSender<Frame<Bytes>>, Boxed) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, Boxed::new(Self(receiver)))
    }

    /// `data` in chunks of `length` bytes.
    pub(crate) fn chunked(data: &Bytes, length: usize) -> Boxed {
        let (sender, upload) = Self::open();
        for chunk in data.chunks(length) {
            sender.send(Frame::data(data.slice_ref(chunk))).unwrap();
        }
        upload
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

pub(crate) fn bytes(length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8).collect()
}
