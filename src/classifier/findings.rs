//! What was found in an answer, and the verdict that follows from it.

use std::time::Duration;

use crate::{
    hint::{self, Dimension},
    verdict::{Exhausted, Hint, IgnoredHint, Level, Ruling, Throttle, ThrottleKind, Verdict},
};

/// A quota of a longer window is a hard one: nobody waits for tomorrow.
const LONGEST_WINDOW: Duration = Duration::from_secs(6 * 3600);

/// What was found in one answer.
#[derive(Debug)]
pub(super) struct Findings {
    /// What it is, but for what its dimensions say.
    pub(super) ruling: Ruling,
    /// The level of a hard quota, where it is documented.
    pub(super) level: Option<Level>,
    /// The wait that it names apart from the resets of its dimensions.
    pub(super) wait: Option<Hint>,
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
            level: None,
            wait: None,
            ignored: None,
            dimensions: Vec::new(),
        }
    }

    /// The verdict.
    ///
    /// A refusal is taken for what the dimension that ran out says of itself:
    /// a limit on requests at once, or one by the day, which is a hard quota.
    /// A wait that is named comes before that dimension's reset.
    pub(super) fn verdict(self) -> Verdict {
        let quota = hint::told(&self.dimensions).map(Dimension::quota);
        let spent = hint::spent(&self.dimensions);
        let wait = || {
            let reset = || spent.and_then(|dimension| dimension.reset.clone());
            self.wait.clone().or_else(reset)
        };
        let ruling = match self.ruling {
            Ruling::Throttled(throttle) => match kind(throttle.kind, spent) {
                Some(kind) => Ruling::Throttled(Throttle { kind, ..throttle }.hint(wait())),
                None => Ruling::Exhausted(Exhausted {
                    resets: wait(),
                    level: self.level,
                }),
            },
            Ruling::Exhausted(_) => Ruling::Exhausted(Exhausted {
                resets: wait(),
                level: self.level,
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
