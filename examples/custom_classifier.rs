//! Four ways to tell the layer what a private API's answers mean.
//!
//! ```text
//! cargo run --features providers --example custom_classifier
//! ```
//!
//! Nothing is sent: each classifier judges the same few answers.

use std::{borrow::Cow, time::Duration};

use http::{HeaderMap, Response, StatusCode, response::Parts};
use tower_retry_after::{
    Classifier,
    classifier::{
        HttpClassifier, Phase, Receipt,
        providers::{Meaning, Profile, QuotaFields, code, header, json, status},
    },
    classify_body_fn, classify_fn,
    hint::Unit,
    verdict::{Hint, Throttle, ThrottleKind, Verdict},
};

/// The head says it all: a closure.
fn by_head() -> impl Classifier {
    classify_fn(|head: &Parts| {
        let secs = head.headers.get("x-busy")?.to_str().ok()?.parse().ok()?;
        let hint = Hint::new(Duration::from_secs(secs), "x-busy");
        Some(Throttle::new(ThrottleKind::Overloaded).hint(hint).into())
    })
}

/// The body says it: two closures, of which one asks for it.
fn by_body() -> impl Classifier {
    classify_body_fn(
        |head: &Parts| head.status == StatusCode::BAD_REQUEST,
        |_, body| {
            let is_limit = body.starts_with(b"TOO_MANY_JOBS");
            is_limit.then(|| Verdict::throttled(ThrottleKind::ConcurrencyLimited))
        },
    )
}

/// A documented API with codes, waits and quotas: a profile.
fn by_profile() -> impl Classifier {
    let fields = ["x-quota", "x-quota-left", "x-quota-reset"];
    Profile::new("acme")
        .code(json("/error/code"))
        .rule(code(["OUT_OF_CREDITS"]), Meaning::EXHAUSTED)
        .rule(status([429]), Meaning::RATE_LIMITED)
        .wait(header("x-backoff-ms"), Unit::Millis)
        .quota(QuotaFields::headers("requests", fields, Unit::Unix))
        .request_id(header("x-trace"))
}

/// Anything else, state of one's own included: the trait.
#[derive(Debug)]
struct Maintenance {
    path: Cow<'static, str>,
}

impl Classifier for Maintenance {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        let is_ours = at.requested()?.path().starts_with(&*self.path);
        let is_closed = head.status == StatusCode::LOCKED;
        let verdict = || Verdict::throttled(ThrottleKind::Overloaded);
        (is_ours && is_closed).then(|| verdict().into())
    }

    fn needs_uri(&self) -> bool {
        true
    }
}

fn main() -> Result<(), http::Error> {
    let answers = [
        answer(503, [("x-busy", "30")], "")?,
        answer(
            400,
            [("content-type", "text/plain")],
            "TOO_MANY_JOBS: 8 of 8",
        )?,
        answer(
            429,
            [("x-backoff-ms", "1500")],
            r#"{"error":{"code":"SLOW"}}"#,
        )?,
        answer(
            403,
            [("x-trace", "7f3a")],
            r#"{"error":{"code":"OUT_OF_CREDITS"}}"#,
        )?,
        answer(423, [("server", "acme")], "")?,
        answer(429, [("retry-after", "7")], "")?,
    ];
    let path = Cow::Borrowed("/v1/");
    // The first with something to say decides; the general rules stand last,
    // where the layer puts them by itself.
    let classifier = by_head()
        .or(by_body())
        .or(Maintenance { path })
        .or(by_profile())
        .or(HttpClassifier::new());
    let url = http::Uri::from_static("https://api.acme.test/v1/jobs");
    let at = Receipt::at(std::time::SystemTime::UNIX_EPOCH).uri(Some(&url));
    for answer in answers {
        let (head, body) = answer.into_parts();
        let verdict = classifier.judge(&head, body.as_bytes(), &HeaderMap::new(), &at);
        let verdict = verdict.unwrap_or(Verdict::NEUTRAL);
        let code = verdict.code().unwrap_or("-");
        println!("{} {code:<15} {:?}", head.status.as_u16(), verdict.ruling());
    }
    Ok(())
}

fn answer(
    status: u16,
    [(name, value)]: [(&str, &str); 1],
    body: &'static str,
) -> Result<Response<&'static str>, http::Error> {
    Response::builder()
        .status(status)
        .header(name, value)
        .body(body)
}
