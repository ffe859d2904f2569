//! Where the quota lies, and which rate that makes.

use super::{ledger::Episode, price::Price};

/// How far below the lowest refused rate the law rests.
pub(super) const MARGIN: f64 = 0.005;

/// Where the rate begins within a bracket, from 0 to 1, in logarithms.
const MIDDLE: f64 = 0.5;
const NEAR_LOW: f64 = 0.15;

/// A lower bound further below the upper one than this says nothing.
const WIDEST: f64 = 64.0;

/// How far below a refused rate the quota may lie, in steps as long as the one
/// from the refused rate before it.
const STEPS: f64 = 3.0;

/// The quota is at least `low` and at most `high` requests a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket {
    pub(super) low: f64,
    pub(super) high: f64,
    /// `low` is likely to be the truth.
    near_low: bool,
    /// The last cycle in seconds; zero if it says nothing of the server.
    cycle: f64,
    /// The server announced it, and would announce a larger one.
    announced: bool,
}

impl Bracket {
    /// What is known after `episode`, of what was known `before`.
    pub(super) fn after(episode: Episode, before: Option<Self>) -> Self {
        let near_low = episode.is_window();
        match before {
            // The question is answered: the quota has not grown.
            Some(Self { low, high, .. }) if episode.asking && episode.low <= high => Self {
                low: episode
                    .low
                    .min(high / (1.0 + MARGIN))
                    .max(low.min(high / (1.0 + 2.0 * MARGIN))),
                high,
                near_low,
                cycle: 0.0,
                announced: false,
            },
            _ => Self {
                low: episode.low.max(nearing(&episode, before)).min(episode.rate),
                high: episode.rate,
                near_low,
                cycle: episode.cycle,
                announced: false,
            },
        }
    }

    /// What the server announced, taken at its word.
    ///
    /// Twice the margin below it: who comes close spends the last one of a
    /// window now and then, and pauses for that.
    pub(super) fn announced(quota: f64) -> Self {
        Self {
            announced: true,
            ..Self::at(quota / (1.0 + MARGIN))
        }
    }

    /// Both bounds at `rate`.
    pub(super) const fn at(rate: f64) -> Self {
        Self {
            low: rate,
            high: rate,
            near_low: false,
            cycle: 0.0,
            announced: false,
        }
    }

    /// The rate after `calm` busy seconds without a refusal.
    pub(super) fn rate(&self, calm: f64, price: &Price) -> f64 {
        self.rest(calm, price).max(self.question(calm, price))
    }

    /// Whether that rate is above the bracket's, to ask a question.
    pub(super) fn asks(&self, calm: f64, price: &Price) -> bool {
        self.question(calm, price) > self.rest(calm, price)
    }

    /// r = low^(1 − x) · high^x, below high.
    fn rest(&self, calm: f64, price: &Price) -> f64 {
        // A window that was longer than the last one was not exhausted: `low`
        // was not the truth.
        let from = match self.near_low && calm < 1.5 * self.cycle {
            true => NEAR_LOW,
            false => MIDDLE,
        };
        let x = from + (1.0 - from) * (calm / self.ramp(price)).min(1.0);
        let low = self.low.max(self.high / WIDEST);
        (low * (self.high / low).powf(x)).min(self.high / (1.0 + MARGIN))
    }

    /// r = high · (1 − margin + slope · t), once rested.
    fn question(&self, calm: f64, price: &Price) -> f64 {
        let late = self.late(calm, price);
        if late > 0.0 && !self.announced {
            self.high * (1.0 - MARGIN + price.slope() * late)
        } else {
            0.0
        }
    }

    /// Whether the question has been asked in vain of a window for so long that
    /// `high` is disproved.
    ///
    /// Two windows on end hold a whole one, and one in which the rate was above
    /// `high` by the margin, and by two requests, would have refused something.
    pub(super) fn outlasted(&self, calm: f64, price: &Price) -> bool {
        if price.window <= 0.0 || self.announced {
            return false;
        }
        let above = MARGIN.max(2.0 / (self.high * price.window));
        self.late(calm, price) > (MARGIN + above) / price.slope() + 2.0 * price.window
    }

    /// For how long the question has been asked, below zero before it is.
    fn late(&self, calm: f64, price: &Price) -> f64 {
        calm - price.hold(self.high).max(self.ramp(price))
    }

    /// How long the rate takes to climb from within the bracket to its rest.
    ///
    /// At least two cycles: a stock that lasted for one at `high`, and for two
    /// at a lower rate, tells the quota from that.
    fn ramp(&self, price: &Price) -> f64 {
        price.ramp(self.high).max(2.0 * self.cycle)
    }
}

/// Above what the quota is likely to lie, as refused rates fall towards it.
///
/// While the cycles grow, each of these is about half as far above the quota as
/// the one before: one more step as the last would reach it. A bucket needs no
/// such help, for its pauses are short.
fn nearing(episode: &Episode, before: Option<Bracket>) -> f64 {
    before
        .filter(|before| episode.is_window() && before.cycle > 0.0 && episode.cycle >= before.cycle)
        .filter(|before| before.high >= episode.rate)
        .map_or(0.0, |before| {
            episode.rate - STEPS * (before.high - episode.rate)
        })
}
