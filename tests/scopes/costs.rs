//! What an attempt costs, where it costs more than one request.

use std::time::Duration;

use http::Request;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    CallOptions, Classifier, Cost, ErrorKind, Fixed, RetryAfterLayer, Verdict, classify_fn,
};

use crate::support::*;

const A: &str = "http://a.test/";

/// A call of `cost`.
fn costing(cost: Cost) -> Request<Body> {
    let mut request = get(A);
    request
        .extensions_mut()
        .insert(CallOptions::new().cost(cost));
    request
}

fn tokens(n: u32) -> Cost {
    Cost::ONE.and("tokens", n)
}

/// They are `every` apart, but for the grain of the timers.
#[track_caller]
fn assert_apart(times: &[Duration], every: Duration) {
    for gap in gaps(times) {
        assert!(gap >= every && gap <= every + ms(2), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cost_is_of_the_call_or_else_of_the_layer() {
    let server = Server::new(ms(10), |_| ok());
    // More than the depth, ten tokens: granted at a full bucket, and the next
    // waits until it is full again.
    let layer = RetryAfterLayer::new()
        .policy(policy())
        .bucket("tokens", 100.0)
        .cost_fn(|head| tokens(head.uri().query().map_or(200, |_| 50)));
    let client = layer.layer(server.clone());
    let whole = send_all(5, &client, A);
    assert_eq!(statuses(whole).await, [200; 5]);
    assert_eq!(server.times()[0], Duration::ZERO);
    assert_apart(&server.times(), secs(2));

    sleep(secs(10)).await;
    let half = send_all(5, &client, "http://a.test/?half");
    assert_eq!(statuses(half).await, [200; 5]);
    assert_apart(&server.times()[5..], ms(500));

    sleep(secs(10)).await;
    let own = (0..5)
        .map(|_| send(&client, costing(tokens(300))))
        .collect();
    assert_eq!(statuses(own).await, [200; 5]);
    assert_apart(&server.times()[10..], secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_nobody_takes_of_holds_nobody_back() {
    let server = Server::new(ms(10), |_| ok());
    let (client, _) = client_of(&server, policy().bucket("tokens", 0.001));
    let calls = (0..50).map(|_| send(&client, costing(Cost::ONE.and("others", 9))));
    assert_eq!(statuses(calls.collect()).await, [200; 50]);
    assert!(server.times().iter().all(Duration::is_zero));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_takes_of_all_buckets_or_of_none() {
    let slow = || policy().bucket("first", 0.01).bucket("tokens", 10.0);
    let paced = || policy().law(Fixed::per_second(0.01)).bucket("tokens", 10.0);
    let first = Cost::requests(0).and("first", 1);
    for (policy, scarce) in [(slow(), first), (paced(), Cost::ONE)] {
        let server = Server::new(ms(10), |_| ok());
        let (client, _) = client_of(&server, policy);
        // Twenty seconds of what the second bucket refills.
        let spends = Cost::requests(0).and("tokens", 200);
        assert_eq!(statuses(vec![send(&client, costing(spends))]).await, [200]);
        let lacking = send(&client, costing(scarce.clone().and("tokens", 1)));
        sleep(secs(5)).await;
        assert_eq!(server.count(), 1, "it waits for the second");
        lacking.abort();
        sleep(ms(1)).await;
        // The first refills once in a hundred seconds; it was not touched.
        let next = send(&client, costing(scarce));
        sleep(ms(5)).await;
        assert_eq!(server.count(), 2, "what it did not get was kept");
        assert_eq!(statuses(vec![next]).await, [200]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_to_one_who_is_dropped_is_there_for_the_next() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy().bucket("tokens", 10.0));
    layer.scopes().get(scope_of(A)).pause_for(secs(2));
    let costly = || costing(tokens(1_000));
    let mut first = tokio_test::task::spawn(client.clone().oneshot(costly()));
    assert!(first.poll().is_pending());
    while !first.is_woken() {
        sleep(ms(1)).await;
    }
    drop(first);
    let began = server.now();
    assert_eq!(statuses(vec![send(&client, costly())]).await, [200]);
    assert!(server.times()[0] <= began + secs(1), "{:?}", server.times());
}

/// Reads what an attempt really cost from its answer.
fn metered() -> impl Classifier {
    classify_fn(|head| {
        let used = head.headers.get("x-used")?.to_str().ok()?.parse().ok()?;
        Some(Verdict::ACCEPTED.with_cost(tokens(used)))
    })
}

#[tokio::test(start_paused = true)]
async fn what_an_attempt_really_cost_is_settled_by_its_answer() {
    // Reserved, used, and after how many seconds of refill the next goes.
    for (reserved, used, after) in [(100, 10, 1), (10, 100, 10), (50, 50, 5), (100, 0, 0)] {
        let server = Server::new(ms(10), move |_| ok().header("x-used", &used.to_string()));
        let layer = RetryAfterLayer::new().policy(policy().bucket("tokens", 10.0));
        let client = layer.classifier(metered()).layer(server.clone());
        // The second waits already when the first is settled.
        let calls = (0..2).map(|_| send(&client, costing(tokens(reserved))));
        assert_eq!(statuses(calls.collect()).await, [200; 2]);
        let due = secs(after).max(ms(10));
        let at = server.times()[1];
        assert!(at >= due && at <= due + ms(2), "{reserved}, {used}: {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_call_pays_for_itself() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(1),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy().bucket("tokens", 10.0));
    assert_eq!(
        statuses(vec![send(&client, costing(tokens(300)))]).await,
        [200]
    );
    let [first, second] = server.times()[..] else {
        panic!("{:?}", server.times());
    };
    assert!(second >= first + secs(30), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn who_would_wait_too_long_for_a_bucket_is_refused_on_arrival() {
    let tokens = || (policy().bucket("tokens", 10.0), tokens(10_000), tokens(1));
    let requests = || {
        let law = Fixed::per_second(10.0);
        (policy().law(law), Cost::requests(10_000), Cost::ONE)
    };
    for (policy, spends, next) in [tokens(), requests()] {
        let server = Server::new(ms(10), |_| ok());
        let (client, _) = client_of(&server, policy);
        assert_eq!(statuses(vec![send(&client, costing(spends))]).await, [200]);
        // Without a deadline nobody waits longer than the longest pause.
        let error = client
            .clone()
            .oneshot(costing(next.clone()))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QueueFull);
        let again = error.retry_after().unwrap();
        assert!(again >= secs(998) && again <= secs(1000), "{again:?}");
        let with = |deadline| {
            let options = CallOptions::new().cost(next.clone());
            let mut request = get(A);
            request.extensions_mut().insert(options.deadline(deadline));
            request
        };
        let error = client.clone().oneshot(with(secs(900))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Deadline);
        assert_eq!(server.now(), ms(10), "they waited");
        assert_eq!(statuses(vec![send(&client, with(secs(1100)))]).await, [200]);
        assert!(server.times()[1] >= secs(998), "{:?}", server.times());
    }
}
