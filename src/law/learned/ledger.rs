//! What was accepted, from exhaustion to exhaustion.

use crate::time::Instant;

/// Who names a wait of this many seconds knows when its window ends.
const WINDOW: f64 = 2.0;

/// Counts what was accepted since the quota was last exhausted, and since the
/// gate last opened.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The last exhaustion, if there was one.
    exhausted: Option<Instant>,
    since_exhausted: f64,
    opened: Instant,
    since_opened: f64,
    /// For how many seconds nobody came since then.
    idle: f64,
    /// Nothing was accepted since the last exhaustion: a throttle would be the
    /// same one.
    spent: bool,
    /// There was an exhaustion since the gate last opened.
    closing: bool,
    again: bool,
    paused: Option<Instant>,
}

/// What a throttle means for the accounts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Exhaustion {
    /// There was none before.
    First,
    /// Nothing was accepted since the last.
    Same,
    /// At least this much per second was refilled since the last.
    Next(f64),
}

/// From one resume to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    /// How many were accepted.
    pub(super) accepted: f64,
    /// Its length, and its pause's, in seconds.
    pub(super) length: f64,
    pub(super) paused: f64,
    /// For how long nobody came, in seconds.
    pub(super) idle: f64,
    /// What was sent in its pause was refused again.
    pub(super) again: bool,
}

impl Cycle {
    /// What was accepted per second.
    pub(super) fn low(&self) -> f64 {
        match self.length > 0.0 {
            true => self.accepted / self.length,
            false => 0.0,
        }
    }
}

/// One exhaustion and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    /// The rate that was refused.
    pub(super) rate: f64,
    /// A rate that was served before.
    pub(super) low: f64,
    /// The wait that the server asked for, in seconds; zero for none.
    pub(super) asked: f64,
    /// The rate had been raised to ask whether the quota has grown.
    pub(super) asking: bool,
    /// How long the cycle took that it ended; zero until that is known.
    pub(super) cycle: f64,
    /// What was sent in its pause was refused again.
    pub(super) again: bool,
}

impl Episode {
    /// With what its resume has shown, of what was `known` to be served.
    ///
    /// A part of a `window` tells as much as it is a part of it.
    pub(super) fn closed_by(mut self, cycle: &Cycle, known: f64, window: f64) -> Self {
        // Of a window, whole ones lie between two resumes.
        let low = match self.names_ends() {
            true => cycle.low(),
            // Of a single one, half was refilled on average.
            false => self.low.max(cycle.low() / 2.0).min(cycle.low()),
        };
        let rest = (1.0 - cycle.length / window).max(0.0);
        self.low = low.max(known * rest);
        self.cycle = cycle.length;
        self.again = cycle.again;
        self
    }

    /// Whether the server seems to count in windows.
    pub(super) fn is_window(&self) -> bool {
        self.names_ends() || self.again
    }

    /// Whether it also says when they end.
    fn names_ends(&self) -> bool {
        self.asked >= WINDOW
    }
}

impl Ledger {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            exhausted: None,
            since_exhausted: 0.0,
            opened: now,
            since_opened: 0.0,
            idle: 0.0,
            spent: false,
            closing: false,
            again: false,
            paused: None,
        }
    }

    /// Begins anew at `now`, in the middle of a pause perhaps.
    pub(super) fn reopen(&mut self, now: Instant) {
        let paused = self.paused;
        *self = Self::new(now);
        self.paused = paused;
    }

    pub(super) fn accepted(&mut self, stale: bool) {
        self.since_opened += 1.0;
        // A stale one may have been served before the exhaustion.
        if !stale {
            self.since_exhausted += 1.0;
            self.spent = false;
        }
    }

    /// What was refilled per second since the last exhaustion, at least.
    ///
    /// Who counts in windows of `window` seconds refills all of one at once.
    pub(super) fn low(&self, now: Instant, window: f64) -> f64 {
        let Some(exhausted) = self.exhausted else {
            return 0.0;
        };
        // The first may have been there in part.
        let refilled = self.since_exhausted - 1.0;
        let time = now.secs_since(exhausted) + window;
        if refilled > 0.0 && time > 0.0 {
            refilled / time
        } else {
            0.0
        }
    }

    pub(super) fn exhausted(&mut self, now: Instant) -> Exhaustion {
        self.closing = true;
        if self.spent {
            self.again = true;
            return Exhaustion::Same;
        }
        let low = self.low(now, 0.0);
        self.spent = true;
        self.since_exhausted = 0.0;
        match self.exhausted.replace(now) {
            None => Exhaustion::First,
            Some(_) => Exhaustion::Next(low),
        }
    }

    /// Nobody came for `secs` seconds.
    pub(super) fn idle(&mut self, secs: f64) {
        self.idle += secs;
    }

    pub(super) fn paused(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    /// The cycle that ends at `now`, if a pause does that a refusal began.
    ///
    /// Any other pause tells nothing of the server, and is a part of its cycle.
    pub(super) fn resumed(&mut self, now: Instant) -> Option<Cycle> {
        let paused = now.secs_since(self.paused.take()?);
        if !std::mem::take(&mut self.closing) {
            return None;
        }
        let length = now.secs_since(self.opened);
        self.opened = now;
        Some(Cycle {
            accepted: std::mem::take(&mut self.since_opened),
            length,
            paused,
            idle: std::mem::take(&mut self.idle),
            again: std::mem::take(&mut self.again),
        })
    }
}
