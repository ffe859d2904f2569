//! Heads with too many fields, and with waits that contradict each other.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, Response, Version, response::Parts};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    Classifier as _, HttpClassifier,
    classifier::{GrpcClassifier, Receipt, providers::catalog},
    verdict::IgnoredReason,
};

use super::{call, layer, outcome, raw::Raw, read, real::client};

const REFUSED: &str = "HTTP/1.1 429 Too Many Requests";

fn fields(count: usize) -> String {
    (0..count).fold(REFUSED.to_owned(), |head, nth| {
        format!("{head}\r\nx-{nth}: {nth}")
    })
}

#[tokio::test]
async fn the_longest_of_ten_waits_counts() {
    let waits = [
        "1", "soon", "-1", "5, 8", "1e9", "30s", "4", "", "2.5", "\"99\"",
    ];
    let head = waits.iter().fold(REFUSED.to_owned(), |head, wait| {
        format!("{head}\r\nretry-after: {wait}")
    });
    let server = Raw::answer(&head, "slow down").await;
    let reply = call(&client(Version::HTTP_11, layer()), &server.uri()).await;
    let given = reply.headers().get_all("retry-after");
    assert!(given.iter().eq(waits), "{given:?}");
    assert_eq!(outcome(&reply).hint.unwrap().wait(), Duration::from_secs(8));
    assert_eq!(read(reply).await, (b"slow down".to_vec(), false));
}

#[tokio::test]
async fn a_head_that_is_too_much_for_the_client_is_its_error_and_stops_nobody() {
    let server = Raw::answer(&fields(10_000), "").await;
    let layer = layer();
    let client = client(Version::HTTP_11, layer.clone());
    for _ in 0..3 {
        let request = http::Request::get(server.uri())
            .body(Full::default())
            .unwrap();
        let error = client.clone().oneshot(request).await.unwrap_err();
        assert!(!error.is_refusal(), "{error:?}");
    }
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn ten_thousand_fields_that_the_client_lets_through_reach_the_caller() {
    let head = fields(10_000) + "\r\nretry-after: 7";
    let server = Raw::answer(&head, "slow down").await;
    let socket = Client::builder(TokioExecutor::new())
        .http1_max_headers(20_000)
        .http1_max_buf_size(1 << 20)
        .build_http();
    let reply = call(&layer().layer(socket), &server.uri()).await;
    assert_eq!(outcome(&reply).hint.unwrap().wait(), Duration::from_secs(7));
    assert!((0..10_000).all(|nth| reply.headers()[format!("x-{nth}")] == nth.to_string()));
    assert_eq!(read(reply).await, (b"slow down".to_vec(), false));
}

/// A refusal with `count` fields by each of the names that readers look for.
fn crowded(count: usize, retry_after: &'static str) -> Parts {
    let mut response = Response::new(());
    *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
    let headers = response.headers_mut();
    for name in [
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "x-ratelimit-reset",
    ] {
        for nth in 0..count / 4 {
            let value = match name {
                "retry-after" => HeaderValue::from_static(retry_after),
                _ => format!("\"{nth}\";r=0;t={nth}").parse().unwrap(),
            };
            headers.append(HeaderName::from_static(name), value);
        }
    }
    response.into_parts().0
}

#[test]
fn ten_thousand_fields_of_the_names_that_are_read_end_in_a_verdict() {
    let head = crowded(10_000, "never");
    let at = Receipt::at(UNIX_EPOCH);
    let judge = |classifier: &dyn tower_retry_after::Classifier| {
        let verdict = classifier.judge(&head, b"", &http::HeaderMap::new(), &at);
        verdict.unwrap()
    };
    let verdict = judge(&GrpcClassifier::new().or(HttpClassifier::new().providers()));
    assert!(verdict.is_refusal(), "{verdict:?}");
    assert_eq!(verdict.ignored().unwrap().reason, IgnoredReason::Unreadable);
    for profile in catalog::all() {
        let verdict = judge(&profile.anywhere());
        assert!(verdict.is_refusal(), "{verdict:?}");
    }
}
