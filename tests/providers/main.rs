//! Profiles: how a declaration is read, what the known ones say, and what
//! hostile answers do to them.

#![cfg(feature = "providers")]

mod advice;
mod declared;
mod hostile;
mod known;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Response, Uri, response::Parts};
use tower_retry_after::{
    Classifier,
    classifier::{Phase, Receipt},
    verdict::{Throttle, Verdict},
};

/// 2026-10-05T18:00:00Z.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_791_223_200)
}

pub(crate) fn head(status: u16, fields: &[(&str, &str)]) -> Parts {
    let response = Response::builder().status(status);
    let response = fields.iter().fold(response, |response, (name, value)| {
        response.header(*name, *value)
    });
    response.body(()).unwrap().into_parts().0
}

pub(crate) fn judge_at(
    classifier: &dyn Classifier,
    url: &str,
    head: &Parts,
    body: &str,
) -> Verdict {
    let uri: Uri = url.parse().unwrap();
    let at = Receipt::at(now()).uri(Some(&uri));
    let verdict = classifier.judge(head, body.as_bytes(), &HeaderMap::new(), &at);
    verdict.unwrap_or(Verdict::NEUTRAL)
}

pub(crate) fn judge(classifier: &dyn Classifier, fields: &[(&str, &str)], body: &str) -> Verdict {
    judge_at(
        classifier,
        "https://api.acme.test/v1",
        &head(429, fields),
        body,
    )
}

pub(crate) fn phase(classifier: &dyn Classifier, url: &str, head: &Parts) -> Phase {
    let uri: Uri = url.parse().unwrap();
    classifier
        .head(head, &Receipt::at(now()).uri(Some(&uri)))
        .unwrap()
}

pub(crate) fn asks_for_body(classifier: &dyn Classifier, url: &str, head: &Parts) -> bool {
    matches!(phase(classifier, url, head), Phase::NeedBody { .. })
}

pub(crate) fn throttle(verdict: &Verdict) -> &Throttle {
    verdict.throttle().unwrap_or_else(|| panic!("{verdict:?}"))
}

pub(crate) fn wait(verdict: &Verdict) -> Option<Duration> {
    verdict.hint().map(|hint| hint.wait())
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
