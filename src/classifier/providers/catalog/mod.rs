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
mod social;
mod work;

use std::time::Duration;

pub use self::{
    cloud::{
        aws, azure_cosmos, azure_resource_manager, cloudflare, docker_hub, msgraph, okta, sendgrid,
        twilio,
    },
    commerce::{amazon_sp_api, binance, etsy, kraken, shopify, stripe},
    forges::{atlassian_dc, crates_io, github, gitlab, jira, pypi},
    google::{gemini, google_json, google_maps},
    language::{
        anthropic, azure_openai, cohere, groq, huggingface, mistral, openai, openrouter, together,
    },
    social::{discord, linkedin, meta, reddit, slack, spotify, telegram, x},
    work::{
        airtable, api_data_gov, hubspot, notion, opendatasoft, salesforce, socrata, wikimedia,
        zendesk,
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
        azure_openai(),
        azure_resource_manager(),
        binance(),
        cloudflare(),
        cohere(),
        crates_io(),
        discord(),
        docker_hub(),
        etsy(),
        gemini(),
        github(),
        gitlab(),
        google_json(),
        google_maps(),
        groq(),
        hubspot(),
        huggingface(),
        jira(),
        kraken(),
        linkedin(),
        meta(),
        mistral(),
        msgraph(),
        notion(),
        okta(),
        openai(),
        opendatasoft(),
        openrouter(),
        pypi(),
        reddit(),
        salesforce(),
        sendgrid(),
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
