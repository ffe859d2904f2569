//! One episode as it runs, and what it shows once it has ended.

use std::time::Duration;

use super::{
    Category, Reading,
    observation::{ONE_VALUE, Observation, Seconds, Source, seconds_of},
    recovery::Recovery,
};
use crate::{time::Instant, verdict::Hint};

/// When an attempt was sent, and whether it had been waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent.
    pub at: Instant,
    /// It was waiting for the gate to open, so it was sent as early as might
    /// be. One that was not, and came late, shows nothing.
    pub waited: bool,
}

/// What one episode showed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Observed {
    /// What its first refusal asked for, with the raw value; `None` if nothing.
    pub hint: Option<Hint>,
    /// The status of that refusal.
    pub status: Option<u16>,
    /// From the receipt of that refusal to the last send that was refused.
    pub refused: Duration,
    /// From the same to the first send that was served.
    pub served: Duration,
    /// Whether there was a hint that the server kept, within a factor of two.
    pub truthful: bool,
    /// The category of the hint's source now.
    pub category: Category,
    /// What it was before, if it changed.
    pub was: Option<Category>,
    /// The median of measured ÷ asked before and now, if it has moved by more
    /// than a factor of two.
    pub ratio: Option<(f64, f64)>,
}

/// An episode that runs.
#[derive(Clone, Debug)]
pub(super) struct Episode {
    began: Reading,
    /// What its first refusal asked for.
    hint: Option<Hint>,
    status: Option<u16>,
    /// When the last refused attempt was sent.
    refused: Instant,
    /// The latest instant that the server named.
    due: Instant,
    /// An attempt was refused although it had been sent no earlier than asked.
    broken: bool,
    /// How often an early attempt was answered by a later instant.
    lengthened: u8,
}

impl Episode {
    pub(super) fn new(at: Reading, hint: Option<&Hint>, status: Option<u16>, broken: bool) -> Self {
        Self {
            began: at,
            hint: hint.cloned(),
            status,
            refused: at.now,
            due: at.now + wait(hint),
            broken,
            lengthened: 0,
        }
    }

    /// Whether `sent`, which was answered at `at`, shows nothing of how long
    /// this episode takes: the machine was suspended, or nobody was waiting
    /// when the time had come.
    pub(super) fn is_broken_off(&self, at: Reading, sent: Sent) -> bool {
        at.slept_since(&self.began) || !sent.waited && sent.at > self.due
    }

    /// Whether an attempt that is served ends it: one sent before it does not.
    pub(super) fn is_ended_by(&self, sent: Sent) -> bool {
        sent.at > self.began.now
    }

    /// Another refusal. Says whether it shows a ban that is lengthened for
    /// whoever comes early: a second time, for once is a change of mind.
    pub(super) fn refuse(&mut self, now: Instant, sent: Sent, hint: Option<&Hint>) -> bool {
        let due = now + wait(hint);
        let is_early = !self.breaks(sent);
        self.broken |= !is_early;
        if is_early && due > self.due && !self.repeats(hint) {
            self.lengthened = self.lengthened.saturating_add(1);
        }
        self.refused = self.refused.max(sent.at);
        self.due = self.due.max(due);
        self.lengthened > 1
    }

    /// Whether `hint` is the value that it began with: one that is always the
    /// same moves its instant on whenever it is given.
    fn repeats(&self, hint: Option<&Hint>) -> bool {
        let (first, now) = (wait(self.hint.as_ref()), wait(hint));
        let (first, now) = (seconds_of(first), seconds_of(now));
        (first / ONE_VALUE..=first * ONE_VALUE).contains(&now)
    }

    pub(super) const fn began(&self) -> Instant {
        self.began.now
    }

    pub(super) const fn hint(&self) -> Option<&Hint> {
        self.hint.as_ref()
    }

    pub(super) fn into_hint(self) -> Option<Hint> {
        self.hint
    }

    pub(super) const fn status(&self) -> Option<u16> {
        self.status
    }

    /// Whether a refusal of `sent` breaks what the server promised.
    pub(super) fn breaks(&self, sent: Sent) -> bool {
        sent.at >= self.due
    }

    pub(super) const fn is_broken(&self) -> bool {
        self.broken
    }

    pub(super) fn source(&self) -> Source {
        let name = self.hint.as_ref().map(Hint::source);
        name.map_or(Source::NONE, Source::named)
    }

    /// The last refused and the first served send, from its beginning.
    pub(super) fn measured(&self, served: Sent) -> (Duration, Duration) {
        // Answers may overtake each other, and so may what they tell.
        let served = served.at - self.began.now;
        (served.min(self.refused - self.began.now), served)
    }
}

fn wait(hint: Option<&Hint>) -> Duration {
    hint.map_or(Duration::ZERO, Hint::wait)
}

/// How long episodes last whose hint says longer, and which hints those were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    asked: Seconds,
    pub(super) recovery: Recovery,
}

impl Ceiling {
    pub(super) const fn new(seen: &Observation) -> Self {
        Self {
            asked: seen.asked,
            recovery: Recovery::new(seen),
        }
    }

    pub(super) fn learn(&mut self, seen: &Observation) {
        self.asked = seen.asked;
        self.recovery.learn(seen);
    }

    /// Whether `hint` is the one value that was found to overstate.
    pub(super) fn is_for(&self, hint: &Hint) -> bool {
        self.is_within(seconds_of(hint.wait()), ONE_VALUE)
    }

    /// Whether it tells anything of a hint of `asked`: one of about that
    /// length, or any at all where hints have no bearing on anything.
    pub(super) fn is_near(&self, asked: Seconds, category: Category) -> bool {
        category == Category::Unreliable || self.is_within(asked, 2.0)
    }

    fn is_within(&self, asked: Seconds, factor: Seconds) -> bool {
        (self.asked / factor..=self.asked * factor).contains(&asked)
    }
}
