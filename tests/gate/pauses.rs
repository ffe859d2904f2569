//! One pause for everybody, never shortened.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    RetryAfterLayer, ScopeKey, Verdict, classify_fn,
    verdict::{Hint, Level, Throttle, ThrottleKind},
};

use crate::support::*;

const A: &str = "http://a.test/";

#[tokio::test(start_paused = true)]
async fn one_refusal_holds_back_clones_other_services_and_other_layers() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => ok(),
    });
    let layer = RetryAfterLayer::new().policy(policy());
    let other = RetryAfterLayer::with_scopes(layer.scopes());
    let client = layer.layer(server.clone());
    let mut calls = vec![send(&client, get(A))];
    sleep(ms(20)).await;
    for _ in 0..3 {
        calls.push(send(&client, get(A)));
        calls.push(send(&layer.layer(server.clone()), get(A)));
        calls.push(send(&other.layer(server.clone()), get(A)));
    }
    assert_eq!(statuses(calls).await, [200; 10]);
    let times = server.times();
    assert_eq!(times.len(), 11);
    assert!(
        times[1..].iter().all(|at| *at >= ms(10) + secs(2)),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn those_in_flight_at_the_refusal_are_held_back_too() {
    let server = Server::new(ms(10), |send| match send.nth {
        0..10 => refusal(2).after(ms(send.nth as u64)),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    assert_eq!(statuses(send_all(10, &client, A)).await, [200; 10]);
    let times = server.times();
    assert_eq!(times.len(), 20);
    // The last of them asked for two seconds from then on.
    assert!(
        times[10..].iter().all(|at| *at >= ms(19) + secs(2)),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn another_host_is_not_delayed_at_all() {
    let server = Server::new(ms(10), |send| match &*send.host {
        "a.test" if send.nth == 0 => refusal(30),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let refused = send(&client, get(A));
    sleep(ms(20)).await;
    let others = ["http://b.test/", "https://a.test/", "http://a.test:81/"];
    for other in others {
        let reply = client.clone().oneshot(get(other)).await;
        assert_eq!(status_of(&reply), 200);
    }
    assert_eq!(server.times()[1..], [ms(20), ms(30), ms(40)]);
    assert_eq!(status_of(&reply(refused).await), 200);
}

#[tokio::test(start_paused = true)]
async fn a_paused_parent_stops_its_children_and_nobody_else() {
    let server = Server::new(ms(10), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    layer.scopes().get("acme").pause_for(secs(5));
    let paths = [
        "acme",
        "acme/search",
        "acme/search/fast",
        "other",
        "other/x",
    ];
    let calls = paths.map(|path| send(&client, get(&format!("http://a.test/{path}"))));
    statuses(calls.into()).await;
    for send in server.sends() {
        match &*send.path {
            "/other" | "/other/x" => assert_eq!(send.at, Duration::ZERO),
            path => assert!(send.at >= secs(5), "{path} at {:?}", send.at),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_child_stops_neither_its_siblings_nor_its_parent() {
    let server = Server::new(ms(10), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    let key = ScopeKey::new("acme").and("search");
    layer.scopes().get(key.unwrap()).pause_for(secs(5));
    let paths = ["acme/search", "acme/search/fast", "acme", "acme/mail"];
    let calls = paths.map(|path| send(&client, get(&format!("http://a.test/{path}"))));
    statuses(calls.into()).await;
    for send in server.sends() {
        match &*send.path {
            "/acme" | "/acme/mail" => assert_eq!(send.at, Duration::ZERO),
            path => assert!(send.at >= secs(5), "{path} at {:?}", send.at),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_pauses_the_level_that_it_names() {
    for (level, held) in [(Level::ROOT, true), (Level::Leaf, false)] {
        let server = Server::new(ms(10), |send| match send.nth {
            0 => bare_refusal(),
            _ => ok(),
        });
        let layer = by_path(RetryAfterLayer::new().policy(policy()));
        let layer = layer.classifier(classify_fn(move |head| {
            let hint = Hint::new(secs(5), "x-test");
            let throttle = Throttle::new(ThrottleKind::RateLimited).hint(hint);
            (head.status == 429).then(|| throttle.level(level).into())
        }));
        let client = layer.layer(server.clone());
        let refused = send(&client, get("http://a.test/acme/search"));
        sleep(ms(20)).await;
        let sibling = send(&client, get("http://a.test/acme/mail"));
        assert_eq!(statuses(vec![refused, sibling]).await, [200; 2]);
        let sibling = server.of(|send| send.path == "/acme/mail")[0];
        match held {
            true => assert!(sibling >= ms(10) + secs(5), "{sibling:?}"),
            false => assert_eq!(sibling, ms(20)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn neither_a_shorter_refusal_nor_a_late_success_shortens_a_pause() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(10),
        1 => refusal(1).after(secs(1)),
        2 => ok().after(secs(2)),
        3 => refusal("0").after(secs(3)),
        4 => bare_refusal().after(secs(4)),
        5 => status(500, "").after(secs(5)),
        6 => failed().after(secs(6)),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let early = send_all(7, &client, A);
    sleep(ms(20)).await;
    let late = send_all(3, &client, A);
    assert_eq!(statuses(late).await, [200; 3]);
    drop(early);
    let times = server.times();
    assert!(
        times[7..].iter().all(|at| *at >= ms(10) + secs(10)),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_layer_does_not_shorten_a_pause() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(10),
        1 => refusal(1).after(secs(1)),
        _ => ok(),
    });
    let layer = RetryAfterLayer::new().policy(policy());
    let other = RetryAfterLayer::with_scopes(layer.scopes());
    let calls = vec![
        send(&layer.layer(server.clone()), get(A)),
        send(&other.layer(server.clone()), get(A)),
    ];
    assert_eq!(statuses(calls).await, [200; 2]);
    let times = server.times();
    assert!(
        times[2..].iter().all(|at| *at >= ms(10) + secs(10)),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_by_hand_and_a_reported_success_do_not_shorten_a_pause() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(10),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    let call = send(&client, get(A));
    sleep(ms(20)).await;
    let handle = layer.scopes().get(scope_of(A));
    handle.pause_for(secs(1));
    handle.report(&Verdict::ACCEPTED);
    handle.report(&Throttle::new(ThrottleKind::Unknown).into());
    assert_eq!(status_of(&reply(call).await), 200);
    assert!(
        server.times()[1] >= ms(10) + secs(10),
        "{:?}",
        server.times()
    );
}

#[tokio::test(start_paused = true)]
async fn a_longer_wait_lengthens_a_pause_whoever_asks_for_it() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => refusal(9).after(secs(1)),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy());
    let calls = send_all(2, &client, A);
    sleep(secs(5)).await;
    let handle = layer.scopes().get(scope_of(A));
    assert_eq!(handle.snapshot().paused_for, Some(secs(5) + ms(10)));
    handle.pause_for(secs(20));
    assert_eq!(statuses(calls).await, [200; 2]);
    assert!(server.times()[2] >= secs(25), "{:?}", server.times());
}

#[tokio::test(start_paused = true)]
async fn nobody_goes_a_nanosecond_early() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    let wait = Duration::from_nanos(1_234_567_891);
    layer.scopes().get(scope_of(A)).pause_for(wait);
    tokio::time::advance(wait - Duration::from_nanos(1)).await;
    let call = send(&client, get(A));
    tokio::task::yield_now().await;
    assert_eq!(server.count(), 0, "it went before its time");
    assert_eq!(status_of(&reply(call).await), 200);
    assert!(server.times()[0] >= wait);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_runs_for_a_century_still_pauses() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    tokio::time::advance(secs(100 * 365 * 86_400)).await;
    let began = server.now();
    layer.scopes().get(scope_of(A)).pause_for(secs(5));
    assert_eq!(statuses(send_all(3, &client, A)).await, [200; 3]);
    let times = server.times();
    assert!(
        times[0] >= began + secs(5) && times[2] <= began + secs(6),
        "{times:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn of_many_waits_asked_for_the_longest_holds_everybody() {
    for seed in 0..100 {
        let mut rng = StdRng::seed_from_u64(seed);
        let answers: Vec<(Duration, Duration)> = (0..20)
            .map(|_| {
                let wait = Duration::from_micros(rng.random_range(3_000_000..12_000_000));
                (ms(rng.random_range(0..3_000)), wait)
            })
            .collect();
        let due = answers.iter().map(|(given, wait)| *given + *wait).max();
        let script = answers.clone();
        let server = Server::new(Duration::ZERO, move |send| match script.get(send.nth) {
            Some((given, wait)) => refusal(wait.as_secs_f64()).after(*given),
            None => ok(),
        });
        let (client, _) = client_of(&server, policy().seed(seed));
        let mut calls = send_all(answers.len(), &client, A);
        tokio::task::yield_now().await;
        // Those who arrive at any time of the pause, and those who met it.
        for _ in 0..10 {
            let (client, at) = (client.clone(), ms(rng.random_range(3_000..6_000)));
            calls.push(tokio::spawn(async move {
                sleep(at).await;
                client.oneshot(get(A)).await
            }));
        }
        assert_eq!(statuses(calls).await, [200; 30]);
        let early = server
            .times()
            .into_iter()
            .skip(20)
            .find(|at| Some(*at) < due);
        assert_eq!(early, None, "due at {due:?}, seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_at_one_level_is_held_by_a_pause_of_another_too() {
    for (first, second) in [("host/a", "host"), ("host", "host/a")] {
        let server = Server::new(ms(10), |_| ok());
        let layer = by_path(RetryAfterLayer::new().policy(policy()));
        let client = layer.layer(server.clone());
        let scope = |path: &str| {
            let mut segments = path.split('/').map(str::to_owned);
            let root = ScopeKey::new(segments.next().unwrap());
            let key = segments.fold(root, |key, segment| key.and(segment).unwrap());
            layer.scopes().get(key)
        };
        scope(first).pause_for(secs(2));
        let call = send(&client, get("http://a.test/host/a"));
        sleep(secs(1)).await;
        scope(second).pause_for(secs(5));
        assert_eq!(statuses(vec![call]).await, [200]);
        assert!(server.times()[0] >= secs(6), "{:?}", server.times());
    }
}

#[tokio::test(start_paused = true)]
async fn children_of_a_paused_parent_go_in_the_order_in_which_they_came() {
    let server = Server::new(ms(10), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = layer.layer(server.clone());
    let root = layer.scopes().get("host");
    let child = layer.scopes().get(ScopeKey::new("host").and("b").unwrap());
    root.pause_for(secs(2));
    // One of them stands in a queue of its own at first.
    child.pause_for(secs(1));
    let mut calls = Vec::new();
    let paths = ["host/a", "host/b", "host", "host/a", "host/b", "host/c"];
    for path in paths {
        calls.push(send(&client, get(&format!("http://a.test/{path}"))));
        sleep(ms(10)).await;
    }
    statuses(calls).await;
    let order: Vec<String> = server.sends().into_iter().map(|send| send.path).collect();
    assert_eq!(order, paths.map(|path| format!("/{path}")));
}
