//! What is told of a refusal, so that somebody can find out what happened.

#![cfg(all(feature = "providers", feature = "tracing"))]
#![allow(clippy::disallowed_types, reason = "a test has no other clock")]

#[path = "support/mod.rs"]
mod support;

use tower_retry_after::{
    Classifier as _, HttpClassifier, RetryAfterLayer,
    classifier::providers::{Profile, header, json},
};

use self::support::*;

fn layer() -> RetryAfterLayer {
    let acme = Profile::new("acme")
        .host("api.acme.test")
        .code(json("/error/code"))
        .request_id(header("x-trace"));
    RetryAfterLayer::new()
        .policy(policy())
        .classifier(acme.or(HttpClassifier::new().providers()))
        .without_retry()
}

/// What the events of one call say, and its reply.
async fn events(
    uri: &str,
    answer: impl Fn() -> Answer + Sync + std::marker::Send + 'static,
) -> (String, Reply) {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::new(ms(1), move |_| answer());
    let client: Client = tower::Layer::layer(&layer(), server);
    let reply = send(&client, get(uri)).await.unwrap();
    (log.text(), reply)
}

#[tokio::test(start_paused = true)]
async fn of_an_unknown_429_there_is_enough_to_write_a_profile() {
    let refused = || {
        status(
            429,
            "<p>\u{1b}[31mgo away, and stay away for as long as you can, and longer</p>",
        )
        .header("content-type", "text/html; charset=utf-8")
    };
    let (log, _) = events("http://api.other.test/", refused).await;
    for told in [
        "status=429",
        "content_type=\"text/html; charset=utf-8\"",
        "sample=\"<p>\\x1b[31mgo away, and stay away for as long as you can, and lo\"",
    ] {
        assert!(log.contains(told), "{told} in {log}");
    }
    // A server's text is never told whole, nor of what is understood.
    assert!(!log.contains("longer"), "{log}");
    let understood = move || refused().header("retry-after", "7");
    let (log, _) = events("http://api.other.test/", understood).await;
    assert!(
        !log.contains("content_type") && !log.contains("sample"),
        "{log}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_services_code_and_request_id_are_told_to_the_caller_and_in_events() {
    let refused = || status(429, r#"{"error":{"code":"SLOW"}}"#).header("x-trace", "7f3a");
    let (log, reply) = events("http://api.acme.test/", refused).await;
    let outcome = outcome(&reply);
    assert_eq!(outcome.code.as_deref(), Some("SLOW"));
    assert_eq!(outcome.request_id.as_deref(), Some("7f3a"));
    assert!(
        log.contains("code=\"SLOW\"") && log.contains("request_id=\"7f3a\""),
        "{log}"
    );
}
