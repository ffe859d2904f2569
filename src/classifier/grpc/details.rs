//! What stands in `grpc-status-details-bin`: a `google.rpc.Status`.

use std::time::Duration;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::HeaderMap;
use prost::Message;
use tonic_types::pb;

use crate::verdict::{Level, Quota};

pub(super) const DETAILS: &str = "grpc-status-details-bin";

/// Padded or not: the protocol lets senders choose.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What ran out, as far as the details say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    Rate,
    HardQuota,
}

/// What stands in `grpc-status-details-bin`. What can't be read is not there.
#[derive(Debug, Default)]
pub(super) struct Details {
    pub(super) delay: Option<Duration>,
    violations: Vec<pb::quota_failure::Violation>,
    reason: String,
}

impl Details {
    pub(super) fn read(fields: &HeaderMap) -> Self {
        let mut details = Self::default();
        let Some(value) = fields.get(DETAILS) else {
            return details;
        };
        let value = value
            .as_bytes()
            .split(|b| *b == b',')
            .next()
            .unwrap_or_default();
        let Ok(bytes) = BASE64.decode(value.trim_ascii()) else {
            return details;
        };
        let Ok(status) = pb::Status::decode(&*bytes) else {
            return details;
        };
        for detail in status.details {
            let name = detail.type_url.rsplit('/').next().unwrap_or_default();
            match name {
                "google.rpc.RetryInfo" => {
                    let info = pb::RetryInfo::decode(&*detail.value).unwrap_or_default();
                    // A delay that is negative is none.
                    let delay = info.retry_delay.and_then(|delay| delay.try_into().ok());
                    details.delay = details.delay.max(delay);
                }
                "google.rpc.QuotaFailure" => {
                    let failure = pb::QuotaFailure::decode(&*detail.value).unwrap_or_default();
                    details.violations.extend(failure.violations);
                }
                "google.rpc.ErrorInfo" => {
                    let info = pb::ErrorInfo::decode(&*detail.value).unwrap_or_default();
                    details.reason = info.reason;
                }
                _ => {}
            }
        }
        details
    }

    /// What ran out. The id of a quota tells its window; without an id, its
    /// description is all there is.
    pub(super) fn spent(&self) -> Option<Spent> {
        let is_long = |violation: &pb::quota_failure::Violation| {
            let id = &violation.quota_id;
            let text = violation.description.to_ascii_lowercase();
            let in_text = ["daily", "per day", "monthly", "per month"];
            ["PerDay", "Daily", "PerMonth"]
                .iter()
                .any(|window| id.contains(window))
                || (id.is_empty() && in_text.iter().any(|window| text.contains(window)))
        };
        if self.violations.iter().any(is_long) || self.reason == "QUOTA_EXHAUSTED" {
            return Some(Spent::HardQuota);
        }
        let is_rate = !self.violations.is_empty() || self.reason == "RATE_LIMIT_EXCEEDED";
        is_rate.then_some(Spent::Rate)
    }

    pub(super) fn quota(&self) -> Option<Quota> {
        let limit = self.violations.iter().find_map(|violation| {
            let value = u64::try_from(violation.quota_value).ok();
            value.filter(|limit| *limit > 0)
        });
        limit.map(|limit| Quota {
            limit: Some(limit),
            ..Quota::default()
        })
    }

    /// Whom the quota is for, by the form that the subject has by convention.
    pub(super) fn level(&self) -> Level {
        let subject = self
            .violations
            .first()
            .map_or("", |violation| &violation.subject);
        match subject.split(':').next() {
            Some("clientip") => Level::ROOT,
            Some("project") => Level::Credential,
            _ => Level::Leaf,
        }
    }
}
