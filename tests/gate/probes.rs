//! A probe that gives no answer does not freeze its scope.

use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::support::*;

const A: &str = "http://a.test/";

/// A server that refuses once and gives `probe` to the next.
fn refusing_once(probe: impl Fn() -> Answer + std::marker::Send + Sync + 'static) -> Server {
    Server::new(ms(10), move |send| match send.nth {
        0 => refusal(2),
        1 => probe(),
        _ => ok(),
    })
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_is_followed_by_another() {
    let server = refusing_once(never);
    let (client, _) = client_of(&server, fast());
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    let _hangs = send(&client, get(A));
    let others = send_all(5, &client, A);
    assert_eq!(statuses(others).await, [200; 5]);
    assert_eq!(status_of(&reply(refused).await), 200);
    let times = server.times();
    // Its lease and then the shortest pause.
    assert!(times[2] >= times[1] + secs(2), "{times:?}");
    assert!(times[2] <= times[1] + secs(2) + ms(2), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn its_lease_is_four_times_the_usual_time_to_an_answer() {
    let server = Server::new(secs(2), move |send| match send.nth {
        0..20 => ok(),
        20 => refusal(2),
        21 => never(),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, fast());
    // Something to learn makes the scope watch the time that answers take.
    layer.scopes().get(scope_of(A)).set_rate(100.0);
    for _ in 0..20 {
        assert_eq!(statuses(send_all(1, &client, A)).await, [200]);
    }
    let refused = send(&client, get(A));
    sleep(ms(2_020)).await;
    let _hangs = send(&client, get(A));
    assert_eq!(status_of(&reply(refused).await), 200);
    let times = server.times();
    let lease = times[22] - times[21] - secs(1);
    assert!(lease >= secs(8) && lease <= secs(8) + ms(2), "{lease:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_answers_after_its_lease_still_opens_the_gate() {
    let server = refusing_once(|| ok().after(ms(1_490)));
    let (client, _) = client_of(&server, fast());
    let mut calls = send_all(1, &client, A);
    sleep(ms(20)).await;
    calls.extend(send_all(5, &client, A));
    assert_eq!(statuses(calls).await, [200; 6]);
    let times = server.times();
    assert!(times[2] >= times[1] + ms(1_500), "{times:?}");
    assert!(times[2] < times[1] + secs(2), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_is_followed_by_another() {
    let server = refusing_once(never);
    let (client, _) = client_of(&server, fast());
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    let dropped = send(&client, get(A));
    let others = send_all(5, &client, A);
    sleep(secs(3) - server.now()).await;
    assert_eq!(server.count(), 2);
    dropped.abort();
    assert_eq!(statuses(others).await, [200; 5]);
    assert_eq!(status_of(&reply(refused).await), 200);
    assert!(server.times()[2] >= secs(4), "{:?}", server.times());
    assert!(server.times()[2] <= secs(4) + ms(2), "{:?}", server.times());
}

#[tokio::test(start_paused = true)]
async fn one_that_streams_for_ever_has_opened_the_gate() {
    let server = refusing_once(endless);
    let (client, _) = client_of(&server, fast());
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    let stream = send(&client, get(A));
    let others = send_all(5, &client, A);
    let mut stream = reply(stream).await.unwrap().into_body();
    let reading = tokio::spawn(async move {
        loop {
            stream.frame().await.unwrap().unwrap();
        }
    });
    assert_eq!(statuses(others).await, [200; 5]);
    assert_eq!(status_of(&reply(refused).await), 200);
    assert!(server.now() < secs(5), "{:?}", server.now());
    reading.abort();
}

#[tokio::test(start_paused = true)]
async fn one_whose_stream_nobody_reads_gives_its_only_slot_back() {
    let server = refusing_once(endless);
    let (client, _) = client_of(&server, fast().max_in_flight(1));
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    let stream = send(&client, get(A));
    let others = send_all(5, &client, A);
    let _unread = reply(stream).await.unwrap();
    assert_eq!(statuses(others).await, [200; 5]);
    assert_eq!(status_of(&reply(refused).await), 200);
    let times = server.times();
    assert!(times[2] >= times[1] + secs(30), "{times:?}");
    assert!(times[2] <= times[1] + secs(31), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_of_the_quota_is_followed_by_another() {
    for probe in [failed, || status(500, ""), || status(401, "")] {
        let server = refusing_once(probe);
        let (client, _) = client_of(&server, fast());
        let refused = send(&client, get(A));
        sleep(ms(20)).await;
        let probing = send(&client, get(A));
        let others = send_all(5, &client, A);
        assert_eq!(statuses(others).await, [200; 5]);
        assert_eq!(status_of(&reply(refused).await), 200);
        let _ = reply(probing).await;
        let times = server.times();
        assert!(times[2] >= times[1] + secs(1), "{times:?}");
        assert!(times[2] <= times[1] + secs(1) + ms(12), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_that_hang_one_after_the_other_are_one_for_each_lease() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1..=10 => never(),
        _ => ok(),
    });
    let (client, _) = client_of(&server, fast());
    let mut calls = send_all(1, &client, A);
    sleep(ms(20)).await;
    calls.extend(send_all(20, &client, A));
    sleep(secs(60)).await;
    let gaps = gaps(&server.times()[1..12]);
    assert!(gaps.iter().all(|gap| *gap >= secs(2)), "{gaps:?}");
    let done = calls.iter().filter(|call| call.is_finished()).count();
    assert_eq!(done, 11);
    let _ = client.oneshot(get(A)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_is_accepted_during_a_newer_pause_does_not_end_it() {
    let server = refusing_once(|| ok().after(ms(500)));
    let (client, layer) = client_of(&server, fast());
    let mut calls = send_all(1, &client, A);
    sleep(ms(20)).await;
    calls.extend(send_all(5, &client, A));
    while server.count() < 2 {
        sleep(ms(1)).await;
    }
    // The probe is on its way; its answer tells nothing of what began since.
    let began = server.now();
    layer.scopes().get(scope_of(A)).pause_for(secs(20));
    assert_eq!(statuses(calls).await, [200; 6]);
    let times = server.times();
    assert!(times[2] >= began + secs(20), "{times:?}");
}
