//! Hints of nothing: never a hot loop.

use tower_retry_after::Reason;

use crate::support::*;

const A: &str = "http://a.test/";

/// A `Retry-After` by which the server asks for no wait, or for none that can
/// be read.
const NOTHING: [&str; 10] = [
    "0",
    "0.0",
    "0.001",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "-1",
    "",
    "soon",
    "NaN",
    "1e-9",
    "99999999999999999999999999999999999999x",
];

#[tokio::test(start_paused = true)]
async fn a_hint_of_nothing_gives_one_send_for_each_pause_and_the_pauses_grow() {
    for hint in NOTHING {
        let server = Server::new(ms(10), move |_| refusal(hint));
        let (client, _) = client_of(&server, policy());
        let mut calls = send_all(1, &client, A);
        sleep(ms(20)).await;
        calls.extend(send_all(5, &client, A));
        assert_eq!(statuses(calls).await, [429; 6], "{hint:?}");
        let gaps = gaps(&server.times());
        assert_eq!(gaps.len(), 23, "{hint:?}");
        let mut least = secs(1);
        for gap in &gaps {
            assert!(*gap >= least, "{hint:?}: {gaps:?}");
            // The own backoff, its jitter and the start of the ramp.
            assert!(
                *gap <= least + least.min(secs(8)) + secs(8),
                "{hint:?}: {gaps:?}"
            );
            least = (least * 2).min(secs(30));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_too_small_grows_into_the_own_backoff() {
    let server = Server::new(ms(10), |_| refusal(1));
    let (client, _) = client_of(&server, policy());
    let replies = futures_util::future::join_all(send_all(2, &client, A)).await;
    for reply in replies {
        assert_eq!(outcome(&reply.unwrap()).gave_up, Some(Reason::Attempts));
    }
    let times = server.times();
    for (nth, gap) in gaps(&times[1..]).iter().enumerate() {
        assert!(*gap >= secs(1 << nth.min(4)), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_ends_the_growing() {
    // Refused three times, then accepted, again and again.
    let server = Server::new(ms(10), |send| match send.nth % 4 {
        3 => ok(),
        _ => refusal(0),
    });
    let (client, _) = client_of(&server, policy());
    for _ in 0..3 {
        assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    }
    for round in server.times().chunks(4) {
        let gaps = gaps(round);
        assert!(gaps[0] >= secs(1) && gaps[0] <= secs(3), "{gaps:?}");
        assert!(gaps[1] >= secs(2) && gaps[2] >= secs(4), "{gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_shortest_pause_can_be_set_but_never_to_nothing() {
    for least in [ms(0), ms(1), ms(100), secs(5)] {
        let server = Server::new(ms(0), |_| refusal(0));
        let (client, _) = client_of(&server, policy().min_pause(least));
        assert_eq!(statuses(send_all(3, &client, A)).await, [429; 3]);
        let gaps = gaps(&server.times()[2..]);
        assert!(gaps.iter().all(|gap| *gap >= least.max(ms(1))), "{gaps:?}");
    }
}
