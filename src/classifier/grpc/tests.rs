use std::time::UNIX_EPOCH;

use base64::Engine as _;
use http::Response;
use proptest::prelude::*;
use prost::Message;
use tonic_types::pb;

use super::{
    details::{BASE64, DETAILS},
    *,
};
use crate::verdict::Level;

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
fn of_details_that_were_joined_by_a_comma_the_first_are_read() {
    let [first, second] = [3, 9].map(|seconds| retry_info(seconds, 0));
    let joined = format!("{first},{second}");
    let verdict = trailers_only(&[(STATUS, "8"), (DETAILS, &joined)]);
    assert_eq!(verdict.hint().unwrap().wait(), Duration::from_secs(3));
}

#[test]
fn a_pushback_comes_before_a_delay_and_may_forbid_to_repeat() {
    let info = retry_info(34, 0);
    let judge = |pushback| in_trailers(&[(STATUS, "14"), (PUSHBACK, pushback), (DETAILS, &info)]);
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
fn the_subject_of_a_quota_tells_whom_it_is_for() {
    for (subject, level) in [
        ("clientip:192.0.2.1", Level::ROOT),
        ("project:acme-123", Level::Credential),
        ("user:7", Level::Leaf),
        ("", Level::Leaf),
    ] {
        let violation = pb::quota_failure::Violation {
            subject: subject.to_owned(),
            ..Default::default()
        };
        let violations = vec![violation];
        let details = details("QuotaFailure", &pb::QuotaFailure { violations });
        let verdict = trailers_only(&[(STATUS, "8"), (DETAILS, &details)]);
        assert_eq!(throttle(&verdict).level, level, "{subject}");
    }
}

#[test]
fn a_limit_is_told_where_the_quota_names_one() {
    for (value, limit) in [(60, Some(60)), (0, None), (-1, None)] {
        let violation = pb::quota_failure::Violation {
            quota_value: value,
            ..Default::default()
        };
        let violations = vec![violation];
        let details = details("QuotaFailure", &pb::QuotaFailure { violations });
        let verdict = trailers_only(&[(STATUS, "8"), (DETAILS, &details)]);
        assert_eq!(verdict.quota().and_then(|quota| quota.limit), limit);
    }
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
