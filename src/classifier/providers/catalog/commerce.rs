//! Payments, shops and exchanges.

use super::{DAY, MINUTE};
use crate::{
    classifier::providers::{Meaning, Profile, QuotaFields, code, header, json, status, text},
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

/// `api.stripe.com`: <https://docs.stripe.com/rate-limits>. No wait is named; a
/// lock that timed out is contention for one object.
pub fn stripe() -> Profile {
    let reason = || header("stripe-rate-limited-reason");
    let at_once = Meaning::CONCURRENCY_LIMITED;
    Profile::new("stripe")
        .hosts(["api.stripe.com", "files.stripe.com"])
        .code(json("/error/code"))
        .code(json("/error/type"))
        .rule(
            reason().is(["global-rate"]),
            RATE_LIMITED.level(Level::Credential),
        )
        .rule(
            reason().is(["global-concurrency"]),
            at_once.clone().level(Level::Credential),
        )
        .rule(reason().is(["endpoint-concurrency"]), at_once.clone())
        .rule(
            reason().is(["endpoint-rate", "resource-specific"]),
            RATE_LIMITED,
        )
        .rule(code(["lock_timeout"]), at_once)
        .rule(status([429]), RATE_LIMITED)
        .never_retry(header("stripe-should-retry").is(["false"]))
        .request_id(header("request-id"))
}

/// `*.myshopify.com`: <https://shopify.dev/docs/api/usage/limits>. REST tells
/// what was used of a leaky bucket; GraphQL refuses with a 200, and the wait is
/// what it takes to refill the bucket for the query.
pub fn shopify() -> Profile {
    let bucket = || header("x-shopify-shop-api-call-limit");
    let cost = |member| json(&format!("/extensions/cost/{member}"));
    Profile::new("shopify")
        .host("*.myshopify.com")
        .code(json("/errors/*/extensions/code"))
        .rule(code(["THROTTLED"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .wait_for_refill(
            cost("requestedQueryCost"),
            cost("throttleStatus/currentlyAvailable"),
            cost("throttleStatus/restoreRate"),
        )
        .quota(
            QuotaFields::new("requests")
                .used(bucket().until("/"))
                .limit(bucket().after("/")),
        )
        .quota(
            QuotaFields::new("cost")
                .limit(cost("throttleStatus/maximumAvailable"))
                .remaining(cost("throttleStatus/currentlyAvailable")),
        )
        .request_id(header("x-request-id"))
        .success_bodies("/graphql.json")
}

/// `openapi.etsy.com`: <https://developers.etsy.com/documentation/essentials/rate-limits>.
/// Two windows, by the second and by the day.
pub fn etsy() -> Profile {
    Profile::new("etsy")
        .hosts(["openapi.etsy.com", "api.etsy.com"])
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("second")
                .limit(header("x-limit-per-second"))
                .remaining(header("x-remaining-this-second"))
                // As one page of the documentation spells it.
                .remaining(header("x-remaining-this-secon"))
                .window(std::time::Duration::from_secs(1)),
        )
        .quota(
            QuotaFields::new("day")
                .limit(header("x-limit-per-day"))
                .remaining(header("x-remaining-today"))
                .window(DAY),
        )
        .request_id(header("x-etsy-request-uuid"))
}

/// `sellingpartnerapi-*.amazon.com`: a token bucket whose rate is told, not its
/// limit. `QuotaExceeded` is a rate all the same.
pub fn amazon_sp_api() -> Profile {
    let hosts = ["na", "eu", "fe"].map(|region| {
        ["", "sandbox."].map(|sandbox| format!("{sandbox}sellingpartnerapi-{region}.amazon.com"))
    });
    Profile::new("amazon-sp-api")
        .hosts(hosts.into_iter().flatten())
        .code(json("/errors/*/code"))
        .rule(code(["QuotaExceeded"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(QuotaFields::new("requests").rate(header("x-amzn-ratelimit-limit")))
        .request_id(header("x-amzn-requestid"))
}

/// `api.binance.com`: <https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits>.
/// Weight is counted by address, orders by account; who goes on after a 429 is
/// banned, each time for longer.
pub fn binance() -> Profile {
    let message = || json("/msg");
    Profile::new("binance")
        .hosts(["*.binance.com", "*.binance.us", "*.binance.vision"])
        .code(json("/code"))
        .rule(status([418]), RATE_LIMITED.level(Level::ROOT).ban())
        .rule(code(["-1015"]), RATE_LIMITED.level(Level::Credential))
        .rule(code(["-1003"]), RATE_LIMITED.level(Level::ROOT))
        .rule(code(["-1008"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED.level(Level::ROOT))
        // The firewall, which does not say what was wrong.
        .rule(status([403]), Meaning::UNKNOWN.level(Level::ROOT))
        .quota(
            QuotaFields::new("weight")
                .limit(message().between("current limit is ", " "))
                .used(header("x-mbx-used-weight-1m")),
        )
}

/// `api.kraken.com`: <https://docs.kraken.com/api/docs/guides/spot-rest-ratelimits>.
/// Every answer is a 200 with a list of errors; that of the futures has one word.
pub fn kraken() -> Profile {
    let error = || json("/error/*");
    let throttled = ["EService: Throttled", "EService:Throttled"];
    Profile::new("kraken")
        .hosts(["api.kraken.com", "futures.kraken.com"])
        .code(error())
        .code(json("/error"))
        .rule(
            code(["apiLimitExceeded"]),
            RATE_LIMITED.level(Level::Credential),
        )
        .rule(
            error().is(["EAPI:Rate limit exceeded", "EGeneral:Temporary lockout"]),
            RATE_LIMITED.level(Level::Credential),
        )
        // Orders are counted by pair.
        .rule(error().is(["EOrder:Rate limit exceeded"]), RATE_LIMITED)
        .rule(error().contains(throttled), RATE_LIMITED.level(Level::ROOT))
        .rule(
            error().is(["EService:Busy", "EService:Unavailable"]),
            Meaning::OVERLOADED,
        )
        .rule(status([429]), RATE_LIMITED)
        .wait(error().between("Throttled: ", " "), Unit::Unix)
        .success_bodies("")
}

/// `api.coinbase.com` and `api.exchange.coinbase.com`:
/// <https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits>.
pub fn coinbase() -> Profile {
    Profile::new("coinbase")
        .hosts(["api.coinbase.com", "*.coinbase.com"])
        .code(json("/errors/*/id"))
        .code(json("/error"))
        .rule(code(["rate_limit_exceeded"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
}

/// `api.bybit.com`: <https://bybit-exchange.github.io/docs/v5/rate-limit>. Limits
/// of an account come under a 200; those of an address are a 403, for ten
/// minutes.
pub fn bybit() -> Profile {
    let fields = [
        "x-bapi-limit",
        "x-bapi-limit-status",
        "x-bapi-limit-reset-timestamp",
    ];
    Profile::new("bybit")
        .hosts(["api.bybit.com", "api.bytick.com"])
        .code(json("/retCode"))
        .rule(
            status([403]).and(text().contains(["access too frequent"])),
            RATE_LIMITED.level(Level::ROOT).documented_wait(10 * MINUTE),
        )
        .rule(code(["10006"]), RATE_LIMITED)
        .rule(code(["10018"]), RATE_LIMITED.level(Level::ROOT))
        .rule(code(["10016"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("requests", fields, Unit::Unix))
        .success_bodies("")
}

/// `www.okx.com`: <https://www.okx.com/docs-v5/en/#error-code>.
pub fn okx() -> Profile {
    Profile::new("okx")
        .hosts(["www.okx.com", "*.okx.com"])
        .code(json("/code"))
        .rule(code(["50011", "50061"]), RATE_LIMITED)
        .rule(code(["50013", "50026"]), Meaning::OVERLOADED)
        .rule(status([429]), RATE_LIMITED)
        .success_bodies("")
}

/// `api.kucoin.com`: <https://www.kucoin.com/docs-new/rate-limit>. The reset is a
/// delay in milliseconds.
pub fn kucoin() -> Profile {
    let fields = [
        "gw-ratelimit-limit",
        "gw-ratelimit-remaining",
        "gw-ratelimit-reset",
    ];
    Profile::new("kucoin")
        .hosts(["api.kucoin.com", "api-futures.kucoin.com"])
        .code(json("/code"))
        .rule(code(["429000"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("weight", fields, Unit::Millis))
}

/// `api.bigcommerce.com`:
/// <https://developer.bigcommerce.com/docs/start/best-practices/api-rate-limits>.
/// The window and what is left of it are in milliseconds.
pub fn bigcommerce() -> Profile {
    let fields = ["requests-quota", "requests-left", "time-reset-ms"];
    let fields = fields.map(|part| format!("x-rate-limit-{part}"));
    Profile::new("bigcommerce")
        .host("api.bigcommerce.com")
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::headers("requests", fields, Unit::Millis)
                .window_in(header("x-rate-limit-time-window-ms"), Unit::Millis),
        )
}

/// `*.plaid.com`: <https://plaid.com/docs/errors/rate-limit-exceeded/>.
pub fn plaid() -> Profile {
    Profile::new("plaid")
        .hosts(["*.plaid.com"])
        .code(json("/error_code"))
        .code(json("/error_type"))
        .rule(code(["RATE_LIMIT_EXCEEDED"]), RATE_LIMITED)
        .rule(status([429]), RATE_LIMITED)
        .request_id(json("/request_id"))
}

/// `api.xero.com`: <https://developer.xero.com/documentation/guides/oauth2/limits/>.
/// Four limits, and a field that names the one that was met.
pub fn xero() -> Profile {
    let problem = || header("x-rate-limit-problem");
    let left = |name, field| QuotaFields::new(name).remaining(header(field));
    Profile::new("xero")
        .host("api.xero.com")
        .code(problem())
        .rule(problem().is(["day"]), Meaning::EXHAUSTED.window(DAY))
        .rule(problem().is(["concurrent"]), Meaning::CONCURRENCY_LIMITED)
        .rule(problem().is(["appminute"]), RATE_LIMITED.level(Level::ROOT))
        .rule(status([429]), RATE_LIMITED)
        .rule(status([503]), Meaning::OVERLOADED)
        .quota(left("minute", "x-minlimit-remaining").window(MINUTE))
        .quota(left("day", "x-daylimit-remaining").window(DAY))
        .request_id(header("xero-correlation-id"))
}

/// `api.etherscan.io`: <https://docs.etherscan.io/support/rate-limits>. It refuses
/// with a 200 and a sentence.
pub fn etherscan() -> Profile {
    let result = || json("/result");
    Profile::new("etherscan")
        .hosts(["*.etherscan.io", "etherscan.io"])
        .rule(
            result().contains(["daily rate limit reached"]),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(
            result().contains(["rate limit reached"]),
            RATE_LIMITED.level(Level::Credential),
        )
        .rule(status([429]), RATE_LIMITED)
        .success_bodies("/api")
}
