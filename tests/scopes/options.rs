//! What one call may ask for, and what a layer may leave out.

use std::time::Duration;

use http::Request;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{CallOptions, Outcome, Reason, RetryAfterLayer, ScopeKey, Scopes};

use crate::support::*;

const A: &str = "http://a.test/";

fn with(options: CallOptions) -> Request<Body> {
    let mut request = get(A);
    request.extensions_mut().insert(options);
    request
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_past_it_all_is_neither_held_back_nor_learned_from() {
    let server = Server::new(ms(10), |send| match &*send.path {
        "/refused" => refusal(50),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy().max_in_flight(1));
    let handle = layer.scopes().get(scope_of(A));
    handle.pause_for(secs(5));
    let bypass = || with(CallOptions::new().bypass());
    assert_eq!(status_of(&client.clone().oneshot(bypass()).await), 200);
    let mut refused = bypass();
    *refused.uri_mut() = "http://a.test/refused".parse().unwrap();
    let reply = client.clone().oneshot(refused).await;
    assert_eq!(outcome(&reply).gave_up, Some(Reason::Disabled));
    assert_eq!(server.times(), [Duration::ZERO, ms(10)]);
    let snapshot = handle.snapshot();
    assert_eq!(
        (snapshot.sent, snapshot.throttled, snapshot.in_flight),
        (0, 0, 0)
    );
    assert_eq!(snapshot.paused_for, Some(secs(5) - ms(20)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_wants_no_retry_waits_its_turn_and_closes_the_gate() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    layer.scopes().get(scope_of(A)).pause_for(secs(1));
    let reply = client
        .clone()
        .oneshot(with(CallOptions::new().no_retry()))
        .await;
    let told = outcome(&reply);
    assert_eq!((told.attempts, told.gave_up), (1, Some(Reason::Disabled)));
    assert_eq!(server.times(), [secs(1)]);
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert!(server.times()[1] >= ms(6_010));
}

#[tokio::test(start_paused = true)]
async fn a_call_may_name_its_scope() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    layer.scopes().get("batch").pause_for(secs(5));
    let batch = || with(CallOptions::new().scope(ScopeKey::new("batch")));
    let calls = vec![
        send(&client, batch()),
        send(&client, get(A)),
        send(&client, batch()),
    ];
    let replies = futures_util::future::join_all(calls).await;
    assert_eq!(server.times()[0], Duration::ZERO);
    assert!(server.times()[1..].iter().all(|at| *at >= secs(5)));
    let told = outcome(replies[0].as_ref().unwrap());
    assert_eq!(told.scope, Some(ScopeKey::new("batch")));
}

#[tokio::test(start_paused = true)]
async fn no_call_is_sent_less_than_once() {
    for attempts in [0, 1] {
        let server = Server::new(ms(10), |_| refusal(1));
        let (client, _) = client_of(&server, policy());
        let reply = client
            .oneshot(with(CallOptions::new().attempts(attempts)))
            .await;
        assert_eq!(outcome(&reply).gave_up, Some(Reason::Disabled));
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_only_observes_holds_nothing_back_and_tells_the_others() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let scopes = Scopes::new(fast().max_in_flight(1));
    let observing = RetryAfterLayer::with_scopes(scopes.clone()).observe_only();
    let observing = observing.layer(server.clone());
    let governed = RetryAfterLayer::with_scopes(scopes.clone()).layer(server.clone());
    let reply = observing.clone().oneshot(get(A)).await;
    let told = outcome(&reply);
    assert_eq!((told.attempts, told.gave_up), (1, Some(Reason::Disabled)));
    assert_eq!(text(reply).await, "slow down");
    let waits = send(&governed, get(A));
    tokio::task::yield_now().await;
    assert_eq!(server.count(), 1, "the others are held back");
    // It sends into the pause, more than the limit at once, and its success
    // shows that the pause is over.
    let replies = send_all(5, &observing, A);
    sleep(ms(5)).await;
    let snapshot = scopes.get(scope_of(A)).snapshot();
    assert_eq!(
        (snapshot.sent, snapshot.throttled, snapshot.in_flight),
        (6, 1, 5)
    );
    assert_eq!(statuses(replies).await, [200; 5]);
    assert_eq!(server.times()[1..], [ms(10); 5]);
    assert_eq!(statuses(vec![waits]).await, [200]);
    assert!(server.now() < secs(1), "{:?}", server.now());
    assert_eq!(scopes.get(scope_of(A)).snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_layer_without_retries_waits_out_pauses_and_holds_the_rate() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let layer = RetryAfterLayer::new().policy(policy()).without_retry();
    let client = layer.layer(server.clone());
    let reply = client.clone().oneshot(get(A)).await;
    let told = outcome(&reply);
    assert_eq!((told.attempts, told.gave_up), (1, Some(Reason::Disabled)));
    let next = client.oneshot(get(A)).await.unwrap();
    assert!(server.times()[1] >= ms(5_010));
    let told = next.extensions().get::<Outcome>().unwrap();
    assert_eq!(told.waited, server.times()[1] - ms(10));
}
