//! Answers of real services, and what they mean.

#![cfg(all(feature = "grpc", feature = "providers"))]

#[path = "../examples/explain/answer.rs"]
mod answer;
#[path = "../examples/explain/cases.rs"]
mod cases;
#[path = "../examples/explain/curl.rs"]
mod curl;

use std::time::Duration;

use tower_retry_after::verdict::Ruling;

use self::cases::Case;

fn read(text: &str) -> Vec<Case> {
    cases::read(text).unwrap()
}

fn all() -> Vec<Case> {
    let mut all = read(include_str!("cases/responses.jsonl"));
    all.extend(read(include_str!("cases/documented.jsonl")));
    all.extend(read(include_str!("cases/further.jsonl")));
    all
}

#[test]
fn every_answer_is_judged_as_its_service_documents() {
    let mut wrong = Vec::new();
    for case in all() {
        let profile = case.answer.profile(Some(&case.provider));
        let verdict = case.answer.judge(profile.as_ref(), false);
        wrong.extend(case.compare(&verdict).iter().map(ToString::to_string));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Whoever runs a service under a name of their own, or calls one that nobody
/// has declared, is told less, but nothing that does harm.
#[test]
fn without_a_profile_no_answer_is_judged_to_somebodys_harm() {
    for case in all() {
        let id = &case.id;
        let known = case.answer.profile(Some(&case.provider));
        let known = case.answer.judge(known.as_ref(), false);
        let general = case.answer.judge(None, true);
        match general.ruling() {
            // What is no refusal closes nobody's scope.
            Ruling::Throttled(_) => assert!(known.is_refusal(), "{id}: nothing was refused"),
            // One tenant's empty account does not stop the others.
            Ruling::Exhausted(exhausted) => {
                assert!(
                    matches!(known.ruling(), Ruling::Exhausted(_)),
                    "{id}: not exhausted"
                );
                assert_eq!(exhausted.level, None, "{id}: closes a scope for all");
            }
            _ => {}
        }
        // A wait that is told is told whole.
        if let (Some(wait), Some(known)) = (general.hint(), known.hint()) {
            assert!(wait.wait() >= known.wait(), "{id}: {wait:?} for {known:?}");
        }
    }
}

#[test]
fn the_last_head_that_curl_prints_is_the_answer() {
    let text = b"HTTP/1.1 200 Connection established\r\n\r\n\
        HTTP/2 301 \r\nlocation: /x\r\n\r\n\
        HTTP/2 429 \r\nretry-after: 7\r\nx-odd: \xe4\r\n\r\nslow down\r\n\r\n";
    let answer = curl::read(text, None).unwrap();
    assert_eq!(answer.body, b"slow down\r\n\r\n");
    let verdict = answer.judge(None, false);
    assert_eq!(verdict.hint().unwrap().wait(), Duration::from_secs(7));
    for text in [
        "",
        "slow down",
        "HTTP/2 429 \r\nretry-after: 7",
        "HTTP/2\r\n\r\n",
    ] {
        assert!(curl::read(text.as_bytes(), None).is_err(), "{text:?}");
    }
}
