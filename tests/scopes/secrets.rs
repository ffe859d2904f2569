//! Credentials name scopes and are never shown.

use std::fmt::Debug;

use http::Request;
use tower::{Layer as _, Service as _, ServiceExt as _};
#[cfg(feature = "tracing")]
use tower_retry_after::Verdict;
use tower_retry_after::{RetryAfterLayer, ScopeKey, Scoped, scope_key::SecretKey};

use crate::support::*;

const SECRET: &str = "sk-live-4f9a";

/// A layer with a scope for each API key.
fn by_key() -> RetryAfterLayer {
    RetryAfterLayer::new().policy(policy()).scope_fn(|head| {
        let key = head.headers().get("x-api-key")?;
        ScopeKey::host(head)?.and_secret(key)
    })
}

fn with_key(key: &str) -> Request<Body> {
    let mut request = get("http://a.test/v1?token=sk-in-the-query");
    request
        .headers_mut()
        .insert("x-api-key", key.parse().unwrap());
    request
}

#[tokio::test(start_paused = true)]
async fn each_credential_has_a_scope_of_its_own() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        _ => ok(),
    });
    let layer = by_key();
    let client = layer.layer(server.clone());
    let first = send(&client, with_key(SECRET));
    sleep(ms(20)).await;
    let same = send(&layer.layer(server.clone()), with_key(SECRET));
    let other = send(&client, with_key("sk-live-4f9b"));
    assert_eq!(statuses(vec![first, same, other]).await, [200; 3]);
    let times = server.times();
    assert_eq!(times[1], ms(20), "another tenant does not wait");
    assert!(
        times[2..].iter().all(|at| *at >= ms(10) + secs(5)),
        "{times:?}"
    );
}

#[track_caller]
fn assert_hidden(shown: impl Debug) {
    let shown = format!("{shown:?} {shown:#?}");
    for secret in [SECRET, "sk-in-the-query", "slow down", "order"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_shown_nowhere() {
    let server = Server::new(ms(10), |_| refusal(3600));
    let layer = by_key();
    let client = layer.layer(server.clone());
    let answer = client.clone().oneshot(with_key(SECRET)).await;
    assert_hidden(outcome(&answer));
    assert_hidden(answer.unwrap().into_body());
    let error = client.clone().oneshot(with_key(SECRET)).await.unwrap_err();
    assert_hidden(&error);
    assert_hidden(error.to_string());
    assert_hidden(error.scope());
    let scopes = layer.scopes();
    assert_hidden(scopes.snapshot());
    assert_hidden(&scopes);
    assert_hidden(&layer);
    assert_hidden(error.scope().map(ToString::to_string));
    let key = ScopeKey::secret(SECRET);
    assert_hidden(scopes.get(key.clone()));
    assert_hidden(Scoped::new(
        with_key(SECRET),
        scopes.get(key.clone()).ticket(),
    ));
    assert_hidden(client.clone());
    assert_hidden(client.clone().call(with_key(SECRET)));
    assert_hidden(SecretKey::new(*b"sk-live-4f9a----"));
    assert_hidden(key);
}

#[test]
fn processes_agree_on_a_digest_only_if_they_share_its_key() {
    let host = || ScopeKey::new("a.test");
    let shared = SecretKey::new([7; 16]);
    let shown = host().and_secret_with(&shared, SECRET).unwrap().to_string();
    let other = SecretKey::new([8; 16]);
    assert_ne!(
        shown,
        host().and_secret_with(&other, SECRET).unwrap().to_string()
    );
    // SipHash-2-4 with 128 bits, of this key and this value, wherever it runs.
    assert_eq!(shown, "a.test/#193298712021959773a7be0cec29977f");
}

#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn events_tell_the_scope_and_no_secret() {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => refusal("soon"),
        _ => ok(),
    });
    let layer = by_key();
    let reply = layer.layer(server).oneshot(with_key(SECRET)).await;
    let key = outcome(&reply).scope.unwrap();
    layer.scopes().get(key.clone()).report(&Verdict::throttled(
        tower_retry_after::verdict::ThrottleKind::Unknown,
    ));
    let log = log.text();
    assert!(log.contains("scope paused"), "{log}");
    assert!(log.contains(&key.to_string()), "{log}");
    assert_hidden(log);
}
