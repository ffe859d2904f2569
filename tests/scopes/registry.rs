//! The registry: bounded, and swept of what nobody uses.

use tower::Layer as _;
use tower_retry_after::{RetryAfterLayer, ScopeKey, Scopes};

use crate::support::*;

fn keys(scopes: &Scopes) -> Vec<String> {
    let mut keys: Vec<String> = scopes
        .snapshot()
        .iter()
        .map(|scope| scope.key.to_string())
        .collect();
    keys.sort();
    keys
}

fn tenant(nth: usize) -> ScopeKey<'static> {
    ScopeKey::new("host").and(format!("t{nth}")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn hostile_keys_neither_grow_it_nor_push_others_out() {
    let scopes = Scopes::new(policy().max_scopes(10));
    let known: Vec<_> = (0..9).map(|nth| scopes.get(tenant(nth))).collect();
    assert_eq!(scopes.len(), 10, "the host and its tenants");
    for nth in 9..1000 {
        let key = scopes.get(tenant(nth)).key();
        assert_eq!(key.to_string(), "host/*");
    }
    assert_eq!(scopes.len(), 11);
    for (nth, handle) in known.iter().enumerate() {
        assert_eq!(handle.key(), tenant(nth));
        assert_eq!(scopes.get(tenant(nth)).key(), tenant(nth));
    }
    // And hosts that nobody knows.
    for nth in 0..1000 {
        let deep = ScopeKey::new(format!("h{nth}")).and("x").unwrap();
        assert_eq!(scopes.get(deep).key().to_string(), "*");
    }
    assert_eq!(scopes.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn those_who_found_no_place_are_paused_together_and_apart_from_the_known() {
    let server = Server::new(ms(10), |_| ok());
    let policy = policy().max_scopes(2);
    let layer = by_path(RetryAfterLayer::new().policy(policy));
    let client = layer.layer(server.clone());
    let get = |path| get(&format!("http://a.test/{path}"));
    let calls = vec![send(&client, get("host/known"))];
    assert_eq!(statuses(calls).await, [200]);
    layer.scopes().get(tenant(1)).pause_for(secs(5));
    let calls = ["host/t2", "host/known", "host"].map(|path| send(&client, get(path)));
    assert_eq!(statuses(calls.into()).await, [200; 3]);
    assert!(server.of(|send| send.path == "/host/t2")[0] >= secs(5));
    assert!(
        server
            .of(|send| send.path != "/host/t2")
            .iter()
            .all(|at| *at < secs(1))
    );
}

#[tokio::test(start_paused = true)]
async fn idle_scopes_are_forgotten_when_new_ones_come() {
    let scopes = Scopes::new(policy().idle(secs(60)));
    for nth in 0..100 {
        scopes.get(tenant(nth));
    }
    assert_eq!(scopes.len(), 101);
    sleep(secs(59)).await;
    scopes.get(tenant(7));
    assert_eq!(scopes.len(), 101, "they are not idle yet");
    sleep(secs(10)).await;
    for nth in 0..1000 {
        scopes.get(ScopeKey::new(format!("new{nth}")));
    }
    assert_eq!(scopes.len(), 1002);
    let keys = keys(&scopes);
    assert!(keys.contains(&"host/t7".to_owned()), "it was used again");
    assert!(!keys.contains(&"host/t8".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_full_registry_makes_room_by_what_is_idle_wherever_that_is() {
    for most in [1, 2, 5, 50] {
        let scopes = Scopes::new(policy().max_scopes(most).idle(secs(60)));
        for nth in 0..most {
            scopes.get(ScopeKey::new(format!("old{nth}")));
        }
        assert_eq!(scopes.get("late").key().to_string(), "*");
        sleep(secs(61)).await;
        for nth in 0..most {
            let key = ScopeKey::new(format!("new{nth}"));
            assert_eq!(scopes.get(key.clone()).key(), key, "of {most}");
        }
        assert_eq!(scopes.get("later").key().to_string(), "*");
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_holds_is_not_forgotten() {
    let server = Server::new(ms(10), |send| match &*send.path {
        "/refused" => refusal(50),
        "/flying" => never(),
        "/streaming" => endless(),
        _ => ok(),
    });
    let layer = by_path(RetryAfterLayer::new().policy(fast().idle(secs(1))));
    let client = layer.layer(server.clone());
    let scopes = layer.scopes();
    let call = |path| send(&client, get(&format!("http://a.test/{path}")));
    let _held = scopes.get("handle");
    scopes.get("paused").pause_for(secs(30));
    scopes.get("waiting").pause_for(secs(30));
    let _calls = ["waiting", "refused", "flying"].map(call);
    drop(reply(call("idle")).await);
    let body = reply(call("streaming")).await.unwrap();
    scopes.get("parent");
    let _child = scopes.get(ScopeKey::new("parent").and("child").unwrap());
    drop(client);
    sleep(secs(10)).await;
    for nth in 0..1000 {
        scopes.get(ScopeKey::new(format!("new{nth}")));
    }
    let mut kept = keys(&scopes);
    kept.retain(|key| !key.starts_with("new"));
    let expected = [
        "flying",
        "handle",
        "parent",
        "parent/child",
        "paused",
        "refused",
        "streaming",
        "waiting",
    ];
    assert_eq!(kept, expected);
    drop(body);
}

#[tokio::test(start_paused = true)]
async fn a_scope_begins_anew_once_it_was_forgotten() {
    let scopes = Scopes::new(policy().idle(secs(60)));
    scopes.get("a").set_rate(5.0);
    assert_eq!(scopes.get("a").snapshot().rate, Some(5.0));
    sleep(secs(59)).await;
    // A handle is a use of the scope.
    scopes.get("a");
    sleep(secs(59)).await;
    sweep(&scopes, "first");
    assert_eq!(scopes.get("a").snapshot().rate, Some(5.0));
    sleep(secs(61)).await;
    sweep(&scopes, "second");
    assert_eq!(scopes.get("a").snapshot().rate, None);
}

/// Makes so many new scopes that every shard is looked through.
fn sweep(scopes: &Scopes, name: &str) {
    for nth in 0..500 {
        scopes.get(ScopeKey::new(format!("{name}{nth}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_registry_without_any_place_still_works() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => ok(),
    });
    let (client, layer) = client_of(&server, policy().max_scopes(0));
    let mut calls = send_all(1, &client, "http://a.test/");
    sleep(ms(20)).await;
    calls.extend(send_all(1, &client, "http://b.test/"));
    assert_eq!(statuses(calls).await, [200; 2]);
    assert!(server.times()[1] >= ms(10) + secs(2));
    assert_eq!(layer.scopes().len(), 1);
}
