//! A profile: what one service's answers mean, as data.

use http::{HeaderName, Uri, response::Parts};

use super::{
    host::Host,
    judge::Judge,
    quota::QuotaFields,
    rule::{Meaning, Test},
    source::{Answer, Source, Text},
};
use crate::{
    classifier::{Classifier, Phase, Receipt},
    hint::{RateLimitFields, Unit},
    verdict::Verdict,
};

/// What one service's answers mean, as data.
///
/// A declaration, built once and read by one engine for all services. It is a
/// [`Classifier`]: it judges every answer of its hosts, and the general rules
/// of [`HttpClassifier`] hold wherever it has no rule of its own.
///
/// [`HttpClassifier`]: crate::classifier::HttpClassifier
///
/// # Example
///
/// ```
/// use tower_retry_after::classifier::providers::{
///     Meaning, Profile, QuotaFields, code, header, json, status,
/// };
/// use tower_retry_after::hint::Unit;
///
/// let fields = ["x-quota", "x-quota-left", "x-quota-reset"];
/// let profile = Profile::new("acme")
///     .host("api.acme.test")
///     .code(json("/error/code"))
///     .rule(code(["out_of_credits"]), Meaning::EXHAUSTED)
///     .rule(code(["too_many_jobs"]), Meaning::CONCURRENCY_LIMITED)
///     .rule(status([429]), Meaning::RATE_LIMITED)
///     .wait(header("x-backoff"), Unit::Millis)
///     .quota(QuotaFields::headers("requests", fields, Unit::Unix))
///     .request_id(header("x-request-id"));
/// # let _ = profile;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Profile {
    name: Text,
    pub(super) hosts: Vec<Host>,
    pub(super) codes: Vec<Source>,
    pub(super) request_ids: Vec<Source>,
    pub(super) rules: Vec<(Test, Meaning)>,
    pub(super) never: Vec<Test>,
    pub(super) waits: Vec<Wait>,
    pub(super) quotas: Vec<QuotaFields>,
    pub(super) fields: Vec<RateLimitFields>,
    pub(super) violated: Vec<Source>,
    successes: Vec<Text>,
    success_heads: bool,
}

/// Where a wait stands.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a profile is made once")]
pub(super) enum Wait {
    /// It is written down.
    Read {
        source: Source,
        unit: Unit,
        /// Zero stands for none.
        positive: bool,
    },
    /// It is how long `rate` units a second take to make up what is lacking.
    Refill {
        needed: Source,
        available: Source,
        rate: Source,
    },
}

impl Profile {
    /// A profile without rules, for any host.
    pub fn new(name: impl Into<Text>) -> Self {
        Self {
            name: name.into(),
            hosts: Vec::new(),
            codes: Vec::new(),
            request_ids: Vec::new(),
            rules: Vec::new(),
            never: Vec::new(),
            waits: Vec::new(),
            quotas: Vec::new(),
            fields: Vec::new(),
            violated: Vec::new(),
            successes: Vec::new(),
            success_heads: false,
        }
    }

    /// Adds a host that it is for: `api.acme.test`, or `*.acme.test` for all
    /// below that. A profile without hosts is for any.
    pub fn host(self, host: impl Into<Text>) -> Self {
        self.hosts([host])
    }

    /// Adds several hosts, see [`host`](Self::host).
    pub fn hosts<T: Into<Text>>(mut self, hosts: impl IntoIterator<Item = T>) -> Self {
        self.hosts
            .extend(hosts.into_iter().map(|host| Host::new(host.into())));
        self
    }

    /// Makes it one for any host: for a service that people run themselves.
    pub fn anywhere(mut self) -> Self {
        self.hosts.clear();
        self
    }

    /// Adds where the service's own error code stands.
    ///
    /// The first that is there is the code of the verdict; a rule by
    /// [`code`](super::code) looks at all of them.
    pub fn code(mut self, source: Source) -> Self {
        self.codes.push(source);
        self
    }

    /// Adds where the service's request id stands. The first that is there
    /// counts.
    pub fn request_id(mut self, source: Source) -> Self {
        self.request_ids.push(source);
        self
    }

    /// Adds a rule. The first one that holds decides; if none does, the general
    /// rules do.
    pub fn rule(mut self, test: Test, meaning: Meaning) -> Self {
        self.rules.push((test, meaning));
        self
    }

    /// Adds how the service says that a request must not be sent again.
    pub fn never_retry(mut self, test: Test) -> Self {
        self.never.push(test);
        self
    }

    /// Adds where the service names the wait, besides `Retry-After`.
    ///
    /// Waits in header fields come before `Retry-After`, and those in the body
    /// after it; both in the order in which they were added, and all before the
    /// reset of a quota.
    pub fn wait(mut self, source: Source, unit: Unit) -> Self {
        let positive = false;
        self.waits.push(Wait::Read {
            source,
            unit,
            positive,
        });
        self
    }

    /// Adds a [`wait`](Self::wait) of which zero means that there is none.
    pub fn positive_wait(mut self, source: Source, unit: Unit) -> Self {
        let positive = true;
        self.waits.push(Wait::Read {
            source,
            unit,
            positive,
        });
        self
    }

    /// Adds a wait that follows from a bucket that is refilled: the units that
    /// are `needed` less those `available`, at `rate` units a second.
    pub fn wait_for_refill(mut self, needed: Source, available: Source, rate: Source) -> Self {
        self.waits.push(Wait::Refill {
            needed,
            available,
            rate,
        });
        self
    }

    /// Adds where a dimension of its quotas is told.
    pub fn quota(mut self, fields: QuotaFields) -> Self {
        self.quotas.push(fields);
        self
    }

    /// Adds another name for the pair of fields `RateLimit` and
    /// `RateLimit-Policy`, which are read from every answer anyway.
    pub fn rate_limit_fields(mut self, limit: &'static str, policy: &'static str) -> Self {
        let names = (limit.parse::<HeaderName>(), policy.parse::<HeaderName>());
        if let (Ok(limit), Ok(policy)) = names {
            self.fields.push(RateLimitFields::named(limit, policy));
        }
        self
    }

    /// Adds where the names of the dimensions stand that ran out.
    pub fn violated(mut self, source: Source) -> Self {
        self.violated.push(source);
        self
    }

    /// Has the bodies of successes read as well, for a service that refuses
    /// with a 200: where the path ends with `suffix`, which may be empty.
    ///
    /// Only JSON and XML are read, at most 64 KiB: never an event stream.
    pub fn success_bodies(mut self, suffix: impl Into<Text>) -> Self {
        self.successes.push(suffix.into());
        self
    }

    /// Has rules applied to the heads of successes as well, for a service that
    /// refuses with a 200 and says so in a header field.
    pub fn success_heads(mut self) -> Self {
        self.success_heads = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is for what was asked for.
    fn is_for(&self, requested: Option<&Uri>) -> bool {
        let is_at = |host: &Host| requested.is_some_and(|uri| host.matches(uri));
        self.hosts.is_empty() || self.hosts.iter().any(is_at)
    }

    /// Whether `answer` is one that rules apply to: a success only where it is
    /// known to refuse now and then.
    pub(super) fn rules_on(&self, answer: &Answer<'_>) -> bool {
        self.success_heads || answer.body.is_some() || answer.head.status.as_u16() >= 400
    }

    /// Whether the body of an answer may say more than its head.
    fn wants_body(&self, head: &Parts, at: &Receipt<'_>) -> bool {
        let media = media_type(head);
        if media.contains("event-stream") || media.contains("ndjson") {
            return false;
        }
        match head.status.as_u16() {
            // The server looked at it: what it found is no matter of rate.
            404 | 409 | 410 | 412 | 422 => false,
            400.. => self.reads_bodies(),
            _ => {
                let path = at.requested().map_or("", Uri::path);
                let is_read = self
                    .successes
                    .iter()
                    .any(|suffix| path.ends_with(&**suffix));
                is_read && (media.contains("json") || media.contains("xml"))
            }
        }
    }

    fn reads_bodies(&self) -> bool {
        self.codes.iter().chain(&self.violated).any(Source::in_body)
            || self.rules.iter().any(|(test, _)| test.in_body())
            || self.never.iter().any(Test::in_body)
            || self.quotas.iter().any(QuotaFields::in_body)
            || self.waits.iter().any(Wait::in_body)
    }

    /// Judges an answer of a service that it is known to be for.
    pub(super) fn judge(&self, head: &Parts, at: &Receipt<'_>) -> Phase {
        let meanwhile = Judge::new(self, &Answer::new(head, None), at).verdict();
        if self.wants_body(head, at) {
            Phase::NeedBody { meanwhile }
        } else {
            Phase::Decided(meanwhile)
        }
    }

    /// Judges the body of an answer whose head asked for it.
    pub(super) fn judge_body(&self, head: &Parts, body: &[u8], at: &Receipt<'_>) -> Verdict {
        Judge::new(self, &Answer::new(head, Some(body)), at).verdict()
    }

    /// Whether one of its rules calls a refusal unprocessed.
    pub(super) fn has_unprocessed(&self) -> bool {
        self.rules
            .iter()
            .any(|(_, meaning)| meaning.is_unprocessed())
    }
}

impl Classifier for Profile {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        self.is_for(at.requested()).then(|| self.judge(head, at))
    }

    fn body(&self, head: &Parts, body: &[u8], at: &Receipt<'_>) -> Option<Verdict> {
        Some(self.judge_body(head, body, at))
    }

    fn needs_uri(&self) -> bool {
        !self.hosts.is_empty() || !self.successes.is_empty()
    }

    fn may_be_unprocessed(&self, requested: &Uri) -> bool {
        self.is_for(Some(requested)) && self.has_unprocessed()
    }
}

impl Wait {
    pub(super) const fn in_body(&self) -> bool {
        match self {
            Self::Read { source, .. } => source.in_body(),
            Self::Refill { needed, .. } => needed.in_body(),
        }
    }
}

pub(super) fn media_type(head: &Parts) -> &str {
    let value = head.headers.get(http::header::CONTENT_TYPE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
