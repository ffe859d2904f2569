//! The readers of header fields, whatever a server sends.
//!
//! The input is a head: a URL, a status, and fields, one a line.

#![no_main]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, Response, Uri};
use libfuzzer_sys::fuzz_target;
use tower_retry_after::{
    Classifier, HttpClassifier,
    classifier::{GrpcClassifier, Receipt},
    hint,
};

/// 2026-10-05T18:00:00Z.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_791_223_200)
}

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|b| *b == b'\n');
    let url = lines.next().and_then(|line| Uri::try_from(line).ok());
    let status = lines
        .next()
        .and_then(|line| str::from_utf8(line).ok()?.parse().ok());
    let Ok(response) = Response::builder().status(status.unwrap_or(429)).body(()) else {
        return;
    };
    let (mut head, ()) = response.into_parts();
    for line in lines {
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            head.headers.append(name, value);
        }
    }
    if let Some(Ok(hint)) = hint::retry_after(&head.headers, now) {
        // Whoever adds it up to now must not overflow either.
        let _ = hint.wait().saturating_add(Duration::from_secs(1));
        assert!(hint.raw_value().len() <= 64);
    }
    let at = Receipt::at(now()).uri(url.as_ref());
    let classifier = GrpcClassifier::new().or(HttpClassifier::new().providers());
    let phase = classifier
        .head(&head, &at)
        .expect("the general rules stand last");
    let verdict = phase.into_verdict();
    if let Some(ignored) = verdict.ignored() {
        assert!(ignored.raw.len() <= 64);
    }
});
