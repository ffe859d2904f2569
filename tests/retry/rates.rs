//! The rate is held just under the quota.

use std::{sync::Mutex, time::Duration};

use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    Aimd, CallOptions, Fixed, Learned, RetryAfterLayer, classify_fn,
    verdict::{Level, Throttle, ThrottleKind, Verdict},
};

use crate::support::*;

const A: &str = "http://a.test/";

/// Sixty-four callers that call again as soon as they have an answer, until
/// `end`.
async fn saturate(server: &Server, client: &Client, end: Duration) {
    let callers = (0..64).map(|_| async {
        while server.now() < end {
            let reply = client.clone().oneshot(get(A)).await;
            assert_eq!(status_of(&reply), 200);
        }
    });
    futures_util::future::join_all(callers).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_starts_too_fast_is_soon_under_the_quota_and_stays_there() {
    let server = Server::new(ms(100), quota(50.0, 50.0));
    let (client, layer) = client_of(&server, policy().law(Aimd::per_second(100.0)));
    let minute = secs(60);
    saturate(&server, &client, minute).await;
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    let rate = snapshot.rate.unwrap();
    assert!(rate > 45.0 && rate <= 50.0, "{rate}");

    saturate(&server, &client, minute + secs(3600)).await;
    let (mut sent, mut refused) = (0_u32, 0_u32);
    for send in server.sends().iter().filter(|send| send.at > minute) {
        sent += 1;
        refused += u32::from(send.status == 429);
    }
    let share = f64::from(refused) / f64::from(sent);
    assert!(share < 0.001, "{refused} of {sent}");
    assert!(sent > 3600 * 35, "{sent} in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_refusals_in_flight_is_one_cut() {
    // All at once; or the last of them when the gate is open again.
    for late in [0, 50] {
        let server = Server::new(secs(1), move |send| match send.nth {
            0..64 => refusal(1).after(ms(late * send.nth as u64)),
            _ => ok(),
        });
        let (client, layer) = client_of(&server, policy().law(Aimd::per_second(100.0)));
        assert_eq!(statuses(send_all(64, &client, A)).await, [200; 64]);
        let snapshot = layer.scopes().get(scope_of(A)).snapshot();
        assert_eq!(snapshot.rate, Some(50.0));
        assert_eq!((snapshot.sent, snapshot.throttled), (128, 64));
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_refuses_is_never_slowed() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    assert_eq!(statuses(send_all(5000, &client, A)).await, [200; 5000]);
    assert!(server.times().iter().all(|at| at.is_zero()));
    assert_eq!(layer.scopes().get(scope_of(A)).snapshot().rate, None);
}

/// Ten requests for each ten seconds of the clock, told with every answer.
fn ten_in_ten_seconds() -> impl Fn(&Send) -> Answer {
    let counted = Mutex::new((0, 0));
    move |send| {
        let mut counted = counted.lock().unwrap();
        let window = send.at.as_secs() / 10;
        let before = if counted.0 == window { counted.1 } else { 0 };
        *counted = (window, before + 1);
        let reset = (window + 1) * 10 - send.at.as_secs();
        let answer = if before < 10 { ok() } else { refusal(reset) };
        let left = 10 - counted.1.min(10);
        answer
            .header("ratelimit", &format!(r#""a";r={left};t={reset}"#))
            .header("ratelimit-policy", r#""a";q=10;w=10"#)
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_told_is_paused_for_before_the_first_refusal() {
    let server = Server::new(ms(10), ten_in_ten_seconds());
    let (client, layer) = client_of(&server, policy());
    for _ in 0..30 {
        let reply = client.clone().oneshot(get(A)).await;
        assert_eq!(status_of(&reply), 200);
    }
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!((snapshot.sent, snapshot.throttled), (30, 0));
    // As long as much remains, a burst is what the quota is for.
    assert!(server.times()[7] < secs(1), "{:?}", server.times());
    assert!(server.now() < secs(33), "{:?}", server.now());
}

/// In whole seconds such a window always ends in one, however soon it does.
#[tokio::test(start_paused = true)]
async fn of_a_window_of_one_second_no_second_is_waited_for() {
    let server = Server::new(ms(10), |_| {
        ok().header("ratelimit", r#""a";r=0;t=1"#)
            .header("ratelimit-policy", r#""a";q=10;w=1"#)
    });
    let (client, _) = client_of(&server, policy());
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    assert_eq!(statuses(send_all(100, &client, A)).await, [200; 100]);
    // The rate that is told is held all the same.
    let now = server.now();
    assert!(now > secs(8) && now < secs(11), "{now:?}");
}

#[tokio::test(start_paused = true)]
async fn what_remains_grants_no_more_than_the_law() {
    let server = Server::new(ms(10), |_| {
        ok().header("ratelimit", r#""a";r=1000;t=10"#)
            .header("ratelimit-policy", r#""a";q=1000;w=10"#)
    });
    let (client, _) = client_of(&server, policy().law(Fixed::per_second(2.0)));
    assert_eq!(statuses(send_all(11, &client, A)).await, [200; 11]);
    assert!(server.now() >= secs(5), "{:?}", server.now());
}

#[tokio::test(start_paused = true)]
async fn ten_callers_of_a_quiet_scope_are_let_go_within_seconds() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let mut calls = send_all(1, &client, A);
    sleep(ms(20)).await;
    calls.extend(send_all(10, &client, A));
    assert_eq!(statuses(calls).await, [200; 11]);
    assert!(server.now() < secs(4), "{:?}", server.now());
}

/// Nobody waits while the answer of the only caller is on its way.
#[tokio::test(start_paused = true)]
async fn one_who_calls_again_and_again_is_demand() {
    let server = Server::new(ms(10), |_| ok());
    let (client, _) = client_of(&server, policy().law(Learned::slow_start()));
    while server.now() < secs(60) {
        assert_eq!(status_of(&client.clone().oneshot(get(A)).await), 200);
    }
    // One a second, and a tenth more in each.
    assert!(server.count() > 1000, "{}", server.count());
}

/// A law grows only while callers wait; if all those that would have to wait
/// were refused, it would never grow again.
#[tokio::test(start_paused = true)]
async fn callers_that_are_turned_away_are_demand_too() {
    let server = Server::new(ms(10), |_| ok());
    let slow = Learned::new().start_rate(0.05);
    let (client, layer) = client_of(&server, policy().law(slow));
    for _ in 0..600 {
        let mut request = get(A);
        let hurried = CallOptions::new().deadline(secs(1));
        request.extensions_mut().insert(hurried);
        let _ = client.clone().oneshot(request).await;
        sleep(secs(1)).await;
    }
    let rate = layer.scopes().get(scope_of(A)).snapshot().rate;
    assert!(rate > Some(0.5), "{rate:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_start_floods_nobody_and_grows() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy().law(Learned::slow_start()));
    let calls = send_all(200, &client, A);
    sleep(secs(5)).await;
    assert!(server.count() <= 9, "{} in five seconds", server.count());
    assert_eq!(statuses(calls).await, [200; 200]);
    assert!(server.now() < secs(40), "{:?}", server.now());
    // And again, as after an incident.
    layer.scopes().get(scope_of(A)).set_rate(1.0);
    let (began, count) = (server.now(), server.count());
    let calls = send_all(100, &client, A);
    sleep(secs(5)).await;
    assert!(
        server.count() - count <= 9,
        "{} more",
        server.count() - count
    );
    assert_eq!(statuses(calls).await, [200; 100]);
    assert!(server.now() - began < secs(30), "{:?}", server.now());
}

/// A level that nobody asked for itself has measured nothing yet, but its law
/// was told where to begin.
#[tokio::test(start_paused = true)]
async fn a_law_that_a_refusal_wakes_begins_where_it_was_told() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(1),
        _ => ok(),
    });
    let about_the_host = classify_fn(|head: &http::response::Parts| {
        let refused = Throttle::new(ThrottleKind::RateLimited).level(Level::Depth(1));
        (head.status == 429).then(|| Verdict::from(refused))
    });
    let layer = by_path(RetryAfterLayer::new().policy(policy().law(Fixed::per_second(50.0))));
    let client = layer.classifier(about_the_host).layer(server.clone());
    let uri = "http://x.test/host/search";
    assert_eq!(statuses(send_all(1, &client, uri)).await, [200]);
    assert_eq!(statuses(send_all(20, &client, uri)).await, [200; 20]);
}
