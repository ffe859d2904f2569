//! Which calls share a scope.

use http::{Request, Uri};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{RetryAfterLayer, ScopeKey, Scopes};

use crate::support::*;

/// A client by a layer of which `key` is paused for five seconds.
fn paused(server: &Server, layer: RetryAfterLayer, key: ScopeKey<'static>) -> Client {
    layer.scopes().get(key).pause_for(secs(5));
    layer.layer(server.clone())
}

/// Whether a call of `request` waits.
async fn waits(server: &Server, client: &Client, request: Request<Body>) -> bool {
    let count = server.count();
    let call = send(client, request);
    tokio::task::yield_now().await;
    let waits = server.count() == count;
    call.abort();
    waits
}

#[tokio::test(start_paused = true)]
async fn a_host_is_one_scope_however_it_is_spelled() {
    let server = Server::new(ms(10), |_| ok());
    let layer = RetryAfterLayer::new().policy(policy());
    let client = paused(&server, layer, scope_of("https://api.test/"));
    for (uri, same) in [
        ("https://api.test/", true),
        ("https://API.Test/x?y=z", true),
        ("https://api.test:443/", true),
        ("HTTPS://user:pass@api.test/", true),
        ("https://api.test:8443/", false),
        ("http://api.test/", false),
        ("http://api.test:443/", false),
        ("https://www.api.test/", false),
    ] {
        // Twice, for the second time the client has its scope at hand.
        for _ in 0..2 {
            assert_eq!(waits(&server, &client, get(uri)).await, same, "{uri}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_host_header_names_the_scope_of_a_uri_without_host() {
    let server = Server::new(ms(10), |_| ok());
    let layer = RetryAfterLayer::new().policy(policy());
    let client = paused(&server, layer, scope_of("http://api.test/"));
    for (host, same) in [("api.test", true), ("API.test:80", true), ("b.test", false)] {
        let request = Request::get("/x").header("host", host);
        let request = request.body(Body::default()).unwrap();
        assert_eq!(waits(&server, &client, request).await, same, "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_name_no_host_at_all_share_one_scope() {
    let server = Server::new(ms(10), |_| ok());
    let layer = RetryAfterLayer::new().policy(policy());
    let client = paused(&server, layer, ScopeKey::new("-"));
    assert!(waits(&server, &client, get("/x")).await);
    assert!(waits(&server, &client, get("/y")).await);
    assert!(!waits(&server, &client, get("http://api.test/")).await);
}

#[tokio::test(start_paused = true)]
async fn a_function_names_scopes_and_the_host_stands_in_where_it_does_not() {
    let server = Server::new(ms(10), |_| ok());
    let layer = RetryAfterLayer::new().policy(policy());
    let layer = layer.scope_fn(|head| {
        let model = head.headers().get("x-model")?.to_str().ok()?;
        ScopeKey::host(head)?.and(model)
    });
    let key = scope_of("http://api.test/").and("small").unwrap();
    let client = paused(&server, layer, key);
    for (model, same) in [(Some("small"), true), (Some("large"), false), (None, false)] {
        let mut request = get("http://api.test/");
        if let Some(model) = model {
            request
                .headers_mut()
                .insert("x-model", model.parse().unwrap());
        }
        assert_eq!(waits(&server, &client, request).await, same, "{model:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_longer_than_four_is_no_key_and_the_host_stands_in() {
    let server = Server::new(ms(10), |_| ok());
    let layer = by_path(RetryAfterLayer::new().policy(policy()));
    let client = paused(&server, layer, scope_of("http://api.test/"));
    assert!(!waits(&server, &client, get("http://api.test/1/2/3/4")).await);
    assert!(waits(&server, &client, get("http://api.test/1/2/3/4/5")).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_one_in_text_is_two_in_segments() {
    let scopes = Scopes::new(policy());
    let joined = ScopeKey::new("a/b");
    let path = ScopeKey::new("a").and("b").unwrap();
    assert_ne!(joined, path);
    scopes.get(joined.clone()).pause_for(secs(5));
    assert_eq!(scopes.get(joined).snapshot().paused_for, Some(secs(5)));
    assert_eq!(scopes.get(path).snapshot().paused_for, None);
}

#[tokio::test(start_paused = true)]
async fn layers_share_scopes_and_their_policy_if_they_are_given_the_same() {
    let server = Server::new(ms(10), |_| refusal(0));
    let scopes = Scopes::new(policy().min_pause(secs(7)));
    let one = RetryAfterLayer::with_scopes(scopes.clone()).max_attempts(2);
    let other = RetryAfterLayer::with_scopes(scopes.clone());
    let uri = "http://a.test/";
    let _ = one.layer(server.clone()).oneshot(get(uri)).await.unwrap();
    assert!(gaps(&server.times())[0] >= secs(7));
    assert!(waits(&server, &other.layer(server.clone()), get(uri)).await);
    assert_eq!(scopes.snapshot().len(), 1);
    // A layer made anew has scopes of its own, and so has one that changes
    // what scopes obey.
    for apart in [RetryAfterLayer::new(), one.max_pause(secs(9))] {
        assert!(!waits(&server, &apart.layer(server.clone()), get(uri)).await);
    }
}

#[tokio::test(start_paused = true)]
async fn layers_made_of_one_share_its_scopes_whatever_their_calls_may_do() {
    let server = Server::new(ms(10), |_| ok());
    let base = RetryAfterLayer::new();
    // Whether the scopes were asked for before or not.
    let before = base.clone().deadline(secs(60));
    let scopes = base.scopes();
    let after = base.clone().without_retry();
    scopes
        .get(scope_of("http://a.test/"))
        .pause_for(secs(100_000));
    for layer in [base, before, after] {
        let error = layer
            .layer(server.clone())
            .oneshot(get("http://a.test/"))
            .await;
        assert!(error.unwrap_err().is_refusal());
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_can_be_named_without_a_request() {
    let server = Server::new(ms(10), |_| ok());
    let (client, layer) = client_of(&server, policy());
    let scopes = layer.scopes();
    let uri = Uri::from_static("HTTP://user@A.test:80/any?thing");
    // What looks the same is another scope.
    scopes.get("http://a.test").pause_for(secs(5));
    assert!(!waits(&server, &client, get("http://a.test/")).await);
    scopes
        .get(ScopeKey::host_of(&uri).unwrap())
        .pause_for(secs(5));
    assert!(waits(&server, &client, get("http://a.test/")).await);
    assert_eq!(ScopeKey::host_of(&Uri::from_static("/path")), None);
}
