//! What an episode costs, and so how rarely there may be one.

use super::{
    bracket::{Bracket, MARGIN},
    ledger::Episode,
};

/// Refusals that are planned for, as a share of the sends.
const REFUSALS: f64 = 0.0004;

/// Pauses that are planned for, as a share of the time.
const PAUSES: f64 = 0.0035;

/// The shortest time between two episodes, in seconds, for the patient.
const SHORTEST: f64 = 10.0;

/// How much one episode weighs in the averages.
const WEIGHT: f64 = 0.3;

/// A lower bound this far below the upper one is a surprise.
const SURPRISE: f64 = 0.93;

const IMPATIENT: f64 = 0.125;

/// How fast the rate rises to ask whether the quota has grown, per second.
const SLOPE: f64 = 0.001;

/// How fast it grows when the quota has, per second, and in one window.
const GROWTH: (f64, f64) = (0.02, 0.3);

/// How much shorter one cycle makes a window.
const SHORTER: f64 = 0.7;

/// The price of an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    /// Refusals of the episode that is not over.
    refused: f64,
    /// Refusals an episode, on average.
    refusals: f64,
    /// Paused seconds an episode, on average.
    paused: f64,
    /// How much of the time that episodes ought to be apart is waited, from
    /// [`IMPATIENT`] to 1.
    patience: f64,
    /// What the server seems to count together, in seconds; zero for nothing.
    pub(super) window: f64,
}

impl Price {
    pub(super) const fn new() -> Self {
        Self {
            refused: 0.0,
            refusals: 2.0,
            paused: 1.0,
            patience: 0.5,
            window: 0.0,
        }
    }

    pub(super) fn refused(&mut self) {
        self.refused += 1.0;
    }

    /// The first refusal of the next episode has come.
    pub(super) fn episode(&mut self) {
        // It is one of those counted.
        let last = self.refused - 1.0;
        self.refusals += WEIGHT * (last.max(1.0) - self.refusals);
        self.refused = 1.0;
    }

    pub(super) fn paused(&mut self, secs: f64) {
        self.paused += WEIGHT * (secs - self.paused);
    }

    /// Judges how well `episode` fits what was known `before`.
    pub(super) fn surprised(&mut self, episode: &Episode, before: Option<&Bracket>) {
        let Some(before) = before else { return };
        if episode.asking {
            self.patience = (self.patience * 2.0).min(1.0);
        } else if episode.low < SURPRISE * before.high.min(episode.rate) {
            self.impatient();
        }
    }

    pub(super) fn impatient(&mut self) {
        self.patience = (self.patience / 2.0).max(IMPATIENT);
    }

    /// In how many seconds at `rate` the refusals of an episode are few.
    pub(super) fn ramp(&self, rate: f64) -> f64 {
        self.patience * (self.refusals / (REFUSALS * rate)).max(SHORTEST)
    }

    /// In how many seconds its pause is short as well.
    pub(super) fn hold(&self, rate: f64) -> f64 {
        (self.patience * self.paused / PAUSES).max(self.ramp(rate))
    }

    /// A cycle of `secs` was one window, or some of them.
    pub(super) fn counted_in(&mut self, secs: f64) {
        self.window = match self.window > 0.0 {
            true => self.window.min(secs.max(SHORTER * self.window)),
            false => secs,
        };
    }

    /// How fast the rate may rise above what was refused, per second.
    ///
    /// In a window it is refused only when the whole window is spent: no faster
    /// than by twice the margin in one.
    pub(super) fn slope(&self) -> f64 {
        SLOPE.min(2.0 * MARGIN / self.window)
    }

    /// How fast it may rise where nothing bounds it, per second.
    pub(super) fn growth(&self) -> f64 {
        GROWTH.0.min(GROWTH.1 / self.window)
    }
}
