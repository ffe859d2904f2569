//! One call that is refused for itself does not close the scope for others.

use tower::ServiceExt as _;
use tower_retry_after::Reason;

use crate::support::*;

const A: &str = "http://a.test/";
const POISON: &str = "http://a.test/poison";

#[tokio::test(start_paused = true)]
async fn one_poisoned_call_closes_the_scope_once() {
    let server = Server::new(ms(10), |send| match &*send.path {
        "/poison" => refusal(2),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, fast());
    let others = client.clone();
    let others = tokio::spawn(async move {
        loop {
            assert_eq!(status_of(&others.clone().oneshot(get(A)).await), 200);
            sleep(ms(40)).await;
        }
    });
    let told = outcome(&client.oneshot(get(POISON)).await);
    others.abort();
    assert_eq!(told.attempts, 4);
    assert_eq!(told.gave_up, Some(Reason::Attempts));
    let times = server.of(|send| send.path == "/");
    let stops = gaps(&times).into_iter().filter(|gap| *gap > ms(100));
    assert_eq!(stops.count(), 1, "{times:?}");
    // It waits alone, no less than it was asked to.
    let own = server.of(|send| send.path == "/poison");
    assert!(gaps(&own).iter().all(|gap| *gap >= ms(2_010)), "{own:?}");
    assert_eq!(told.waited, own[3] - ms(30));
    // Nobody else waits for what it was told.
    let snapshot = layer.scopes().get(scope_of(POISON)).snapshot();
    assert_eq!(snapshot.paused_for.unwrap_or_default(), secs(0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_twice_by_chance_lets_one_other_through() {
    // The second time it is the server that is spent, for five seconds.
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(1),
        2 | 3 => refusal(5),
        _ => ok(),
    });
    let (client, _) = client_of(&server, fast());
    let twice = send(&client, get(POISON));
    sleep(ms(20)).await;
    let others = client.clone();
    let others = tokio::spawn(async move {
        loop {
            assert_eq!(status_of(&others.clone().oneshot(get(A)).await), 200);
            sleep(ms(40)).await;
        }
    });
    assert_eq!(status_of(&reply(twice).await), 200);
    others.abort();
    let sends = server.sends();
    assert_eq!((&*sends[2].path, &*sends[3].path), ("/poison", "/"));
    let told = sends[2].at + ms(10);
    let early = sends.iter().skip(3).filter(|send| send.at < told + secs(5));
    assert_eq!(early.count(), 1, "{sends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_poisoned_call_that_is_told_to_wait_for_too_long_ends() {
    let server = Server::new(ms(10), |send| match &*send.path {
        "/poison" if send.at < secs(1) => refusal(2),
        "/poison" => refusal(1000),
        _ => ok(),
    });
    let (client, _) = client_of(&server, fast());
    let poisoned = send(&client, get(POISON));
    sleep(ms(20)).await;
    // The probe, which is accepted.
    let other = send(&client, get(A));
    let poisoned = reply(poisoned).await;
    assert_eq!(outcome(&poisoned).gave_up, Some(Reason::PauseTooLong));
    assert_eq!(status_of(&reply(other).await), 200);
    // The others go on.
    let began = server.now();
    assert_eq!(status_of(&client.oneshot(get(A)).await), 200);
    assert_eq!(server.now(), began + ms(10));
}

#[tokio::test(start_paused = true)]
async fn refusals_of_many_calls_are_no_poison() {
    // Every second request is refused, whosever it is.
    let server = Server::new(ms(10), |send| match send.nth % 2 {
        0 => refusal(2),
        _ => ok(),
    });
    let (client, _) = client_of(&server, fast());
    let calls = send_all(20, &client, A);
    for call in calls {
        let _ = reply(call).await;
    }
    let times = server.times();
    let refused = server.sends().into_iter().skip(20);
    for send in refused.filter(|send| send.status == 429) {
        let told = send.at + ms(10);
        let pause = times
            .iter()
            .filter(|at| **at > told && **at < told + secs(2));
        assert_eq!(pause.count(), 0, "sent into the pause of {send:?}");
    }
}
