//! What is known of a scope, as plain data.

use std::time::Duration;

use http_body_util::BodyExt as _;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{Fixed, RetryAfterLayer, ScopeKey, verdict::IgnoredReason};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_and_not_calls() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 | 1 => refusal(1),
        2 => refusal("soon"),
        3 => ok().header("retry-after", "9"),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!(snapshot.key, scope_of(A));
    assert_eq!((snapshot.sent, snapshot.throttled), (4, 3));
    assert_eq!(snapshot.throttled_share(), 0.75);
    let ignored = |reason| snapshot.hints.ignored(reason);
    assert_eq!(ignored(IgnoredReason::Unreadable), 1);
    assert_eq!(ignored(IgnoredReason::NotAThrottle), 1);
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
    assert!(snapshot.rate.is_some(), "the law is awake");
}

#[tokio::test(start_paused = true)]
async fn children_count_for_their_parents() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(1),
        _ => ok(),
    });
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    for path in ["host/a", "host/b", "host"] {
        let uri = format!("http://a.test/{path}");
        assert_eq!(statuses(send_all(1, &client, &uri)).await, [200]);
    }
    let scopes = layer.scopes();
    let of = |key: ScopeKey<'static>| {
        let snapshot = scopes.get(key).snapshot();
        (snapshot.sent, snapshot.throttled)
    };
    assert_eq!(of(ScopeKey::new("host").and("a").unwrap()), (2, 1));
    assert_eq!(of(ScopeKey::new("host").and("b").unwrap()), (1, 0));
    assert_eq!(of(ScopeKey::new("host")), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_in_flight_until_its_body_has_ended() {
    let server = Server::new(ms(10), |_| ok());
    for policy in [policy(), policy().max_in_flight(5), fast()] {
        let (client, layer) = client_of(&server, policy);
        let handle = layer.scopes().get(scope_of(A));
        let in_flight = || handle.snapshot().in_flight;
        let call = send(&client, get(A));
        sleep(ms(5)).await;
        assert_eq!(in_flight(), 1, "its head is awaited");
        let answer = reply(call).await.unwrap();
        assert_eq!(in_flight(), 1, "its body is not read");
        answer.into_body().collect().await.unwrap();
        assert_eq!(in_flight(), 0, "it was read");
        drop(client.clone().oneshot(get(A)).await.unwrap());
        assert_eq!(in_flight(), 0, "it was dropped");
        assert_eq!(handle.snapshot().sent, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_are_told_while_they_last_and_summed_up_when_they_have_ended() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    let handle = layer.scopes().get(scope_of(A));
    let pauses = || {
        let snapshot = handle.snapshot();
        (snapshot.paused_for, snapshot.paused)
    };
    assert_eq!(pauses(), (None, Duration::ZERO));
    handle.pause_for(secs(5));
    sleep(secs(2)).await;
    assert_eq!(pauses(), (Some(secs(3)), Duration::ZERO));
    // Nobody has come to notice that it has ended.
    sleep(secs(3)).await;
    assert_eq!(pauses(), (None, secs(5)));
    sleep(secs(100)).await;
    assert_eq!(pauses(), (None, secs(5)));
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert_eq!(pauses(), (None, secs(5)));
    handle.pause_for(secs(7));
    sleep(secs(1)).await;
    handle.resume();
    assert_eq!(pauses(), (None, secs(6)));
    handle.pause_for(Duration::MAX);
    assert_eq!(pauses(), (Some(Duration::MAX), secs(6)));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_ended_long_ago_leaves_no_empty_bucket() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy().law(Fixed::per_second(1.0)));
    layer.scopes().get(scope_of(A)).pause_for(secs(5));
    sleep(secs(100)).await;
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert_eq!(server.times(), [secs(100)]);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_counted() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy().max_in_flight(3));
    let handle = layer.scopes().get(scope_of(A));
    handle.pause_for(secs(5));
    let mut calls = send_all(10, &client, A);
    sleep(secs(1)).await;
    assert_eq!(handle.snapshot().waiting, 10);
    assert_eq!(handle.snapshot().limit, Some(3));
    for call in calls.split_off(4) {
        call.abort();
    }
    sleep(ms(1)).await;
    assert_eq!(handle.snapshot().waiting, 4);
    assert_eq!(statuses(calls).await, [200; 4]);
    assert_eq!(handle.snapshot().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_takes_nobody_more() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy().max_waiters(5));
    layer.scopes().get(scope_of(A)).pause_for(secs(5));
    let calls = send_all(5, &client, A);
    tokio::task::yield_now().await;
    let error = at_once(client.oneshot(get(A))).await.unwrap_err();
    assert_eq!(error.kind(), tower_retry_after::ErrorKind::QueueFull);
    assert_eq!(error.retry_after(), Some(secs(5)));
    assert_eq!(statuses(calls).await, [200; 5]);
}

#[tokio::test(start_paused = true)]
async fn what_was_served_in_a_minute_tells_which_rate_to_set_by_hand() {
    let server = Server::new(ms(10), |send| match send.nth {
        40 => refusal(20),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    let handle = layer.scopes().get(scope_of(A));
    for _ in 0..40 {
        let _ = client.clone().oneshot(get(A)).await.unwrap();
        sleep(secs(1)).await;
    }
    let told = || {
        let snapshot = handle.snapshot();
        (snapshot.observed_ceiling, snapshot.suggested_rate)
    };
    assert_eq!(told(), (None, None), "nothing was refused");
    let _refused = send(&client, get(A));
    sleep(secs(1)).await;
    assert_eq!(told(), (Some(40), Some(0.8 * 40.0 / 60.0)));
}

#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn it_is_told_when_somebody_else_uses_the_quota() {
    // One refusal in fifty is too many for a law that has settled.
    for (every, told) in [(50, true), (200, false)] {
        let log = Log::default();
        let _guard = log.listen();
        let server = Server::new(ms(10), move |send| match (send.nth + 1) % every {
            0 => refusal(1),
            _ => ok(),
        });
        let (client, _) = client_of(&server, fast());
        while server.now() < secs(3600) {
            let _ = client.clone().oneshot(get(A)).await.unwrap();
            sleep(ms(500)).await;
        }
        assert_eq!(log.text().contains("another consumer"), told);
    }
}
