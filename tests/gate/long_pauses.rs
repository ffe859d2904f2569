//! Pauses too long to be waited out: a decision and not a sleep.

use std::time::Duration;

use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    ErrorKind, Reason, RetryAfterLayer, classify_fn,
    verdict::{Hint, Throttle, ThrottleKind},
};

use crate::support::*;

const A: &str = "http://a.test/";

/// Refuses those that arrive before `until` for the rest of an hour.
fn closed_until(until: Duration) -> Server {
    Server::new(ms(10), move |send| match send.at < until {
        true => refusal(3600 - send.at.as_secs()),
        false => ok(),
    })
}

#[tokio::test(start_paused = true)]
async fn who_meets_it_gets_the_servers_own_answer_at_once() {
    let server = closed_until(secs(3600));
    let (client, _) = client_of(&server, policy());
    let reply = client.oneshot(get(A)).await;
    assert_eq!(server.now(), ms(10));
    let told = outcome(&reply);
    assert_eq!(told.hint.unwrap().wait(), secs(3600));
    assert_eq!(told.gave_up, Some(Reason::PauseTooLong));
    assert_eq!((told.attempts, told.waited), (1, Duration::ZERO));
    assert_eq!(status_of(&reply), 429);
    assert_eq!(reply.as_ref().unwrap().headers()["retry-after"], "3600");
    assert_eq!(text(reply).await, "slow down");
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_is_refused_at_once_and_told_how_long_it_lasts() {
    let server = closed_until(secs(3600));
    let (client, layer) = client_of(&server, policy());
    let _ = client.clone().oneshot(get(A)).await;
    for at in [0, 1, 59] {
        sleep(secs(at) + ms(10) - server.now().min(secs(at) + ms(10))).await;
        let error = at_once(client.clone().oneshot(get(A))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Paused);
        assert!(error.is_refusal());
        assert_eq!(error.retry_after(), Some(secs(3600 - at)));
        assert_eq!(error.scope(), Some(&scope_of(A)));
    }
    assert_eq!(server.count(), 1);
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!(snapshot.paused_for, Some(secs(3600 - 59)));
}

/// Calls once a second until `end`, and tells when something was sent.
async fn knock(server: &Server, client: &Client, end: Duration) -> Vec<Duration> {
    while server.now() < end {
        let _ = client.clone().oneshot(get(A)).await;
        let next = secs(server.now().as_secs() + 1);
        sleep(next - server.now()).await;
    }
    server.times()
}

#[tokio::test(start_paused = true)]
async fn one_probe_goes_after_the_longest_pause_and_opens_it_if_accepted() {
    let server = closed_until(secs(30));
    let (client, _) = client_of(&server, policy());
    let _ = client.clone().oneshot(get(A)).await;
    sleep(secs(60) - server.now()).await;
    // A hundred come at once: one is the probe, the others are refused.
    let replies = futures_util::future::join_all(send_all(100, &client, A)).await;
    assert_eq!(server.count(), 1, "before its time");
    assert!(replies.iter().all(|reply| reply.as_ref().unwrap().is_err()));
    sleep(ms(10)).await;
    let replies = futures_util::future::join_all(send_all(100, &client, A)).await;
    assert_eq!(server.times()[1..], [secs(60) + ms(10)]);
    let sent = replies
        .iter()
        .filter(|reply| reply.as_ref().unwrap().is_ok());
    assert_eq!(sent.count(), 1);
    // It was accepted: the scope is open.
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_refused_doubles_the_time_to_the_next() {
    let server = closed_until(secs(3600));
    let (client, _) = client_of(&server, policy());
    let times = knock(&server, &client, secs(3500)).await;
    let due = [0, 60, 120, 240, 480, 960, 1920].map(secs);
    assert_eq!(times.len(), due.len(), "{times:?}");
    for (at, due) in times.iter().zip(due) {
        assert!(*at >= due && *at <= due + secs(2), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn probes_that_teach_nothing_come_no_more_often() {
    for answer in [|| status(500, ""), failed, || status(403, "")] {
        let server = Server::new(ms(10), move |send| match send.nth {
            0 => refusal(3600),
            _ => answer(),
        });
        let (client, _) = client_of(&server, policy());
        let times = knock(&server, &client, secs(3500)).await;
        let due = [0, 60, 120, 240, 480, 960, 1920].map(secs);
        assert_eq!(times.len(), due.len(), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_its_end_it_is_waited_for_no_more() {
    let server = closed_until(secs(3600));
    let (client, _) = client_of(&server, policy());
    let _ = client.clone().oneshot(get(A)).await;
    sleep(secs(3600)).await;
    assert_eq!(statuses(send_all(20, &client, A)).await, [200; 20]);
}

#[tokio::test(start_paused = true)]
async fn towards_its_end_it_is_waited_out() {
    let server = closed_until(secs(100));
    let (client, _) = client_of(&server, policy());
    let layer_probe = client.clone().oneshot(get(A)).await;
    assert_eq!(status_of(&layer_probe), 429);
    let calls = |n| send_all(n, &client, A);
    sleep(secs(3541)).await;
    assert_eq!(statuses(calls(5)).await, [200; 5]);
}

#[tokio::test(start_paused = true)]
async fn a_ban_is_never_probed_early() {
    let server = closed_until(secs(3600));
    let layer = RetryAfterLayer::new().policy(policy());
    let layer = layer.classifier(classify_fn(|head| {
        let wait = head
            .headers
            .get("retry-after")?
            .to_str()
            .ok()?
            .parse()
            .ok()?;
        let hint = Hint::new(secs(wait), "retry-after");
        let throttle = Throttle::new(ThrottleKind::RateLimited).hint(hint);
        Some(throttle.ban(true).into())
    }));
    let client = layer.layer(server.clone());
    let times = knock(&server, &client, secs(3539)).await;
    assert_eq!(times.len(), 1, "{times:?}");
    let times = knock(&server, &client, secs(3620)).await;
    assert!(times.len() > 2, "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_already_are_sent_back_when_a_pause_becomes_too_long() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        1 => refusal(3600),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    let (probe, waiting) = (send(&client, get(A)), send(&client, get(A)));
    // The one that was sent has its last answer, the other never had one.
    let refused = reply(refused).await;
    assert_eq!(outcome(&refused).gave_up, Some(Reason::PauseTooLong));
    assert_eq!(text(refused).await, "slow down");
    assert_eq!(
        outcome(&reply(probe).await).gave_up,
        Some(Reason::PauseTooLong)
    );
    let error = reply(waiting).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Paused);
    assert_eq!(error.retry_after(), Some(secs(3600)));
    assert_eq!(server.count(), 2);
}
