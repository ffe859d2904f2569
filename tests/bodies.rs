//! Bodies over real sockets: what is sent again, and what comes back.
//!
//! The pauses are a millisecond long, and nothing depends on how long they
//! take.

#[path = "support/real.rs"]
mod real;

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use real::*;
use tower::Service;
use tower_retry_after::{CallOptions, Outcome, RetryAfterLayer, outcome::Reason, verdict::Verdict};

const VERSIONS: [Version; 2] = [Version::HTTP_11, Version::HTTP_2];
const CAP: usize = 64 * 1024;

fn layer() -> RetryAfterLayer {
    RetryAfterLayer::new()
}

fn gave_up<B>(response: &Response<B>) -> Option<Reason> {
    response.extensions().get::<Outcome>()?.gave_up
}

// ===== requests =====

#[tokio::test]
async fn a_body_in_memory_is_repeated_byte_for_byte_whatever_its_length() {
    for version in VERSIONS {
        for length in [0, 1, CAP, CAP + 1, 1_000_000] {
            let server = Server::start(version, once).await;
            let request = post(&server, Full::new(bytes(length)));
            let response = send(client(version, layer()), request).await;
            assert_eq!(response.status(), 200, "{version:?}, {length}");
            let expected = (bytes(length).to_vec(), None);
            assert_eq!(server.requests(), [expected.clone(), expected]);
        }
    }
}

#[tokio::test]
async fn a_streamed_body_is_repeated_byte_for_byte_up_to_the_cap() {
    for version in VERSIONS {
        for (length, sends) in [(0, 2), (1, 2), (10_000, 2), (CAP, 2), (CAP + 1, 1)] {
            let data = bytes(length);
            for body in [
                Upload::chunked(&data, 1_009),
                Boxed::new(Full::new(data.clone())),
            ] {
                let server = Server::start(version, once).await;
                let response = send(client(version, layer()), post(&server, body)).await;
                let expected = vec![(data.to_vec(), None); sends];
                assert_eq!(server.requests(), expected, "{version:?}, {length}");
                if sends == 1 {
                    assert_eq!(response.status(), 429);
                    assert_eq!(gave_up(&response), Some(Reason::BodyNotReplayable));
                    assert_eq!(response.collect().await.unwrap().to_bytes(), "slow down");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_upload_refused_half_way_gets_no_second_half_upload() {
    for version in VERSIONS {
        let server = Server::start(version, |_| Act::RefuseEarly).await;
        let (sender, upload) = Upload::open();
        sender
            .send(Frame::data(Bytes::from_static(b"half of it")))
            .unwrap();
        let response = send(client(version, layer()), post(&server, upload)).await;
        assert_eq!(response.status(), 429);
        assert_eq!(
            gave_up(&response),
            Some(Reason::BodyNotReplayable),
            "{version:?}"
        );
        // Whatever the old attempt still reads comes too late.
        let _ = sender.send(Frame::data(Bytes::from_static(b", and the rest")));
        drop(sender);
        assert_eq!(response.collect().await.unwrap().to_bytes(), "early");
        assert_eq!(server.requests().len(), 1, "{version:?}");
    }
}

#[tokio::test]
async fn a_body_in_memory_refused_half_way_is_repeated_whole() {
    for version in VERSIONS {
        // More than goes out before the server has read anything.
        let data = bytes(8_000_000);
        let server = Server::start(version, |nth| match nth {
            0 => Act::RefuseEarly,
            _ => once(nth),
        })
        .await;
        let request = post(&server, Full::new(data.clone()));
        let response = send(client(version, layer()), request).await;
        assert_eq!(response.status(), 200, "{version:?}");
        let [early, whole] = &server.requests()[..] else {
            panic!("{version:?}: {}", server.requests().len());
        };
        assert!(early.0.len() < data.len(), "{version:?}: it was read whole");
        assert!(whole.0 == data, "{version:?}: {} bytes", whole.0.len());
    }
}

#[tokio::test]
async fn trailers_of_a_request_are_repeated() {
    let server = Server::start(Version::HTTP_2, once).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", HeaderValue::from_static("1234"));
    let (sender, upload) = Upload::open();
    sender
        .send(Frame::data(Bytes::from_static(b"data")))
        .unwrap();
    sender.send(Frame::trailers(trailers.clone())).unwrap();
    drop(sender);
    let response = send(client(Version::HTTP_2, layer()), post(&server, upload)).await;
    assert_eq!(response.status(), 200);
    let expected = (b"data".to_vec(), Some(trailers));
    assert_eq!(server.requests(), [expected.clone(), expected]);
}

#[tokio::test]
async fn an_unknown_body_is_sent_once_until_its_type_is_registered() {
    /// A body that the layer does not know.
    #[derive(Clone)]
    struct Mine(Full<Bytes>);

    impl Body for Mine {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Pin::new(&mut self.0).poll_frame(cx)
        }

        fn size_hint(&self) -> SizeHint {
            self.0.size_hint()
        }
    }

    let known = layer().replay_body(|body: &Mine| Some(body.clone()));
    for (layer, sends) in [(layer(), 1), (known, 2)] {
        let server = Server::start(Version::HTTP_11, once).await;
        let request = post(&server, Mine(Full::from("mine")));
        let response = send(client(Version::HTTP_11, layer), request).await;
        assert_eq!(server.requests(), vec![(b"mine".to_vec(), None); sends]);
        let expected = (sends == 1).then_some(Reason::BodyNotReplayable);
        assert_eq!(gave_up(&response), expected);
    }
}

#[tokio::test]
async fn a_boxed_body_of_ones_own_is_recorded_by_two_functions() {
    type Own = UnsyncBoxBody<Bytes, std::io::Error>;
    let layer = layer().record_body(Own::new, Own::new);
    let server = Server::start(Version::HTTP_11, once).await;
    let chunks = ["odd", "", "chunks"].map(|chunk| Ok(Frame::data(Bytes::from(chunk))));
    let body = Own::new(StreamBody::new(stream::iter(chunks)));
    let response = send(client(Version::HTTP_11, layer), post(&server, body)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(server.requests(), vec![(b"oddchunks".to_vec(), None); 2]);
}

#[tokio::test]
async fn a_post_is_repeated_when_it_is_marked_and_not_otherwise() {
    for (options, sends) in [
        (CallOptions::new(), 1),
        (CallOptions::new().idempotent(), 2),
        (CallOptions::new().idempotent().no_retry(), 1),
    ] {
        let server = Server::start(Version::HTTP_11, once).await;
        let mut request = Request::post(server.uri())
            .body(Full::from("order"))
            .unwrap();
        request.extensions_mut().insert(options);
        send(client(Version::HTTP_11, layer()), request).await;
        assert_eq!(server.requests(), vec![(b"order".to_vec(), None); sends]);
    }
}

// ===== responses =====

/// `data` in chunks that are not sent all at once.
fn dripping(data: Bytes) -> Answer {
    let chunks: Vec<_> = data
        .chunks(1_009)
        .map(|chunk| data.slice_ref(chunk))
        .collect();
    let frames = stream::iter(chunks).then(|chunk| async {
        tokio::task::yield_now().await;
        Ok(Frame::data(chunk))
    });
    Answer::new(StreamBody::new(frames))
}

#[tokio::test]
async fn the_connection_of_a_refused_call_is_used_again() {
    for length in [0, 9, 60_000] {
        let server = Server::start(Version::HTTP_11, move |nth| match nth {
            0 => Act::Answer(StatusCode::TOO_MANY_REQUESTS, dripping(bytes(length))),
            _ => once(nth),
        })
        .await;
        let request = post(&server, Full::from("x"));
        let response = send(client(Version::HTTP_11, layer()), request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(server.connections(), 1, "{length}");
    }
}

/// `data` in chunks, with trailers.
fn streamed(data: &Bytes, trailers: &HeaderMap) -> Answer {
    let chunks: Vec<_> = data
        .chunks(1_009)
        .map(|chunk| Frame::data(data.slice_ref(chunk)))
        .collect();
    let frames = chunks
        .into_iter()
        .chain([Frame::trailers(trailers.clone())]);
    Answer::new(StreamBody::new(stream::iter(frames.map(Ok))))
}

#[tokio::test]
async fn an_answer_reaches_its_caller_whole_though_it_was_judged_by_its_body() {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", HeaderValue::from_static("1234"));
    let judged = || {
        layer().classifier(tower_retry_after::classify_body_fn(
            |head| head.status == 418,
            |_, body| body.starts_with(&[0, 1, 2]).then_some(Verdict::NEUTRAL),
        ))
    };
    for version in VERSIONS {
        for length in [0, 3, CAP - 1, CAP, CAP + 1, 300_000] {
            let (data, expected) = (bytes(length), trailers.clone());
            let server = Server::start(version, move |nth| {
                let answer = match nth {
                    0 => full(data.clone()),
                    _ => streamed(&data, &expected),
                };
                Act::Answer(StatusCode::IM_A_TEAPOT, answer)
            })
            .await;
            let client = client(version, judged());
            for has_trailers in [false, true] {
                let response = send(client.clone(), post(&server, Full::from("x"))).await;
                if !has_trailers {
                    let exact = response.body().size_hint().exact();
                    assert_eq!(exact, Some(length as u64), "{version:?}, {length}");
                }
                let body = response.into_body().collect().await.unwrap();
                // Over HTTP/1 trailers have to be announced; these are not.
                let carried = has_trailers && version == Version::HTTP_2;
                assert_eq!(body.trailers(), carried.then_some(&trailers));
                assert_eq!(body.to_bytes(), bytes(length), "{version:?}, {length}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_so_for_its_caller_and_a_success_is_not_repeated() {
    for (status, sends) in [(StatusCode::OK, 1), (StatusCode::TOO_MANY_REQUESTS, 4)] {
        for version in VERSIONS {
            let server = Server::start(version, move |_| {
                let frames = [
                    Ok(Frame::data(Bytes::from_static(b"the first bytes"))),
                    Err(BoxError::from("lost")),
                ];
                // A server that has not sent the head yet sends nothing at all.
                let frames = stream::iter(frames).then(|frame| async {
                    tokio::task::yield_now().await;
                    frame
                });
                Act::Answer(status, Answer::new(StreamBody::new(frames)))
            })
            .await;
            let request = post(&server, Full::from("x"));
            let mut response = send(client(version, layer()), request).await;
            assert_eq!(response.status(), status);
            let mut broke_off = false;
            while !broke_off && let Some(frame) = response.body_mut().frame().await {
                broke_off = frame.is_err();
            }
            assert!(broke_off, "{version:?}, {status}");
            assert_eq!(server.requests().len(), sends, "{version:?}, {status}");
        }
    }
}

#[tokio::test]
async fn a_body_holds_its_slot_until_it_has_ended() {
    let server = Server::start(Version::HTTP_11, |_| {
        Act::Answer(StatusCode::OK, full(bytes(200_000)))
    })
    .await;
    let mut client = client(Version::HTTP_11, layer().max_in_flight(1));
    let first = send(client.clone(), post(&server, Full::from("1"))).await;
    poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let second = tokio::spawn(client.call(post(&server, Full::from("2"))));
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.requests().len(), 1, "the first body is not read yet");
    first.into_body().collect().await.unwrap();
    second
        .await
        .unwrap()
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(server.requests().len(), 2);
}
