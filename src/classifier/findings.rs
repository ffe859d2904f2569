//! What was found in an answer, and the verdict that follows from it.

use std::time::Duration;

use http::{header::RETRY_AFTER, response::Parts};

use super::Receipt;
use crate::{
    hint::{self, Dimension},
    verdict::{
        Exhausted, Hint, IgnoredHint, IgnoredReason, Level, Ruling, Throttle, ThrottleKind, Verdict,
    },
};

/// The source of a wait that no answer names.
const DOCUMENTED: &str = "documentation";

/// A quota of a longer window is a hard one: nobody waits for tomorrow.
const LONGEST_WINDOW: Duration = Duration::from_secs(6 * 3600);

/// What was found in one answer.
#[derive(Debug)]
pub(super) struct Findings {
    /// What it is, but for what its dimensions say.
    pub(super) ruling: Ruling,
    /// The wait that it names apart from the resets of its dimensions.
    pub(super) wait: Option<Hint>,
    /// The wait that is documented where an answer names none.
    pub(super) documented: Option<Duration>,
    /// A wait that is there and is not followed.
    pub(super) ignored: Option<IgnoredHint>,
    /// What it tells of its quotas.
    pub(super) dimensions: Vec<Dimension>,
}

impl Findings {
    /// Nothing but a ruling.
    pub(super) const fn new(ruling: Ruling) -> Self {
        Self {
            ruling,
            wait: None,
            documented: None,
            ignored: None,
            dimensions: Vec::new(),
        }
    }

    pub(super) const fn is_refusal(&self) -> bool {
        matches!(self.ruling, Ruling::Throttled(_) | Ruling::Exhausted(_))
    }

    /// Reads `Retry-After`: a wait on a refusal, and ignored on anything else.
    pub(super) fn read_retry_after(&mut self, head: &Parts, at: &Receipt<'_>) {
        let Some(value) = head.headers.get(RETRY_AFTER) else {
            return;
        };
        if !self.is_refusal() {
            let reason = IgnoredReason::NotAThrottle;
            let hint = IgnoredHint::new(RETRY_AFTER.as_str(), value.as_bytes(), reason);
            self.ignored = Some(hint);
            return;
        }
        match hint::retry_after(&head.headers, || at.wall()) {
            Some(Ok(wait)) => self.wait = Some(wait),
            Some(Err(unreadable)) => self.ignored = Some(unreadable),
            None => {}
        }
    }

    /// The verdict.
    ///
    /// A throttle is taken for what the dimension that ran out says of itself:
    /// a limit on requests at once, or one by the day, which is a hard quota.
    /// A wait that is named comes before that dimension's reset.
    pub(super) fn verdict(self) -> Verdict {
        let quota = hint::told(&self.dimensions).map(Dimension::quota);
        let spent = hint::spent(&self.dimensions);
        let documented = self.documented.map(|wait| Hint::new(wait, DOCUMENTED));
        let reset = spent.and_then(|dimension| dimension.reset.clone());
        let wait = self.wait.or(reset).or(documented);
        let ruling = match self.ruling {
            Ruling::Throttled(throttle) => match kind(throttle.kind, spent) {
                Some(kind) => Ruling::Throttled(Throttle { kind, ..throttle }.hint(wait)),
                None => Ruling::Exhausted(Exhausted {
                    resets: wait,
                    level: (throttle.level != Level::Leaf).then_some(throttle.level),
                }),
            },
            Ruling::Exhausted(exhausted) => Ruling::Exhausted(Exhausted {
                resets: wait,
                ..exhausted
            }),
            ruling => ruling,
        };
        Verdict::new(ruling)
            .with_quota(quota)
            .with_ignored(self.ignored)
    }
}

/// The kind of a throttle in the light of what ran out; `None` if that is a
/// hard quota.
fn kind(kind: ThrottleKind, spent: Option<&Dimension>) -> Option<ThrottleKind> {
    let Some(spent) = spent else {
        return Some(kind);
    };
    match kind {
        ThrottleKind::RateLimited | ThrottleKind::Unknown => match spent.window {
            Some(window) if window > LONGEST_WINDOW => None,
            _ if spent.concurrent => Some(ThrottleKind::ConcurrencyLimited),
            _ => Some(ThrottleKind::RateLimited),
        },
        kind => Some(kind),
    }
}
