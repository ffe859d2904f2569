//! Slots: how many attempts are in flight at once.

use http_body_util::BodyExt as _;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    RetryAfterLayer,
    law::{Attempt, Law, LawConfig, Rate},
    time::Instant,
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
