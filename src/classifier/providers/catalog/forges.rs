//! Forges and package registries.

use super::{DAY, HOUR, MINUTE, X_RATE_LIMIT};
use crate::{
    classifier::providers::{
        Meaning, Profile, QuotaFields, Source, code, header, json, status, text,
    },
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

/// `api.github.com`, REST and GraphQL:
/// <https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api>.
///
/// The reset of the primary limit stands on every answer, also of the secondary
/// limit, which is told by its message only and asks for a minute at least; by
/// GraphQL it may come under a 200.
pub fn github() -> Profile {
    let primary = |window| {
        let resources: &[&str] = match window {
            HOUR => &["core", "graphql", "integration_manifest"],
            _ => &["search", "code_search", "code_scanning_upload"],
        };
        QuotaFields::headers("primary", X_RATE_LIMIT, Unit::Unix)
            .when(header("x-ratelimit-resource").is(resources.iter().copied()))
            .window(window)
    };
    let secondary = || {
        RATE_LIMITED
            .level(Level::Credential)
            .documented_wait(MINUTE)
    };
    let refused = || status([403, 429]);
    let is_secondary = |message: Source| message.contains(["secondary rate limit"]);
    Profile::new("github")
        .hosts(["api.github.com", "uploads.github.com"])
        .code(json("/errors/*/type"))
        .code(json("/errors/*/extensions/code"))
        .rule(is_secondary(json("/message")), secondary())
        .rule(is_secondary(json("/errors/*/message")), secondary())
        .rule(code(["RATE_LIMITED", "RATE_LIMIT"]), RATE_LIMITED)
        .rule(
            refused().and(json("/message").contains(["abuse detection"])),
            secondary(),
        )
        .rule(
            refused().and(header("x-ratelimit-remaining").is(["0"])),
            RATE_LIMITED,
        )
        .rule(
            refused().and(header("retry-after").is_present()),
            secondary(),
        )
        .rule(status([429]), secondary())
        // Once it read `1m0s`.
        .wait(header("retry-after"), Unit::Duration)
        .quota(primary(HOUR))
        .quota(primary(MINUTE))
        .quota(QuotaFields::headers("primary", X_RATE_LIMIT, Unit::Unix))
        .request_id(header("x-github-request-id"))
        .success_bodies("/graphql")
}

/// `gitlab.com`: the older `RateLimit` fields with a Unix time. They may be of
/// another limiter than the one that refused.
pub fn gitlab() -> Profile {
    Profile::new("gitlab")
        .host("gitlab.com")
        .request_id(header("x-request-id"))
        .request_id(header("x-gitlab-meta").json("/correlation_id"))
}

/// `*.atlassian.net`:
/// <https://developer.atlassian.com/cloud/jira/platform/rate-limiting/>.
pub fn jira() -> Profile {
    let reason = || header("ratelimit-reason");
    let account = || RATE_LIMITED.level(Level::Credential);
    Profile::new("jira")
        .hosts(["*.atlassian.net", "api.atlassian.com", "api.bitbucket.org"])
        .code(reason())
        .rule(reason().contains(["-quota-"]), account().window(HOUR))
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers(
            "requests",
            X_RATE_LIMIT,
            Unit::Timestamp,
        ))
        .rate_limit_fields("beta-ratelimit", "beta-ratelimit-policy")
        .request_id(header("atl-traceid"))
        .request_id(header("x-arequestid"))
}

/// `dev.azure.com`:
/// <https://learn.microsoft.com/azure/devops/integrate/concepts/rate-limits>. Its
/// fields stand only on answers of whoever is being delayed or refused.
pub fn azure_devops() -> Profile {
    Profile::new("azure-devops")
        .hosts(["dev.azure.com", "*.dev.azure.com", "*.visualstudio.com"])
        .code(json("/typeKey"))
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .quota(QuotaFields::headers("units", X_RATE_LIMIT, Unit::Unix))
        .request_id(header("x-vss-e2eid"))
}

/// Jira and Confluence Data Center, which people run themselves: `Retry-After`
/// stands on every answer.
pub fn atlassian_dc() -> Profile {
    Profile::new("atlassian-dc")
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .quota(
            QuotaFields::new("requests")
                .limit(header("x-ratelimit-limit"))
                .remaining(header("x-ratelimit-remaining"))
                .window_in(header("x-ratelimit-interval-seconds"), Unit::Seconds),
        )
        .request_id(header("x-arequestid"))
}

/// `crates.io`: `Retry-After` is a date; a crate's limit by the day has none.
pub fn crates_io() -> Profile {
    let detail = || json("/errors/*/detail");
    Profile::new("crates-io")
        .hosts(["crates.io", "static.crates.io", "index.crates.io"])
        .rule(
            status([429]).and(detail().contains(["24 hours"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("x-request-id"))
}

/// `pypi.org`: its XML-RPC refuses with a fault in a 200.
pub fn pypi() -> Profile {
    Profile::new("pypi")
        .hosts(["pypi.org", "test.pypi.org", "upload.pypi.org"])
        .code(text().between("<name>faultCode</name><value><int>", "</int>"))
        .rule(text().contains(["HTTPTooManyRequests"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .success_bodies("/pypi")
}
