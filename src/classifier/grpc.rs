//! gRPC: the outcome stands in trailers, the HTTP status says nothing.

use std::time::Duration;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, StatusCode, Uri, header::CONTENT_TYPE, response::Parts};
use prost::Message;
use tonic_types::pb;

use super::{Classifier, Phase, Receipt};
use crate::verdict::{
    Exhausted, Hint, IgnoredHint, IgnoredReason, Level, Quota, RetryAdvice, Ruling, Throttle,
    ThrottleKind, Verdict,
};

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const DETAILS: &str = "grpc-status-details-bin";
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Padded or not: the protocol lets senders choose.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

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

/// What ran out, as far as the details say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spent {
    Rate,
    HardQuota,
}

/// What stands in `grpc-status-details-bin`. What can't be read is not there.
#[derive(Debug, Default)]
struct Details {
    delay: Option<Duration>,
    violations: Vec<pb::quota_failure::Violation>,
    reason: String,
}

impl Details {
    fn read(fields: &HeaderMap) -> Self {
        let mut details = Self::default();
        let Some(value) = fields.get(DETAILS) else {
            return details;
        };
        let value = value
            .as_bytes()
            .split(|b| *b == b',')
            .next()
            .unwrap_or_default();
        let Ok(bytes) = BASE64.decode(value.trim_ascii()) else {
            return details;
        };
        let Ok(status) = pb::Status::decode(&*bytes) else {
            return details;
        };
        for detail in status.details {
            let name = detail.type_url.rsplit('/').next().unwrap_or_default();
            match name {
                "google.rpc.RetryInfo" => {
                    let info = pb::RetryInfo::decode(&*detail.value).unwrap_or_default();
                    // A delay that is negative is none.
                    let delay = info.retry_delay.and_then(|delay| delay.try_into().ok());
                    details.delay = details.delay.max(delay);
                }
                "google.rpc.QuotaFailure" => {
                    let failure = pb::QuotaFailure::decode(&*detail.value).unwrap_or_default();
                    details.violations.extend(failure.violations);
                }
                "google.rpc.ErrorInfo" => {
                    let info = pb::ErrorInfo::decode(&*detail.value).unwrap_or_default();
                    details.reason = info.reason;
                }
                _ => {}
            }
        }
        details
    }

    /// What ran out. The id of a quota tells its window; without an id, its
    /// description is all there is.
    fn spent(&self) -> Option<Spent> {
        let is_long = |violation: &pb::quota_failure::Violation| {
            let id = &violation.quota_id;
            let text = violation.description.to_ascii_lowercase();
            let in_text = ["daily", "per day", "monthly", "per month"];
            ["PerDay", "Daily", "PerMonth"]
                .iter()
                .any(|window| id.contains(window))
                || (id.is_empty() && in_text.iter().any(|window| text.contains(window)))
        };
        if self.violations.iter().any(is_long) || self.reason == "QUOTA_EXHAUSTED" {
            return Some(Spent::HardQuota);
        }
        let is_rate = !self.violations.is_empty() || self.reason == "RATE_LIMIT_EXCEEDED";
        is_rate.then_some(Spent::Rate)
    }

    fn quota(&self) -> Option<Quota> {
        let limit = self.violations.iter().find_map(|violation| {
            let value = u64::try_from(violation.quota_value).ok();
            value.filter(|limit| *limit > 0)
        });
        limit.map(|limit| Quota {
            limit: Some(limit),
            ..Quota::default()
        })
    }

    /// Whom the quota is for, by the form that the subject has by convention.
    fn level(&self) -> Level {
        let subject = self
            .violations
            .first()
            .map_or("", |violation| &violation.subject);
        match subject.split(':').next() {
            Some("clientip") => Level::ROOT,
            Some("project") => Level::Credential,
            _ => Level::Leaf,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::Response;
    use proptest::prelude::*;

    use super::*;

    fn head(fields: &[(&str, &str)]) -> Parts {
        let response = Response::builder().header(CONTENT_TYPE, "application/grpc");
        let response = fields.iter().fold(response, |response, (name, value)| {
            response.header(*name, *value)
        });
        response.body(()).unwrap().into_parts().0
    }

    fn trailers_only(fields: &[(&str, &str)]) -> Verdict {
        let at = Receipt::at(UNIX_EPOCH);
        match GrpcClassifier::new().head(&head(fields), &at).unwrap() {
            Phase::Decided(verdict) => verdict,
            phase => panic!("{phase:?}"),
        }
    }

    fn in_trailers(fields: &[(&str, &str)]) -> Verdict {
        let at = Receipt::at(UNIX_EPOCH);
        let classifier = GrpcClassifier::new();
        let first = head(&[]);
        let meanwhile = Verdict::ACCEPTED;
        let phase = classifier.head(&first, &at);
        assert_eq!(phase, Some(Phase::NeedTrailers { meanwhile }));
        let fields = head(fields).headers;
        classifier.trailers(&first, &fields, &at).unwrap()
    }

    fn details<M: Message>(name: &str, message: &M) -> String {
        let status = pb::Status {
            code: 8,
            message: String::new(),
            details: vec![prost_any(name, message)],
        };
        BASE64.encode(status.encode_to_vec())
    }

    fn prost_any<M: Message>(name: &str, message: &M) -> prost_types::Any {
        prost_types::Any {
            type_url: format!("type.googleapis.com/google.rpc.{name}"),
            value: message.encode_to_vec(),
        }
    }

    fn retry_info(seconds: i64, nanos: i32) -> String {
        let retry_delay = Some(prost_types::Duration { seconds, nanos });
        details("RetryInfo", &pb::RetryInfo { retry_delay })
    }

    fn violation(quota_id: &str, description: &str) -> String {
        let violation = pb::quota_failure::Violation {
            quota_id: quota_id.to_owned(),
            description: description.to_owned(),
            ..Default::default()
        };
        let violations = vec![violation];
        details("QuotaFailure", &pb::QuotaFailure { violations })
    }

    fn throttle(verdict: &Verdict) -> &Throttle {
        verdict.throttle().unwrap()
    }

    #[test]
    fn a_delay_before_anything_else_makes_a_refusal_repeatable() {
        let info = retry_info(34, 70_000_000);
        let fields = [(STATUS, "8"), (DETAILS, &info)];
        let early = trailers_only(&fields);
        assert_eq!(throttle(&early).kind, ThrottleKind::RateLimited);
        assert_eq!(throttle(&early).retry, RetryAdvice::Unprocessed);
        assert_eq!(early.hint().unwrap().wait(), Duration::from_millis(34_070));
        assert_eq!(early.code(), Some("RESOURCE_EXHAUSTED"));
        let late = in_trailers(&fields);
        assert_eq!(throttle(&late).retry, RetryAdvice::Default);
        assert_eq!(late.hint(), early.hint());
    }

    #[test]
    fn a_pushback_comes_before_a_delay_and_may_forbid_to_repeat() {
        let info = retry_info(34, 0);
        let judge =
            |pushback| in_trailers(&[(STATUS, "14"), (PUSHBACK, pushback), (DETAILS, &info)]);
        let verdict = judge("1500");
        assert_eq!(throttle(&verdict).kind, ThrottleKind::Overloaded);
        assert_eq!(throttle(&verdict).retry, RetryAdvice::Unprocessed);
        assert_eq!(verdict.hint().unwrap().wait(), Duration::from_millis(1500));
        for (pushback, reason) in [
            ("-1", IgnoredReason::Sentinel),
            ("soon", IgnoredReason::Unreadable),
            ("", IgnoredReason::Unreadable),
            ("1.5", IgnoredReason::Unreadable),
            ("2147483648", IgnoredReason::Unreadable),
        ] {
            let verdict = judge(pushback);
            assert_eq!(throttle(&verdict).retry, RetryAdvice::Never, "{pushback}");
            assert_eq!(verdict.hint(), None, "{pushback}");
            assert_eq!(verdict.ignored().unwrap().reason, reason, "{pushback}");
        }
    }

    #[test]
    fn without_a_hint_nothing_is_repeated_that_is_not_marked() {
        for (status, kind) in [
            ("8", ThrottleKind::Unknown),
            ("14", ThrottleKind::Overloaded),
        ] {
            for verdict in [
                trailers_only(&[(STATUS, status)]),
                in_trailers(&[(STATUS, status)]),
            ] {
                assert_eq!(throttle(&verdict), &Throttle::new(kind));
            }
        }
    }

    #[test]
    fn the_quota_that_failed_tells_a_rate_from_a_hard_quota() {
        for (id, description) in [
            ("RequestsPerDayPerProject", ""),
            ("", "Daily Limit for read operations exceeded"),
        ] {
            let verdict = trailers_only(&[(STATUS, "8"), (DETAILS, &violation(id, description))]);
            assert!(
                matches!(verdict.ruling(), Ruling::Exhausted(_)),
                "{id} {description}"
            );
        }
        let minute = violation("RequestsPerMinutePerProject", "not your daily limit");
        let verdict = trailers_only(&[(STATUS, "8"), (DETAILS, &minute)]);
        assert_eq!(throttle(&verdict).kind, ThrottleKind::RateLimited);
    }

    #[test]
    fn a_message_that_is_too_large_is_no_throttle() {
        for message in [
            "grpc:%20received%20message%20larger%20than%20max%20(5%20vs.%204)",
            "grpc: received message after decompression larger than max (5 vs. 4)",
            "gRPC%20message%20exceeds%20maximum%20size%204:%205",
            "Received message exceeds the maximum configured message size.",
        ] {
            let verdict = in_trailers(&[(STATUS, "8"), (MESSAGE, message)]);
            assert_eq!(verdict.ruling(), &Ruling::Neutral, "{message}");
        }
        let verdict = in_trailers(&[(STATUS, "8"), (MESSAGE, "rate exceeds the maximum")]);
        assert!(verdict.is_refusal());
    }

    #[test]
    fn other_statuses_show_that_the_server_worked_or_say_nothing() {
        assert_eq!(trailers_only(&[(STATUS, "0")]), Verdict::ACCEPTED);
        for status in ["5", "6", "9", "10"] {
            assert!(trailers_only(&[(STATUS, status)]).is_accepted(), "{status}");
        }
        for status in ["2", "4", "13", "16", "17", "-1", "x", ""] {
            let verdict = trailers_only(&[(STATUS, status)]);
            assert_eq!(verdict.ruling(), &Ruling::Neutral, "{status}");
        }
    }

    #[test]
    fn a_delay_that_is_negative_or_unreadable_is_none() {
        let negative = retry_info(-5, 0);
        for details in [&*negative, "!!!", "AAAA", "////", &"A".repeat(5000)] {
            let verdict = trailers_only(&[(STATUS, "8"), (DETAILS, details)]);
            assert_eq!(
                throttle(&verdict),
                &Throttle::new(ThrottleKind::Unknown),
                "{details}"
            );
        }
    }

    #[test]
    fn what_is_no_grpc_is_left_to_the_general_rules() {
        let (head, ()) = Response::builder()
            .status(503)
            .body(())
            .unwrap()
            .into_parts();
        let phase = GrpcClassifier::new().head(&head, &Receipt::at(UNIX_EPOCH));
        assert_eq!(phase, None);
    }

    proptest! {
        #[test]
        fn no_details_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let status = [0x1a, u8::try_from(bytes.len().min(127)).unwrap()];
            for bytes in [bytes.clone(), [&status[..], &bytes].concat()] {
                trailers_only(&[(STATUS, "8"), (DETAILS, &BASE64.encode(bytes))]);
            }
        }
    }
}
