//! Request bodies, sent again byte for byte or not at all.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{CallOptions, Outcome, Reason, RetryAfterLayer, Scopes};

use crate::support::*;

const A: &str = "http://a.test/";

/// The most that is recorded of one body.
const MOST: usize = 64 * 1024;

/// No two parts of it are alike.
fn bytes(len: usize) -> Bytes {
    let word = |n: usize| (n as u32).wrapping_mul(0x9e37_79b9).to_le_bytes();
    (0..len.div_ceil(4)).flat_map(word).take(len).collect()
}

/// `body` in chunks of odd lengths, empty ones among them, some of them late.
fn chunks(body: &Bytes) -> Vec<(Duration, Bytes)> {
    let lengths = [1, 7, 0, 4_095, 3, 8_191, 0, 12_289, 1];
    let mut rest = body.clone();
    let mut chunks = Vec::new();
    for (nth, length) in lengths.into_iter().cycle().enumerate() {
        if rest.is_empty() {
            break;
        }
        let late = if nth % 3 == 0 { ms(3) } else { ms(0) };
        chunks.push((late, rest.split_to(length.min(rest.len()))));
    }
    chunks
}

fn streamed(body: &Bytes) -> UnsyncBoxBody<Bytes, Infallible> {
    let frames = stream::iter(chunks(body)).then(|(late, chunk)| async move {
        sleep(late).await;
        Ok(Frame::data(chunk))
    });
    StreamBody::new(frames).boxed_unsync()
}

fn with_key<B>(body: B) -> Request<B> {
    let request = Request::post(A).header("idempotency-key", "k-1");
    request.body(body).unwrap()
}

fn marked<B>(body: B) -> Request<B> {
    let options = CallOptions::new().idempotent();
    Request::post(A).extension(options).body(body).unwrap()
}

/// Refuses twice, the first time after `most` bytes of the request.
fn refusing_twice(most: usize) -> Server {
    Server::new(ms(10), move |send| match send.nth {
        0 => refusal(1).having_read(most),
        1 => refusal(1),
        _ => ok(),
    })
}

#[track_caller]
fn assert_sent(server: &Server, times: usize, body: &Bytes) {
    let sends = server.sends();
    assert_eq!(sends.len(), times);
    for send in sends {
        assert!(send.whole, "send {} was not read to its end", send.nth);
        assert!(send.body == **body, "send {} differs", send.nth);
        assert_eq!(send.method, "POST");
    }
}

const LENGTHS: [usize; 4] = [0, 1, MOST, MOST + 1];

#[tokio::test(start_paused = true)]
async fn a_body_in_memory_is_sent_again_whatever_its_length() {
    for length in LENGTHS {
        for request in [with_key, marked] {
            let body = bytes(length);
            let server = refusing_twice(usize::MAX);
            let (client, _) = client_of(&server, policy());
            let reply = client.oneshot(request(Full::new(body.clone()))).await;
            assert_eq!(status_of(&reply), 200);
            assert_sent(&server, 3, &body);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_body_is_sent_again_if_it_could_be_recorded() {
    for length in LENGTHS {
        for request in [with_key, marked] {
            let body = bytes(length);
            let server = refusing_twice(usize::MAX);
            let (client, _) = client_of(&server, policy());
            let reply = client.oneshot(request(streamed(&body))).await;
            if length <= MOST {
                assert_eq!(status_of(&reply), 200);
                assert_sent(&server, 3, &body);
            } else {
                let told = outcome(&reply);
                assert_eq!(told.gave_up, Some(Reason::BodyNotReplayable));
                assert_eq!(text(reply).await, "slow down");
                assert_sent(&server, 1, &body);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_in_memory_that_was_refused_half_read_is_sent_again_whole() {
    let body = bytes(MOST);
    for most in [0, 1, MOST / 2] {
        let server = refusing_twice(most);
        let (client, _) = client_of(&server, policy());
        let reply = client.oneshot(with_key(Full::new(body.clone()))).await;
        assert_eq!(status_of(&reply), 200);
        assert_sent(&server, 3, &body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_body_that_was_refused_half_read_is_not_sent_again() {
    let body = bytes(MOST);
    for most in [0, 1, MOST / 2, MOST - 1] {
        let server = refusing_twice(most);
        let (client, layer) = client_of(&server, policy());
        let reply = client.oneshot(with_key(streamed(&body))).await;
        let told = outcome(&reply);
        assert_eq!(told.gave_up, Some(Reason::BodyNotReplayable), "{most}");
        assert_eq!(text(reply).await, "slow down");
        let snapshot = layer.scopes().get(scope_of(A)).snapshot();
        assert!(
            snapshot.paused_for.is_some(),
            "the gate closes all the same"
        );
        // The server reads on, as hyper does; nothing is made of that.
        sleep(secs(100)).await;
        assert_sent(&server, 1, &body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_an_unknown_type_is_sent_once() {
    let body = bytes(100);
    let server = refusing_twice(usize::MAX);
    let (client, _) = client_of(&server, policy());
    let unknown = Limited::new(Full::new(body.clone()), 1000);
    let reply = client.oneshot(with_key(unknown)).await;
    assert_eq!(outcome(&reply).gave_up, Some(Reason::BodyNotReplayable));
    assert_sent(&server, 1, &body);
}

#[tokio::test(start_paused = true)]
async fn the_head_is_sent_again_as_it_was() {
    let server = refusing_twice(usize::MAX);
    let (client, _) = client_of(&server, policy());
    let mut request = with_key(Full::new(bytes(3)));
    let headers = request.headers_mut();
    headers.append("x-many", "one".parse().unwrap());
    headers.append("x-many", "two".parse().unwrap());
    let bytes = http::HeaderValue::from_bytes(b"\xfe\xff").unwrap();
    headers.insert("x-bytes", bytes);
    let headers = headers.clone();
    *request.uri_mut() = "http://a.test/x/%20?q=1&q=2".parse().unwrap();
    assert_eq!(status_of(&client.oneshot(request).await), 200);
    for send in server.sends() {
        assert_eq!(send.headers, headers);
        assert_eq!((&*send.host, &*send.path), ("a.test", "/x/%20"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_recordings_may_keep_is_shared_by_the_layers_of_one_scopes() {
    let server = Server::new(ms(10), |send| match send.path.as_str() {
        "/hangs" => never(),
        _ if send.nth % 2 == 0 => refusal(1),
        _ => ok(),
    });
    let client = |scopes: &Scopes| {
        let layer = RetryAfterLayer::with_scopes(scopes.clone());
        layer.layer(server.clone())
    };
    let body = bytes(MOST);
    let upload = |path: &str| {
        let body = Full::new(body.clone()).boxed_unsync();
        let request = Request::put(format!("http://a.test{path}"));
        request.body(body).unwrap()
    };
    let (scopes, others) = (Scopes::default(), Scopes::default());
    let calls: Vec<_> = (0..1_024)
        .map(|_| tokio::spawn(client(&scopes).oneshot(upload("/hangs"))))
        .collect();
    sleep(ms(50)).await;
    assert_eq!(server.count(), 1_024);
    let refused = client(&scopes).oneshot(upload("/")).await.unwrap();
    let outcome = refused.extensions().get::<Outcome>().unwrap();
    assert_eq!(outcome.gave_up, Some(Reason::BodyNotReplayable));
    assert_eq!(server.count(), 1_025);
    sleep(secs(30)).await;
    assert_eq!(server.count(), 1_025);
    // It is even for the next who asks, which is refused and repeated.
    drop(client(&others).oneshot(upload("/")).await.unwrap());
    let repeated = client(&others).oneshot(upload("/")).await.unwrap();
    assert_eq!(repeated.status(), 200);
    calls.into_iter().for_each(|call| call.abort());
}
