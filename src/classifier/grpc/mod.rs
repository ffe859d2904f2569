//! gRPC: the outcome stands in trailers, the HTTP status says nothing.

mod details;
#[cfg(test)]
mod tests;

use std::time::Duration;

use http::{HeaderMap, StatusCode, Uri, header::CONTENT_TYPE, response::Parts};

use self::details::{Details, Spent};
use super::{Classifier, Phase, Receipt};
use crate::verdict::{
    Exhausted, Hint, IgnoredHint, IgnoredReason, RetryAdvice, Ruling, Throttle, ThrottleKind,
    Verdict,
};

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Judges the answers of gRPC services.
///
/// | status | verdict |
/// | --- | --- |
/// | `RESOURCE_EXHAUSTED` | a throttle, or a hard quota if its details say so |
/// | `UNAVAILABLE` | a throttle: overloaded |
/// | `OK`, `NOT_FOUND`, `ALREADY_EXISTS`, `FAILED_PRECONDITION`, `ABORTED` | accepted |
/// | any other | neutral |
///
/// The status is read from the head (Trailers-Only) or from the trailers. The
/// wait is that of `grpc-retry-pushback-ms` (gRPC proposal A6), else that of a
/// `google.rpc.RetryInfo` in `grpc-status-details-bin`. `QuotaFailure` and
/// `ErrorInfo` beside it tell what ran out.
///
/// A refusal is unprocessed, and so may be repeated although every gRPC request
/// is a `POST`, if the server says when to come back before it has sent
/// anything else, or pushes back by zero or more. A pushback that is negative
/// or can't be read forbids to repeat it.
///
/// What is no gRPC, such as the 503 of a proxy, is left to the general rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcClassifier(());

impl GrpcClassifier {
    /// A classifier for gRPC services.
    pub const fn new() -> Self {
        Self(())
    }
}

impl Classifier for GrpcClassifier {
    fn head(&self, head: &Parts, _: &Receipt<'_>) -> Option<Phase> {
        if let Some(verdict) = judge(&head.headers, true) {
            return Some(Phase::Decided(verdict));
        }
        let media = head.headers.get(CONTENT_TYPE)?.as_bytes();
        let is_grpc = head.status == StatusCode::OK && media.starts_with(b"application/grpc");
        // A server that refuses does so before it sends anything else.
        let meanwhile = Verdict::ACCEPTED;
        is_grpc.then_some(Phase::NeedTrailers { meanwhile })
    }

    fn trailers(&self, _: &Parts, trailers: &HeaderMap, _: &Receipt<'_>) -> Option<Verdict> {
        judge(trailers, false)
    }

    fn may_be_unprocessed(&self, _: &Uri) -> bool {
        true
    }
}

/// Judges the fields that hold a status, if there is one.
fn judge(fields: &HeaderMap, trailers_only: bool) -> Option<Verdict> {
    let code = fields.get(STATUS)?.to_str().ok()?.trim();
    let verdict = match code {
        "0" => return Some(Verdict::ACCEPTED),
        // As 404, 409, 412 and 409 in HTTP.
        "5" | "6" | "9" | "10" => Verdict::ACCEPTED,
        "8" if is_about_size(fields) => Verdict::NEUTRAL,
        "8" => refused(fields, trailers_only, ThrottleKind::Unknown),
        "14" => refused(fields, trailers_only, ThrottleKind::Overloaded),
        _ => Verdict::NEUTRAL,
    };
    let name = code.parse().ok().and_then(|code: usize| NAMES.get(code));
    Some(verdict.with_code(name.unwrap_or(&code)))
}

/// The names of the statuses, by their numbers.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Whether one message is larger than allowed, which gRPC's libraries report
/// under the same status: no waiting helps, and nothing else is refused.
fn is_about_size(fields: &HeaderMap) -> bool {
    let Some(message) = fields.get(MESSAGE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let message = message.replace("%20", " ").to_ascii_lowercase();
    let words = [
        // C, Go, Node; Java; .NET.
        "larger than max",
        "message exceeds maximum size",
        "message exceeds the maximum",
    ];
    words.iter().any(|words| message.contains(words))
}

fn refused(fields: &HeaderMap, trailers_only: bool, kind: ThrottleKind) -> Verdict {
    let details = Details::read(fields);
    let mut throttle = Throttle::new(kind);
    let mut ignored = None;
    match pushback(fields) {
        Some(Ok(wait)) => throttle = throttle.hint(wait).retry(RetryAdvice::Unprocessed),
        Some(Err(hint)) => {
            ignored = Some(hint);
            throttle = throttle.retry(RetryAdvice::Never);
        }
        None if details.delay.is_some() && trailers_only => {
            throttle = throttle.retry(RetryAdvice::Unprocessed);
        }
        None => {}
    }
    if throttle.hint.is_none() && throttle.retry != RetryAdvice::Never {
        throttle.hint = details.delay.map(|wait| Hint::new(wait, "retry-info"));
    }
    let quota = details.quota();
    let ruling = match (kind, details.spent()) {
        (ThrottleKind::Unknown, Some(Spent::HardQuota)) => Ruling::Exhausted(Exhausted {
            resets: throttle.hint,
            level: None,
        }),
        (ThrottleKind::Unknown, spent) => {
            if spent.is_some() || throttle.hint.is_some() {
                throttle.kind = ThrottleKind::RateLimited;
            }
            Ruling::Throttled(throttle.level(details.level()))
        }
        _ => Ruling::Throttled(throttle),
    };
    Verdict::new(ruling).with_quota(quota).with_ignored(ignored)
}

/// The wait of a pushback; an error if it forbids to come back.
fn pushback(fields: &HeaderMap) -> Option<Result<Hint, IgnoredHint>> {
    let value = fields.get(PUSHBACK)?;
    let millis = value
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse::<i32>().ok());
    Some(match millis.map(u64::try_from) {
        Some(Ok(millis)) => {
            Ok(Hint::new(Duration::from_millis(millis), PUSHBACK).raw(value.as_bytes()))
        }
        Some(Err(_)) => Err(IgnoredHint::new(
            PUSHBACK,
            value.as_bytes(),
            IgnoredReason::Sentinel,
        )),
        None => Err(IgnoredHint::new(
            PUSHBACK,
            value.as_bytes(),
            IgnoredReason::Unreadable,
        )),
    })
}
