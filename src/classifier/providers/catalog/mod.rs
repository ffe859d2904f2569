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
        msgraph, okta, sendgrid, sentry, twilio,
    },
    commerce::{
        amazon_sp_api, binance, bybit, coinbase, etsy, kraken, kucoin, okx, shopify, stripe,
    },
    forges::{atlassian_dc, azure_devops, crates_io, github, gitlab, jira, pypi},
    google::{gemini, google_json, google_maps},
    language::{
        anthropic, azure_openai, cohere, deepseek, elevenlabs, groq, huggingface, mistral, openai,
        openrouter, together,
    },
    public::{api_data_gov, mapbox, opendatasoft, socrata, wikimedia},
    social::{discord, linkedin, meta, reddit, slack, spotify, telegram, x},
    work::{
        airtable, box_com, contentful, dataverse, dropbox, hubspot, intercom, linear, mailchimp,
        monday, notion, salesforce, zendesk, zoom,
    },
};
use super::{Meaning, Profile, code, json};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

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
        binance(),
        box_com(),
        bybit(),
        cloudflare(),
        cohere(),
        coinbase(),
        contentful(),
        crates_io(),
        datadog(),
        dataverse(),
        deepseek(),
        discord(),
        docker_hub(),
        dropbox(),
        elevenlabs(),
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
        notion(),
        okta(),
        okx(),
        openai(),
        opendatasoft(),
        openrouter(),
        pypi(),
        reddit(),
        salesforce(),
        sendgrid(),
        sentry(),
        shopify(),
        slack(),
        socrata(),
        spotify(),
        stripe(),
        telegram(),
        together(),
        twilio(),
        wikimedia(),
        x(),
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
