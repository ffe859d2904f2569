//! What retries cost, over all calls of a scope.

use std::{collections::HashMap, time::Duration};

use tokio::task::JoinSet;
use tower::ServiceExt as _;
use tower_retry_after::{Fixed, Policy, Reason};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn of_a_thousand_in_flight_at_the_first_refusal_the_budget_refuses_none() {
    // They are refused all at once, or most of them when the gate is open again.
    for late in [0, 10] {
        let server = Server::new(ms(10), move |send| match send.nth {
            0..1000 => refusal(1).after(ms(late * send.nth as u64)),
            _ => ok(),
        });
        let (client, _) = client_of(&server, policy());
        let calls = send_all(1000, &client, A);
        assert_eq!(statuses(calls).await, [200; 1000]);
        assert_eq!(server.count(), 2000);
    }
}

/// Callers that call `server` again and again, and why their calls gave up.
async fn insist(server: &Server, callers: usize, calls: usize, policy: Policy) -> Vec<Reason> {
    let (client, _) = client_of(server, policy);
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let client = client.clone();
        tasks.spawn(async move {
            let mut reasons = Vec::new();
            for nth in 0..calls {
                let mut request = get(A);
                let id = format!("{caller}-{nth}").parse().unwrap();
                request.headers_mut().insert("x-call", id);
                let reply = client.clone().oneshot(request).await;
                if status_of(&reply) == 429 {
                    let told = outcome(&reply);
                    assert!(told.attempts <= 4);
                    reasons.extend(told.gave_up);
                    assert_eq!(text(reply).await, "slow down");
                }
            }
            reasons
        });
    }
    tasks.join_all().await.concat()
}

/// When something was sent, and for the how manyth time.
fn attempts(server: &Server) -> Vec<(Duration, u32)> {
    let mut counts = HashMap::new();
    let mut attempts = Vec::new();
    for send in server.sends() {
        let count = counts.entry(send.headers["x-call"].clone()).or_insert(0);
        *count += 1;
        attempts.push((send.at, *count));
    }
    attempts
}

#[tokio::test(start_paused = true)]
async fn however_many_are_refused_their_retries_keep_within_the_budget() {
    // What few it accepts opens the gate again and again.
    let server = Server::new(ms(500), |send| match send.nth % 20 {
        19 => ok(),
        _ => refusal(0),
    });
    let policy = policy().law(Fixed::per_second(1000.0));
    let reasons = insist(&server, 1000, 5, policy).await;
    assert!(reasons.contains(&Reason::Budget), "it was never spent");
    let sends = attempts(&server);
    let mut most = 0;
    for (nth, (at, _)) in sends.iter().enumerate() {
        let window = sends[..=nth].iter().rev();
        let window = window.take_while(|(then, _)| *at - *then < secs(10));
        let (mut attempts, mut retries) = (0, 0);
        for (_, count) in window {
            attempts += 1;
            // A second attempt is free where the first was sent before its pause.
            retries += usize::from(*count > 2);
        }
        most = most.max(retries);
        assert!(retries <= 100 + attempts / 5, "{retries} of {attempts}");
    }
    assert!(most > 100, "{most} at most");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_for_ever_is_hardly_asked() {
    let server = Server::new(ms(10), |_| refusal(0));
    let reasons = insist(&server, 100, 1, fast()).await;
    assert_eq!(reasons.len(), 100);
    let sends = attempts(&server);
    assert!(sends[100..].iter().all(|(_, count)| *count > 1));
    // A hundred in flight at the first refusal, then one after the other, each
    // after the longest own backoff in the end.
    let gaps = gaps(&server.times()[105..]);
    assert!(gaps.iter().all(|gap| *gap >= secs(30)), "{gaps:?}");
}
