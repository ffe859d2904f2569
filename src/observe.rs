//! Events, as plain functions. Called after the locks, never under them.
//!
//! One event per change of state and one per throttled attempt; nothing for a
//! plain success. Never in them: bodies, credentials, URLs. A server's text is
//! in them only as at most 64 escaped bytes. The target is `tower_retry_after`.

use std::time::Duration;

#[cfg(feature = "tracing")]
use crate::verdict::{Hint, Raw, Ruling, Throttle, ThrottleKind};
use crate::{
    outcome::Reason,
    scope_key::ScopeKey,
    trust::{self, Decision, Observed},
    verdict::{IgnoredHint, Verdict},
};

#[cfg(feature = "tracing")]
const TARGET: &str = "tower_retry_after";

/// Milliseconds, as events show durations.
#[cfg(feature = "tracing")]
fn ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// A static name for what a verdict rules.
#[cfg(feature = "tracing")]
fn ruling(verdict: &Verdict) -> &'static str {
    match verdict.ruling() {
        Ruling::Accepted => "accepted",
        Ruling::Neutral => "neutral",
        Ruling::Throttled(throttle) => throttle.kind.as_str(),
        Ruling::Exhausted(_) => "quota_exhausted",
    }
}

/// A scope's gate closes, or stays closed for longer: for `wait` from now on.
pub(crate) fn paused(scope: &ScopeKey<'_>, wait: Duration, verdict: &Verdict) {
    #[cfg(feature = "tracing")]
    tracing::info!(
        target: TARGET,
        %scope,
        pause.ms = ms(wait),
        verdict = ruling(verdict),
        hint.ms = verdict.hint().map(|hint| ms(hint.wait())),
        hint.source = verdict.hint().map(Hint::source),
        hint.raw = verdict.hint().map(Hint::raw_value),
        "scope paused"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (scope, wait, verdict);
}

/// A hint is not followed to the letter: what was asked, what is done, why.
pub(crate) fn hint_overridden(scope: &ScopeKey<'_>, verdict: &Verdict, decision: Decision) {
    #[cfg(feature = "tracing")]
    tracing::info!(
        target: TARGET,
        %scope,
        hint.ms = verdict.hint().map(|hint| ms(hint.wait())),
        hint.source = verdict.hint().map(Hint::source),
        hint.raw = verdict.hint().map(Hint::raw_value),
        wait.ms = ms(decision.wait),
        reason = decision.reason.as_str(),
        "hint not followed"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (scope, verdict, decision);
}

/// A hint was there and is no hint: it cannot be read, or means nothing there.
pub(crate) fn hint_ignored(scope: &ScopeKey<'_>, status: Option<u16>, ignored: &IgnoredHint) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        target: TARGET,
        %scope,
        status,
        hint.source = &*ignored.source,
        hint.raw = &*ignored.raw,
        reason = ignored.reason.as_str(),
        "hint ignored"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (scope, status, ignored);
}

/// An episode has ended and shows what a hint was worth: evidence for whoever
/// runs the service.
pub(crate) fn observed(scope: &ScopeKey<'_>, seen: &Observed) {
    #[cfg(feature = "tracing")]
    {
        let hint = seen.hint.as_ref();
        tracing::debug!(
            target: TARGET,
            %scope,
            status = seen.status,
            hint.ms = hint.map(|hint| ms(hint.wait())),
            hint.source = hint.map(Hint::source),
            hint.raw = hint.map(Hint::raw_value),
            refused_until.ms = ms(seen.refused),
            served_after.ms = ms(seen.served),
            truthful = seen.truthful,
            trust = seen.category.as_str(),
            "hint measured"
        );
        if let Some(was) = seen.was {
            tracing::info!(
                target: TARGET,
                %scope,
                hint.source = hint.map(Hint::source),
                was = was.as_str(),
                trust = seen.category.as_str(),
                "trust changed"
            );
        }
        if let Some((was, ratio)) = seen.ratio {
            tracing::info!(target: TARGET, %scope, was, ratio, "hints are off by another factor");
        }
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (scope, seen);
}

/// A scope's gate opens.
pub(crate) fn resumed(scope: &ScopeKey<'_>) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: TARGET, %scope, "scope resumed");
    #[cfg(not(feature = "tracing"))]
    let _ = scope;
}

/// A law has panicked, and a fixed rate has taken its place.
pub(crate) fn law_panicked(scope: &ScopeKey<'_>) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: TARGET, %scope, "law panicked, its scope goes on at the floor");
    #[cfg(not(feature = "tracing"))]
    let _ = scope;
}

/// More than one attempt in a hundred is refused although the law has settled.
pub(crate) fn contested(scope: &ScopeKey<'_>) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: TARGET,
        %scope,
        "refusals go on: the quota has another consumer"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = scope;
}

/// What an attempt that was refused leads to.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "read by events"))]
pub(crate) struct Refused<'a> {
    pub(crate) scope: &'a ScopeKey<'a>,
    /// The call's number in its root.
    pub(crate) call: u64,
    pub(crate) attempt: u32,
    pub(crate) status: Option<u16>,
    pub(crate) content_type: Option<&'a http::HeaderValue>,
    pub(crate) verdict: &'a Verdict,
    /// How long the call has been queued in all.
    pub(crate) queued: Duration,
    /// How long it may still take.
    pub(crate) deadline_left: Option<Duration>,
    /// In what time it is sent again at the earliest; `None` if it is not.
    pub(crate) delay: Option<Duration>,
    /// Why its scope waits for as long as it does.
    pub(crate) why: Option<trust::Reason>,
    /// Why it is not sent again, if that had to be decided.
    pub(crate) gave_up: Option<Reason>,
    /// The caller has the answer already, and perhaps a part of its body.
    pub(crate) delivered: bool,
}

/// An attempt was refused, and it is decided whether the call is sent again.
pub(crate) fn refused(refused: &Refused<'_>) {
    #[cfg(feature = "tracing")]
    {
        let Refused {
            scope,
            call,
            attempt,
            status,
            content_type,
            verdict,
            queued,
            deadline_left,
            delay,
            why,
            gave_up,
            delivered,
        } = *refused;
        // What nobody understood is shown, so that somebody can declare it.
        let is_unknown = |throttle: &Throttle| throttle.kind == ThrottleKind::Unknown;
        let content_type = content_type.filter(|_| verdict.throttle().is_some_and(is_unknown));
        let content_type = content_type.map(|value| Raw::new(value.as_bytes()).0);
        tracing::debug!(
            target: TARGET,
            %scope,
            call,
            attempt,
            status,
            verdict = ruling(verdict),
            code = verdict.code(),
            request_id = verdict.request_id(),
            content_type,
            sample = verdict.sample(),
            hint.ms = verdict.hint().map(|hint| ms(hint.wait())),
            hint.source = verdict.hint().map(Hint::source),
            queued.ms = ms(queued),
            deadline_left.ms = deadline_left.map(ms),
            delay.ms = delay.map(ms),
            delay.reason = why.map(trust::Reason::as_str),
            gave_up = gave_up.map(Reason::as_str),
            delivered,
            "attempt refused"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = refused;
}
