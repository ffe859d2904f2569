//! Profiles: how a declaration is read, and what hostile answers do to it.

#![cfg(feature = "providers")]

use std::{
    collections::HashSet,
    sync::LazyLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, Response, Uri, response::Parts};
use proptest::prelude::*;
use tower_retry_after::{
    Classifier, HttpClassifier,
    classifier::{
        Phase, Receipt,
        providers::{
            self, Meaning, Profile, QuotaFields, catalog, code, header, json, status, text,
        },
    },
    hint::Unit,
    verdict::{IgnoredReason, Level, RetryAdvice, Ruling, Throttle, ThrottleKind, Verdict},
};

/// 2026-10-05T18:00:00Z.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_791_223_200)
}

fn head(status: u16, fields: &[(&str, &str)]) -> Parts {
    let response = Response::builder().status(status);
    let response = fields.iter().fold(response, |response, (name, value)| {
        response.header(*name, *value)
    });
    response.body(()).unwrap().into_parts().0
}

fn judge_at(classifier: &dyn Classifier, url: &str, head: &Parts, body: &str) -> Verdict {
    let uri: Uri = url.parse().unwrap();
    let at = Receipt::at(now()).uri(Some(&uri));
    let verdict = classifier.judge(head, body.as_bytes(), &HeaderMap::new(), &at);
    verdict.unwrap_or(Verdict::NEUTRAL)
}

fn judge(classifier: &dyn Classifier, fields: &[(&str, &str)], body: &str) -> Verdict {
    judge_at(
        classifier,
        "https://api.acme.test/v1",
        &head(429, fields),
        body,
    )
}

fn phase(classifier: &dyn Classifier, url: &str, head: &Parts) -> Phase {
    let uri: Uri = url.parse().unwrap();
    classifier
        .head(head, &Receipt::at(now()).uri(Some(&uri)))
        .unwrap()
}

fn asks_for_body(classifier: &dyn Classifier, url: &str, head: &Parts) -> bool {
    matches!(phase(classifier, url, head), Phase::NeedBody { .. })
}

fn throttle(verdict: &Verdict) -> &Throttle {
    verdict.throttle().unwrap_or_else(|| panic!("{verdict:?}"))
}

fn wait(verdict: &Verdict) -> Option<Duration> {
    verdict.hint().map(|hint| hint.wait())
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_profile_speaks_only_of_its_hosts() {
    let profile = Profile::new("acme")
        .host("api.acme.test")
        .rule(status([418]), Meaning::OVERLOADED);
    let chain = profile.or(HttpClassifier::new());
    let teapot = head(418, &[]);
    let at_home = judge_at(&chain, "https://API.acme.test/x", &teapot, "");
    assert_eq!(throttle(&at_home).kind, ThrottleKind::Overloaded);
    let abroad = judge_at(&chain, "https://api.other.test/x", &teapot, "");
    assert_eq!(abroad, Verdict::NEUTRAL);
}

#[test]
fn the_first_rule_that_holds_decides() {
    let profile = Profile::new("acme")
        .code(json("/code"))
        .rule(code(["MONEY"]), Meaning::EXHAUSTED.level(Level::Depth(2)))
        .rule(
            json("/jobs").is(["8"]).and(status([429])),
            Meaning::CONCURRENCY_LIMITED,
        )
        .rule(
            text().contains(["Slow DOWN"]),
            Meaning::RATE_LIMITED.ban().unprocessed(),
        );
    let money = judge(&profile, &[], r#"{"code":"money","jobs":8}"#);
    let Ruling::Exhausted(exhausted) = money.ruling() else {
        panic!("{money:?}");
    };
    assert_eq!(exhausted.level, Some(Level::Depth(2)));
    assert_eq!(money.code(), Some("money"));
    let jobs = judge(&profile, &[], r#"{"jobs":8,"text":"slow down"}"#);
    assert_eq!(throttle(&jobs).kind, ThrottleKind::ConcurrencyLimited);
    let slow = judge(&profile, &[], "please slow down");
    assert!(throttle(&slow).ban);
    assert_eq!(throttle(&slow).retry, RetryAdvice::Unprocessed);
}

#[test]
fn waits_are_taken_in_their_order() {
    let profile = Profile::new("acme")
        .wait(json("/wait"), Unit::Seconds)
        .wait(header("x-wait-ms"), Unit::Millis)
        .rule(
            status([429]),
            Meaning::RATE_LIMITED.documented_wait(9 * SECOND),
        )
        .quota(
            QuotaFields::new("q")
                .remaining(header("x-left"))
                .reset(header("x-reset"), Unit::Unix),
        );
    let mut fields = vec![
        ("x-wait-ms", "1500"),
        ("retry-after", "3"),
        ("x-left", "0"),
        ("x-reset", "1791223207"),
    ];
    let body = r#"{"wait":5}"#;
    assert_eq!(
        wait(&judge(&profile, &fields, body)),
        Some(Duration::from_millis(1500))
    );
    fields.remove(0);
    assert_eq!(wait(&judge(&profile, &fields, body)), Some(3 * SECOND));
    fields.remove(0);
    assert_eq!(wait(&judge(&profile, &fields, body)), Some(5 * SECOND));
    assert_eq!(wait(&judge(&profile, &fields, "")), Some(7 * SECOND));
    let documented = judge(&profile, &[("x-left", "3"), ("x-reset", "1791223207")], "");
    assert_eq!(documented.hint().unwrap().source(), "documentation");
    assert_eq!(wait(&documented), Some(9 * SECOND));
}

#[test]
fn a_wait_that_is_unreadable_is_told() {
    let profile = Profile::new("acme").wait(header("x-wait-ms"), Unit::Millis);
    let verdict = judge(&profile, &[("x-wait-ms", "-7")], "");
    let ignored = verdict.ignored().unwrap();
    assert_eq!((&*ignored.source, &*ignored.raw), ("x-wait-ms", "-7"));
    assert_eq!(ignored.reason, IgnoredReason::Unreadable);
}

#[test]
fn the_longest_of_several_waits_counts() {
    let profile = Profile::new("acme").wait(json("/waits/*"), Unit::Seconds);
    let verdict = judge(&profile, &[], r#"{"waits":[2,"x",9,4]}"#);
    assert_eq!(wait(&verdict), Some(9 * SECOND));
}

#[test]
fn a_bucket_that_is_refilled_tells_the_wait() {
    let profile = Profile::new("acme").wait_for_refill(json("/need"), json("/have"), json("/rate"));
    let wait = |body| wait(&judge(&profile, &[], body));
    assert_eq!(
        wait(r#"{"need":752,"have":102,"rate":50}"#),
        Some(13 * SECOND)
    );
    assert_eq!(
        wait(r#"{"need":5,"have":102,"rate":50}"#),
        Some(Duration::ZERO)
    );
    for body in [
        r#"{"need":5,"have":1,"rate":0}"#,
        r#"{"need":5,"have":1,"rate":-1}"#,
        r#"{"need":5,"have":"NaN","rate":1}"#,
        r#"{"need":5}"#,
    ] {
        assert_eq!(wait(body), None, "{body}");
    }
    assert_eq!(
        wait(r#"{"need":1e300,"have":1,"rate":1e-300}"#),
        Some(Duration::MAX)
    );
}

#[test]
fn a_rate_is_one_request_in_its_inverse() {
    let profile = Profile::new("acme").quota(QuotaFields::new("q").rate(header("x-rate")));
    let quota = |rate| judge(&profile, &[("x-rate", rate)], "").quota().cloned();
    let told = quota("0.25").unwrap();
    assert_eq!((told.limit, told.window), (Some(1), Some(4 * SECOND)));
    for rate in ["0", "-1", "NaN", "inf", "x"] {
        assert_eq!(quota(rate), None, "{rate}");
    }
}

#[test]
fn a_body_is_asked_for_only_where_it_may_say_more() {
    let known = HttpClassifier::new().providers();
    let json = &[("content-type", "application/json")];
    let openai = "https://api.openai.com/v1/responses";
    assert!(asks_for_body(&known, openai, &head(429, json)));
    assert!(asks_for_body(&known, openai, &head(400, json)));
    // What the server looked at is no matter of rate.
    assert!(!asks_for_body(&known, openai, &head(404, json)));
    assert!(!asks_for_body(&known, openai, &head(200, json)));
    let stream = &[("content-type", "text/event-stream")];
    for url in [
        openai,
        "https://slack.com/api/x",
        "https://openrouter.ai/api/v1",
    ] {
        assert!(!asks_for_body(&known, url, &head(200, stream)), "{url}");
    }
    assert!(asks_for_body(
        &known,
        "https://slack.com/api/x",
        &head(200, json)
    ));
    let image = &[("content-type", "image/png")];
    assert!(!asks_for_body(
        &known,
        "https://slack.com/files/x",
        &head(200, image)
    ));
    assert!(asks_for_body(
        &known,
        "https://api.github.com/graphql",
        &head(200, json)
    ));
    assert!(!asks_for_body(
        &known,
        "https://api.github.com/user",
        &head(200, json)
    ));
    assert!(!asks_for_body(
        &known,
        "https://api.other.test/",
        &head(400, json)
    ));
}

#[test]
fn of_a_429_that_nobody_knows_a_sample_is_kept() {
    let known = HttpClassifier::new().providers();
    let refused = head(429, &[("content-type", "text/html")]);
    let verdict = judge_at(
        &known,
        "https://api.other.test/",
        &refused,
        "<p>\u{1b}[31mgo away",
    );
    assert_eq!(throttle(&verdict).kind, ThrottleKind::Unknown);
    assert_eq!(verdict.sample(), Some("<p>\\x1b[31mgo away"));
}

#[test]
fn what_may_be_unprocessed_depends_on_who_is_asked() {
    let known = HttpClassifier::new().providers();
    let may = |url: &'static str| known.may_be_unprocessed(&Uri::from_static(url));
    assert!(may("https://api.openai.com/v1/responses"));
    assert!(!may("https://api.github.com/user"));
    assert!(!may("https://api.other.test/"));
}

#[test]
fn every_profile_has_a_name_and_hosts_of_its_own() {
    let mut names = HashSet::new();
    for profile in catalog::all() {
        assert!(
            names.insert(profile.name().to_owned()),
            "{}",
            profile.name()
        );
        assert!(providers::named(profile.name()).is_some());
    }
    for (url, name) in [
        ("https://api.openai.com/v1", Some("openai")),
        ("https://eu.api.openai.com/v1", Some("openai")),
        ("https://x.openai.azure.com/", Some("azure-openai")),
        ("https://maps.googleapis.com/", Some("google-maps")),
        ("https://generativelanguage.googleapis.com/", Some("gemini")),
        ("https://storage.googleapis.com/", Some("google-json")),
        ("https://s3.eu-central-1.amazonaws.com/", Some("aws")),
        (
            "https://sellingpartnerapi-na.amazon.com/",
            Some("amazon-sp-api"),
        ),
        ("https://openai.com.evil.test/", None),
    ] {
        let profile = providers::of(&url.parse().unwrap());
        assert_eq!(profile.as_ref().map(Profile::name), name, "{url}");
    }
}

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
