//! Deadlines: compared before anything is waited for.

use std::time::Duration;

use http::Request;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{CallOptions, Cost, ErrorKind, Fixed, Reason, RetryAfterLayer};

use crate::support::*;

const A: &str = "http://a.test/";

/// A request that must have its answer within `deadline`.
fn within(deadline: Duration) -> Request<Body> {
    let mut request = get(A);
    let options = CallOptions::new().deadline(deadline);
    request.extensions_mut().insert(options);
    request
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_ends_the_call_at_once_with_its_answer() {
    for deadline in [secs(5), secs(10)] {
        let server = Server::new(ms(10), |_| refusal(10));
        let layer = RetryAfterLayer::new().policy(policy()).deadline(deadline);
        let reply = layer.layer(server.clone()).oneshot(get(A)).await;
        assert_eq!(server.now(), ms(10));
        let told = outcome(&reply);
        assert_eq!(told.gave_up, Some(Reason::Deadline));
        assert_eq!(told.hint.unwrap().wait(), secs(10));
        assert_eq!(text(reply).await, "slow down");
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_of_the_others_is_not_shortened_by_it() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(10),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    assert_eq!(status_of(&reply(send(&client, within(secs(5)))).await), 429);
    assert_eq!(statuses(send_all(3, &client, A)).await, [200; 3]);
    assert!(
        server.times()[1] >= ms(10) + secs(10),
        "{:?}",
        server.times()
    );
}

#[tokio::test(start_paused = true)]
async fn who_cannot_get_a_turn_in_time_is_refused_on_arrival() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(10),
        _ => ok(),
    });
    let (client, _) = client_of(&server, fast());
    let first = send(&client, get(A));
    sleep(ms(10)).await;
    sleep(secs(1)).await;
    for deadline in [Duration::ZERO, ms(1), secs(5), secs(9)] {
        let call = client.clone().oneshot(within(deadline));
        let error = at_once(call).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadline);
        assert!(error.is_refusal());
        // It would be the probe, which waits for no token.
        assert_eq!(error.retry_after(), Some(secs(9)), "for {deadline:?}");
    }
    assert_eq!(server.count(), 1);
    // One that can is not.
    let reply_in_time = client.oneshot(within(secs(12))).await;
    assert_eq!(status_of(&reply_in_time), 200);
    assert_eq!(status_of(&reply(first).await), 200);
}

#[tokio::test(start_paused = true)]
async fn who_would_be_the_probe_is_refused_for_no_token() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(10),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy().law(Fixed::per_second(0.1)));
    let first = send(&client, get(A));
    sleep(ms(20)).await;
    let probe = send(&client, within(secs(15)));
    tokio::task::yield_now().await;
    let error = at_once(client.clone().oneshot(within(secs(15)))).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Deadline);
    assert_eq!(statuses(vec![probe, first]).await, [200; 2]);
    let probed = server.times()[1];
    assert!(probed >= ms(10) + secs(10) && probed <= ms(12) + secs(10));
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_before_it_count_too() {
    let server = Server::new(ms(10), |_| ok());
    let (client, _) = client_of(&server, policy().law(Fixed::per_second(1.0)));
    let calls = send_all(30, &client, A);
    tokio::task::yield_now().await;
    let error = at_once(client.clone().oneshot(within(secs(10)))).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Deadline);
    assert_eq!(status_of(&client.oneshot(within(secs(40))).await), 200);
    assert_eq!(statuses(calls).await, [200; 30]);
}

#[tokio::test(start_paused = true)]
async fn without_a_deadline_nobody_waits_longer_in_a_queue_than_the_longest_pause() {
    let server = Server::new(ms(10), |_| ok());
    let (client, _) = client_of(&server, policy().law(Fixed::per_second(1.0)));
    let calls = send_all(100, &client, A);
    let replies = futures_util::future::join_all(calls).await;
    let replies: Vec<Reply> = replies.into_iter().map(Result::unwrap).collect();
    let refused: Vec<_> = replies.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(
        refused
            .iter()
            .all(|error| error.kind() == ErrorKind::QueueFull)
    );
    assert!(
        refused
            .iter()
            .all(|error| error.retry_after() > Some(secs(60)))
    );
    let times = server.times();
    assert!(times.len() >= 60 && times.len() <= 63, "{}", times.len());
    assert!(times.iter().all(|at| *at <= secs(62)), "{times:?}");
}

/// Not only the others are waited for: so is a token that comes once in a
/// quarter of an hour, and what an attempt before has cost beyond the depth.
#[tokio::test(start_paused = true)]
async fn who_would_wait_too_long_for_its_own_tokens_is_refused_on_arrival() {
    let slow = policy().law(Fixed::per_second(0.001));
    let spent = policy().bucket("tokens", 100.0);
    for (policy, cost) in [(slow, Cost::ONE), (spent, Cost::ONE.and("tokens", 100_000))] {
        let server = Server::new(ms(10), |_| ok());
        let (client, _) = client_of(&server, policy);
        let costing = |deadline: Duration| {
            let mut request = get(A);
            let options = CallOptions::new().deadline(deadline).cost(cost.clone());
            request.extensions_mut().insert(options);
            client.clone().oneshot(request)
        };
        assert_eq!(status_of(&costing(secs(10)).await), 200);
        let late = at_once(costing(secs(900))).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Deadline);
        assert!(late.retry_after() > Some(secs(900)), "{late:?}");
        let mut patient = get(A);
        patient
            .extensions_mut()
            .insert(CallOptions::new().cost(cost.clone()));
        let refused = at_once(client.clone().oneshot(patient)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::QueueFull);
        assert_eq!(server.count(), 1);
        // Who has the time gets its turn.
        assert_eq!(status_of(&costing(secs(1_010)).await), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn what_passes_the_estimate_ends_at_the_deadline() {
    // The probe hangs: nobody could know that.
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => never(),
    });
    let (client, _) = client_of(&server, fast());
    let first = send(&client, within(secs(20)));
    sleep(ms(20)).await;
    let _probe = send(&client, get(A));
    let waits = send(&client, within(ms(3_500)));
    let error = reply(waits).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert!(error.is_refusal());
    assert_eq!(server.now(), ms(3_520));
    // The call that was refused before it waited has its last answer.
    let first = reply(first).await;
    assert!(server.now() <= secs(20) + ms(1));
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_when_its_deadline_comes_gets_its_last_answer() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => never(),
    });
    let (client, _) = client_of(&server, fast());
    let call = send(&client, within(ms(3_000)));
    sleep(ms(20)).await;
    let _probe = send(&client, get(A));
    let reply = reply(call).await;
    assert_eq!(server.now(), ms(3_000));
    let told = outcome(&reply);
    assert_eq!((told.attempts, told.gave_up), (1, Some(Reason::Deadline)));
    assert_eq!(text(reply).await, "slow down");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_in_flight_ends_at_the_deadline() {
    let server = Server::new(ms(10), |_| never());
    let (client, layer) = client_of(&server, policy());
    let error = client.oneshot(within(secs(3))).await.unwrap_err();
    assert_eq!(server.now(), secs(3));
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert!(!error.is_refusal(), "it was sent");
    assert_eq!(layer.scopes().get(scope_of(A)).snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn the_shorter_of_two_deadlines_counts() {
    for (layers, calls) in [(secs(3), secs(30)), (secs(30), secs(3))] {
        let server = Server::new(ms(10), |_| never());
        let layer = RetryAfterLayer::new().policy(policy()).deadline(layers);
        let call = layer.layer(server.clone()).oneshot(within(calls));
        assert_eq!(call.await.unwrap_err().kind(), ErrorKind::Deadline);
        assert_eq!(server.now(), secs(3));
    }
}
