//! Slots: how many attempts are in flight at once.

use std::{sync::Mutex, time::Duration};

use http_body_util::BodyExt as _;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    RetryAfterLayer, Verdict, classify_fn,
    law::{Attempt, Law, LawConfig, Rate},
    time::Instant,
    verdict::ThrottleKind,
};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_are_in_flight_and_the_next_goes_at_once() {
    let server = Server::new(secs(1), |_| ok());
    let (client, _) = client_of(&server, policy().max_in_flight(3));
    let calls = (0..10).map(|_| async { text(client.clone().oneshot(get(A)).await).await });
    futures_util::future::join_all(calls).await;
    let times = server.times();
    for (nth, at) in times.iter().enumerate() {
        let due = secs(nth as u64 / 3);
        assert!(*at >= due && *at <= due + ms(4), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_takes_a_slot_of_each_level_of_its_scope() {
    let server = Server::new(secs(1), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy().max_in_flight(2)));
    let client = layer.layer(server.clone());
    let paths = ["host", "host/a", "host/a", "host/b", "host/b"];
    // The host is asked for itself, so that it is limited too.
    let calls = paths.map(|path| {
        let client = client.clone();
        async move { text(client.oneshot(get(&format!("http://x.test/{path}"))).await).await }
    });
    futures_util::future::join_all(calls).await;
    let times = server.times();
    for (at, due) in times.iter().zip([0, 0, 1, 1, 2].map(secs)) {
        assert!(*at >= due && *at <= due + ms(2), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_reads_holds_its_slot_for_half_a_minute() {
    let server = Server::new(secs(1), |_| ok());
    let (client, layer) = client_of(&server, policy().max_in_flight(2));
    // The third waits already when the answers come that will not be read.
    let mut calls = send_all(3, &client, A);
    let third = calls.pop().unwrap();
    let unread = [reply(calls.remove(0)).await, reply(calls.remove(0)).await];
    drop(reply(third).await.unwrap());
    let at = server.times()[2];
    assert!(at >= secs(31) && at <= secs(31) + ms(2), "{at:?}");
    // Reading them late gives back nothing twice.
    for answer in unread {
        assert_eq!(text(answer).await, "ok");
    }
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!(snapshot.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_read_holds_its_slot_as_long_as_it_streams() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => endless(),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy().max_in_flight(1));
    let mut stream = reply(send(&client, get(A))).await.unwrap().into_body();
    let waits = send(&client, get(A));
    // A frame each second.
    for _ in 0..100 {
        stream.frame().await.unwrap().unwrap();
    }
    assert_eq!(server.count(), 1);
    let began = server.now();
    drop(stream);
    assert_eq!(statuses(vec![waits]).await, [200]);
    assert_eq!(server.times()[1], began);
}

/// A server that serves `most` at once, each for a second, and refuses the
/// next at once, without saying until when; and the most that it was sent at
/// once.
fn serves(most: usize) -> (Server, impl Fn() -> usize) {
    let busy = std::sync::Arc::new(Mutex::new((Vec::<Duration>::new(), 0)));
    let seen = std::sync::Arc::clone(&busy);
    let server = Server::new(ms(10), move |send| {
        let (until, peak) = &mut *busy.lock().unwrap();
        until.retain(|until| *until > send.at);
        *peak = (until.len() + 1).max(*peak);
        match until.len() < most {
            true => {
                until.push(send.at + secs(1));
                ok().after(ms(990))
            }
            false => status(429, "too many at once"),
        }
    });
    (server, move || std::mem::take(&mut seen.lock().unwrap().1))
}

/// Every refusal is about what is in flight.
fn concurrent(layer: RetryAfterLayer) -> RetryAfterLayer {
    layer.classifier(classify_fn(|head| {
        let verdict = Verdict::throttled(ThrottleKind::ConcurrencyLimited);
        (head.status == 429).then_some(verdict)
    }))
}

/// Forty callers that call again as soon as they have an answer, until `end`.
async fn saturate(server: &Server, client: &Client, end: Duration) {
    let callers = (0..40).map(|_| async {
        while server.now() < end {
            let reply = client.clone().oneshot(get(A)).await.unwrap();
            reply.into_body().collect().await.unwrap();
        }
    });
    futures_util::future::join_all(callers).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_serves_eight_at_once_is_soon_sent_no_more() {
    let (server, peak) = serves(8);
    let layer = concurrent(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    saturate(&server, &client, secs(60)).await;
    peak();
    let (count, began) = (server.count(), server.now());
    saturate(&server, &client, began + secs(200)).await;
    assert!(peak() <= 9, "more than one beyond what is served is tried");
    let later = server.sends().split_off(count);
    let refused = later.iter().filter(|send| send.status == 429).count();
    assert!(refused * 100 <= later.len(), "{refused} of {}", later.len());
    // All eight are used, but for the time in which a slot changes hands.
    assert!(later.len() > 8 * 200 * 9 / 10, "{} sent", later.len());
    let snapshot = layer.scopes().get(scope_of(A)).snapshot();
    assert_eq!(snapshot.rate, None, "it is no limit on the rate");
    assert!(matches!(snapshot.limit, Some(8 | 9)), "{snapshot:?}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_was_set_is_never_raised_by_one_that_is_learned() {
    let (server, peak) = serves(2);
    let layer = concurrent(RetryAfterLayer::new().policy(policy().max_in_flight(4)));
    let client = layer.layer(server.clone());
    saturate(&server, &client, secs(300)).await;
    assert!(peak() <= 4, "the limit that was set");
    // The server has room now for as many as there are callers.
    let (roomy, peak) = serves(1_000);
    let client = layer.layer(roomy.clone());
    saturate(&roomy, &client, secs(600)).await;
    assert_eq!(peak(), 4);
}

/// Lets nothing be in flight, as it says.
#[derive(Debug)]
struct Shut;

impl Law for Shut {
    fn on_attempt(&mut self, _: &Attempt) {}

    fn set_rate(&mut self, _: Instant, _: Rate) {}

    fn rate(&mut self, _: Instant) -> Rate {
        Rate::FASTEST
    }

    fn limit(&mut self, _: Instant) -> Option<u32> {
        Some(0)
    }
}

impl LawConfig for Shut {
    fn start(&self) -> Option<Rate> {
        Some(Rate::FASTEST)
    }

    fn build(&self, _: Instant, _: Rate) -> Box<dyn Law> {
        Box::new(Self)
    }
}

#[tokio::test(start_paused = true)]
async fn a_law_that_allows_none_in_flight_stops_nobody() {
    let server = Server::new(secs(1), |_| ok());
    let (client, _) = client_of(&server, policy().law(Shut));
    assert_eq!(statuses(send_all(3, &client, A)).await, [200; 3]);
    assert!(gaps(&server.times()).iter().all(|gap| *gap >= secs(1)));
}

#[tokio::test(start_paused = true)]
async fn a_body_left_unread_before_there_was_a_limit_gives_its_slot_back_too() {
    let server = Server::new(ms(10), |send| match send.nth {
        10 => status(429, "too many at once"),
        _ => ok(),
    });
    let layer = concurrent(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    let mut left = Vec::new();
    for _ in 0..10 {
        left.push(client.clone().oneshot(get(A)).await.unwrap());
    }
    let call = send(&client, get(A));
    sleep(secs(20)).await;
    assert_eq!(server.count(), 11, "ten are held, and more are refused");
    let scope = layer.scopes().get(scope_of(A));
    assert_eq!(scope.snapshot().limit, Some(10));
    assert_eq!(statuses(vec![call]).await, [200]);
    drop(left);
    assert_eq!(scope.snapshot().in_flight, 0);
}
