//! Open data and maps.

use super::{DAY, HOUR, MINUTE, X_RATE_LIMIT};
use crate::{
    classifier::providers::{Meaning, Profile, QuotaFields, code, header, json, status, text},
    hint::Unit,
    verdict::Level,
};

const RATE_LIMITED: Meaning = Meaning::RATE_LIMITED;

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

/// `api.mapbox.com`: <https://docs.mapbox.com/api/guides/#rate-limits>.
pub fn mapbox() -> Profile {
    Profile::new("mapbox")
        .host("api.mapbox.com")
        .rule(status([429]), RATE_LIMITED)
        .quota(
            QuotaFields::new("requests")
                .limit(header("x-rate-limit-limit"))
                .reset(header("x-rate-limit-reset"), Unit::Unix)
                .window_in(header("x-rate-limit-interval"), Unit::Seconds),
        )
}

/// `api.yelp.com`: <https://docs.developer.yelp.com/docs/places-rate-limiting>. Calls
/// are counted by the day, and queries by the second.
pub fn yelp() -> Profile {
    let fields = [
        "ratelimit-dailylimit",
        "ratelimit-remaining",
        "ratelimit-resettime",
    ];
    Profile::new("yelp")
        .host("api.yelp.com")
        .code(json("/error/code"))
        .rule(
            code(["ACCESS_LIMIT_REACHED"]),
            Meaning::EXHAUSTED.window(DAY),
        )
        .rule(status([429]), RATE_LIMITED)
        .quota(QuotaFields::headers("day", fields, Unit::Timestamp).window(DAY))
}

/// `musicbrainz.org`: <https://musicbrainz.org/doc/MusicBrainz_API/Rate_Limiting>. An
/// address that is too fast is answered with a 503.
pub fn musicbrainz() -> Profile {
    Profile::new("musicbrainz")
        .hosts(["musicbrainz.org", "*.musicbrainz.org"])
        .rule(status([429, 503]), RATE_LIMITED.level(Level::ROOT))
        .quota(QuotaFields::headers("requests", X_RATE_LIMIT, Unit::Unix))
}
