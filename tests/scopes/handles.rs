//! Control by hand.

use std::time::Duration;

use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    Aimd, Reason, RetryAfterLayer, ScopeKey,
    verdict::{Exhausted, Hint, Throttle, ThrottleKind},
};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn a_pause_by_hand_lasts_as_long_as_it_says() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    layer.scopes().get(scope_of(A)).pause_for(secs(3));
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert_eq!(server.times(), [secs(3)]);
    // Once it is over it holds nobody back.
    layer.scopes().get(scope_of(A)).pause_for(secs(3));
    sleep(secs(10)).await;
    let began = server.now();
    assert_eq!(statuses(send_all(5, &client, A)).await, [200; 5]);
    assert_eq!(server.times()[1..], [began; 5]);
}

#[tokio::test(start_paused = true)]
async fn resuming_lets_the_waiters_go_as_a_ramp() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    let handle = layer.scopes().get(scope_of(A));
    handle.pause_for(secs(50));
    let calls = send_all(50, &client, A);
    sleep(secs(2)).await;
    handle.resume();
    assert_eq!(handle.snapshot().paused_for, None);
    assert_eq!(statuses(calls).await, [200; 50]);
    let times = server.times();
    // Half a second, the least spread there is, for fifty.
    let gaps = gaps(&times);
    assert!(
        times[0] >= secs(2) && times[0] <= secs(2) + ms(1),
        "{times:?}"
    );
    assert!(
        gaps.iter().all(|gap| *gap >= ms(9) && *gap <= ms(11)),
        "{gaps:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn resuming_ends_a_pause_that_the_server_asked_for() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(3600),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, fast());
    assert_eq!(statuses(send_all(1, &client, A)).await, [429]);
    assert!(client.clone().oneshot(get(A)).await.is_err());
    layer.scopes().get(scope_of(A)).resume();
    assert_eq!(statuses(send_all(5, &client, A)).await, [200; 5]);
    assert!(server.now() < ms(100));
}

#[tokio::test(start_paused = true)]
async fn resuming_what_is_open_changes_nothing() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    layer.scopes().get(scope_of(A)).resume();
    assert_eq!(statuses(send_all(5, &client, A)).await, [200; 5]);
    assert_eq!(server.times(), [Duration::ZERO; 5]);
}

#[tokio::test(start_paused = true)]
async fn resuming_a_child_does_not_lift_the_pause_of_its_parent() {
    let server = Server::new(ms(10), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    let scopes = layer.scopes();
    let child = scopes.get(ScopeKey::new("host").and("a").unwrap());
    scopes.get("host").pause_for(secs(5));
    child.pause_for(secs(10));
    let call = send(&client, get("http://a.test/host/a"));
    sleep(secs(1)).await;
    child.resume();
    assert_eq!(status_of(&reply(call).await), 200);
    assert_eq!(server.times(), [secs(5)]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_set_by_hand_is_held_from_then_on() {
    let server = Server::new(ms(10), |_| ok());
    // A law that does not grow beyond what it is told.
    let (client, layer) = client_of(&server, policy().law(Aimd::measured()));
    let handle = layer.scopes().get(scope_of(A));
    assert_eq!(statuses(send_all(50, &client, A)).await, [200; 50]);
    assert_eq!(server.times(), [Duration::ZERO; 50], "it is dormant");
    handle.set_rate(10.0);
    assert_eq!(statuses(send_all(50, &client, A)).await, [200; 50]);
    let times = server.times().split_off(50);
    assert!(gaps(&times).iter().all(|gap| *gap >= ms(99)), "{times:?}");
    assert!(times[49] <= secs(5) + ms(20), "{times:?}");
    // Faster again, while they wait.
    let began = server.now();
    let calls = send_all(50, &client, A);
    sleep(secs(1)).await;
    handle.set_rate(100.0);
    assert_eq!(statuses(calls).await, [200; 50]);
    let took = server.now() - began;
    assert!(took >= ms(1_300) && took <= ms(1_600), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn any_number_can_be_set_as_a_rate() {
    let server = Server::new(ms(10), |_| ok());
    let numbers = [
        0.0,
        -1.0,
        1e-300,
        1e300,
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
    ];
    for number in numbers {
        let (client, layer) = client_of(&server, policy());
        let handle = layer.scopes().get(scope_of(A));
        handle.set_rate(number);
        let rate = handle.snapshot().rate.unwrap();
        assert!(rate.is_finite() && rate > 0.0, "{number} gives {rate}");
        let _ = tokio::time::timeout(secs(100), client.oneshot(get(A))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_reported_from_a_stream_pauses_everybody() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    let handle = layer.scopes().get(scope_of(A));
    let hint = Hint::new(secs(5), "error event");
    let throttle = Throttle::new(ThrottleKind::RateLimited).hint(hint);
    handle.report(&throttle.into());
    assert_eq!(handle.snapshot().paused_for, Some(secs(5)));
    assert_eq!(statuses(send_all(3, &client, A)).await, [200; 3]);
    assert!(server.times()[1] >= ms(10) + secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_spent_quota_that_is_reported_closes_the_scope_of_its_credential() {
    let server = Server::new(ms(10), |_| ok());
    let layer = RetryAfterLayer::new().policy(policy());
    let layer = layer.scope_fn(|head| {
        let key = head.headers().get("x-api-key")?;
        ScopeKey::host(head)?.and_secret(key)
    });
    let client = layer.layer(server.clone());
    let scope = |key| scope_of(A).and_secret(key).unwrap();
    let scopes = layer.scopes();
    scopes
        .get(scope("poor"))
        .report(&Exhausted::default().into());
    for (key, sent) in [("poor", false), ("rich", true)] {
        let mut request = get(A);
        request
            .headers_mut()
            .insert("x-api-key", key.parse().unwrap());
        let reply = client.clone().oneshot(request).await;
        assert_eq!(reply.is_ok(), sent);
        if let Err(error) = reply {
            assert_eq!(error.kind(), tower_retry_after::ErrorKind::Exhausted);
            assert_eq!(error.retry_after(), None, "nobody knows");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_the_gate_and_takes_nothing() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    let handle = layer.scopes().get(scope_of(A));
    at_once(handle.ready()).await;
    let reply = client.clone().oneshot(post(A)).await;
    assert_eq!(outcome(&reply).gave_up, Some(Reason::NotRepeatable));
    drop(reply);
    let watching = handle.clone();
    let ready = tokio::spawn(async move { watching.ready().await });
    sleep(secs(1)).await;
    let snapshot = handle.snapshot();
    assert_eq!((snapshot.waiting, snapshot.in_flight), (0, 0));
    ready.await.unwrap();
    let opens = server.now();
    assert!(opens >= ms(10) + secs(2) && opens <= secs(3), "{opens:?}");
    // Whoever was told can be the probe: nothing was taken.
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    assert_eq!(server.times()[1], opens);
    at_once(handle.ready()).await;
}

#[tokio::test(start_paused = true)]
async fn ready_is_told_when_a_pause_is_ended_lengthened_or_proven_over() {
    let server = Server::new(ms(10), |_| ok());
    let (_, layer) = client_of(&server, policy());
    let handle = layer.scopes().get(scope_of(A));
    for (lengthen, end) in [(None, secs(5)), (Some(secs(30)), secs(31))] {
        let began = server.now();
        handle.pause_for(secs(5));
        let watching = handle.clone();
        let ready = tokio::spawn(async move { watching.ready().await });
        sleep(secs(1)).await;
        if let Some(longer) = lengthen {
            handle.pause_for(longer);
        }
        ready.await.unwrap();
        let took = server.now() - began;
        assert!(took >= end && took <= end + ms(1), "{took:?}");
    }
    handle.pause_for(secs(50));
    let began = server.now();
    let watching = handle.clone();
    let ready = tokio::spawn(async move { watching.ready().await });
    sleep(secs(1)).await;
    handle.resume();
    ready.await.unwrap();
    assert!(server.now() <= began + secs(1) + ms(1));
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_the_levels_above_too() {
    let server = Server::new(ms(10), |_| ok());
    let (_, layer) = client_of(&server, policy());
    let scopes = layer.scopes();
    let child = scopes.get(ScopeKey::new("host").and("a").unwrap());
    scopes.get("host").pause_for(secs(5));
    child.pause_for(secs(2));
    child.ready().await;
    assert!(server.now() >= secs(5) && server.now() <= secs(5) + ms(1));
}
