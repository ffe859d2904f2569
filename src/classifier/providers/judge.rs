//! The engine: reads an answer by a profile.

use super::{
    profile::{Profile, Wait},
    rule::{Meaning, Test},
    source::{Answer, Source},
};
use crate::{
    classifier::{Receipt, findings::Findings, http},
    hint::{Dimension, RateLimitFields, Remaining, ServerClock},
    time,
    verdict::{Hint, IgnoredHint, IgnoredReason, RetryAdvice, Ruling, ThrottleKind, Verdict},
};

/// Judges one answer by one profile.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    profile: &'a Profile,
    answer: &'a Answer<'a>,
    at: &'a Receipt<'a>,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(
        profile: &'a Profile,
        answer: &'a Answer<'a>,
        at: &'a Receipt<'a>,
    ) -> Self {
        Self {
            profile,
            answer,
            at,
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        let head = self.answer.head;
        let wall = || self.at.wall();
        let clock = ServerClock::new(&head.headers, &wall);
        let meaning = self.meaning();
        let dimensions = self.dimensions(&clock, meaning);
        let ruling = match meaning {
            Some(meaning) => meaning
                .ruling()
                .unwrap_or_else(|| http::unthrottled(head.status)),
            None => http::ruling(head, &dimensions),
        };
        let mut findings = Findings {
            dimensions,
            ..Findings::new(ruling)
        };
        findings.read_retry_after(head, self.at);
        if findings.is_refusal() {
            self.read_waits(&mut findings, &clock);
            findings.documented = meaning.and_then(Meaning::told_wait);
            self.read_advice(&mut findings.ruling);
        }
        self.annotate(findings.verdict())
    }

    /// What the first rule that holds says.
    fn meaning(&self) -> Option<&'a Meaning> {
        if !self.profile.rules_on(self.answer) {
            return None;
        }
        let holds = |(test, _): &&(Test, Meaning)| test.holds(self.answer, &self.profile.codes);
        self.profile
            .rules
            .iter()
            .find(holds)
            .map(|(_, meaning)| meaning)
    }

    fn dimensions(&self, clock: &ServerClock<'_>, meaning: Option<&Meaning>) -> Vec<Dimension> {
        let mut dimensions = Vec::new();
        for fields in &self.profile.quotas {
            fields.read(self.answer, clock, &mut dimensions);
        }
        let headers = &self.answer.head.headers;
        for fields in &self.profile.fields {
            dimensions.extend(fields.read(headers, clock));
        }
        if !http::is_silent(headers) {
            dimensions.extend(RateLimitFields::DRAFT.read(headers, clock));
        }
        for dimension in &mut dimensions {
            if dimension.remaining == Remaining::Untold && self.is_violated(dimension) {
                dimension.remaining = Remaining::Units(0);
            }
            if dimension.window.is_none() {
                dimension.window = meaning.and_then(Meaning::told_window);
            }
        }
        dimensions
    }

    fn is_violated(&self, dimension: &Dimension) -> bool {
        let names = |name: &str| (dimension.name.as_deref() == Some(name)).then_some(());
        let mut sources = self.profile.violated.iter();
        sources.any(|source| source.find(self.answer, names).is_some())
    }

    /// Header fields come before `Retry-After`, the body after it.
    fn read_waits(&self, findings: &mut Findings, clock: &ServerClock<'_>) {
        let (in_body, in_head): (Vec<_>, Vec<_>) =
            self.profile.waits.iter().partition(|wait| wait.in_body());
        let read = |wait: &Wait| self.read_wait(wait, clock);
        let wait = in_head
            .into_iter()
            .find_map(read)
            .or_else(|| findings.wait.take());
        findings.wait = wait.or_else(|| in_body.into_iter().find_map(read));
        // A service may write `Retry-After` in a form of its own.
        let followed = findings.wait.as_ref().map(Hint::source);
        let is_ignored = |hint: &IgnoredHint| followed != Some(&*hint.source);
        findings.ignored = findings.ignored.take().filter(is_ignored);
        if findings.wait.is_none() && findings.ignored.is_none() {
            findings.ignored = self.unreadable();
        }
    }

    fn read_wait(&self, wait: &Wait, clock: &ServerClock<'_>) -> Option<Hint> {
        match wait {
            Wait::Read {
                source,
                unit,
                positive,
            } => {
                let mut longest: Option<Hint> = None;
                source.find(self.answer, |text| {
                    let wait = unit.read(text, clock)?;
                    let counts = !(*positive && wait.is_zero());
                    if counts && longest.as_ref().is_none_or(|longest| longest.wait() < wait) {
                        longest = Some(Hint::new(wait, source.name()).raw(text.as_bytes()));
                    }
                    None::<()>
                });
                longest
            }
            Wait::Refill {
                needed,
                available,
                rate,
            } => {
                let number = |source: &Source| {
                    source.find(self.answer, |text| {
                        text.parse().ok().filter(|number: &f64| number.is_finite())
                    })
                };
                let lacking = number(needed)? - number(available)?;
                let rate = number(rate).filter(|rate| *rate > 0.0)?;
                Some(Hint::new(time::seconds(lacking / rate), needed.name()))
            }
        }
    }

    /// A wait that is there but could not be read.
    fn unreadable(&self) -> Option<IgnoredHint> {
        self.profile.waits.iter().find_map(|wait| {
            let Wait::Read {
                source,
                positive: false,
                ..
            } = wait
            else {
                return None;
            };
            source.find(self.answer, |text| {
                let reason = IgnoredReason::Unreadable;
                Some(IgnoredHint::new(source.name(), text.as_bytes(), reason))
            })
        })
    }

    fn read_advice(&self, ruling: &mut Ruling) {
        let codes = &self.profile.codes;
        let forbids = |test: &Test| test.holds(self.answer, codes);
        if let Ruling::Throttled(throttle) = ruling
            && self.profile.never.iter().any(forbids)
        {
            throttle.retry = RetryAdvice::Never;
        }
    }

    /// Adds what helps to find out what happened.
    fn annotate(&self, mut verdict: Verdict) -> Verdict {
        if verdict.is_accepted() && self.answer.body.is_none() {
            return verdict;
        }
        let first = |sources: &[Source]| {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            sources
                .iter()
                .find_map(|source| source.find(self.answer, text))
        };
        if let Some(code) = first(&self.profile.codes) {
            verdict = verdict.with_code(code.trim());
        }
        if !verdict.is_accepted()
            && let Some(id) = first(&self.profile.request_ids)
        {
            verdict = verdict.with_request_id(&id);
        }
        match (verdict.throttle(), self.answer.body) {
            (Some(throttle), Some(body)) if throttle.kind == ThrottleKind::Unknown => {
                verdict.with_sample(body)
            }
            _ => verdict,
        }
    }
}
