//! How those who waited are let go.

use std::time::Duration;

use tower::Layer as _;
use tower_retry_after::{Aimd, Fixed, Learned, Policy, RetryAfterLayer};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn the_probe_goes_alone_and_the_others_follow_its_success() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => ok().after(ms(690)),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let mut calls = send_all(1, &client, A);
    sleep(ms(20)).await;
    calls.extend(send_all(9, &client, A));
    assert_eq!(statuses(calls).await, [200; 10]);
    let times = server.times();
    assert!(times[1] >= ms(10) + secs(2), "{times:?}");
    assert!(times[2] >= times[1] + ms(700), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_law_a_hundred_go_evenly_over_the_spread() {
    // A tenth of the pause, half a second at least, eight at most.
    for (pause, spread) in [(1, ms(500)), (20, secs(2)), (59, ms(5_900)), (100, secs(8))] {
        let server = Server::new(ms(10), |_| ok());
        let (client, layer) = client_of(&server, policy().max_pause(secs(100)));
        layer.scopes().get(scope_of(A)).pause_for(secs(pause));
        assert_eq!(statuses(send_all(100, &client, A)).await, [200; 100]);
        assert_even(&server.times(), secs(pause), spread);
    }
}

/// They begin at `from`, and are as far apart as it takes to fill `spread`.
#[track_caller]
fn assert_even(times: &[Duration], from: Duration, spread: Duration) {
    let every = spread / u32::try_from(times.len()).unwrap();
    for (nth, at) in times.iter().enumerate() {
        let due = from + every * u32::try_from(nth).unwrap();
        // Tokio's timers have a grain of a millisecond.
        assert!(
            *at >= due && *at <= due + ms(1),
            "{nth} at {at:?}, due at {due:?}"
        );
    }
    let cluster = gaps(times).into_iter().find(|gap| *gap < ms(1));
    assert_eq!(cluster, None, "two in one millisecond");
}

#[tokio::test(start_paused = true)]
async fn one_who_arrives_during_a_ramp_goes_last() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    layer.scopes().get(scope_of(A)).pause_for(secs(20));
    let calls = send_all(100, &client, A);
    sleep(secs(21)).await;
    assert!(server.count() < 60);
    let last = send(&client, get("http://a.test/last"));
    assert_eq!(statuses(calls).await, [200; 100]);
    assert_eq!(status_of(&reply(last).await), 200);
    assert_eq!(server.sends()[100].path, "/last");
}

#[tokio::test(start_paused = true)]
async fn with_a_law_awake_they_go_at_its_rate() {
    for rate in [2_u32, 20, 500] {
        let server = Server::new(ms(10), |send| match send.nth {
            0 => refusal(2),
            _ => ok(),
        });
        let law = Fixed::per_second(rate.into());
        let (client, _) = client_of(&server, policy().law(law));
        let mut calls = send_all(1, &client, A);
        sleep(ms(20)).await;
        calls.extend(send_all(100, &client, A));
        assert_eq!(statuses(calls).await, [200; 101]);
        let times = server.times();
        // Where the ramp begins is drawn, within half a second's first half.
        let every = secs(1) / rate;
        let begins = times[2] - every;
        let answered = times[1] + ms(10);
        assert!(
            begins >= answered && begins <= answered + ms(251),
            "{times:?}"
        );
        for (nth, at) in times[2..].iter().enumerate() {
            let due = begins + secs(1) * u32::try_from(nth + 1).unwrap() / rate - ms(1);
            assert!(
                *at >= due && *at <= due + ms(2),
                "{nth} at {at:?}, due at {due:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_goes_when_the_server_said_and_the_others_of_several_processes_disperse() {
    let due = ms(10) + secs(30);
    let mut starts = Vec::new();
    for seed in 0..50 {
        let server = Server::new(ms(10), |send| match send.nth {
            0 => refusal(30),
            _ => ok(),
        });
        let (client, _) = client_of(&server, policy().seed(seed));
        let mut calls = send_all(1, &client, A);
        sleep(ms(20)).await;
        calls.extend(send_all(1, &client, A));
        assert_eq!(statuses(calls).await, [200; 2]);
        let times = server.times();
        assert!(times[1] >= due && times[1] <= due + ms(1), "{times:?}");
        starts.push(times[2]);
    }
    // The spread of 30 s is 3 s, and they start within the first half of it:
    // some in each quarter second.
    for quarter in 0..6 {
        let from = due + ms(250) * quarter;
        let within = starts
            .iter()
            .filter(|at| **at >= from && **at <= from + ms(250));
        assert!(within.count() > 0, "nobody from {from:?} on: {starts:?}");
    }
    assert!(
        starts
            .iter()
            .all(|at| *at >= due && *at <= due + ms(1_500) + ms(1))
    );
}

#[tokio::test(start_paused = true)]
async fn they_go_in_the_order_in_which_their_calls_arrived() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let mut calls = vec![send(&client, get("http://a.test/0"))];
    for nth in 1..20 {
        sleep(ms(20)).await;
        calls.push(send(&client, get(&format!("http://a.test/{nth}"))));
    }
    assert_eq!(statuses(calls).await, [200; 20]);
    let order: Vec<String> = server.sends().into_iter().map(|send| send.path).collect();
    // The probe is the first that was not refused; then the refused call, which
    // came first.
    let mut expected = vec!["/0".to_owned(), "/1".to_owned(), "/0".to_owned()];
    expected.extend((2..20).map(|nth| format!("/{nth}")));
    assert_eq!(order, expected);
}

#[tokio::test(start_paused = true)]
async fn where_a_server_is_believed_nobody_waits_for_the_answer_of_the_first() {
    // Every other request is refused for five seconds, and then truly served.
    let server = Server::new(ms(10), |send| match send.nth {
        0 | 2 | 4 | 6 => refusal(5),
        7 => ok().after(secs(30)),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy().law(Fixed::per_second(1000.0)));
    for _ in 0..3 {
        assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
        sleep(secs(1)).await;
    }
    let mut calls = send_all(1, &client, A);
    sleep(ms(20)).await;
    calls.extend(send_all(9, &client, A));
    assert_eq!(statuses(calls).await, [200; 10]);
    let times = server.times();
    let due = times[6] + ms(10) + secs(5);
    assert!(times[7] >= due && times[7] <= due + ms(1), "{times:?}");
    // Half a second's first half, and the rate.
    assert!(times[8] <= due + ms(253), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn no_law_lets_them_go_in_a_cluster() {
    let laws: [fn() -> Policy; 3] = [
        policy,
        || policy().law(Aimd::per_second(100.0)),
        || policy().law(Learned::slow_start()),
    ];
    for policy in laws {
        for pause in [2, 30] {
            let server = Server::new(ms(10), move |send| match send.nth {
                0 => refusal(pause),
                _ => ok(),
            });
            let (client, _) = client_of(&server, policy());
            let mut calls = send_all(1, &client, A);
            sleep(ms(20)).await;
            calls.extend(send_all(100, &client, A));
            assert_eq!(statuses(calls).await, [200; 101]);
            let gaps = gaps(&server.times()[1..]);
            // Not two in one millisecond, and the probe has answered before.
            assert!(gaps.iter().all(|gap| *gap >= ms(1)), "{gaps:?}");
            assert!(gaps[0] >= ms(10), "{gaps:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn children_of_a_paused_parent_are_no_cluster_either() {
    let server = Server::new(ms(10), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    layer.scopes().get("host").pause_for(secs(20));
    let paths = (0..100).map(|nth| format!("http://a.test/host/{}", nth % 50));
    let calls = paths.map(|path| send(&client, get(&path))).collect();
    assert_eq!(statuses(calls).await, [200; 100]);
    assert_even(&server.times(), secs(20), secs(2));
}
