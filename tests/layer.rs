//! The whole layer, before a scripted server in paused time.

mod support;

use futures_util::future::join_all;
use support::*;
use tower::{Layer, ServiceExt};
use tower_retry_after::{Outcome, RetryAfterLayer};

#[tokio::test(start_paused = true)]
async fn two_refusals_and_a_success_are_three_sends() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => refusal(3),
        _ => ok(),
    });
    let client = RetryAfterLayer::new()
        .policy(policy())
        .layer(server.clone());
    let answer = client.oneshot(get("http://a.test/")).await.unwrap();
    assert_eq!(answer.status(), 200);
    let times = server.times();
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times[1] >= ms(10) + secs(2), "{times:?}");
    assert!(times[2] >= times[1] + ms(10) + secs(3), "{times:?}");
    assert!(times[2] < secs(9), "{times:?}");
    let outcome = answer.extensions().get::<Outcome>().unwrap();
    assert_eq!(outcome.attempts, 3);
    assert_eq!(outcome.waited, times[2] - ms(20));
    assert_eq!(outcome.gave_up, None);
}

#[tokio::test(start_paused = true)]
async fn one_refusal_holds_back_everybody() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => ok(),
    });
    let layer = RetryAfterLayer::new().policy(policy());
    let client = layer.layer(server.clone());
    let first = tokio::spawn(client.clone().oneshot(get("http://a.test/")));
    tokio::time::sleep(ms(20)).await;
    let others = (0..9).map(|_| layer.layer(server.clone()).oneshot(get("http://a.test/")));
    let answers = join_all(others).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().unwrap().status() == 200)
    );
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    let times = server.times();
    assert_eq!(times.len(), 11);
    assert!(
        times[1..].iter().all(|at| *at >= secs(2) + ms(10)),
        "{times:?}"
    );
    // One probe first.
    assert!(times[2] >= times[1] + ms(10), "{times:?}");
}
