//! The same over HTTP/2, where a body is frames and its end may be a reset.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{CallOptions, Head, ScopeKey};

use super::{
    call, held, layer, read,
    real::{self, Act, Answer, BoxError, Server, client},
};

/// A server that refuses with these frames, not all at once.
async fn server(
    frames: impl Fn() -> Vec<Result<Frame<Bytes>, BoxError>> + Send + Sync + 'static,
) -> Server {
    let script = move |_| {
        let frames = stream::iter(frames()).then(|frame| async {
            tokio::task::yield_now().await;
            frame
        });
        Act::Answer(
            StatusCode::TOO_MANY_REQUESTS,
            Answer::new(StreamBody::new(frames)),
        )
    };
    Server::start(Version::HTTP_2, script).await
}

fn data(bytes: &'static [u8]) -> Result<Frame<Bytes>, BoxError> {
    Ok(Frame::data(Bytes::from_static(bytes)))
}

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_is_passed_on_and_not_kept() {
    const MEGABYTE: &[u8] = &[b'x'; 1 << 20];
    let server = server(|| (0..100).map(|_| data(MEGABYTE)).collect()).await;
    let reply = call(&client(Version::HTTP_2, layer()), &server.uri()).await;
    assert_eq!(reply.status(), 429);
    assert!(
        held(&reply) <= 128 * 1024,
        "{} bytes are kept",
        held(&reply)
    );
    let mut body = reply.into_body();
    let mut count = 0;
    while let Some(frame) = body.frame().await {
        count += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(count, 100 << 20);
}

#[tokio::test]
async fn a_body_that_never_ends_is_judged_by_its_head() {
    let server = Server::start(Version::HTTP_2, |_| {
        let frames = stream::iter([data(b"{")]).chain(stream::pending());
        Act::Answer(
            StatusCode::TOO_MANY_REQUESTS,
            Answer::new(StreamBody::new(frames)),
        )
    })
    .await;
    let mut request = http::Request::post(server.uri())
        .body(Full::default())
        .unwrap();
    let soon = CallOptions::new().deadline(Duration::from_secs(2));
    request.extensions_mut().insert(soon);
    let reply = client(Version::HTTP_2, layer())
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(reply.status(), 429);
    let frame = reply.into_body().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "{");
}

#[tokio::test]
async fn a_reset_in_the_middle_reaches_the_caller_after_what_came_before_it() {
    let server = server(|| vec![data(b"only"), data(b" this"), Err("lost".into())]).await;
    let reply = call(&client(Version::HTTP_2, layer()), &server.uri()).await;
    assert_eq!(reply.status(), 429);
    assert_eq!(read(reply).await, (b"only this".to_vec(), true));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn trailers_without_a_body_are_passed_on() {
    let trailers = HeaderMap::from_iter([(
        http::HeaderName::from_static("x-sum"),
        HeaderValue::from_static("1234"),
    )]);
    let sent = trailers.clone();
    let server = server(move || vec![Ok(Frame::trailers(sent.clone()))]).await;
    let reply = call(&client(Version::HTTP_2, layer()), &server.uri()).await;
    let body = reply.into_body().collect().await.unwrap();
    assert_eq!(body.trailers(), Some(&trailers));
    assert!(body.to_bytes().is_empty());
}

/// A server that resets each request for `reason`.
async fn resetting(reason: h2::Reason) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    respond.send_reset(reason);
                }
            });
        }
    });
    uri
}

#[tokio::test]
async fn who_is_asked_to_be_calm_is_throttled_and_gets_the_error() {
    for (reason, throttled) in [
        (h2::Reason::ENHANCE_YOUR_CALM, 1),
        (h2::Reason::INTERNAL_ERROR, 0),
    ] {
        let request = http::Request::get(resetting(reason).await);
        let request = request.body(Full::default()).unwrap();
        let key = ScopeKey::host(&Head::of(&request)).unwrap().into_owned();
        let layer = layer();
        let client = layer.layer(real::socket(Version::HTTP_2));
        assert!(!client.oneshot(request).await.unwrap_err().is_refusal());
        let snapshot = layer.scopes().get(key).snapshot();
        assert_eq!(
            (snapshot.sent, snapshot.throttled),
            (1, throttled),
            "{reason:?}"
        );
    }
}
