//! Nobody waits for ever: not for a future that nobody polls, and not for a
//! place that a service of somebody else's holds.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

mod support;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use support::*;
use tokio::sync::Semaphore;
use tower::{
    Layer as _, ServiceBuilder, ServiceExt as _,
    buffer::BufferLayer,
    limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer},
};
use tower_retry_after::{
    CallOptions, ClassifyLayer, GateLayer, RateLayer, ResolveLayer, RetryAfterLayer, RetryLayer,
    Scopes, classify_fn,
    verdict::{Level, Throttle, ThrottleKind},
};

#[tokio::test(start_paused = true)]
async fn two_levels_that_want_different_probes_come_to_terms() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => never(),
        _ => ok(),
    });
    let judge = classify_fn(|head| {
        let throttle = Throttle::new(ThrottleKind::RateLimited).level(Level::ROOT);
        (head.status == 429).then(|| throttle.into())
    });
    let layer = RetryAfterLayer::new().policy(policy().max_in_flight(1));
    let layer = by_path(layer.classifier(judge));
    let client = layer.layer(server.clone());
    let root = layer.scopes().get("root");
    // It stands first at the root, which would rather probe with another.
    let refused = send(&client, get("/root/b"));
    sleep(ms(20)).await;
    let hangs = send(&client, get("/root/a"));
    // The root wants it, but its own scope is full, and there it stands behind
    // the one that the root does not want.
    let mut request = get("/root/a");
    let options = CallOptions::new().deadline(secs(60));
    request.extensions_mut().insert(options);
    let wanted = send(&client, request);
    sleep(secs(20)).await;
    assert_eq!((server.count(), root.snapshot().waiting), (2, 2));
    hangs.abort();
    for call in [refused, wanted] {
        assert_eq!(status_of(&reply(call).await), 200);
    }
}

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn a_consumer_that_calls_the_client_between_items_gets_through() {
    let server = Server::new(ms(10), |send| match send.nth {
        3 => refusal(2),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, fast());
    let calls = stream::iter((0..20).map(|_| client.clone().oneshot(get(A)))).buffer_unordered(4);
    let mut calls = std::pin::pin!(calls);
    let mut served = 0;
    while let Some(answer) = calls.next().await {
        assert_eq!(answer.unwrap().status(), 200);
        // Those in the buffer are not polled until this one is answered.
        let answer = client.clone().oneshot(get(A)).await;
        assert_eq!(answer.unwrap().status(), 200);
        served += 2;
    }
    assert_eq!(served, 40);
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn futures_that_are_polled_once_and_left_stop_nobody() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, fast().max_in_flight(1));
    layer.scopes().get(scope_of(A)).pause_for(secs(2));
    let mut left: Vec<_> = (0..3)
        .map(|_| tokio_test::task::spawn(client.clone().oneshot(get(A))))
        .collect();
    for call in &mut left {
        assert!(call.poll().is_pending());
    }
    let answer = client.clone().oneshot(get(A)).await;
    assert_eq!(answer.unwrap().status(), 200);
    // Who is polled again gets its turn after all.
    for call in left {
        assert_eq!(call.await.unwrap().status(), 200);
    }
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn a_limit_between_the_services_is_free_during_a_pause_and_no_deadlock() {
    let server = Server::new(ms(10), |send| match send.nth {
        2 => refusal(5),
        _ => ok(),
    });
    let scopes = Scopes::new(fast());
    let permits = Arc::new(Semaphore::new(2));
    let client = ServiceBuilder::new()
        .layer(ResolveLayer::new(scopes.clone()))
        .layer(RetryLayer::new())
        .layer(GateLayer::new())
        .layer(GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(
            &permits,
        )))
        .layer(RateLayer::new())
        .layer(ClassifyLayer::default())
        .service(server);
    let calls: Vec<_> = (0..20)
        .map(|_| tokio::spawn(client.clone().oneshot(get(A))))
        .collect();
    sleep(secs(2)).await;
    assert!(scopes.get(scope_of(A)).snapshot().paused_for.is_some());
    assert_eq!(permits.available_permits(), 2, "held during a pause");
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(permits.available_permits(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_buffer_below_and_one_that_is_slow_to_be_ready_do_not_deadlock() {
    let server = Server::new(ms(10), |send| match send.nth {
        2 | 3 => refusal(3),
        _ => ok(),
    });
    let layer = RetryAfterLayer::new().policy(fast());
    let client = ServiceBuilder::new()
        .layer(layer.clone())
        .layer(BufferLayer::new(2))
        .layer(ConcurrencyLimitLayer::new(1))
        .service(server);
    let calls: Vec<_> = (0..20)
        .map(|_| tokio::spawn(client.clone().oneshot(get(A))))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_nothing_is_held(&layer);
}

#[tokio::test(start_paused = true)]
async fn a_permit_below_the_layer_is_free_for_others_during_a_pause() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let permits = Arc::new(Semaphore::new(1));
    let limit = GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&permits));
    let layer = RetryAfterLayer::new().policy(fast());
    let client = ServiceBuilder::new()
        .layer(layer.clone())
        .layer(limit)
        .service(server.clone());
    // One that was refused, and some that came later and were readied.
    let mut calls = vec![tokio::spawn(client.clone().oneshot(get(A)))];
    sleep(ms(20)).await;
    for _ in 0..3 {
        calls.push(tokio::spawn(client.clone().oneshot(get(A))));
        sleep(ms(1)).await;
        assert_eq!(permits.available_permits(), 1, "held during a pause");
    }
    sleep(secs(4)).await;
    assert_eq!((permits.available_permits(), server.count()), (1, 1));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_nothing_is_held(&layer);
}

#[track_caller]
fn assert_nothing_is_held(layer: &RetryAfterLayer) {
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
}
