//! The learned law: it keeps a bracket around the quota and rests below it.
//!
//! # The model
//!
//! A server serves *q* requests a second, whatever it counts with: a token
//! bucket, a fixed window, a log of the last minute. It has some of them in
//! stock, and nobody tells how many. Two things are certain all the same.
//!
//! - *What was accepted was there.* At a refusal the stock is spent. So all
//!   that is accepted from then on was refilled from then on, and *q* is at
//!   least that much per second, pauses counted in:
//!
//!   ```text
//!   low  = accepted since the last exhaustion / seconds since it
//!   ```
//!
//! - *What was refused was too much.* A stock lasts for ever at a rate below
//!   *q*. So *q* is at most the highest rate held since the last exhaustion;
//!   the rate only ever rises between two, so that is the rate of the refusal:
//!
//!   ```text
//!   high = rate at the refusal
//!   ```
//!
//! That is all the law believes. It needs no idea of the stock, nor of the kind
//! of the server, and both bounds close by themselves: `low` follows the rate
//! the longer nothing is refused, and `high` falls whenever something is.
//!
//! # The rate
//!
//! ```text
//! within the bracket:   r = low^(1 − x) · high^x,  at most high / (1 + 1 %)
//! x climbs from ½ to 1 in the time R
//!
//! rested for the time H:  r = high · (1 − 1 % + 0.1 % · seconds)
//! ```
//!
//! The second line asks whether the quota has grown. A refusal says no, and the
//! bracket stays as it was. Else `low` overtakes `high`, which is the proof: the
//! upper bound is dropped, and the rate climbs by 2 % a second until the next
//! refusal gives a new one.
//!
//! Both times come from what a refusal costs. With *c* refusals an episode
//! (measured; a window refuses all that are in flight, a bucket few of them),
//! and *p* seconds that an episode is paused (measured),
//!
//! ```text
//! R = patience · c / (0.04 % · r),  at least two of the last cycles
//! H = patience · p / 0.5 %,         at least R
//! ```
//!
//! so that refusals stay below 0.1 % of the sends, and pauses below 1 % of the
//! time. `patience` is 1 while the quota is steady: a rise of it that was asked
//! for in vain makes the law a third more patient; a quota that has changed, half as
//! patient, down to an eighth. Who is often surprised asks often.
//!
//! # Windows
//!
//! Between two refusals by a *window* lies not quite a whole number of windows,
//! so the first bound is wrong by up to one of them. From resume to resume it is
//! a whole number, if the server names the end of its window. The lower of the
//! two figures counts; the latter, if the server itself asked for two seconds or more. In
//! that case it is even likely to be the truth, since a pause until a window's end wastes nothing,
//! and the rate begins close above `low` (x = 0.15).
//!
//! # Quotas that the server announces
//!
//! A new figure is taken for the bracket, both bounds of it, and held without
//! questions: who announces a quota would announce a larger one. A refusal
//! disproves it, and from then on it counts no more than any other bracket.
//!
//! # What it assumes, and when to choose another
//!
//! - Callers wait: without, there is nothing to measure, and the law holds
//!   what it knows. After a long silence it trusts that less: `low` halves
//!   every hour.
//! - The quota is steady for longer than a few hundred requests. One that
//!   changes faster is followed with a delay, on the low side.
//! - Other consumers look like a smaller quota. Several processes that share
//!   one find even shares, since who sends more is refused more.
//! - The limit is on the rate. A limit on what is in flight is another thing,
//!   and its refusals ([`ConcurrencyLimited`]) do not touch the rate.
//! - A known quota that is yours alone is held by [`Fixed`] without a single
//!   refusal. [`Aimd`] has a bound that can be stated beforehand.
//!
//! | constant | where it comes from |
//! | --- | --- |
//! | 1 % below `high` | the price of resting: less than it cannot be told from *q* within a few hundred requests |
//! | 0.04 %, 0.5 % | a third of what refusals and pauses may cost |
//! | 0.1 %/s, 2 %/s | a bucket of one second is overdrawn by 1 % when it refuses; a doubling takes 35 s |
//! | x = ½, 0.15 | halves the bracket, in logarithms; the latter only where `low` is likely the truth |
//!
//! [`ConcurrencyLimited`]: ThrottleKind::ConcurrencyLimited
//! [`Fixed`]: super::Fixed
//! [`Aimd`]: super::Aimd

mod bracket;
mod busy;
mod ledger;
mod price;

use self::{
    bracket::Bracket,
    busy::Busy,
    ledger::{Episode, Exhaustion, Ledger},
    price::Price,
};
use crate::{
    law::{Attempt, Ended, Law, LawConfig, Rate},
    time::Instant,
    verdict::ThrottleKind,
};

/// How fast it grows when the quota has, per second.
const GROWTH: f64 = 0.02;

/// How fast it grows while nothing was refused yet, per second.
const START: f64 = 0.1;

/// After how much silence what is known begins to fade, in seconds.
const SILENCE: f64 = 60.0;

/// How much more silence halves the lower bound, in seconds.
const HALF_LIFE: f64 = 3600.0;

/// The settings of a law that learns the quota and rests just below it.
///
/// See [`law`](crate::law) for when to choose it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    start: Option<Rate>,
    floor: Rate,
    ceiling: Rate,
}

impl Learned {
    /// Leaves a scope alone until its first throttle, and learns from then on.
    pub const fn new() -> Self {
        Self {
            start: None,
            floor: Rate::per_second(0.01),
            ceiling: Rate::FASTEST,
        }
    }

    /// Begins at one request per second and grows until the first throttle.
    ///
    /// For services that must not be flooded to be measured. The rate grows by
    /// a tenth each second in which callers wait.
    pub const fn slow_start() -> Self {
        Self::new().start_rate(1.0)
    }

    /// Begins at `per_second` requests a second, and grows until the first
    /// throttle.
    ///
    /// By default a scope is left alone until then.
    #[must_use]
    pub const fn start_rate(mut self, per_second: f64) -> Self {
        self.start = Some(Rate::per_second(per_second));
        self
    }

    /// Sets the rate, per second, below which the law never goes.
    ///
    /// Defaults to one request in 100 s.
    #[must_use]
    pub const fn floor(mut self, per_second: f64) -> Self {
        self.floor = Rate::per_second(per_second);
        self
    }

    /// Sets the rate, per second, above which the law never goes, unless the
    /// floor is higher. Defaults to no such bound.
    #[must_use]
    pub const fn ceiling(mut self, per_second: f64) -> Self {
        self.ceiling = Rate::per_second(per_second);
        self
    }
}

/// As [`Learned::new`].
impl Default for Learned {
    fn default() -> Self {
        Self::new()
    }
}

impl LawConfig for Learned {
    fn start(&self) -> Option<Rate> {
        self.start
    }

    fn build(&self, now: Instant, rate: Rate) -> Box<dyn Law> {
        Box::new(Learner {
            floor: self.floor.get(),
            ceiling: self.ceiling.get(),
            state: State::Growing {
                rate: rate.get(),
                since: 0.0,
                by: START,
            },
            ledger: Ledger::new(now),
            busy: Busy::new(now),
            price: Price::new(),
            calm: 0.0,
            episode: None,
            announced: None,
        })
    }
}

/// The law that [`Learned`] builds.
#[derive(Debug)]
struct Learner {
    floor: f64,
    ceiling: f64,
    state: State,
    ledger: Ledger,
    busy: Busy,
    price: Price,
    /// Since when, by the clock of [`Busy`], nothing was refused.
    calm: f64,
    /// The episode that is not over yet, and the bracket before it.
    episode: Option<(Episode, Option<Bracket>)>,
    /// The quota that the server announced last.
    announced: Option<Rate>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing bounds the rate: it grows `by` so much a second.
    Growing { rate: f64, since: f64, by: f64 },
    /// The quota lies in there.
    Within(Bracket),
}

impl Law for Learner {
    fn on_attempt(&mut self, attempt: &Attempt) {
        let now = attempt.now;
        let asked = match attempt.ended {
            Ended::Accepted => None,
            Ended::Throttled {
                kind: ThrottleKind::ConcurrencyLimited,
                ..
            } => return,
            Ended::Throttled { asked, .. } => Some(asked.unwrap_or_default()),
        };
        let rate = self.current(now);
        let silent = self.busy.attempted(now, attempt.waiting, rate);
        if silent > SILENCE {
            self.fade(now, silent);
        }
        match asked {
            None => {
                self.ledger.accepted(attempt.stale);
                self.follow(now);
            }
            Some(asked) => {
                self.price.refused();
                if !attempt.stale {
                    self.exhausted(now, rate, asked.as_secs_f64());
                }
            }
        }
    }

    fn on_pause(&mut self, now: Instant, _: Instant) {
        self.busy.paused(now);
        self.ledger.paused(now);
    }

    fn on_resume(&mut self, now: Instant) {
        self.busy.resumed(now);
        self.calm = self.busy.at(now);
        let Some(cycle) = self.ledger.resumed(now) else {
            return;
        };
        if let Some((episode, before)) = self.episode.take() {
            let episode = episode.closed_by(&cycle);
            self.price.paused(cycle.paused);
            self.price.surprised(&episode, before.as_ref());
            self.state = State::Within(Bracket::after(episode, before));
        }
    }

    fn on_quota(&mut self, now: Instant, quota: Rate) {
        // What was announced before may have been disproved since.
        if self.announced.replace(quota) != Some(quota) {
            self.episode = None;
            self.calm = self.busy.at(now);
            self.state = State::Within(Bracket::announced(quota.get()));
        }
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.ledger.reopen(now);
        self.price = Price::new();
        self.episode = None;
        self.grow(now, rate.get(), START);
    }

    fn rate(&mut self, now: Instant) -> Rate {
        Rate::per_second(self.current(now))
    }
}

impl Learner {
    fn current(&self, now: Instant) -> f64 {
        let busy = self.busy.at(now);
        let rate = match &self.state {
            State::Growing { rate, since, by } => rate * (by * (busy - since)).exp(),
            State::Within(bracket) => bracket.rate(busy - self.calm, &self.price),
        };
        rate.min(self.ceiling).max(self.floor)
    }

    fn grow(&mut self, now: Instant, rate: f64, by: f64) {
        let since = self.busy.at(now);
        self.calm = since;
        self.state = State::Growing { rate, since, by };
    }

    /// A refusal at `rate` that is not stale.
    fn exhausted(&mut self, now: Instant, rate: f64, asked: f64) {
        let busy = self.busy.at(now);
        let calm = busy - std::mem::replace(&mut self.calm, busy);
        match self.ledger.exhausted(now) {
            // It was spent already.
            Exhaustion::Same => {}
            // Nothing is known of what came before: this only opens the account.
            Exhaustion::First => self.grow(now, (rate / 2.0).max(1.0).min(rate), START),
            Exhaustion::Next(low) => {
                self.price.episode();
                let before = match self.state {
                    State::Within(bracket) => Some(bracket),
                    State::Growing { .. } => None,
                };
                let asking = before.is_some_and(|bracket| bracket.asks(calm, &self.price));
                let episode = Episode {
                    rate,
                    low,
                    asked,
                    asking,
                    cycle: 0.0,
                };
                self.state = State::Within(Bracket::after(episode, before));
                self.episode = Some((episode, before));
            }
        }
    }

    /// Raises the lower bound by what was accepted, and drops the upper one
    /// when it is disproved.
    fn follow(&mut self, now: Instant) {
        let low = self.ledger.low(now);
        if let State::Within(bracket) = &mut self.state {
            if low > bracket.high {
                self.price.impatient();
                let rate = self.current(now);
                self.grow(now, rate, GROWTH);
            } else {
                bracket.low = bracket.low.max(low);
            }
        }
    }

    /// Trusts what is known a little less, after `silent` seconds.
    fn fade(&mut self, now: Instant, silent: f64) {
        if let State::Within(bracket) = &mut self.state {
            bracket.low *= 0.5f64.powf(silent / HALF_LIFE);
            self.calm = self.busy.at(now);
        }
    }
}

#[cfg(test)]
mod tests;
