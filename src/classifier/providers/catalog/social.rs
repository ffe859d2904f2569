//! Messengers and social networks.

use super::{DAY, MINUTE};
use crate::{
    classifier::providers::{Meaning, Profile, QuotaFields, code, header, json, status, text},
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

/// `discord.com`: <https://discord.com/developers/docs/topics/rate-limits>.
/// What Cloudflare refuses in front of it is a ban of the address.
pub fn discord() -> Profile {
    let global = || RATE_LIMITED.level(Level::Credential);
    Profile::new("discord")
        .hosts(["discord.com", "*.discord.com", "discordapp.com"])
        .code(json("/code"))
        .rule(
            text().contains(["error code: 1015"]),
            RATE_LIMITED.level(Level::ROOT).ban(),
        )
        .rule(header("x-ratelimit-global").is(["true"]), global())
        .rule(header("x-ratelimit-scope").is(["global"]), global())
        .rule(json("/global").is(["true"]), global())
        .rule(status([429]), RATE_LIMITED)
        .wait(json("/retry_after"), Unit::Seconds)
        .quota(
            QuotaFields::new("bucket")
                .limit(header("x-ratelimit-limit"))
                .remaining(header("x-ratelimit-remaining"))
                .reset(header("x-ratelimit-reset-after"), Unit::Seconds)
                .reset(header("x-ratelimit-reset"), Unit::Unix),
        )
        .request_id(header("cf-ray"))
}

/// `slack.com`: <https://docs.slack.dev/apis/web-api/rate-limits>. A method of a
/// workspace is limited, under a 429 or under a 200 that is not `ok`.
pub fn slack() -> Profile {
    Profile::new("slack")
        .hosts(["slack.com", "*.slack.com"])
        .code(json("/error"))
        .rule(code(["ratelimited", "rate_limited"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("x-slack-req-id"))
        .success_bodies("")
}

/// `api.telegram.org`: <https://core.telegram.org/bots/api#responseparameters>.
pub fn telegram() -> Profile {
    Profile::new("telegram")
        .host("api.telegram.org")
        .code(json("/error_code"))
        .rule(code(["429"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .wait(json("/parameters/retry_after"), Unit::Seconds)
}

/// `graph.facebook.com`, WhatsApp included:
/// <https://developers.facebook.com/docs/graph-api/overview/rate-limiting>. The
/// waits stand in JSON in the head, in minutes or in seconds.
pub fn meta() -> Profile {
    let usage = header("x-business-use-case-usage");
    let account = header("x-ad-account-usage");
    let limits_of_use_cases = (80_000..=80_014).map(|code| code.to_string());
    Profile::new("meta-graph")
        .hosts([
            "graph.facebook.com",
            "graph.instagram.com",
            "graph.threads.net",
        ])
        .hosts(["graph-video.facebook.com", "graph.whatsapp.com"])
        .code(json("/error/code"))
        .rule(code(["4", "341"]), RATE_LIMITED.level(Level::ROOT))
        .rule(code(["17"]), RATE_LIMITED.level(Level::Credential))
        // A page, a custom limit.
        .rule(code(["32", "613"]), RATE_LIMITED)
        .rule(code(limits_of_use_cases), RATE_LIMITED)
        // WhatsApp: messages of a number, to a pair, registrations.
        .rule(code(["130429", "131048", "131056", "133016"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .positive_wait(
            usage.json("/*/*/estimated_time_to_regain_access"),
            Unit::Minutes,
        )
        .positive_wait(account.json("/reset_time_duration"), Unit::Seconds)
        .request_id(json("/error/fbtrace_id"))
        .request_id(header("x-fb-trace-id"))
}

/// `api.x.com`: <https://docs.x.com/x-api/fundamentals/rate-limits>. The reset of
/// the window of 15 minutes is not that of the monthly cap.
pub fn x() -> Profile {
    let fields = [
        "x-rate-limit-limit",
        "x-rate-limit-remaining",
        "x-rate-limit-reset",
    ];
    let daily = |of| {
        let field = |part| header(format!("x-{of}-limit-24hour-{part}"));
        QuotaFields::new(of)
            .limit(field("limit"))
            .remaining(field("remaining"))
            .reset(field("reset"), Unit::Unix)
            .window(DAY)
    };
    Profile::new("x-twitter")
        .hosts([
            "api.x.com",
            "api.twitter.com",
            "upload.x.com",
            "upload.twitter.com",
        ])
        .code(json("/connection_issue"))
        .code(json("/type").between("/problems/", "?"))
        .code(json("/errors/*/code"))
        .code(json("/title"))
        .rule(
            code([
                "usage-capped",
                "UsageCapExceeded",
                "credits-depleted",
                "CreditsDepleted",
            ]),
            Meaning::EXHAUSTED,
        )
        // What a user may post in a day.
        .rule(code(["185", "344"]), Meaning::EXHAUSTED.window(DAY))
        .rule(code(["TooManyConnections"]), Meaning::CONCURRENCY_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(QuotaFields::headers("window", fields, Unit::Unix).window(15 * MINUTE))
        .quota(daily("app"))
        .quota(daily("user"))
        .request_id(header("x-transaction-id"))
}

/// `oauth.reddit.com`: what remains is a fraction, the reset a delay.
pub fn reddit() -> Profile {
    let fields = ["", "x-ratelimit-remaining", "x-ratelimit-reset"];
    Profile::new("reddit")
        .hosts(["*.reddit.com"])
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("requests", fields, Unit::Seconds))
}

/// `api.spotify.com`: <https://developer.spotify.com/documentation/web-api/concepts/rate-limits>.
pub fn spotify() -> Profile {
    Profile::new("spotify")
        .host("api.spotify.com")
        .rule(status([429]), RATE_LIMITED)
}

/// `api.linkedin.com`: <https://learn.microsoft.com/linkedin/shared/api-guide/concepts/rate-limits>.
/// Limits are by the day, until midnight UTC; the message says which.
pub fn linkedin() -> Profile {
    Profile::new("linkedin")
        .host("api.linkedin.com")
        .code(json("/serviceErrorCode"))
        .code(json("/code"))
        .rule(
            status([429]).and(json("/message").contains([" DAY limit"])),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(status([429]), RATE_LIMITED)
        .request_id(header("x-li-uuid"))
}

/// `www.strava.com`: <https://developers.strava.com/docs/rate-limits/>. Two windows in
/// one field: of a quarter of an hour, and of a day.
pub fn strava() -> Profile {
    let limit = || header("x-ratelimit-limit");
    let usage = || header("x-ratelimit-usage");
    Profile::new("strava")
        .host("www.strava.com")
        .code(json("/errors/*/code"))
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("quarter")
                .limit(limit().until(","))
                .used(usage().until(","))
                .window(15 * MINUTE),
        )
        .quota(
            QuotaFields::new("day")
                .limit(limit().after(","))
                .used(usage().after(","))
                .window(DAY),
        )
}
