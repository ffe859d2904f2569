//! A call can be dropped wherever it waits: it leaves no place, no token and no
//! slot behind, and the next waiter goes.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

mod support;

use std::{
    marker::Send as Movable,
    sync::{Arc, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

use futures_util::future::pending;
use http::Response;
use http_body_util::{BodyExt as _, StreamBody};
use support::*;
use tokio::sync::Semaphore;
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, limit::GlobalConcurrencyLimitLayer};
use tower_retry_after::{Fixed, RetryAfterLayer, ScopeHandle};

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_leaves_no_trace() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, fast().max_in_flight(1));
    let scope = layer.scopes().get(scope_of(A));
    scope.pause_for(secs(5));
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(send(&client, get(A)));
        sleep(ms(1)).await;
    }
    assert_eq!(scope.snapshot().waiting, 5);
    // The head, one in the middle, and the last.
    for gone in [4, 2, 0] {
        calls.remove(gone).abort();
    }
    sleep(ms(1)).await;
    assert_eq!(scope.snapshot().waiting, 2);
    assert_eq!(statuses(calls).await, [200; 2]);
    assert_eq!(server.count(), 2);
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn who_is_dropped_in_flight_or_while_reading_gives_the_slot_back() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => never(),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, fast().max_in_flight(1));
    let in_flight = send(&client, get(A));
    sleep(ms(50)).await;
    let next = send(&client, get(A));
    sleep(ms(50)).await;
    assert_eq!(server.count(), 1);
    in_flight.abort();
    let unread = reply(next).await.unwrap();
    let last = send(&client, get(A));
    sleep(ms(50)).await;
    assert_eq!(server.count(), 2, "an unread body holds its slot");
    drop(unread);
    assert_eq!(statuses(vec![last]).await, [200]);
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn who_was_granted_its_turn_and_is_dropped_unpolled_leaves_it_to_the_next() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, fast().max_in_flight(1));
    layer.scopes().get(scope_of(A)).pause_for(secs(2));
    let mut first = tokio_test::task::spawn(client.clone().oneshot(get(A)));
    assert!(first.poll().is_pending());
    sleep(ms(1)).await;
    let next = send(&client, get(A));
    while !first.is_woken() {
        sleep(ms(1)).await;
    }
    assert_eq!(server.count(), 0, "the only slot is granted");
    drop(first);
    assert_eq!(statuses(vec![next]).await, [200]);
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_waiting_for_a_token_leaves_it_to_the_next() {
    let server = Server::new(ms(10), |_| ok());
    let slow = policy().law(Fixed::per_second(0.1));
    let (client, layer) = client_of(&server, slow);
    let calls = send_all(3, &client, A);
    sleep(secs(9)).await;
    assert_eq!(server.count(), 1);
    let [first, leaves, last] = calls.try_into().unwrap();
    leaves.abort();
    assert_eq!(statuses(vec![first, last]).await, [200; 2]);
    let [gap] = gaps(&server.times())[..] else {
        panic!("{:?}", server.times());
    };
    // The token that the second was waiting for, and no later one.
    assert!((ms(9_990)..ms(10_010)).contains(&gap), "{gap:?}");
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_the_inner_service_gets_ready_holds_nothing() {
    let server = Server::new(ms(10), |_| ok());
    let permits = Arc::new(Semaphore::new(2));
    let layer = RetryAfterLayer::new().policy(fast().max_in_flight(1));
    let limit = GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&permits));
    let inner = ServiceBuilder::new().layer(limit).service(server.clone());
    let client = layer.layer(inner);
    let scope = layer.scopes().get(scope_of(A));
    scope.pause_for(secs(2));
    let calls: Vec<_> = (0..2)
        .map(|_| tokio::spawn(client.clone().oneshot(get(A))))
        .collect();
    sleep(ms(100)).await;
    assert_eq!(scope.snapshot().waiting, 2);
    // Somebody else takes what they need before the turn comes.
    let taken = permits.acquire_many(2).await.unwrap();
    sleep(secs(5)).await;
    let snapshot = scope.snapshot();
    assert_eq!((server.count(), snapshot.in_flight), (0, 0));
    assert_eq!(snapshot.waiting, 0, "they wait for the inner service");
    let [leaves, stays] = calls.try_into().unwrap();
    leaves.abort();
    drop(taken);
    assert_eq!(stays.await.unwrap().unwrap().status(), 200);
    assert_nothing_is_held(&layer);
}

/// A refusal whose body never ends.
fn undrained() -> Answer {
    let frames = futures_util::stream::once(pending());
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    *answer.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
    answer.header("retry-after", "3")
}

/// A call that was refused once by `refusal` and is dropped `late` after.
async fn dropped_after(late: Duration, refusal: impl Fn() -> Answer + Movable + Sync + 'static) {
    let server = Server::new(ms(10), move |send| match send.nth {
        0 => refusal(),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, fast().max_in_flight(1));
    let leaves = send(&client, get(A));
    sleep(ms(1)).await;
    let next = send(&client, get(A));
    sleep(late).await;
    leaves.abort();
    assert_eq!(statuses(vec![next]).await, [200]);
    assert_eq!(server.count(), 2);
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_its_refusal_is_drained_leaves_the_pause_to_the_next() {
    dropped_after(ms(500), undrained).await;
}

#[tokio::test(start_paused = true)]
async fn who_leaves_between_two_attempts_leaves_the_pause_to_the_next() {
    dropped_after(secs(2), || refusal(3)).await;
}

/// A waker that looks at a scope when it is dropped, as one might that is the
/// last to hold a task, and its tickets.
struct Looks(ScopeHandle);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Looks {
    fn drop(&mut self) {
        let _ = self.0.snapshot();
    }
}

#[test]
fn no_waker_is_dropped_under_a_lock() {
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = Server::new(ms(10), |_| ok());
            let (client, layer) = client_of(&server, fast());
            let scope = layer.scopes().get(scope_of(A));
            scope.pause_for(secs(2));
            let mut call = Box::pin(client.clone().oneshot(get(A)));
            for _ in 0..2 {
                // The second takes the place of the first.
                let waker = Waker::from(Arc::new(Looks(scope.clone())));
                let cx = &mut Context::from_waker(&waker);
                assert!(call.as_mut().poll(cx).is_pending());
            }
            drop(call);
            assert_eq!(scope.snapshot().waiting, 0);
        });
        done.send(()).unwrap();
    });
    let ended = ended.recv_timeout(Duration::from_secs(30));
    assert!(ended.is_ok(), "it hangs");
}

#[track_caller]
fn assert_nothing_is_held(layer: &RetryAfterLayer) {
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
}
