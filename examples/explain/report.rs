//! What an answer means, in plain words.

use std::{fmt, time::Duration};

use tower_retry_after::{
    classifier::providers::Profile,
    verdict::{Hint, Level, RetryAdvice, Ruling, Throttle, ThrottleKind, Verdict},
};

use crate::answer::Answer;

/// The longest pause that the layer waits out unless told otherwise.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// An explanation of one answer.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) verdict: &'a Verdict,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.verdict;
        line(f, "rules", self.rules())?;
        line(f, "verdict", self.ruling())?;
        line(f, "wait", wait(verdict))?;
        if let Some(ignored) = verdict.ignored() {
            let reason = ignored.reason.as_str().replace('_', " ");
            line(
                f,
                "ignored",
                format!("{}: {} ({reason})", ignored.source, ignored.raw),
            )?;
        }
        if let Some(level) = level(verdict) {
            line(f, "level", level)?;
        }
        if verdict.throttle().is_some_and(|throttle| throttle.ban) {
            line(f, "ban", "who comes back too early is banned for longer")?;
        }
        if let Some(quota) = verdict.quota() {
            let parts = [
                quota.limit.map(|limit| format!("limit {limit}")),
                quota.remaining.map(|left| format!("{left} left")),
                quota.reset.map(|reset| format!("more in {}", told(reset))),
                quota
                    .window
                    .map(|window| format!("in a window of {}", told(window))),
            ];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            line(f, "quota", parts.join(", "))?;
        }
        let notes = [
            ("code", verdict.code()),
            ("request id", verdict.request_id()),
            ("sample", verdict.sample()),
        ];
        for (name, note) in notes {
            if let Some(note) = note {
                line(f, name, note)?;
            }
        }
        line(f, "GET", repeats(verdict, true))?;
        line(f, "POST", repeats(verdict, false))
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, text: impl fmt::Display) -> fmt::Result {
    writeln!(f, "{name:<12}{text}")
}

impl Report<'_> {
    fn rules(&self) -> String {
        match self.profile {
            Some(profile) => format!("the profile `{}`, then the general ones", profile.name()),
            None if self.answer.url.is_none() => {
                "the general ones: `--url` would tell the service".to_owned()
            }
            None => "the general ones: no profile is for this host".to_owned(),
        }
    }

    fn ruling(&self) -> String {
        let status = self.answer.head.status.as_u16();
        let says = match self.verdict.code() {
            Some(code) => format!("{status} with the code `{code}`"),
            None => format!("{status}"),
        };
        match self.verdict.ruling() {
            Ruling::Accepted => format!("accepted: {says} shows that the server did its work"),
            Ruling::Throttled(throttle) => format!("{}, {says}", kind(throttle.kind)),
            Ruling::Exhausted(_) => {
                format!("exhausted: a hard quota or the money is spent, {says}")
            }
            _ => format!("neutral: {says} says nothing of rate"),
        }
    }
}

const fn kind(kind: ThrottleKind) -> &'static str {
    match kind {
        ThrottleKind::RateLimited => "rate limited: too many requests in a time",
        ThrottleKind::ConcurrencyLimited => "concurrency limited: too many requests at once",
        ThrottleKind::Overloaded => "overloaded: more work than the server can do, whoever sent it",
        _ => "throttled, and the server does not say why",
    }
}

fn wait(verdict: &Verdict) -> String {
    match (verdict.ruling(), verdict.hint()) {
        (_, Some(hint)) if hint.source() == "documentation" => {
            let wait = told(hint.wait());
            format!("{wait}, which no field says but the service's documentation does")
        }
        (_, Some(hint)) => {
            let wait = told(hint.wait());
            match hint.raw_value() {
                "" => format!("{wait}, by `{}`", hint.source()),
                raw => format!("{wait}, by `{}: {raw}`", hint.source()),
            }
        }
        (Ruling::Throttled(_), None) => {
            "none is named: 1 s, doubled for each round that is refused".to_owned()
        }
        (Ruling::Exhausted(_), None) => "nobody knows until when".to_owned(),
        _ => "none".to_owned(),
    }
}

/// A span of time as people tell it, never shorter than it is.
fn told(span: Duration) -> String {
    if span == Duration::MAX {
        return "longer than anything".to_owned();
    }
    let millis = span.as_nanos().div_ceil(1_000_000);
    let seconds = millis.div_ceil(1000);
    match seconds {
        0..=120 => format!("{} s", millis as f64 / 1000.0),
        121..=7_200 => format!("{seconds} s ({} min)", seconds.div_ceil(60)),
        7_201..=172_800 => format!("{seconds} s ({} h)", seconds.div_ceil(3600)),
        _ => format!("{seconds} s ({} days)", seconds.div_ceil(86_400)),
    }
}

/// Which part of the scope is paused.
fn level(verdict: &Verdict) -> Option<&'static str> {
    let level = match verdict.ruling() {
        Ruling::Throttled(throttle) => Some(throttle.level),
        Ruling::Exhausted(exhausted) => exhausted.level,
        _ => return None,
    };
    Some(match level {
        Some(Level::Leaf) => "the scope of the request",
        Some(Level::Credential) => {
            "the whole account: the level with the credential, or the host if none has one"
        }
        Some(Level::ROOT) => "the whole host",
        Some(_) => "a level in between",
        None => "the level with the credential; without one, only this caller is told",
    })
}

/// Whether a request would be sent again, and why.
fn repeats(verdict: &Verdict, idempotent: bool) -> String {
    let throttle = match verdict.ruling() {
        Ruling::Throttled(throttle) => throttle,
        Ruling::Exhausted(_) => return "not sent again: waiting a little does not help".to_owned(),
        _ => return "not sent again: this is the answer".to_owned(),
    };
    match why_not(throttle, idempotent) {
        Some(reason) => format!("not sent again: {reason}"),
        None => {
            let wait = throttle.hint.as_ref().map_or(Duration::ZERO, Hint::wait);
            let wait = wait.max(Duration::from_secs(1));
            let wait = told(wait);
            let why = if idempotent {
                "its method is idempotent"
            } else {
                "the service documents that it was not processed"
            };
            format!("sent again after {wait} or more: {why}")
        }
    }
}

fn why_not(throttle: &Throttle, idempotent: bool) -> Option<&'static str> {
    let is_long = |hint: &Hint| hint.wait() > MAX_PAUSE;
    if throttle.retry == RetryAdvice::Never {
        return Some("the service forbids it");
    }
    if !idempotent && throttle.retry != RetryAdvice::Unprocessed {
        return Some("it might be carried out twice; an `Idempotency-Key` would help");
    }
    let is_long = throttle.hint.as_ref().is_some_and(is_long);
    is_long.then_some("the wait is longer than the 60 s that are waited out by default")
}
