//! What the known profiles are for, and when they ask for a body.

use std::collections::HashSet;

use tower_retry_after::{
    Classifier as _, HttpClassifier,
    classifier::providers::{self, Profile, catalog},
    verdict::ThrottleKind,
};

use super::*;

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
        assert!(!asks_for_body(&known, url, &head(429, stream)), "{url}");
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
    let alone = catalog::openai();
    assert!(alone.may_be_unprocessed(&Uri::from_static("https://api.openai.com/v1")));
    assert!(!alone.may_be_unprocessed(&Uri::from_static("https://api.other.test/")));
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
