//! What is told of a refusal, so that somebody can find out what happened.

#![cfg(all(feature = "providers", feature = "tracing"))]
#![allow(clippy::disallowed_types, reason = "a test has no other clock")]

#[path = "support/mod.rs"]
mod support;

use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, response::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    CallOptions, Classifier, HttpClassifier, RetryAfterLayer,
    classifier::{
        Phase, Receipt,
        providers::{Profile, header, json},
    },
    verdict::{ThrottleKind, Verdict},
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
    let client: Client = layer().layer(server);
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

#[tokio::test(start_paused = true)]
async fn each_refused_attempt_is_told_with_what_is_done_about_it() {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(5),
        1 => refusal(3600),
        _ => ok(),
    });
    let (client, _) = client_of(&server, policy());
    let mut call = get("http://a.test/");
    call.extensions_mut()
        .insert(CallOptions::new().deadline(secs(60)));
    assert_eq!(client.oneshot(call).await.unwrap().status(), 429);
    let told = log.lines("attempt refused");
    assert_eq!(told.len(), 2, "{told:?}");
    let begins = "message=attempt refused scope=http://a.test:80 call=1";
    for (line, ends) in told.iter().zip([
        "delay.ms=5000 delay.reason=\"obeyed\" delivered=false ",
        "delay.reason=\"obeyed\" gave_up=\"pause_too_long\" delivered=false ",
    ]) {
        assert!(line.starts_with(begins), "{line}");
        assert!(line.ends_with(ends), "{line}");
    }
    assert!(told[0].contains(" attempt=1 status=429 "), "{}", told[0]);
    assert!(told[0].contains(" queued.ms=0 deadline_left.ms=59990 "));
    assert!(told[1].contains(" attempt=2 status=429 "), "{}", told[1]);
    assert!(told[1].contains(" queued.ms=5"), "{}", told[1]);
}

/// A judge who hears of a refusal only after the body.
#[derive(Debug)]
struct AtTheEnd;

impl Classifier for AtTheEnd {
    fn head(&self, _: &Parts, _: &Receipt<'_>) -> Option<Phase> {
        Some(Phase::NeedTrailers {
            meanwhile: Verdict::ACCEPTED,
        })
    }

    fn trailers(&self, _: &Parts, _: &HeaderMap, _: &Receipt<'_>) -> Option<Verdict> {
        Some(Verdict::throttled(ThrottleKind::Overloaded))
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_stream_that_ends_refused_it_is_told_that_output_was_delivered() {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::new(ms(1), |_| {
        let frames = [
            Frame::data("half".into()),
            Frame::trailers(HeaderMap::new()),
        ];
        let slow = stream::iter(frames).then(|frame| async {
            sleep(secs(1)).await;
            Ok(frame)
        });
        ok().map(|_| StreamBody::new(slow).boxed_unsync())
    });
    let layer = RetryAfterLayer::new().policy(policy()).classifier(AtTheEnd);
    let client: Client = layer.layer(server);
    let reply = client.oneshot(get("http://a.test/")).await;
    assert!(log.lines("attempt refused").is_empty());
    reply.unwrap().into_body().collect().await.unwrap();
    let told = log.lines("attempt refused");
    assert_eq!(told.len(), 1, "{told:?}");
    for part in [
        "attempt=1 status=200 verdict=\"overloaded\"",
        "delivered=true",
    ] {
        assert!(told[0].contains(part), "{part} in {}", told[0]);
    }
}
