//! What comes late or says little: probes that were given up on, refusals from
//! before a pause, hints of nothing.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

mod support;

use http::response::Parts;
use support::*;
use tower::Layer as _;
use tower_retry_after::{
    ErrorKind, RetryAfterLayer, classify_fn,
    verdict::{Exhausted, Hint, Level},
};

const A: &str = "http://a.test/";

/// A server that takes `usual` to answer and refuses the eleventh request; what
/// comes after that is answered by `then`, counted from zero.
fn eleventh(
    usual: std::time::Duration,
    then: impl Fn(usize) -> Answer + std::marker::Send + Sync + 'static,
) -> Server {
    Server::new(usual, move |send| match send.nth {
        0..10 => ok(),
        10 => refusal(2),
        nth => then(nth - 11),
    })
}

/// Makes ten calls, by which the scope learns the usual time to an answer, and
/// one that is refused and given up.
async fn learn(client: &Client, layer: &RetryAfterLayer) {
    layer.scopes().get(scope_of(A)).set_rate(1000.0);
    for _ in 0..10 {
        assert_eq!(statuses(send_all(1, client, A)).await, [200]);
    }
    assert_eq!(status_of(&reply(send(client, post(A))).await), 429);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_says_nothing_is_followed_after_the_shortest_pause() {
    for say_nothing in [|| status(500, "oops"), failed] {
        let server = eleventh(
            secs(2),
            move |nth| if nth == 0 { say_nothing() } else { ok() },
        );
        let (client, layer) = client_of(&server, policy());
        learn(&client, &layer).await;
        let probe = send(&client, get(A));
        assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
        let _ = probe.await.unwrap();
        let gap = server.times()[12] - server.times()[11];
        // Its answer and the pause, and not its lease of eight seconds.
        assert!(gap >= secs(3) && gap <= secs(3) + ms(2), "{gap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_was_given_up_on_does_not_bring_forward_that_of_a_later_pause() {
    for by_hand in [false, true] {
        let server = eleventh(ms(10), move |nth| match nth {
            0 => never(),
            2 if !by_hand => refusal(50),
            _ => ok(),
        });
        let (client, layer) = client_of(&server, policy());
        learn(&client, &layer).await;
        let hangs = send(&client, get(A));
        assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
        let began = server.now();
        if by_hand {
            layer.scopes().get(scope_of(A)).pause_for(secs(50));
        } else {
            assert_eq!(status_of(&reply(send(&client, post(A))).await), 429);
        }
        let waits = send(&client, get(A));
        sleep(secs(10)).await;
        hangs.abort();
        assert_eq!(status_of(&reply(waits).await), 200);
        let last = *server.times().last().unwrap();
        assert!(last >= began + secs(50), "{last:?} after {began:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_was_given_up_on_does_not_call_for_a_third_while_the_second_is_out() {
    let server = eleventh(secs(2), |nth| match nth {
        0 => never(),
        1 => ok().after(secs(3)),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    learn(&client, &layer).await;
    let hangs = send(&client, get(A));
    let others = send_all(3, &client, A);
    while server.count() < 13 {
        sleep(ms(10)).await;
    }
    sleep(ms(100)).await;
    hangs.abort();
    assert_eq!(statuses(others).await, [200; 3]);
    let gap = server.times()[13] - server.times()[12];
    assert!(gap >= secs(5), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_hung_long_ago_delays_nobody() {
    let server = eleventh(ms(10), |nth| if nth == 0 { never() } else { ok() });
    let (client, layer) = client_of(&server, policy());
    learn(&client, &layer).await;
    let _hangs = send(&client, get(A));
    sleep(secs(3600)).await;
    let came = server.now();
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert_eq!(server.times()[12], came);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_from_before_a_pause_by_hand_calls_for_no_probe_into_it() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    let refused = send(&client, post(A));
    sleep(ms(5)).await;
    // Longer than the longest pause that is waited out.
    layer.scopes().get(scope_of(A)).pause_for(secs(600));
    assert_eq!(status_of(&reply(refused).await), 429);
    for _ in 0..53 {
        sleep(secs(10)).await;
        let error = reply(send(&client, get(A))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Paused);
    }
    // What is left of it is waited out.
    sleep(secs(10)).await;
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert!(
        server.times()[1] >= ms(5) + secs(600),
        "{:?}",
        server.times()
    );
}

#[tokio::test(start_paused = true)]
async fn an_early_probe_that_is_told_to_wait_a_little_is_followed_by_none_before() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(3600),
        1 => refusal(30),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    assert_eq!(status_of(&reply(send(&client, get(A))).await), 429);
    // Probes are due from the 60th second on, and from the 120th.
    sleep(secs(115)).await;
    assert_eq!(status_of(&reply(send(&client, get(A))).await), 429);
    for _ in 0..14 {
        sleep(secs(2)).await;
        assert!(reply(send(&client, get(A))).await.is_err());
    }
    sleep(secs(2)).await;
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_spent_and_comes_back_at_once_makes_no_hot_loop() {
    let server = Server::new(ms(10), |_| status(402, "no money"));
    let judge = classify_fn(|_: &Parts| {
        let resets = Some(Hint::new(secs(0), "test"));
        let level = Some(Level::Leaf);
        Some(Exhausted { resets, level }.into())
    });
    let layer = RetryAfterLayer::new().policy(policy()).classifier(judge);
    let client = layer.layer(server.clone());
    for _ in 0..100 {
        let _ = reply(send(&client, get(A))).await;
        sleep(ms(100)).await;
    }
    let gaps = gaps(&server.times());
    assert!(
        gaps.len() > 1 && gaps.iter().all(|gap| *gap >= secs(1)),
        "{gaps:?}"
    );
}
