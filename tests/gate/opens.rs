//! Between the instant that was asked for and the start of the ramp.

use std::time::Duration;

use tower::{Layer as _, ServiceBuilder, ServiceExt as _};
use tower_retry_after::{
    ClassifyLayer, GateLayer, Scoped, Scopes,
    verdict::{Hint, Throttle, ThrottleKind},
};

use crate::support::*;

const A: &str = "http://a.test/";

/// A refusal that asks for `wait`.
fn throttle(wait: Duration) -> Throttle {
    Throttle::new(ThrottleKind::RateLimited).hint(Hint::new(wait, "retry-after"))
}

#[tokio::test(start_paused = true)]
async fn where_a_server_is_believed_a_first_one_that_says_nothing_delays_nobody() {
    for first in [failed, never, || status(500, "")] {
        // Every other request is refused for five seconds, and then truly served.
        let server = Server::new(ms(10), move |send| match send.nth {
            0 | 2 | 4 | 6 => refusal(5),
            7 => first(),
            _ => ok(),
        });
        // Long enough to be seen: another probe goes only after that.
        let (client, _) = client_of(&server, fast().min_pause(secs(3)));
        for _ in 0..3 {
            assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
            sleep(secs(1)).await;
        }
        let refused = send(&client, get(A));
        sleep(ms(20)).await;
        let probe = send(&client, get(A));
        let others = send_all(9, &client, A);
        sleep(secs(5) + ms(100)).await;
        probe.abort();
        assert_eq!(statuses(others).await, [200; 9]);
        assert_eq!(status_of(&reply(refused).await), 200);
        let times = server.times();
        let due = times[6] + ms(10) + secs(5);
        assert!(times[7] >= due && times[7] <= due + ms(1), "{times:?}");
        // Half a second's first half, and the rate.
        assert!(times[8] <= due + ms(253), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resume_by_hand_waits_for_no_ramp() {
    for seed in 0..10 {
        let server = Server::new(ms(10), |send| match send.nth {
            0 => refusal(50),
            1 => never(),
            _ => ok(),
        });
        let (client, layer) = client_of(&server, fast().seed(seed));
        let refused = send(&client, get(A));
        sleep(ms(20)).await;
        let _probe = send(&client, get(A));
        let others = send_all(3, &client, A);
        sleep(secs(50)).await;
        let resumed = server.now();
        assert_eq!(server.count(), 2);
        layer.scopes().get(scope_of(A)).resume();
        assert_eq!(statuses(others).await, [200; 3]);
        assert_eq!(status_of(&reply(refused).await), 200);
        let times = server.times();
        assert!(times[2] <= resumed + ms(2), "{resumed:?}: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_ended_unnoticed_is_no_part_of_the_next() {
    let scopes = Scopes::new(policy());
    let scope = scopes.get("a");
    scope.pause_for(secs(10));
    sleep(secs(1_000)).await;
    scope.pause_for(secs(5));
    assert_eq!(scope.snapshot().paused, secs(10));
    sleep(secs(1_000)).await;
    // Nor does one lengthen it that was sent before.
    scope.report(&throttle(secs(2)).into());
    assert_eq!(scope.snapshot().paused, secs(15));
    assert_eq!(scope.snapshot().paused_for, Some(secs(2)));
}

#[tokio::test(start_paused = true)]
async fn a_night_in_which_nobody_came_to_prove_it_open_is_no_pause() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => ok(),
    });
    let layer = tower_retry_after::RetryAfterLayer::new().policy(policy());
    let client = layer.clone().max_attempts(1).layer(server.clone());
    assert_eq!(status_of(&client.clone().oneshot(get(A)).await), 429);
    sleep(secs(8 * 3600)).await;
    assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    let paused = layer.scopes().get(scope_of(A)).snapshot().paused;
    assert_eq!(paused, secs(2) + ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_gate_alone_whose_probe_finds_no_slot_lets_nobody_pass() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => never(),
        _ => ok(),
    });
    let scope = Scopes::new(fast().max_in_flight(1)).get("a");
    let client = ServiceBuilder::new()
        .layer(GateLayer::new())
        .layer(ClassifyLayer::default())
        .service(server.clone());
    let send = || {
        let scoped = Scoped::new(get(A), scope.ticket());
        tokio::spawn(client.clone().oneshot(scoped))
    };
    scope.pause_for(secs(1));
    let slot = send();
    sleep(secs(2)).await;
    assert_eq!(server.count(), 1);
    scope.report(&throttle(secs(2)).into());
    sleep(secs(3)).await;
    let calls: Vec<_> = (0..20).map(|_| send()).collect();
    sleep(secs(5)).await;
    assert_eq!(server.count(), 1, "passed a closed gate");
    slot.abort();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().response.status(), 200);
    }
    assert_eq!(server.count(), 21);
}
