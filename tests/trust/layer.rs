//! What the layer makes of hints, before a scripted server in paused time.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    Outcome, RetryAfterLayer, Scopes,
    trust::{Category, Reason},
    verdict::IgnoredReason,
};

use crate::support::*;

const URI: &str = "http://a.test/";

fn layer() -> RetryAfterLayer {
    RetryAfterLayer::new().policy(policy())
}

/// Sends one call a second for `lasts`, from one that is not waited for.
async fn call_every_second(layer: &RetryAfterLayer, server: &Server, lasts: Duration) {
    for _ in 0..lasts.as_secs() {
        tokio::spawn(layer.layer(server.clone()).oneshot(get(URI)));
        tokio::time::sleep(secs(1)).await;
    }
}

fn the_scope(scopes: &Scopes) -> tower_retry_after::ScopeSnapshot {
    scopes.snapshot().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_hint_where_it_means_nothing_is_no_wait_and_is_counted() {
    for status in [200, 201, 301, 413] {
        let server = Server::new(ms(10), move |_| {
            let mut answer = refusal(3600);
            *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
            answer
        });
        let layer = layer();
        for _ in 0..3 {
            let client = layer.layer(server.clone());
            assert_eq!(client.oneshot(get(URI)).await.unwrap().status(), status);
        }
        assert_eq!(server.times(), [ms(0), ms(10), ms(20)], "{status}");
        let scope = the_scope(&layer.scopes());
        assert_eq!(scope.hints.ignored(IgnoredReason::NotAThrottle), 3);
        assert_eq!(scope.trust.observations, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_sixty_refusals_is_one_observation() {
    let server = Server::new(ms(50), |send| match send.at < secs(5) {
        true => refusal(5),
        false => ok(),
    });
    let layer = layer();
    let calls = (0..60).map(|_| layer.layer(server.clone()).oneshot(get(URI)));
    for answer in join_all(calls).await {
        assert_eq!(answer.unwrap().status(), 200);
    }
    assert_eq!(the_scope(&layer.scopes()).trust.observations, 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_night_is_no_observation() {
    let server = Server::new(ms(50), |send| match send.nth {
        0 => refusal(20),
        _ => ok(),
    });
    let layer = layer().max_attempts(1);
    let client = layer.layer(server.clone());
    assert_eq!(
        client.clone().oneshot(get(URI)).await.unwrap().status(),
        429
    );
    tokio::time::sleep(secs(30_000)).await;
    assert_eq!(client.oneshot(get(URI)).await.unwrap().status(), 200);
    assert_eq!(the_scope(&layer.scopes()).trust.observations, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_an_idle_night_begins_anew() {
    let server = Server::new(ms(50), |send| match send.nth {
        0 | 1 => refusal(20),
        _ => ok(),
    });
    let layer = layer();
    let first = layer.clone().max_attempts(1).layer(server.clone());
    assert_eq!(first.oneshot(get(URI)).await.unwrap().status(), 429);
    tokio::time::sleep(secs(30_000)).await;
    let client = layer.layer(server.clone());
    assert_eq!(client.oneshot(get(URI)).await.unwrap().status(), 200);
    let trust = the_scope(&layer.scopes()).trust;
    assert_eq!((trust.observations, trust.category), (1, Category::Unknown));
}

/// While it is refused, a scope sends once per `min_pause` and no more often,
/// whatever it is told; growing, as it is refused on.
#[tokio::test(start_paused = true)]
async fn the_fastest_liar_gets_one_attempt_per_min_pause() {
    let past = "Thu, 01 Jan 1970 00:00:00 GMT";
    for hint in ["0", "0.001", "0.0", past, "soon", "1", "-1", "1e3", ""] {
        let server = Server::new(ms(1), move |_| refusal(hint));
        let layer = layer();
        call_every_second(&layer, &server, secs(120)).await;
        let times = server.times();
        assert!(
            times.windows(2).all(|pair| pair[1] - pair[0] >= secs(1)),
            "{hint}: {times:?}"
        );
        assert!(times.len() < 15, "{hint}: {times:?}");
    }
}

/// One that has earned belief in hints below the floor gets one early retry for
/// it, and loses it.
#[tokio::test(start_paused = true)]
async fn a_liar_that_was_truthful_gets_no_hot_loop_either() {
    let server = Server::new(ms(1), |send| match send.nth {
        // Six episodes of a hundred milliseconds that are kept.
        nth if nth < 12 && nth % 2 == 0 => refusal("0.1"),
        nth if nth < 12 => ok(),
        _ => refusal("0.001"),
    });
    let layer = layer();
    for _ in 0..6 {
        let client = layer.layer(server.clone());
        assert_eq!(client.oneshot(get(URI)).await.unwrap().status(), 200);
    }
    assert_eq!(
        the_scope(&layer.scopes()).trust.category,
        Category::Truthful
    );
    let times = server.times();
    assert!(
        times[11] - times[10] < secs(1),
        "a kept hint below the floor is obeyed"
    );

    call_every_second(&layer, &server, secs(120)).await;
    let times = &server.times()[13..];
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] >= secs(1)),
        "{times:?}"
    );
    assert!(times.len() < 15, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn the_probe_of_a_long_pause_comes_at_half_the_time_after_each_success() {
    // Refuses at once after each success, for an hour, and means ten seconds.
    let server = Server::new(ms(10), |send| match send.at.as_secs() % 200 {
        0..10 => refusal(3600),
        _ => ok(),
    });
    let layer = layer();
    let mut first = Vec::new();
    for episode in 0..3 {
        tokio::time::sleep(secs(200 * episode).saturating_sub(server.now())).await;
        let before = server.count();
        call_every_second(&layer, &server, secs(100)).await;
        let sends = &server.times()[before..];
        first.push((sends[1] - sends[0]).as_secs());
    }
    assert_eq!(first, [61, 31, 16]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_hint_is_counted_and_the_caller_is_told_what_was_asked() {
    let episodes = Arc::new(std::sync::Mutex::new(secs(0)));
    let began = Arc::clone(&episodes);
    let server = Server::new(ms(10), move |send| {
        match send.at < *began.lock().unwrap() + secs(20) {
            true => refusal(3600),
            false => ok(),
        }
    });
    let layer = layer();
    for _ in 0..3 {
        call_every_second(&layer, &server, secs(100)).await;
        *episodes.lock().unwrap() = server.now();
    }
    assert_eq!(
        the_scope(&layer.scopes()).trust.category,
        Category::ConstantOverstated
    );

    let answer = layer.layer(server.clone()).oneshot(get(URI)).await.unwrap();
    assert_eq!(answer.status(), 200);
    let outcome = answer.extensions().get::<Outcome>().unwrap();
    assert!(outcome.waited < secs(60), "{outcome:?}");
    let hints = the_scope(&layer.scopes()).hints;
    assert!(hints.overridden(Reason::CutToCeiling) >= 1, "{hints:?}");
}

/// Neither those beside it nor the one above, whatever it asks for: a throttle
/// is its own scope's alone.
#[tokio::test(start_paused = true)]
async fn a_liar_keeps_no_other_scope_waiting() {
    for hint in ["99999999999999999999", "3600", "30", "0", "soon"] {
        let server = Server::new(ms(10), move |send| match &*send.path {
            "/shared/liar" => refusal(hint),
            _ => ok(),
        });
        let layer = by_path(layer());
        let liar = layer.layer(server.clone());
        let calls = send_all(20, &liar, "http://a.test/shared/liar");
        sleep(secs(10)).await;
        for path in ["/shared/honest", "/shared", "/other/honest"] {
            let before = server.now();
            let client = layer.layer(server.clone());
            let answer = client.oneshot(get(&format!("http://a.test{path}"))).await;
            assert_eq!(answer.unwrap().status(), 200);
            assert_eq!(server.now() - before, ms(10), "{hint} {path}");
        }
        drop(calls);
    }
}
