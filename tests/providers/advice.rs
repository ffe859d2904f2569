//! Which part of a scope a service means, and what it documents of sending
//! again.

use std::time::UNIX_EPOCH;

use http::{HeaderMap, Response, Uri};
use tower_retry_after::{
    Classifier as _, HttpClassifier,
    classifier::{Receipt, providers::catalog},
    verdict::{Level, RetryAdvice, Throttle},
};

const LEAF: Level = Level::Leaf;
const ACCOUNT: Level = Level::Credential;
const HOST: Level = Level::ROOT;

/// A host, a status, a field, and a body.
type Answer = (
    &'static str,
    u16,
    (&'static str, &'static str),
    &'static str,
);

const NONE: (&str, &str) = ("server", "x");

fn refusal((host, status, (name, value), body): Answer) -> Throttle {
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header(name, value);
    let (head, ()) = response.body(()).unwrap().into_parts();
    let uri: Uri = format!("https://{host}/graphql").parse().unwrap();
    let at = Receipt::at(UNIX_EPOCH).uri(Some(&uri));
    let known = HttpClassifier::new().providers();
    let verdict = known.judge(&head, body.as_bytes(), &HeaderMap::new(), &at);
    let verdict = verdict.unwrap();
    let throttle = verdict.throttle().cloned();
    throttle.unwrap_or_else(|| panic!("{host}: {verdict:?}"))
}

#[test]
fn a_refusal_is_about_the_part_of_the_scope_that_the_service_says() {
    let cases: [(Answer, Level, bool); 21] = [
        (
            ("discord.com", 429, ("x-ratelimit-scope", "user"), ""),
            LEAF,
            false,
        ),
        (
            ("discord.com", 429, ("x-ratelimit-scope", "shared"), ""),
            LEAF,
            false,
        ),
        (
            ("discord.com", 429, ("x-ratelimit-scope", "global"), ""),
            ACCOUNT,
            false,
        ),
        (
            ("discord.com", 429, ("x-ratelimit-global", "true"), ""),
            ACCOUNT,
            false,
        ),
        (
            ("discord.com", 429, NONE, r#"{"global":true}"#),
            ACCOUNT,
            false,
        ),
        (("discord.com", 429, NONE, "error code: 1015"), HOST, true),
        (
            ("api.github.com", 403, ("x-ratelimit-remaining", "0"), ""),
            LEAF,
            false,
        ),
        (
            ("api.github.com", 403, ("retry-after", "60"), ""),
            ACCOUNT,
            false,
        ),
        (
            (
                "api.github.com",
                200,
                NONE,
                r#"{"message":"You have exceeded a secondary rate limit."}"#,
            ),
            ACCOUNT,
            false,
        ),
        (
            (
                "a.atlassian.net",
                429,
                ("ratelimit-reason", "jira-quota-global-based"),
                "",
            ),
            ACCOUNT,
            false,
        ),
        (
            (
                "a.atlassian.net",
                429,
                ("ratelimit-reason", "jira-per-issue-on-write"),
                "",
            ),
            LEAF,
            false,
        ),
        (("api.binance.com", 418, NONE, ""), HOST, true),
        (
            ("api.binance.com", 429, NONE, r#"{"code":-1003}"#),
            HOST,
            false,
        ),
        (
            ("api.binance.com", 429, NONE, r#"{"code":-1015}"#),
            ACCOUNT,
            false,
        ),
        (
            (
                "api.kraken.com",
                200,
                NONE,
                r#"{"error":["EAPI:Rate limit exceeded"]}"#,
            ),
            ACCOUNT,
            false,
        ),
        (
            (
                "api.kraken.com",
                200,
                NONE,
                r#"{"error":["EOrder:Rate limit exceeded"]}"#,
            ),
            LEAF,
            false,
        ),
        (
            (
                "api.stripe.com",
                429,
                ("stripe-rate-limited-reason", "global-rate"),
                "",
            ),
            ACCOUNT,
            false,
        ),
        (
            (
                "api.stripe.com",
                429,
                ("stripe-rate-limited-reason", "endpoint-rate"),
                "",
            ),
            LEAF,
            false,
        ),
        (
            ("graph.facebook.com", 400, NONE, r#"{"error":{"code":4}}"#),
            HOST,
            false,
        ),
        (
            ("graph.facebook.com", 400, NONE, r#"{"error":{"code":17}}"#),
            ACCOUNT,
            false,
        ),
        (
            ("graph.facebook.com", 400, NONE, r#"{"error":{"code":32}}"#),
            LEAF,
            false,
        ),
    ];
    for (answer, level, ban) in cases {
        let throttle = refusal(answer);
        assert_eq!((throttle.level, throttle.ban), (level, ban), "{answer:?}");
    }
}

#[test]
fn a_refusal_is_unprocessed_only_where_the_service_documents_it() {
    let shared =
        r#"{"error":{"code":429,"metadata":{"limit_source":"openrouter_shared_capacity"}}}"#;
    let cases: [(Answer, bool); 16] = [
        (("api.openai.com", 429, NONE, ""), true),
        (("api.openai.com", 503, NONE, ""), false),
        (("a.openai.azure.com", 429, NONE, ""), true),
        (("api.anthropic.com", 429, NONE, ""), true),
        (("api.anthropic.com", 529, NONE, ""), false),
        (("openrouter.ai", 429, NONE, shared), true),
        // A model had begun.
        (
            ("openrouter.ai", 200, NONE, r#"{"error":{"code":429}}"#),
            false,
        ),
        (("api.mistral.ai", 429, NONE, ""), false),
        (("api.groq.com", 429, NONE, ""), false),
        (("a.documents.azure.com", 429, NONE, ""), true),
        (
            ("s3.amazonaws.com", 503, NONE, "<Code>SlowDown</Code>"),
            true,
        ),
        (
            (
                "sqs.amazonaws.com",
                400,
                ("x-amzn-errortype", "ThrottlingException"),
                "",
            ),
            true,
        ),
        (
            (
                "lambda.amazonaws.com",
                429,
                NONE,
                r#"{"Reason":"ConcurrentInvocationLimitExceeded"}"#,
            ),
            true,
        ),
        (
            (
                "ssm.amazonaws.com",
                400,
                NONE,
                r#"{"__type":"LimitExceededException"}"#,
            ),
            false,
        ),
        // Somebody's own program, behind a gateway.
        (("a.execute-api.amazonaws.com", 429, NONE, ""), false),
        (("a.test", 429, ("retry-after", "1"), ""), false),
    ];
    for (answer, unprocessed) in cases {
        let advice = match unprocessed {
            true => RetryAdvice::Unprocessed,
            false => RetryAdvice::Default,
        };
        assert_eq!(refusal(answer).retry, advice, "{answer:?}");
    }
    // Who is on this list has every request kept to be sent again.
    let home = "https://a.test/".parse().unwrap();
    let profiles = catalog::all().into_iter().map(|profile| profile.anywhere());
    let kept = profiles.filter(|profile| profile.may_be_unprocessed(&home));
    let kept: Vec<_> = kept.map(|profile| profile.name().to_owned()).collect();
    let documented = [
        "anthropic",
        "aws",
        "azure-cosmos",
        "azure-openai",
        "openai",
        "openrouter",
    ];
    assert_eq!(kept, documented);
}
