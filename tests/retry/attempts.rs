//! How often a call is sent, and what its outcome tells.

use std::time::Duration;

use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    CallOptions, Outcome, Reason, RetryAfterLayer, classify_fn,
    verdict::{Exhausted, RetryAdvice, Throttle, ThrottleKind},
};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn two_refusals_and_a_success_are_three_sends() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => refusal(3),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let reply = client.oneshot(get(A)).await;
    assert_eq!(status_of(&reply), 200);
    let times = server.times();
    assert_eq!(times.len(), 3, "{times:?}");
    let gaps = gaps(&times);
    // The wait asked for and the start of the ramp, half a second at most.
    assert!(gaps[0] >= ms(2_010) && gaps[0] <= ms(2_511), "{gaps:?}");
    assert!(gaps[1] >= ms(3_010) && gaps[1] <= ms(3_511), "{gaps:?}");
    let told = outcome(&reply);
    assert_eq!(told.attempts, 3);
    assert_eq!(told.waited, times[2] - ms(20));
    assert_eq!(told.gave_up, None);
    assert_eq!(told.scope, Some(scope_of(A)));
}

#[tokio::test(start_paused = true)]
async fn a_call_to_which_nothing_happens_has_no_outcome() {
    for answer in [ok, || status(404, ""), || status(500, "")] {
        let server = Server::new(ms(10), move |_| answer());
        let (client, _) = client_of(&server, policy());
        let reply = client.oneshot(get(A)).await.unwrap();
        assert_eq!(reply.extensions().get::<Outcome>(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_only_waited_has_an_outcome() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    layer.scopes().get(scope_of(A)).pause_for(secs(3));
    let told = outcome(&client.oneshot(get(A)).await);
    assert_eq!((told.attempts, told.waited), (1, secs(3)));
    assert_eq!(told.gave_up, None);
}

#[tokio::test(start_paused = true)]
async fn four_attempts_are_made_unless_told_otherwise() {
    for (layer, call, sends) in [(None, None, 4), (Some(2), None, 2), (Some(2), Some(6), 6)] {
        let server = Server::new(ms(10), |_| refusal(1));
        let mut made = RetryAfterLayer::new().policy(policy());
        if let Some(most) = layer {
            made = made.max_attempts(most);
        }
        let mut request = get(A);
        if let Some(most) = call {
            let options = CallOptions::new().attempts(most);
            request.extensions_mut().insert(options);
        }
        let reply = made.layer(server.clone()).oneshot(request).await;
        assert_eq!(server.count(), sends);
        let told = outcome(&reply);
        assert_eq!(told.attempts as usize, sends);
        assert_eq!(told.gave_up, Some(Reason::Attempts));
        assert_eq!(text(reply).await, "slow down");
    }
}

#[tokio::test(start_paused = true)]
async fn only_refusals_are_sent_again() {
    for answer in [
        failed,
        || status(500, ""),
        || status(503, ""),
        || status(200, "").header("retry-after", "7"),
        || status(301, "").header("retry-after", "7"),
    ] {
        let server = Server::new(ms(10), move |_| answer());
        let (client, layer) = client_of(&server, policy());
        let _ = client.clone().oneshot(get(A)).await;
        assert_eq!(server.count(), 1);
        let snapshot = layer.scopes().get(scope_of(A)).snapshot();
        assert_eq!(snapshot.paused_for, None);
    }
}

#[tokio::test(start_paused = true)]
async fn overload_that_says_until_when_is_sent_again() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => status(503, "").header("retry-after", "5"),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    assert!(server.times()[1] >= ms(5_010));
}

/// A layer whose refusals come with `advice`.
fn advised(advice: RetryAdvice) -> RetryAfterLayer {
    let classifier = classify_fn(move |head| {
        let throttle = Throttle::new(ThrottleKind::RateLimited).retry(advice);
        (head.status == 429).then(|| throttle.into())
    });
    RetryAfterLayer::new()
        .policy(policy())
        .classifier(classifier.unprocessed())
}

#[tokio::test(start_paused = true)]
async fn what_the_service_says_of_sending_again_counts() {
    for (advice, request, sends, gave_up) in [
        (RetryAdvice::Never, get(A), 1, Reason::Advice),
        (RetryAdvice::AtMost(2), get(A), 2, Reason::Attempts),
        (RetryAdvice::AtMost(9), get(A), 4, Reason::Attempts),
        (RetryAdvice::Unprocessed, post(A), 4, Reason::Attempts),
        (RetryAdvice::Default, post(A), 1, Reason::NotRepeatable),
    ] {
        let server = Server::new(ms(10), |_| bare_refusal());
        let client = advised(advice).layer(server.clone());
        let told = outcome(&client.oneshot(request).await);
        assert_eq!(server.count(), sends, "{advice:?}");
        assert_eq!(told.gave_up, Some(gave_up), "{advice:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_spent_quota_is_this_callers_answer_alone() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => status(402, "pay first"),
        _ => ok(),
    });
    let layer = RetryAfterLayer::new().policy(policy());
    let layer = layer.classifier(classify_fn(|head| {
        (head.status == 402).then(|| Exhausted::default().into())
    }));
    let client = layer.layer(server.clone());
    let reply = client.clone().oneshot(get(A)).await;
    assert_eq!(outcome(&reply).gave_up, Some(Reason::Exhausted));
    assert_eq!(text(reply).await, "pay first");
    // The host is open to others.
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    assert_eq!(server.times(), [Duration::ZERO, ms(10)]);
}

#[tokio::test(start_paused = true)]
async fn a_post_without_a_key_is_given_back_and_the_gate_closes_all_the_same() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let reply = client.clone().oneshot(post(A)).await;
    assert_eq!(server.now(), ms(10));
    let told = outcome(&reply);
    assert_eq!(told.attempts, 1);
    assert_eq!(told.gave_up, Some(Reason::NotRepeatable));
    assert_eq!(told.hint.unwrap().wait(), secs(5));
    assert_eq!(text(reply).await, "slow down");
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    assert!(server.times()[1] >= ms(5_010));
}

#[tokio::test(start_paused = true)]
async fn three_nested_layers_of_three_attempts_make_three_sends() {
    let server = Server::new(ms(10), |_| refusal(1));
    let layer = || RetryAfterLayer::new().policy(policy()).max_attempts(3);
    let client = layer().layer(layer().layer(layer().layer(server.clone())));
    let reply = client.oneshot(get(A)).await.unwrap();
    assert_eq!(server.count(), 3);
    let told = reply.extensions().get::<Outcome>().unwrap();
    assert_eq!(told.gave_up, Some(Reason::Nested));
    // What the innermost one has sent and waited.
    assert_eq!(told.attempts, 3);
    assert_eq!(told.waited, server.times()[2] - ms(20));
}

#[tokio::test(start_paused = true)]
async fn a_success_keeps_what_a_layer_below_has_told() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(1),
        _ => ok(),
    });
    let outer = RetryAfterLayer::new().policy(policy());
    outer.scopes().get(scope_of(A)).pause_for(secs(4));
    let inner = RetryAfterLayer::new().policy(policy());
    let client = outer.layer(inner.layer(server.clone()));
    let reply = client.oneshot(get(A)).await.unwrap();
    let told = reply.extensions().get::<Outcome>().unwrap();
    assert_eq!((told.attempts, told.gave_up), (2, None));
    assert_eq!(told.waited, server.times()[1] - ms(10));
}
