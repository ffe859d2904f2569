//! One short declaration for each service.
//!
//! The documentation of each says which hosts it is for, and where its facts
//! come from.
//!
//! A rule with a code comes before one with a status, and a hard quota before
//! a limit by the minute, for one answer may tell of both.

mod cloud;
mod commerce;
mod forges;
mod google;
mod language;
mod public;
mod social;
mod work;

use std::time::Duration;

pub use self::{
    cloud::{
        aws, azure_cosmos, azure_resource_manager, azure_storage, cloudflare, datadog, docker_hub,
        msgraph, okta, sendgrid, sentry, twilio, vercel,
    },
    commerce::{
        amazon_sp_api, bigcommerce, binance, bybit, coinbase, etherscan, etsy, kraken, kucoin, okx,
        plaid, shopify, stripe, xero,
    },
    forges::{atlassian_dc, azure_devops, crates_io, github, gitlab, jira, pypi},
    google::{gemini, google_json, google_maps},
    language::{
        anthropic, azure_openai, cohere, deepl, deepseek, elevenlabs, groq, huggingface, mistral,
        openai, openrouter, together,
    },
    public::{api_data_gov, mapbox, musicbrainz, opendatasoft, socrata, wikimedia, yelp},
    social::{discord, linkedin, meta, reddit, slack, spotify, strava, telegram, x},
    work::{
        airtable, box_com, clickup, contentful, dataverse, dropbox, hubspot, intercom, linear,
        mailchimp, monday, notion, salesforce, trello, zendesk, zoom,
    },
};
use super::{Meaning, Profile, code, json};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// The names that many services give to the fields of a quota. What the last
/// one means is told by none of them.
const X_RATE_LIMIT: [&str; 3] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// All profiles.
pub fn all() -> Vec<Profile> {
    vec![
        airtable(),
        amazon_sp_api(),
        anthropic(),
        api_data_gov(),
        atlassian_dc(),
        aws(),
        azure_cosmos(),
        azure_devops(),
        azure_openai(),
        azure_resource_manager(),
        azure_storage(),
        bigcommerce(),
        binance(),
        box_com(),
        bybit(),
        clickup(),
        cloudflare(),
        cohere(),
        coinbase(),
        contentful(),
        crates_io(),
        datadog(),
        dataverse(),
        deepl(),
        deepseek(),
        discord(),
        docker_hub(),
        dropbox(),
        elevenlabs(),
        etherscan(),
        etsy(),
        gemini(),
        github(),
        gitlab(),
        google_json(),
        google_maps(),
        groq(),
        hubspot(),
        huggingface(),
        intercom(),
        jira(),
        kraken(),
        kucoin(),
        linear(),
        linkedin(),
        mailchimp(),
        mapbox(),
        meta(),
        mistral(),
        monday(),
        msgraph(),
        musicbrainz(),
        notion(),
        okta(),
        okx(),
        openai(),
        opendatasoft(),
        openrouter(),
        plaid(),
        pypi(),
        reddit(),
        salesforce(),
        sendgrid(),
        sentry(),
        shopify(),
        slack(),
        socrata(),
        spotify(),
        strava(),
        stripe(),
        telegram(),
        together(),
        trello(),
        twilio(),
        vercel(),
        wikimedia(),
        x(),
        xero(),
        yelp(),
        zendesk(),
        zoom(),
    ]
}

/// The problem types of draft-ietf-httpapi-ratelimit-headers, section 6.
pub(super) fn problem() -> Profile {
    Profile::new("problem")
        .code(json("/type").between("http-problem-types#", "#"))
        .rule(code(["temporary-reduced-capacity"]), Meaning::OVERLOADED)
        .rule(code(["quota-exceeded"]), Meaning::RATE_LIMITED)
        .rule(code(["abnormal-usage-detected"]), Meaning::UNKNOWN)
        .violated(json("/violated-policies/*"))
}
