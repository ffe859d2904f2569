//! A generated gRPC client under the layer, over real sockets.

#![cfg(feature = "grpc")]

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tonic::{
    Code, Request, Response, Status,
    codegen::tokio_stream::{self, Stream, StreamExt as _},
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_client::HealthClient,
    health_server::{Health, HealthServer},
};
use tonic_types::{ErrorDetails, StatusExt as _};
use tower::Layer as _;
use tower_retry_after::{RetryAfter, RetryAfterLayer};

type Messages = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

/// A service that answers its nth call by a script.
struct Scripted {
    calls: Arc<AtomicUsize>,
    check: fn(usize) -> Result<(), Status>,
    watch: fn() -> Messages,
}

#[tonic::async_trait]
impl Health for Scripted {
    type WatchStream = Messages;

    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        (self.check)(self.calls.fetch_add(1, Ordering::SeqCst))?;
        Ok(Response::new(HealthCheckResponse::default()))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Messages>, Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(Response::new((self.watch)()))
    }
}

/// A refusal that says when to come back.
fn refusal() -> Status {
    let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(100)));
    Status::with_error_details(Code::ResourceExhausted, "slow down", details)
}

/// Starts the service; gives a client of it, its layer, and what counts calls.
async fn start(
    check: fn(usize) -> Result<(), Status>,
    watch: fn() -> Messages,
) -> (
    HealthClient<RetryAfter<Channel>>,
    RetryAfterLayer,
    Arc<AtomicUsize>,
) {
    let calls = Arc::<AtomicUsize>::default();
    let service = Scripted {
        calls: Arc::clone(&calls),
        check,
        watch,
    };
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = Server::builder().add_service(HealthServer::new(service));
    tokio::spawn(server.serve_with_incoming(incoming));
    let layer = RetryAfterLayer::grpc("health").min_pause(Duration::from_millis(50));
    let client = HealthClient::new(layer.layer(connect(address).await));
    (client, layer, calls)
}

async fn connect(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::try_from(format!("http://{address}")).unwrap();
    endpoint.connect().await.unwrap()
}

fn nothing() -> Messages {
    Box::pin(tokio_stream::empty())
}

#[tokio::test]
async fn a_refusal_with_retry_info_is_repeated_though_it_is_a_post() {
    let refuse_the_first = |nth| if nth == 0 { Err(refusal()) } else { Ok(()) };
    let (mut client, layer, calls) = start(refuse_the_first, nothing).await;
    client.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    assert_eq!(layer.scopes().get("health").snapshot().throttled, 1);
}

#[tokio::test]
async fn a_bare_refusal_is_not_repeated() {
    let bare = |_| Err(Status::resource_exhausted("no"));
    let (mut client, layer, calls) = start(bare, nothing).await;
    let status = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // For everyone else it is a refusal all the same.
    assert!(layer.scopes().get("health").snapshot().paused_for.is_some());
}

#[tokio::test]
async fn a_negative_pushback_forbids_to_repeat() {
    let pushed_back = |_| {
        let mut status = refusal();
        let forbidden = "-1".parse().unwrap();
        status
            .metadata_mut()
            .insert("grpc-retry-pushback-ms", forbidden);
        Err(status)
    };
    let (mut client, _, calls) = start(pushed_back, nothing).await;
    let status = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stream_that_fails_after_its_first_message_is_not_repeated_but_noted() {
    let breaks = || -> Messages {
        let messages = [Ok(HealthCheckResponse::default()), Err(refusal())];
        Box::pin(tokio_stream::iter(messages))
    };
    let (mut client, layer, calls) = start(|_| Ok(()), breaks).await;
    let answer = client.watch(HealthCheckRequest::default()).await.unwrap();
    let mut messages = answer.into_inner();
    assert!(messages.message().await.unwrap().is_some());
    let status = messages.message().await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let snapshot = layer.scopes().get("health").snapshot();
    assert_eq!(snapshot.throttled, 1);
    assert!(snapshot.paused_for.is_some());
}

#[tokio::test]
async fn the_head_of_a_silent_stream_is_not_held_back() {
    let silent = || -> Messages { Box::pin(tokio_stream::pending()) };
    let (mut client, _, _) = start(|_| Ok(()), silent).await;
    // It would be held back for ever if its first frame were awaited.
    let watched = client.watch(HealthCheckRequest::default());
    let answer = tokio::time::timeout(Duration::from_secs(30), watched).await;
    assert!(answer.expect("the head arrives").is_ok());
}

#[tokio::test]
async fn what_is_refused_here_is_a_status_with_its_code_and_retry_info() {
    let (mut client, layer, calls) = start(|_| Ok(()), nothing).await;
    layer
        .scopes()
        .get("health")
        .pause_for(Duration::from_secs(3600));
    let status = client
        .check(HealthCheckRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let info = status.get_details_retry_info().unwrap();
    assert!(info.retry_delay.unwrap() > Duration::from_secs(3500));

    let (mut client, layer, _) = start(|_| Ok(()), nothing).await;
    layer
        .scopes()
        .get("health")
        .pause_for(Duration::from_secs(10));
    let mut request = Request::new(HealthCheckRequest::default());
    request.set_timeout(Duration::from_millis(200));
    let status = client.check(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// A server that refuses whatever it is sent, by trailers only, and counts.
async fn start_refusing() -> (SocketAddr, Arc<AtomicUsize>) {
    let calls = Arc::<AtomicUsize>::default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let calls = Arc::clone(&counted);
            let refuse = hyper::service::service_fn(move |request: http::Request<_>| {
                let calls = Arc::clone(&calls);
                async move {
                    calls.fetch_add(1, Ordering::SeqCst);
                    let upload: hyper::body::Incoming = request.into_body();
                    let _ = upload.collect().await;
                    let mut answer = refusal().into_http::<Empty<Bytes>>();
                    *answer.body_mut() = Empty::new();
                    Ok::<_, Infallible>(answer)
                }
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), refuse);
            tokio::spawn(connection);
        }
    });
    (address, calls)
}

#[tokio::test]
async fn an_upload_is_repeated_whole_or_not_at_all() {
    for (messages, sends) in [(3, 4), (100, 1)] {
        let (address, calls) = start_refusing().await;
        let layer = RetryAfterLayer::grpc("upload").min_pause(Duration::from_millis(20));
        let channel = layer.layer(connect(address).await);
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.unwrap();
        let message = HealthCheckRequest {
            service: "x".repeat(1024),
        };
        let upload = tokio_stream::iter(vec![message; messages]).map(|message| message);
        let path = http::uri::PathAndQuery::from_static("/test/Upload");
        let codec = tonic_prost::ProstCodec::<_, HealthCheckResponse>::default();
        let answer = client
            .client_streaming(Request::new(upload), path, codec)
            .await;
        assert_eq!(answer.unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(calls.load(Ordering::SeqCst), sends, "{messages} KiB");
    }
}
