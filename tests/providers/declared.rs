//! How a declaration is read.

use std::time::Duration;

use tower_retry_after::{
    Classifier as _, HttpClassifier,
    classifier::providers::{Meaning, Profile, QuotaFields, code, header, json, status, text},
    hint::Unit,
    verdict::{IgnoredReason, Level, RetryAdvice, Ruling, ThrottleKind, Verdict},
};

use super::*;

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
    let read = judge(&profile, &[("x-wait-ms", "7")], "");
    assert_eq!(read.ignored(), None);
}

#[test]
fn a_success_that_was_looked_into_is_told_without_its_request_id() {
    let profile = Profile::new("acme")
        .code(json("/code"))
        .rule(code(["BUSY"]), Meaning::OVERLOADED)
        .request_id(header("x-trace"))
        .success_bodies("");
    let fields = [("content-type", "application/json"), ("x-trace", "7")];
    let judge = |body| judge_at(&profile, "https://a.test/", &head(200, &fields), body);
    assert_eq!(judge(r#"{"code":"BUSY"}"#).request_id(), Some("7"));
    assert_eq!(judge("{}"), Verdict::ACCEPTED);
}

#[test]
fn a_retry_after_in_a_form_of_the_services_own_is_followed_and_not_ignored() {
    let profile = Profile::new("acme").wait(header("retry-after"), Unit::Duration);
    let verdict = judge(&profile, &[("retry-after", "1m0s")], "");
    assert_eq!(
        (wait(&verdict), verdict.ignored()),
        (Some(60 * SECOND), None)
    );
    let verdict = judge(&profile, &[("retry-after", "soon")], "");
    let ignored = verdict.ignored().unwrap();
    assert_eq!((wait(&verdict), &*ignored.raw), (None, "soon"));
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
fn of_a_wait_that_must_be_positive_zero_is_none() {
    let profile = Profile::new("acme")
        .positive_wait(header("x-wait"), Unit::Seconds)
        .wait(json("/wait"), Unit::Seconds);
    let read = |fields: &[_], body| wait(&judge(&profile, fields, body));
    assert_eq!(read(&[("x-wait", "0")], r#"{"wait":5}"#), Some(5 * SECOND));
    assert_eq!(read(&[("x-wait", "2")], r#"{"wait":5}"#), Some(2 * SECOND));
    assert_eq!(read(&[("x-wait", "0")], ""), None);
    assert_eq!(read(&[], r#"{"wait":0}"#), Some(Duration::ZERO));
}

#[test]
fn a_sample_is_kept_only_of_what_is_not_understood() {
    let profile = Profile::new("acme").rule(text().contains(["slow"]), Meaning::RATE_LIMITED);
    assert_eq!(judge(&profile, &[], "slow down").sample(), None);
    assert_eq!(judge(&profile, &[], "go away").sample(), Some("go away"));
}

#[test]
fn rules_are_for_successes_only_where_they_are_declared_to_be() {
    let busy = || header("x-busy").is_present();
    let profile = Profile::new("acme").rule(busy(), Meaning::OVERLOADED);
    let success = head(200, &[("x-busy", "1")]);
    let judge = |profile: &Profile| judge_at(profile, "https://a.test/", &success, "");
    assert_eq!(judge(&profile), Verdict::ACCEPTED);
    assert!(judge(&profile.success_heads()).is_refusal());
}

#[test]
fn a_dimension_that_is_named_as_violated_is_the_one_that_ran_out() {
    let profile = Profile::new("acme").violated(json("/violated/*"));
    let fields = [
        ("ratelimit", "\"burst\";t=2, \"hour\";t=600, \"day\";t=9000"),
        ("ratelimit-policy", "\"hour\";q=100;w=3600"),
    ];
    let verdict = judge(&profile, &fields, r#"{"violated":["hour"]}"#);
    assert_eq!(wait(&verdict), Some(600 * SECOND));
    assert_eq!(verdict.quota().unwrap().limit, Some(100));
}

#[test]
fn a_body_is_asked_for_whatever_it_is_that_stands_in_it() {
    let acme = || Profile::new("acme");
    let quota = || QuotaFields::new("q");
    let member = || json("/a");
    let in_head = acme()
        .code(header("x-code"))
        .wait(header("x-wait"), Unit::Seconds)
        .quota(quota().limit(header("x-limit")));
    let refused = head(429, &[]);
    assert!(!asks_for_body(&in_head, "https://a.test/", &refused));
    for profile in [
        acme().code(member()),
        acme().rule(member().is_present(), Meaning::UNKNOWN),
        acme().never_retry(member().is(["false"])),
        acme().wait(member(), Unit::Seconds),
        acme().wait_for_refill(member(), member(), member()),
        acme().violated(member()),
        acme().quota(quota().limit(member())),
        acme().quota(quota().remaining(member())),
        acme().quota(quota().used(member())),
        acme().quota(quota().rate(member())),
        acme().quota(quota().reset(member(), Unit::Unix)),
        acme().quota(quota().window_in(member(), Unit::Seconds)),
    ] {
        assert!(
            asks_for_body(&profile, "https://a.test/", &refused),
            "{profile:?}"
        );
    }
}
