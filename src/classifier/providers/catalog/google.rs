//! Google.

use super::{DAY, MINUTE};
use crate::{
    classifier::providers::{Meaning, Profile, QuotaFields, Source, code, header, json, status},
    hint::Unit,
    verdict::Level,
};

/// `generativelanguage.googleapis.com` and Vertex AI.
pub fn gemini() -> Profile {
    let regions = [
        "us-central1",
        "us-east1",
        "us-east4",
        "us-west1",
        "europe-west1",
        "europe-west4",
    ];
    errors("gemini")
        .hosts([
            "generativelanguage.googleapis.com",
            "aiplatform.googleapis.com",
        ])
        .hosts(regions.map(|region| format!("{region}-aiplatform.googleapis.com")))
        .code(json("/error/status"))
        .code(json("/error/errors/*/reason"))
        // The newer Interactions API, where the code is a word.
        .code(json("/error/code"))
}

/// `*.googleapis.com`:
/// <https://developers.google.com/workspace/gmail/api/guides/handle-errors>,
/// <https://developers.google.com/youtube/v3/docs/errors>.
pub fn google_json() -> Profile {
    errors("google-json")
        .hosts(["*.googleapis.com", "*.googleusercontent.com"])
        .code(json("/error/errors/*/reason"))
        .code(json("/error/status"))
}

/// Google's errors in JSON, of both generations: `errors[].reason`
/// (<https://cloud.google.com/storage/docs/json_api/v1/status-codes>), and the
/// `details[]` of google.rpc
/// (<https://cloud.google.com/apis/design/errors#error_details>).
fn errors(name: &'static str) -> Profile {
    let daily = || Meaning::EXHAUSTED.window(DAY);
    let minutely = || Meaning::RATE_LIMITED.window(MINUTE);
    Profile::new(name)
        .rule(
            detail("violations/*/quotaId").contains(["PerDay", "Daily"]),
            daily(),
        )
        .rule(
            detail("metadata/quota_limit").contains(["PerDay", "Daily"]),
            daily(),
        )
        .rule(detail("metadata/quota_unit").contains(["1/d/"]), daily())
        .rule(
            detail("reason").is(["QUOTA_EXHAUSTED", "INSUFFICIENT_G1_CREDITS_BALANCE"]),
            Meaning::EXHAUSTED,
        )
        .rule(
            detail("reason").is(["MODEL_CAPACITY_EXHAUSTED"]),
            Meaning::OVERLOADED,
        )
        .rule(
            detail("violations/*/quotaId").contains(["PerMinute"]),
            minutely(),
        )
        .rule(
            detail("metadata/quota_limit").contains(["PerMinute"]),
            minutely(),
        )
        .rule(
            detail("reason").is(["RATE_LIMIT_EXCEEDED"]),
            Meaning::RATE_LIMITED,
        )
        .rule(
            code([
                "dailyLimitExceeded",
                "dailyLimitExceededUnreg",
                "downloadQuotaExceeded",
                "quotaExceeded",
                "quota_exceeded",
                "variableTermExpiredDailyExceeded",
                "variableTermLimitExceeded",
            ]),
            daily(),
        )
        .rule(
            code(["userRateLimitExceeded", "userRateLimitExceededUnreg"]),
            Meaning::RATE_LIMITED.level(Level::Credential),
        )
        .rule(
            code([
                "jobRateLimitExceeded",
                "rateLimitExceeded",
                "rateLimitExceededUnreg",
                "servingLimitExceeded",
                "sharingRateLimitExceeded",
                "uploadRateLimitExceeded",
            ]),
            Meaning::RATE_LIMITED,
        )
        .rule(
            code(["concurrentLimitExceeded"]),
            Meaning::CONCURRENCY_LIMITED,
        )
        // Messages to devices: a minute, by
        // <https://firebase.google.com/docs/cloud-messaging/scale-fcm>.
        .rule(
            detail("errorCode").is(["QUOTA_EXCEEDED"]),
            Meaning::RATE_LIMITED.documented_wait(MINUTE),
        )
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(
            status([429]).and(detail("retryDelay").is_present()),
            Meaning::RATE_LIMITED,
        )
        .rule(
            status([429]).and(header("retry-after").is_present()),
            Meaning::RATE_LIMITED,
        )
        // Without details it may be a rate, a quota or capacity.
        .rule(status([429]), Meaning::UNKNOWN)
        .rule(status([503]), Meaning::OVERLOADED)
        .wait(detail("retryDelay"), Unit::Duration)
        .quota(QuotaFields::new("requests").limit(detail("violations/*/quotaValue")))
}

fn detail(member: &str) -> Source {
    json(&format!("/error/details/*/{member}"))
}

/// `maps.googleapis.com`: refuses with a 200 and a status in the body.
pub fn google_maps() -> Profile {
    Profile::new("google-maps")
        .host("maps.googleapis.com")
        .code(json("/status"))
        .code(json("/error/status"))
        .rule(code(["OVER_DAILY_LIMIT"]), Meaning::EXHAUSTED)
        // The same code for two limits, which only the message tells apart.
        .rule(
            code(["OVER_QUERY_LIMIT"]).and(json("/error_message").contains(["daily"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(
            code(["OVER_QUERY_LIMIT", "RESOURCE_EXHAUSTED"]),
            Meaning::RATE_LIMITED,
        )
        .rule(status([429]), Meaning::RATE_LIMITED)
        .success_bodies("/json")
}
