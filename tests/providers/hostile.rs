//! What hostile answers do to profiles.

use std::sync::LazyLock;

use proptest::prelude::*;
use tower_retry_after::{
    Classifier as _, HttpClassifier,
    classifier::providers::{Profile, catalog},
    verdict::IgnoredReason,
};

use super::*;

/// Whatever the body is, it ends in a verdict, and never in one that is worse
/// than what the head says.
#[test]
fn a_hostile_body_is_judged_by_the_head() {
    let nested = "[".repeat(200) + &"]".repeat(200);
    let wide = format!("[{}0]", "0,".repeat(30_000));
    let bodies: [&[u8]; 7] = [
        b"",
        b"\xff\xfe\x00",
        b"\x1f\x8b\x08\x00",
        b"{\"error\":{\"code\":",
        b"<html>",
        nested.as_bytes(),
        wide.as_bytes(),
    ];
    let refused = head(429, &[("retry-after", "7")]);
    let at = Receipt::at(now());
    for profile in catalog::all() {
        let profile = profile.anywhere();
        for body in bodies {
            let verdict = profile.body(&refused, body, &at).unwrap();
            let name = profile.name();
            assert!(verdict.throttle().is_some(), "{name}: {verdict:?}");
            assert_eq!(wait(&verdict), Some(7 * SECOND), "{name}");
        }
    }
}

#[test]
fn ten_thousand_fields_and_ten_waits_are_read() {
    let mut refused = head(429, &[]);
    for number in 0..10_000 {
        let name = format!("zendesk-ratelimit-{number}");
        let value = format!("total=10; remaining=0; resets={}", number % 100);
        let name: http::HeaderName = name.parse().unwrap();
        refused.headers.append(name, value.parse().unwrap());
    }
    let zendesk = catalog::zendesk().anywhere();
    let verdict = judge_at(&zendesk, "https://x.zendesk.com/", &refused, "");
    assert_eq!(wait(&verdict), Some(99 * SECOND));
    for value in [
        "1", "soon", "-1", "5, 8", "1e9", "30s", "4", "", "2.5", "\"99\"",
    ] {
        refused
            .headers
            .append("retry-after", value.parse().unwrap());
    }
    let verdict = judge_at(&zendesk, "https://x.zendesk.com/", &refused, "");
    assert_eq!(wait(&verdict), Some(8 * SECOND));
}

#[test]
fn a_day_without_quota_on_a_success_refuses_nothing() {
    let fields = [
        ("ratelimit", "\"daily\";r=0;t=86400"),
        ("ratelimit-policy", "\"daily\";q=1;w=86400"),
        ("retry-after", "86400"),
    ];
    let verdict = judge_at(
        &HttpClassifier::new().providers(),
        "https://api.other.test/",
        &head(200, &fields),
        "",
    );
    assert!(verdict.is_accepted());
    assert_eq!(verdict.hint(), None);
    assert_eq!(verdict.quota().unwrap().remaining, Some(0));
    assert_eq!(
        verdict.ignored().unwrap().reason,
        IgnoredReason::NotAThrottle
    );
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[ -~]{0,12}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("error"),
        Just("code"),
        Just("errors"),
        Just("message"),
        Just("details"),
        Just("retry_after"),
        Just("status"),
        Just("type"),
        Just("parameters"),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(name.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_panics(body in value(), status in prop::sample::select(vec![200_u16, 400, 403, 429, 503])) {
        let head = head(status, &[("content-type", "application/json")]);
        let body = body.to_string();
        static PROFILES: LazyLock<Vec<Profile>> =
            LazyLock::new(|| catalog::all().into_iter().map(Profile::anywhere).collect());
        for profile in &*PROFILES {
            let _ = profile.body(&head, body.as_bytes(), &Receipt::at(now()));
        }
    }
}
