//! Which answer goes back, and how whole.

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{ErrorKind, Reason, RetryAfterLayer, classify_body_fn};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_after_its_first_bytes_is_never_repeated() {
    let server = Server::new(ms(10), |_| broken_off(200));
    let plain = RetryAfterLayer::new().policy(policy());
    // Neither one that was read ahead in order to judge it.
    let judging = classify_body_fn(|_| true, |_, _| None);
    let reading = plain.clone().classifier(judging);
    for layer in [plain, reading] {
        let before = server.count();
        let reply = layer.layer(server.clone()).oneshot(get(A)).await;
        let mut body = reply.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "half");
        assert!(body.frame().await.unwrap().is_err());
        sleep(secs(100)).await;
        assert_eq!(server.count(), before + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_breaks_off_is_sent_again() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => broken_off(429),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    // It is not waited for in vain.
    assert!(server.times()[1] <= secs(3), "{:?}", server.times());
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_refusal_is_read_counts_as_waited() {
    let slow = || {
        let late = stream::once(async {
            sleep(secs(2)).await;
            Ok(Frame::data(Bytes::from_static(b"slow down")))
        });
        refusal(5).map(|_| StreamBody::new(late).boxed_unsync())
    };
    let server = Server::new(ms(10), move |send| match send.nth {
        0 => slow(),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let reply = client.oneshot(get(A)).await;
    let [first, second] = server.times()[..] else {
        panic!("{:?}", server.times());
    };
    // All of it from the head of the refusal on.
    assert_eq!(outcome(&reply).waited, second - first - ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_while_it_waits_gets_the_servers_last_answer_whole() {
    let server = Server::new(ms(10), |_| refusal(2).header("x-request-id", "42"));
    let (client, layer) = client_of(&server, fast());
    let call = send(&client, get(A));
    sleep(secs(1)).await;
    // A pause beyond the longest refuses all who wait.
    layer.scopes().get(scope_of(A)).pause_for(secs(1000));
    let reply = reply(call).await;
    assert_eq!(server.now(), secs(1));
    let told = outcome(&reply);
    assert_eq!(told.attempts, 1);
    assert_eq!(told.gave_up, Some(Reason::PauseTooLong));
    assert_eq!(told.hint.unwrap().wait(), secs(2));
    assert_eq!(told.waited, ms(990));
    assert_eq!(status_of(&reply), 429);
    assert_eq!(reply.as_ref().unwrap().headers()["x-request-id"], "42");
    assert_eq!(text(reply).await, "slow down");
}

#[tokio::test(start_paused = true)]
async fn it_gets_an_error_if_that_answer_was_too_large_to_keep() {
    let large = || {
        let parts = [64 * 1024, 5].map(|length| Bytes::from(vec![b'.'; length]));
        let frames = parts.map(|part| Ok(Frame::data(part)));
        refusal(2).map(|_| StreamBody::new(stream::iter(frames)).boxed_unsync())
    };
    let server = Server::new(ms(10), move |_| large());
    let (client, layer) = client_of(&server, fast());
    let call = send(&client, get(A));
    sleep(secs(1)).await;
    layer.scopes().get(scope_of(A)).pause_for(secs(1000));
    let error = reply(call).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Paused);
    assert_eq!(error.retry_after(), Some(secs(1000)));
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_that_finds_no_place_to_wait_gets_its_answer_at_once() {
    let server = Server::new(ms(10), |_| refusal(2));
    let (client, _) = client_of(&server, policy().max_waiters(0));
    let reply = client.oneshot(get(A)).await;
    assert_eq!(server.now(), ms(10));
    assert_eq!(outcome(&reply).gave_up, Some(Reason::Refused));
    assert_eq!(text(reply).await, "slow down");
}

/// Refuses once, with a body that never ends.
fn endlessly_refusing() -> Server {
    Server::new(ms(10), |send| match send.nth {
        0 => refusal(2).map(|_| endless().into_body()),
        _ => ok(),
    })
}

#[tokio::test(start_paused = true)]
async fn an_endless_refusal_does_not_hold_its_retry_up_for_long() {
    let server = endlessly_refusing();
    let (client, _) = client_of(&server, policy());
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    let at = server.times()[1];
    assert!(at >= ms(2_010) && at <= ms(7_000), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn others_are_not_held_up_by_a_refusal_that_is_drained() {
    let server = endlessly_refusing();
    let (client, _) = client_of(&server, fast());
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    assert_eq!(statuses(send_all(3, &client, A)).await, [200; 3]);
    assert!(server.now() < secs(3), "{:?}", server.now());
    assert_eq!(status_of(&reply(refused).await), 200);
}
