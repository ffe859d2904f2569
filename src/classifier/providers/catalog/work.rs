//! Office, support and open data.

use std::time::Duration;

use super::{DAY, HOUR, MINUTE};
use crate::{
    classifier::providers::{
        Meaning, Profile, QuotaFields, code, header, json, status, text, value,
    },
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

/// The wikis of Wikimedia: errors stand in a field of a 200, with a
/// `Retry-After` when a database lags.
pub fn wikimedia() -> Profile {
    Profile::new("wikimedia")
        .hosts([
            "*.wikipedia.org",
            "*.wikimedia.org",
            "*.wikidata.org",
            "*.wiktionary.org",
        ])
        .hosts([
            "*.wikisource.org",
            "*.wikibooks.org",
            "*.wikiquote.org",
            "*.mediawiki.org",
        ])
        .code(header("mediawiki-api-error"))
        .code(json("/error/code"))
        .code(json("/errors/*/code"))
        .rule(code(["maxlag"]), Meaning::OVERLOADED)
        .rule(code(["ratelimited"]), RATE_LIMITED)
        .success_heads()
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("x-request-id"))
}

/// The services behind api.data.gov: <https://api.data.gov/docs/rate-limits/>. An
/// hour that rolls; the code stands in JSON, XML, CSV or HTML.
pub fn api_data_gov() -> Profile {
    Profile::new("api-data-gov")
        .hosts([
            "api.data.gov",
            "*.api.data.gov",
            "api.nasa.gov",
            "api.gsa.gov",
            "api.usa.gov",
        ])
        .hosts([
            "developer.nrel.gov",
            "developer.nlr.gov",
            "api.nal.usda.gov",
            "api.open.fec.gov",
        ])
        .hosts([
            "api.congress.gov",
            "api.govinfo.gov",
            "api.regulations.gov",
            "api.census.gov",
        ])
        .code(json("/error/code"))
        .code(text().between("<code>", "</code>"))
        .code(text().between("<h1>", "</h1>"))
        .code(text().between("Error Code,Error Message\n", ","))
        .rule(
            text().contains(["OVER_RATE_LIMIT"]),
            RATE_LIMITED.level(Level::Credential),
        )
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .quota(
            QuotaFields::new("requests")
                .limit(header("x-ratelimit-limit"))
                .remaining(header("x-ratelimit-remaining"))
                .window(HOUR),
        )
}

/// The open-data portals of Opendatasoft, also under cities' own names. The
/// reset stands in the body.
pub fn opendatasoft() -> Profile {
    let unit = || json("/limit_time_unit");
    let limit = || code(["10002"]);
    Profile::new("opendatasoft")
        .host("*.opendatasoft.com")
        .code(json("/errorcode"))
        .rule(
            limit().and(unit().is(["day"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(
            limit().and(unit().is(["month"])),
            Meaning::EXHAUSTED.window(30 * DAY),
        )
        .rule(limit().and(unit().is(["hour"])), RATE_LIMITED.window(HOUR))
        .rule(
            limit().and(unit().is(["minute"])),
            RATE_LIMITED.window(MINUTE),
        )
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("calls")
                .limit(json("/call_limit"))
                .reset(json("/reset_time"), Unit::Timestamp),
        )
}

/// The open-data portals of Socrata, under cities' own names: a bare 429.
pub fn socrata() -> Profile {
    Profile::new("socrata")
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("x-socrata-requestid"))
}
