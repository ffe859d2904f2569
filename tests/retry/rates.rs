//! The rate is held just under the quota.

use std::time::Duration;

use tower::ServiceExt as _;
use tower_retry_after::Aimd;

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
