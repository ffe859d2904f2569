//! Clouds and what runs at their edge.

use super::{DAY, X_RATE_LIMIT};
use crate::{
    classifier::providers::{
        Meaning, Profile, QuotaFields, code, header, json, status, status_code, text,
    },
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

/// `*.amazonaws.com`. The codes are those that the SDKs take for throttling
/// (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html>).
/// What was throttled was denied, by the errors that all its services have in
/// common. A 429 without a code may be that of somebody's own program behind a
/// gateway.
pub fn aws() -> Profile {
    let daily = ["Daily message quota exceeded", "tokens per day"];
    Profile::new("aws")
        .hosts(["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"])
        .code(header("x-amzn-errortype").after("#").until(":"))
        .code(json("/__type").after("#").until(":"))
        .code(text().between("<Code>", "</Code>"))
        .code(json("/code"))
        .code(json("/Error/Code"))
        .code(json("/errors/*/code"))
        // Lambda and Athena mix limits of both kinds under one code.
        .rule(
            json("/Reason").is([
                "CONCURRENT_QUERY_LIMIT_EXCEEDED",
                "ConcurrentInvocationLimitExceeded",
                "ConcurrentSnapshotCreateLimitExceeded",
                "ReservedFunctionConcurrentInvocationLimitExceeded",
            ]),
            Meaning::CONCURRENCY_LIMITED.unprocessed(),
        )
        .rule(
            code(["ConcurrentRunsExceededException"]),
            Meaning::CONCURRENCY_LIMITED,
        )
        // API Gateway: a usage plan's quota, which has no code of its own.
        .rule(
            status([429]).and(json("/message").is(["Limit Exceeded"])),
            Meaning::EXHAUSTED,
        )
        // Mail and language models: a day's quota, under the code of a rate.
        .rule(
            code(["Throttling", "ThrottlingException"]).and(text().contains(daily)),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(code(["ServiceQuotaExceededException"]), Meaning::EXHAUSTED)
        .rule(code(["ModelNotReadyException"]), Meaning::OVERLOADED)
        .rule(
            code([
                "BandwidthLimitExceeded",
                "EC2ThrottledException",
                "KMSThrottlingException",
                "ProvisionedThroughputExceededException",
                "RequestLimitExceeded",
                "RequestThrottled",
                "RequestThrottledException",
                "SlowDown",
                "ThrottledException",
                "Throttling",
                "ThrottlingException",
                "TooManyRequestsException",
            ]),
            RATE_LIMITED.unprocessed(),
        )
        .rule(
            code([
                "LimitExceededException",
                "PriorRequestNotComplete",
                "TransactionInProgressException",
            ]),
            RATE_LIMITED,
        )
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503, 529]), Meaning::OVERLOADED)
        .wait(header("x-amz-retry-after"), Unit::Millis)
        .wait(json("/retryAfterSeconds"), Unit::Seconds)
        .request_id(header("x-amzn-requestid"))
        .request_id(header("x-amz-request-id"))
        .request_id(text().between("<RequestId>", "</RequestId>"))
}

/// `graph.microsoft.com`: <https://learn.microsoft.com/graph/throttling>,
/// <https://learn.microsoft.com/graph/errors>. A mailbox also limits what is
/// under way at once, which only the message says.
pub fn msgraph() -> Profile {
    Profile::new("msgraph")
        .hosts([
            "graph.microsoft.com",
            "graph.microsoft.us",
            "dod-graph.microsoft.us",
        ])
        .host("microsoftgraph.chinacloudapi.cn")
        .code(json("/error/code"))
        .rule(
            status([429]).and(json("/error/message").contains(["MailboxConcurrency"])),
            Meaning::CONCURRENCY_LIMITED,
        )
        // 509 is a cap on bandwidth.
        .rule(status([429, 509]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .request_id(header("request-id"))
        .request_id(json("/error/innerError/request-id"))
}

/// `management.azure.com`:
/// <https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling>.
pub fn azure_resource_manager() -> Profile {
    let remaining = |of| {
        let field = header(format!("x-ms-ratelimit-remaining-{of}"));
        QuotaFields::new(of).remaining(field)
    };
    Profile::new("azure-resource-manager")
        .hosts([
            "management.azure.com",
            "management.usgovcloudapi.net",
            "management.chinacloudapi.cn",
        ])
        .code(json("/error/code"))
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(remaining("subscription-reads"))
        .quota(remaining("subscription-writes"))
        .quota(remaining("subscription-deletes"))
        .quota(remaining("tenant-reads"))
        .quota(remaining("tenant-writes"))
        .request_id(header("x-ms-request-id"))
}

/// `*.documents.azure.com`: waits are in milliseconds. What is over the request
/// units is not carried out; 449 is two writers at one document.
pub fn azure_cosmos() -> Profile {
    Profile::new("azure-cosmos")
        .hosts([
            "*.documents.azure.com",
            "*.documents.azure.cn",
            "*.documents.azure.us",
        ])
        .code(header("x-ms-substatus"))
        .code(json("/code"))
        .rule(status([429]), RATE_LIMITED.unprocessed())
        .rule(status([449]), Meaning::NOT_THROTTLED)
        .rule(status([503]), Meaning::OVERLOADED)
        .wait(header("x-ms-retry-after-ms"), Unit::Millis)
        .request_id(header("x-ms-activity-id"))
}

/// Azure Storage: <https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes>.
/// What is over the limits of an account is told to be busy.
pub fn azure_storage() -> Profile {
    let hosts =
        ["blob", "dfs", "file", "queue", "table"].map(|kind| format!("*.{kind}.core.windows.net"));
    Profile::new("azure-storage")
        .hosts(hosts)
        .code(header("x-ms-error-code"))
        .code(text().between("<Code>", "</Code>"))
        .rule(code(["ServerBusy"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .request_id(header("x-ms-request-id"))
}

/// `api.cloudflare.com` (<https://developers.cloudflare.com/fundamentals/api/reference/limits/>),
/// and its edge in front of anybody's site: 1015 is its rate limit, other codes
/// of the kind are blocks. Workers AI has a day's allocation and a want of room
/// (<https://developers.cloudflare.com/workers-ai/platform/errors/>).
pub fn cloudflare() -> Profile {
    Profile::new("cloudflare")
        .host("api.cloudflare.com")
        .code(text().between("error code: ", "\n"))
        .code(text().between("\"cf-error-code\">", "<"))
        .code(json("/errors/*/code"))
        .rule(code(["1015"]), RATE_LIMITED.level(Level::ROOT))
        .rule(code(["3036"]), Meaning::EXHAUSTED.window(DAY))
        .rule(code(["3040"]), Meaning::OVERLOADED)
        .rule(status([403]), Meaning::NOT_THROTTLED)
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .request_id(header("cf-ray"))
}

/// `*.okta.com`: <https://developer.okta.com/docs/reference/rate-limits/>. A limit
/// of zero is one on requests at once, and its reset only a suggestion.
pub fn okta() -> Profile {
    let fields = [
        "x-rate-limit-limit",
        "x-rate-limit-remaining",
        "x-rate-limit-reset",
    ];
    let limit = || header("x-rate-limit-limit");
    Profile::new("okta")
        .hosts([
            "*.okta.com",
            "*.oktapreview.com",
            "*.okta-emea.com",
            "*.okta-gov.com",
        ])
        .code(json("/errorCode"))
        .rule(
            status([429]).and(limit().is(["0"])),
            Meaning::CONCURRENCY_LIMITED,
        )
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("requests", fields, Unit::Unix))
        .request_id(header("x-okta-request-id"))
}

/// `registry-1.docker.io` and `hub.docker.com`:
/// <https://docs.docker.com/docker-hub/usage/pulls/>. Pulls are told of by the
/// older `RateLimit` fields, without a reset; `X-Retry-After` was a Unix time
/// until 2025.
pub fn docker_hub() -> Profile {
    Profile::new("docker-hub")
        .hosts([
            "registry-1.docker.io",
            "index.docker.io",
            "auth.docker.io",
            "hub.docker.com",
        ])
        .code(json("/errors/*/code"))
        .rule(status([429]), RATE_LIMITED.level(Level::Credential))
        .wait(header("x-retry-after"), Unit::Seconds)
        .quota(QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Unix))
}

/// `api.sendgrid.com`: an account without credits is told of by a 401 and its
/// message.
pub fn sendgrid() -> Profile {
    let message = || json("/errors/*/message");
    Profile::new("sendgrid")
        .host("api.sendgrid.com")
        .code(status_code())
        .rule(
            message().contains(["Maximum credits exceeded"]),
            Meaning::EXHAUSTED,
        )
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Unix))
        .request_id(header("x-message-id"))
}

/// `*.twilio.com`: <https://www.twilio.com/docs/errors/20429>; 63038 is the
/// account's limit of messages by the day.
pub fn twilio() -> Profile {
    Profile::new("twilio")
        .hosts(["*.twilio.com"])
        .code(json("/code"))
        .rule(code(["63038"]), Meaning::EXHAUSTED.window(DAY))
        .rule(code(["20429"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("twilio-request-id"))
}

/// `api.datadoghq.com`: <https://docs.datadoghq.com/api/latest/rate-limits/>. The
/// reset is a delay.
pub fn datadog() -> Profile {
    Profile::new("datadog")
        .hosts(["*.datadoghq.com", "*.datadoghq.eu", "*.ddog-gov.com"])
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Seconds)
                .window_in(header("x-ratelimit-period"), Unit::Seconds),
        )
}

/// `sentry.io`: <https://docs.sentry.io/api/ratelimits/>. One limit in a window,
/// and one on requests at once.
pub fn sentry() -> Profile {
    let field = |part| header(format!("x-sentry-rate-limit-{part}"));
    Profile::new("sentry")
        .hosts(["sentry.io", "*.sentry.io"])
        .rule(
            status([429]).and(field("concurrentremaining").is(["0"])),
            Meaning::CONCURRENCY_LIMITED,
        )
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("requests")
                .limit(field("limit"))
                .remaining(field("remaining"))
                .reset(field("reset"), Unit::Unix),
        )
}

/// `api.vercel.com`: <https://vercel.com/docs/rest-api#rate-limits>.
pub fn vercel() -> Profile {
    Profile::new("vercel")
        .host("api.vercel.com")
        .code(json("/error/code"))
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Unix))
        .request_id(header("x-vercel-id"))
}
