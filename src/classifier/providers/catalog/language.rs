//! Language models.

use super::{DAY, MINUTE, X_RATE_LIMIT};
use crate::{
    classifier::providers::{Meaning, Profile, QuotaFields, code, header, json, status},
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

/// Refused before the model saw it, where a service's documentation says so:
/// nothing was generated or billed, and the same request may be sent again.
const REFUSED: Meaning = RATE_LIMITED.unprocessed();

/// `api.openai.com`: <https://platform.openai.com/docs/guides/rate-limits>,
/// <https://help.openai.com/en/articles/5955604>. Tokens are counted by an
/// estimate of the request, before it is run. Limits by the day have the code
/// of those by the minute, and only the message tells them apart.
pub fn openai() -> Profile {
    let message = || json("/error/message");
    openai_like("openai")
        .hosts(["api.openai.com", "*.api.openai.com"])
        .code(json("/error/code"))
        .code(json("/error/type"))
        // The events of a stream that fails.
        .code(json("/response/error/code"))
        .code(json("/code"))
        .rule(
            code([
                "insufficient_quota",
                "credit_balance_exhausted",
                "organization_spend_limit_exceeded",
                "project_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "billing_hard_limit_reached",
                "billing_not_active",
            ]),
            Meaning::EXHAUSTED,
        )
        .rule(
            status([429]).and(message().contains(["per day", "(RPD)", "(TPD)"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        // What is sent for half the price is refused when there is no room.
        .rule(code(["resource_unavailable"]), Meaning::OVERLOADED)
        .rule(code(["rate_limit_exceeded", "slow_down"]), REFUSED)
        .rule(status([429]), REFUSED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(openai_quota("requests"))
        .quota(openai_quota("tokens"))
}

/// What OpenAI's clients, and those made by the same generator, obey.
fn openai_like(name: &'static str) -> Profile {
    Profile::new(name)
        .never_retry(header("x-should-retry").is(["false"]))
        .wait(header("retry-after-ms"), Unit::Millis)
        .request_id(header("x-request-id"))
        .request_id(header("request-id"))
}

fn openai_quota(name: &'static str) -> QuotaFields {
    QuotaFields::new(name)
        .limit(header(format!("x-ratelimit-limit-{name}")))
        .remaining(header(format!("x-ratelimit-remaining-{name}")))
        .reset(header(format!("x-ratelimit-reset-{name}")), Unit::Duration)
}

/// `*.openai.azure.com`: <https://learn.microsoft.com/azure/ai-foundry/openai/how-to/quota>.
/// Requests are counted when they arrive. The same fields as OpenAI's, but
/// resets in plain seconds, in two spellings, and -1 for what is not known.
pub fn azure_openai() -> Profile {
    let quota = |name| {
        openai_quota(name)
            .reset(header(format!("x-ratelimit-reset-{name}")), Unit::Seconds)
            .reset(header(format!("x-rate-limit-reset-{name}")), Unit::Seconds)
    };
    openai_like("azure-openai")
        .hosts([
            "*.openai.azure.com",
            "*.cognitiveservices.azure.com",
            "*.services.ai.azure.com",
        ])
        .code(json("/error/code"))
        .code(json("/error/type"))
        .rule(code(["insufficient_quota"]), Meaning::EXHAUSTED)
        .rule(
            code(["NoCapacity", "EngineOverloaded"]),
            Meaning::OVERLOADED,
        )
        .rule(status([429]), REFUSED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(quota("requests"))
        .quota(quota("tokens"))
        .request_id(header("apim-request-id"))
}

/// `api.anthropic.com`: <https://docs.anthropic.com/en/api/rate-limits>,
/// <https://docs.anthropic.com/en/api/errors>. `retry-after` tells when the
/// request may be sent again.
pub fn anthropic() -> Profile {
    let quota = |name| {
        QuotaFields::new(name)
            .limit(header(format!("anthropic-ratelimit-{name}-limit")))
            .remaining(header(format!("anthropic-ratelimit-{name}-remaining")))
            .reset(
                header(format!("anthropic-ratelimit-{name}-reset")),
                Unit::Timestamp,
            )
    };
    openai_like("anthropic")
        .host("api.anthropic.com")
        .code(json("/error/details/error_code"))
        .code(json("/error/type"))
        .rule(
            code(["enforced_spend_limit_reached", "billing_error"]),
            Meaning::EXHAUSTED,
        )
        // An empty account and a limit of one's own have no codes of their own.
        .rule(
            status([400, 403]).and(
                json("/error/message")
                    .contains(["credit balance is too low", "specified API usage limits"]),
            ),
            Meaning::EXHAUSTED,
        )
        .rule(code(["rate_limit_error"]), REFUSED)
        .rule(code(["overloaded_error"]), Meaning::OVERLOADED)
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(status([429]), REFUSED)
        .rule(status([503, 529]), Meaning::OVERLOADED)
        .quota(quota("requests"))
        .quota(quota("tokens"))
        .quota(quota("input-tokens"))
        .quota(quota("output-tokens"))
        .request_id(json("/request_id"))
}

/// `api.mistral.ai`: the window stands in the name of the field, and there is
/// no reset. A limit of zero is a plan that allows nothing.
pub fn mistral() -> Profile {
    let windows = [("minute", MINUTE), ("month", 30 * DAY)];
    let pairs = ["req", "tokens"].map(|unit| windows.map(|window| (unit, window)));
    let mut profile = Profile::new("mistral")
        .host("api.mistral.ai")
        .code(json("/code"))
        .code(json("/type"))
        .wait(header("retry-after-ms"), Unit::Millis);
    for (unit, (span, window)) in pairs.into_iter().flatten() {
        let limit = header(format!("x-ratelimit-limit-{unit}-{span}"));
        let remaining = header(format!("x-ratelimit-remaining-{unit}-{span}"));
        let quota = QuotaFields::new(unit)
            .limit(limit.clone())
            .remaining(remaining);
        profile = profile
            .rule(status([429]).and(limit.is(["0"])), Meaning::EXHAUSTED)
            .quota(quota.window(window));
    }
    profile
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(
            code(["3505", "service_tier_capacity_exceeded"]),
            Meaning::OVERLOADED,
        )
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .request_id(header("mistral-correlation-id"))
        .request_id(header("x-kong-request-id"))
}

/// `api.groq.com`: <https://console.groq.com/docs/rate-limits>. Requests are
/// counted by the day, tokens by the minute; tokens by the day are told of in
/// the message only.
pub fn groq() -> Profile {
    let message = || json("/error/message");
    openai_like("groq")
        .host("api.groq.com")
        .code(json("/error/code"))
        .code(json("/error/type"))
        // One request that is larger than the whole window: waiting won't help.
        .rule(status([413]), Meaning::NOT_THROTTLED)
        .rule(
            status([429]).and(message().contains(["per day", "(TPD)", "(RPD)"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(code(["rate_limit_exceeded"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([498, 503]), Meaning::OVERLOADED)
        .quota(QuotaFields::new("message").limit(message().between("Limit ", ",")))
        .quota(openai_quota("requests").window(DAY))
        .quota(openai_quota("tokens").window(MINUTE))
}

/// `api.cohere.com`: two limits of a trial key, told apart by the message.
pub fn cohere() -> Profile {
    let message = || json("/message");
    Profile::new("cohere")
        .hosts(["api.cohere.com", "api.cohere.ai"])
        .rule(
            status([429]).and(message().contains(["/ month", "per month"])),
            Meaning::EXHAUSTED.window(30 * DAY),
        )
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(
            QuotaFields::new("calls")
                .limit(header("x-trial-endpoint-call-limit"))
                .remaining(header("x-trial-endpoint-call-remaining"))
                .window(MINUTE),
        )
        .request_id(header("x-debug-trace-id"))
}

/// `api.together.xyz`: <https://docs.together.ai/docs/rate-limits>.
pub fn together() -> Profile {
    openai_like("together")
        .hosts(["api.together.xyz", "api.together.ai"])
        .code(json("/error_type"))
        .code(json("/error/code"))
        .code(json("/error/type"))
        .rule(
            code(["dynamic_request_limited", "dynamic_token_limited"]),
            RATE_LIMITED,
        )
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(QuotaFields::headers(
            "requests",
            X_RATE_LIMIT,
            Unit::Seconds,
        ))
}

/// `huggingface.co`: the draft's `RateLimit` fields, one bucket for each kind
/// of page.
pub fn huggingface() -> Profile {
    Profile::new("huggingface")
        .hosts(["huggingface.co", "*.huggingface.co", "hf.co", "*.hf.co"])
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(status([429]), Meaning::RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        // A model that is being loaded says when it will be.
        .wait(json("/estimated_time"), Unit::Seconds)
        .request_id(header("x-request-id"))
}

/// `openrouter.ai`: <https://openrouter.ai/docs/limits>,
/// <https://openrouter.ai/docs/api/errors>. Its own fields stand in the body as
/// often as in the head. A status that is an error says that no model has begun;
/// an error in a 200 comes from one that had.
pub fn openrouter() -> Profile {
    let names = [
        "X-RateLimit-Limit",
        "X-RateLimit-Remaining",
        "X-RateLimit-Reset",
    ];
    let [limit, remaining, reset] =
        names.map(|name| json(&format!("/error/metadata/headers/{name}")));
    let source = || json("/error/metadata/limit_source");
    let message = || json("/error/message");
    openai_like("openrouter")
        .host("openrouter.ai")
        .code(json("/error/code"))
        .rule(source().contains(["daily"]), Meaning::EXHAUSTED.window(DAY))
        // Until that member was added only the message told.
        .rule(
            message().contains(["-per-day"]),
            Meaning::EXHAUSTED.window(DAY),
        )
        // What is under way may cost more than what is left: it comes to an end.
        .rule(
            source()
                .is(["openrouter_in_flight_budget"])
                .and(header("retry-after").is_present()),
            Meaning::CONCURRENCY_LIMITED.level(Level::Credential),
        )
        .rule(code(["402"]), Meaning::EXHAUSTED)
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(
            status([429]).and(message().contains(["-per-min"])),
            REFUSED.window(MINUTE),
        )
        .rule(
            status([429]).and(source().contains(["shared_capacity"])),
            REFUSED.level(Level::ROOT),
        )
        .rule(status([429]), REFUSED)
        .rule(code(["429"]), RATE_LIMITED)
        .rule(code(["503"]), Meaning::OVERLOADED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(QuotaFields::headers("requests", names, Unit::Unix))
        .quota(
            QuotaFields::new("requests")
                .limit(limit)
                .remaining(remaining)
                .reset(reset, Unit::Unix),
        )
        .success_bodies("")
}

/// `api.deepseek.com`: <https://api-docs.deepseek.com/quick_start/error_codes>.
pub fn deepseek() -> Profile {
    openai_like("deepseek")
        .host("api.deepseek.com")
        .code(json("/error/code"))
        .code(json("/error/type"))
        .rule(status([402]), Meaning::EXHAUSTED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
}

/// `api.elevenlabs.io`: <https://help.elevenlabs.io/hc/en-us/articles/19571824571921>.
/// Credits that are used up are told of by a 401.
pub fn elevenlabs() -> Profile {
    Profile::new("elevenlabs")
        .hosts(["api.elevenlabs.io", "*.elevenlabs.io"])
        .code(json("/detail/status"))
        .code(json("/detail/code"))
        .rule(code(["quota_exceeded"]), Meaning::EXHAUSTED)
        .rule(
            code(["too_many_concurrent_requests", "concurrent_limit_exceeded"]),
            Meaning::CONCURRENCY_LIMITED.level(Level::Credential),
        )
        .rule(code(["system_busy"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("request-id"))
        .request_id(json("/detail/request_id"))
}

/// `api.deepl.com`: <https://developers.deepl.com/docs/best-practices/error-handling>.
/// A translator's 456 is its quota of characters.
pub fn deepl() -> Profile {
    Profile::new("deepl")
        .hosts(["api.deepl.com", "api-free.deepl.com"])
        .rule(status([456]), Meaning::EXHAUSTED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503, 529]), Meaning::OVERLOADED)
        .request_id(header("x-trace-id"))
}
