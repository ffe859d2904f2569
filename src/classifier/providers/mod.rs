//! What well-known services' answers mean.
//!
//! The same 429 means "slow down" with one service, "fewer at once" with
//! another and "pay first" with a third, and the same `X-RateLimit-Reset` is a
//! delay, a Unix time or a date. So there is one [`Profile`] for each service:
//! a short declaration, written down from its documentation, of statuses,
//! header fields with their units, members of error bodies and codes. One
//! engine reads them all.
//!
//! [`HttpClassifier::providers`] chooses among all of them by the host that was
//! asked for. A host that nobody declared gets the general rules and the
//! problem types of draft-ietf-httpapi-ratelimit-headers, nothing else.
//!
//! [`HttpClassifier::providers`]: crate::classifier::HttpClassifier::providers
//!
//! # How an answer is read
//!
//! 1. The first [rule](Profile::rule) that holds says what it means: codes
//!    first, statuses last, and the words of a message only where a service
//!    tells by nothing else. If no rule holds, the general rules do.
//! 2. A refusal is then taken for what the [dimension](QuotaFields) that ran
//!    out says of itself: one by the day or longer is a hard quota.
//! 3. The wait is, of what is there, the first of: the service's own header
//!    field, `Retry-After`, a member of the body, the reset of the dimension
//!    that ran out, the documentation.
//!
//! Bodies are read only of errors, and of the successes of services that refuse
//! with a 200.
//!
//! # A service that people run themselves
//!
//! Its profile is taken by name, and told the hosts:
//!
//! ```
//! use tower_retry_after::classifier::{Classifier, HttpClassifier, providers::catalog};
//!
//! let classifier = catalog::gitlab()
//!     .host("git.acme.test")
//!     .or(HttpClassifier::new().providers());
//! # let _ = classifier;
//! ```
//!
//! # A service of one's own
//!
//! See the example of [`Profile`].

pub mod catalog;
mod host;
mod judge;
mod profile;
mod quota;
mod rule;
mod source;

use std::sync::LazyLock;

use http::{StatusCode, Uri, response::Parts};

use self::{host::Hosts, profile::media_type};
pub use self::{
    profile::Profile,
    quota::QuotaFields,
    rule::{Meaning, Test, code, status},
    source::{Source, header, json, status_code, text, value},
};
use super::{Classifier, HttpClassifier, Or, Phase, Receipt};
use crate::verdict::Verdict;

/// The profile called `name`, as its own [name](Profile::name) is spelt:
/// `github`, `google-json`.
pub fn named(name: &str) -> Option<Profile> {
    let mut profiles = KNOWN.profiles.iter();
    profiles.find(|profile| profile.name() == name).cloned()
}

/// The profile for what was asked for, chosen by its host.
pub fn of(requested: &Uri) -> Option<Profile> {
    KNOWN.of_host(Some(requested)).cloned()
}

impl HttpClassifier {
    /// Adds what is known of well-known services, chosen by the host that was
    /// asked for. See [`providers`](self).
    #[must_use]
    pub const fn providers(self) -> Or<Providers, Self> {
        Or::new(Providers(()), self)
    }
}

/// Judges the answers of the hosts that some profile is for.
///
/// Made by [`HttpClassifier::providers`]. Of other hosts it reads the problem
/// types of draft-ietf-httpapi-ratelimit-headers, section 6, and of a 429 that
/// says nothing it keeps a sample, enough to write a profile.
#[derive(Clone, Copy, Debug)]
pub struct Providers(());

impl Providers {
    fn profile(self, head: &Parts, at: &Receipt<'_>) -> Option<&'static Profile> {
        let known = &*KNOWN;
        known.of_host(at.requested()).or_else(|| {
            let is_problem = || {
                !head.status.is_success() && media_type(head).contains("application/problem+json")
            };
            let is_read = head.status == StatusCode::TOO_MANY_REQUESTS || is_problem();
            is_read.then_some(&known.problem)
        })
    }
}

impl Classifier for Providers {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        Some(self.profile(head, at)?.judge(head, at))
    }

    fn body(&self, head: &Parts, body: &[u8], at: &Receipt<'_>) -> Option<Verdict> {
        Some(self.profile(head, at)?.judge_body(head, body, at))
    }

    fn needs_uri(&self) -> bool {
        true
    }

    fn may_be_unprocessed(&self, requested: &Uri) -> bool {
        let profile = KNOWN.of_host(Some(requested));
        profile.is_some_and(Profile::has_unprocessed)
    }
}

/// All profiles, and which hosts they are for.
static KNOWN: LazyLock<Known> = LazyLock::new(Known::new);

#[derive(Debug)]
struct Known {
    profiles: Vec<Profile>,
    hosts: Hosts,
    problem: Profile,
}

impl Known {
    fn new() -> Self {
        let profiles = catalog::all();
        let mut hosts = Hosts::default();
        for (index, profile) in profiles.iter().enumerate() {
            for host in &profile.hosts {
                hosts.insert(host, index);
            }
        }
        Self {
            profiles,
            hosts,
            problem: catalog::problem(),
        }
    }

    fn of_host(&self, requested: Option<&Uri>) -> Option<&Profile> {
        self.profiles.get(self.hosts.find(requested?)?)
    }
}
