//! Offices, customers and their support.

use std::time::Duration;

use super::{DAY, HOUR, MINUTE, X_RATE_LIMIT};
use crate::{
    classifier::providers::{Meaning, Profile, QuotaFields, code, header, json, status, value},
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

/// `api.notion.com`: <https://developers.notion.com/reference/request-limits>.
pub fn notion() -> Profile {
    Profile::new("notion")
        .host("api.notion.com")
        .code(json("/code"))
        .rule(code(["rate_limited"]), RATE_LIMITED)
        .rule(code(["service_overload"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503, 529]), Meaning::OVERLOADED)
        .request_id(header("x-notion-request-id"))
        .request_id(json("/request_id"))
}

/// `api.airtable.com`: <https://airtable.com/developers/web/api/rate-limits>. A
/// base that was called too often refuses for 30 s, which no field says.
pub fn airtable() -> Profile {
    Profile::new("airtable")
        .hosts(["api.airtable.com", "content.airtable.com"])
        .code(json("/errors/*/error"))
        .code(json("/error/type"))
        .code(json("/error"))
        .rule(
            code(["PUBLIC_API_BILLING_LIMIT_EXCEEDED"]),
            Meaning::EXHAUSTED,
        )
        .rule(
            status([429]),
            RATE_LIMITED.documented_wait(Duration::from_secs(30)),
        )
}

/// `api.hubapi.com`: <https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines>.
/// A day ends at midnight in the account's own zone, which no field says.
pub fn hubspot() -> Profile {
    let fields =
        |of: &str| ["", "-remaining"].map(|part| header(format!("x-hubspot-ratelimit{of}{part}")));
    let [daily, daily_left] = fields("-daily");
    let rolling = Duration::from_secs(10);
    let secondly = Duration::from_secs(1);
    Profile::new("hubspot")
        .hosts(["api.hubapi.com", "api.hubspot.com", "*.hubapi.com"])
        .code(json("/policyName"))
        .code(json("/errorType"))
        .code(json("/category"))
        .rule(code(["DAILY"]), Meaning::EXHAUSTED.window(DAY))
        .rule(code(["TEN_SECONDLY_ROLLING"]), RATE_LIMITED.window(rolling))
        .rule(code(["SECONDLY"]), RATE_LIMITED.window(secondly))
        .rule(
            status([429]).and(json("/message").contains(["your secondly limit"])),
            RATE_LIMITED.window(secondly),
        )
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("rolling")
                .limit(header("x-hubspot-ratelimit-max"))
                .remaining(header("x-hubspot-ratelimit-remaining"))
                .window_in(
                    header("x-hubspot-ratelimit-interval-milliseconds"),
                    Unit::Millis,
                ),
        )
        .quota(
            QuotaFields::new("daily")
                .limit(daily)
                .remaining(daily_left)
                .window(DAY),
        )
        .request_id(header("x-hubspot-correlation-id"))
        .request_id(json("/correlationId"))
}

/// `*.salesforce.com`: one status and one code for two limits, which only the
/// message tells apart.
pub fn salesforce() -> Profile {
    let usage = || header("sforce-limit-info").between("api-usage=", ";");
    let limit = || code(["REQUEST_LIMIT_EXCEEDED"]);
    Profile::new("salesforce")
        .hosts(["*.salesforce.com", "*.force.com"])
        .code(json("/errorCode"))
        .rule(
            limit().and(json("/message").contains(["Concurrent"])),
            Meaning::CONCURRENCY_LIMITED.level(Level::Credential),
        )
        .rule(limit(), Meaning::EXHAUSTED.window(DAY))
        .rule(code(["SERVER_UNAVAILABLE"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("daily")
                .used(usage().until("/"))
                .limit(usage().after("/"))
                .window(DAY),
        )
}

/// `*.zendesk.com`: <https://developer.zendesk.com/api-reference/introduction/rate-limits/>.
/// An endpoint with a limit of its own has a field of its own.
pub fn zendesk() -> Profile {
    Profile::new("zendesk")
        .host("*.zendesk.com")
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::each("zendesk-ratelimit-")
                .limit(value().between("total=", ";"))
                .remaining(value().between("remaining=", ";"))
                .reset(value().between("resets=", ";"), Unit::Seconds),
        )
        .quota(
            QuotaFields::new("account")
                .limit(header("x-rate-limit"))
                .remaining(header("x-rate-limit-remaining"))
                .window(MINUTE),
        )
        .request_id(header("x-request-id"))
        .request_id(header("x-zendesk-request-id"))
}

/// `*.dynamics.com`: <https://learn.microsoft.com/power-apps/developer/data-platform/api-limits>.
/// Three limits of a user, each with a code: requests and time in five minutes,
/// and requests at once.
pub fn dataverse() -> Profile {
    let rate = RATE_LIMITED.level(Level::Credential);
    Profile::new("dataverse")
        .host("*.dynamics.com")
        .code(json("/error/code"))
        .rule(
            code(["0x80072326"]),
            Meaning::CONCURRENCY_LIMITED.level(Level::Credential),
        )
        .rule(code(["0x80072321", "0x80072322"]), rate.clone())
        .rule(status([429]), rate)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(
            QuotaFields::new("requests")
                .remaining(header("x-ms-ratelimit-burst-remaining-xrm-requests"))
                .window(5 * MINUTE),
        )
        .request_id(header("x-ms-service-request-id"))
}

/// `api.linear.app`: <https://linear.app/developers/rate-limiting>. GraphQL that
/// refuses with a 400; resets are Unix times in milliseconds.
pub fn linear() -> Profile {
    let quota = |of: &'static str| {
        let field = |part| header(format!("x-ratelimit-{of}-{part}"));
        QuotaFields::new(of)
            .limit(field("limit"))
            .remaining(field("remaining"))
            .reset(field("reset"), Unit::Unix)
    };
    Profile::new("linear")
        .host("api.linear.app")
        .code(json("/errors/*/extensions/code"))
        .rule(code(["RATELIMITED"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .quota(quota("requests").window(HOUR))
        .quota(quota("complexity").window(HOUR))
        .quota(quota("endpoint-requests"))
        .request_id(header("x-request-id"))
        .success_bodies("/graphql")
}

/// `api.monday.com`: <https://developer.monday.com/api-reference/docs/rate-limits>.
/// GraphQL, whose errors come under a 200 too, in two forms.
pub fn monday() -> Profile {
    let hold = |meaning: Meaning| meaning.level(Level::Credential);
    Profile::new("monday")
        .host("api.monday.com")
        .code(json("/errors/*/extensions/code"))
        .code(json("/error_code"))
        .rule(
            code(["DAILY_LIMIT_EXCEEDED"]),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(
            code(["maxConcurrencyExceeded", "FIELD_LIMIT_EXCEEDED"]),
            hold(Meaning::CONCURRENCY_LIMITED),
        )
        .rule(
            code([
                "COMPLEXITY_BUDGET_EXHAUSTED",
                "ComplexityException",
                "FIELD_MINUTE_RATE_LIMIT_EXCEEDED",
                "RATE_LIMIT_EXCEEDED",
                "rateLimitExceeded",
            ]),
            hold(RATE_LIMITED),
        )
        .rule(
            code(["IP_RATE_LIMIT_EXCEEDED"]),
            RATE_LIMITED.level(Level::ROOT),
        )
        .rule(status([429]), RATE_LIMITED)
        .wait(json("/errors/*/extensions/retry_in_seconds"), Unit::Seconds)
        .wait(json("/error_data/retry_in_seconds"), Unit::Seconds)
        .request_id(json("/extensions/request_id"))
        .request_id(json("/request_id"))
        .success_bodies("")
}

/// `api.dropboxapi.com`: <https://developers.dropbox.com/error-handling-guide>. Two
/// writers at one namespace are refused under the same status.
pub fn dropbox() -> Profile {
    Profile::new("dropbox")
        .hosts(["*.dropboxapi.com"])
        .code(json("/error/reason/.tag"))
        .code(json("/error/.tag"))
        .rule(
            code(["too_many_write_operations"]),
            Meaning::CONCURRENCY_LIMITED,
        )
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .wait(json("/error/retry_after"), Unit::Seconds)
        .request_id(header("x-dropbox-request-id"))
}

/// `api.box.com`: <https://developer.box.com/guides/api-calls/permissions-and-errors/rate-limits/>.
pub fn box_com() -> Profile {
    Profile::new("box")
        .hosts(["api.box.com", "upload.box.com", "dl.boxcloud.com"])
        .code(json("/code"))
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .rule(status([503]), Meaning::OVERLOADED)
        .request_id(json("/request_id"))
        .request_id(header("box-request-id"))
}

/// `api.zoom.us`: <https://developers.zoom.us/docs/api/rate-limits/>. A day's limit
/// is named by a field, and its `Retry-After` is an instant.
pub fn zoom() -> Profile {
    Profile::new("zoom")
        .host("api.zoom.us")
        .code(json("/code"))
        .rule(
            status([429]).and(header("x-ratelimit-type").contains(["daily"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(
            status([429]).and(json("/message").contains(["concurrent requests"])),
            Meaning::CONCURRENCY_LIMITED,
        )
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .wait(header("retry-after"), Unit::Timestamp)
        .quota(
            QuotaFields::new("requests")
                .limit(header("x-ratelimit-limit"))
                .remaining(header("x-ratelimit-remaining")),
        )
        .request_id(header("x-zm-trackingid"))
}

/// `api.intercom.io`:
/// <https://developers.intercom.com/docs/references/rest-api/errors/rate-limiting>.
pub fn intercom() -> Profile {
    Profile::new("intercom")
        .hosts(["api.intercom.io", "*.intercom.io"])
        .code(json("/errors/*/code"))
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Unix))
        .request_id(json("/request_id"))
        .request_id(header("x-request-id"))
}

/// `*.api.mailchimp.com`: ten connections at once, and no other limit
/// (<https://mailchimp.com/developer/marketing/docs/fundamentals/#throttling>).
pub fn mailchimp() -> Profile {
    Profile::new("mailchimp")
        .host("*.api.mailchimp.com")
        .code(json("/title"))
        .rule(
            status([429]),
            Meaning::CONCURRENCY_LIMITED.level(Level::Credential),
        )
        .request_id(json("/instance"))
}

/// `api.contentful.com`:
/// <https://www.contentful.com/developers/docs/references/content-management-api/#/introduction/api-rate-limits>.
/// The field tells how many seconds are left of the window that is over.
pub fn contentful() -> Profile {
    let quota = |window: &'static str, span| {
        let field = |part| header(format!("x-contentful-ratelimit-{window}-{part}"));
        QuotaFields::new(window)
            .limit(field("limit"))
            .remaining(field("remaining"))
            .window(span)
    };
    Profile::new("contentful")
        .hosts(["*.contentful.com"])
        .code(json("/sys/id"))
        .rule(status([429]), RATE_LIMITED)
        .wait(header("x-contentful-ratelimit-reset"), Unit::Seconds)
        .quota(quota("second", Duration::from_secs(1)))
        .quota(quota("hour", HOUR))
        .request_id(header("x-contentful-request-id"))
        .request_id(json("/requestId"))
}

/// `api.trello.com`: <https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits/>.
/// Ten seconds for a key, and for each token of it.
pub fn trello() -> Profile {
    let quota = |of| {
        let field = |part| header(format!("x-rate-limit-api-{of}-{part}"));
        QuotaFields::new(of)
            .limit(field("max"))
            .remaining(field("remaining"))
            .window_in(field("interval-ms"), Unit::Millis)
    };
    Profile::new("trello")
        .host("api.trello.com")
        .code(json("/error"))
        .rule(
            code(["API_KEY_LIMIT_EXCEEDED"]),
            RATE_LIMITED.level(Level::ROOT),
        )
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .quota(quota("token"))
        .quota(quota("key"))
}

/// `api.clickup.com`: <https://developer.clickup.com/docs/rate-limits>.
pub fn clickup() -> Profile {
    Profile::new("clickup")
        .host("api.clickup.com")
        .code(json("/ECODE"))
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .quota(QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Unix))
}
