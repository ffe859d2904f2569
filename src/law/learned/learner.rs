//! The law at work: events in, a rate out.

use std::time::Duration;

use super::{
    bracket::Bracket,
    busy::Busy,
    counts::Counts,
    ledger::{Episode, Exhaustion, Ledger},
    price::Price,
};
use crate::{
    law::{Attempt, Ended, Law, Rate},
    time::{Instant, seconds},
    verdict::ThrottleKind,
};

/// How fast it grows while nothing was refused yet, per second.
const START: f64 = 0.1;

/// For how long a computed rate is good, in seconds.
///
/// The fastest growth makes it half a per cent too low by then.
const STEP: f64 = 0.05;

/// After how much silence what is known begins to fade, in seconds.
const SILENCE: f64 = 60.0;

/// How much more silence halves the lower bound, in seconds.
const HALF_LIFE: f64 = 3600.0;

/// The law that [`Learned`](super::Learned) builds.
#[derive(Debug)]
pub(super) struct Learner {
    floor: f64,
    ceiling: f64,
    state: State,
    /// What the state came to when it was last looked at: it rises by little
    /// from one answer to the next, and logarithms are dear.
    rate: Rate,
    stepped: Instant,
    ledger: Ledger,
    busy: Busy,
    price: Price,
    counts: Counts,
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
        let before = self.rate;
        let idle = self.busy.attempted(now, attempt.waiting, self.rate.get());
        self.ledger.idle(idle);
        if idle > SILENCE {
            self.fade(now, idle);
        }
        match asked {
            None => {
                self.ledger.accepted(attempt.stale);
                self.follow(now);
                if now.secs_since(self.stepped) >= STEP {
                    self.step(now);
                }
            }
            Some(asked) => {
                self.price.refused();
                if !attempt.stale {
                    self.exhausted(now, asked.as_secs_f64());
                }
                // Whatever it comes to, a refusal is no reason to go faster.
                self.rate = self.rate.at_most(before);
            }
        }
    }

    fn on_pause(&mut self, now: Instant, _: Instant) {
        self.busy.paused(now);
        self.ledger.paused(now);
    }

    fn on_resume(&mut self, now: Instant) {
        self.busy.resumed(now);
        let Some(cycle) = self.ledger.resumed(now) else {
            return;
        };
        let episode = self.episode.take();
        let refused = episode.map_or(self.rate.get(), |(episode, _)| episode.rate);
        let held = self.counts.spent(&cycle, refused);
        if let Some((episode, before)) = episode {
            let known = before.map_or(0.0, |bracket| bracket.low);
            let episode = episode.closed_by(&cycle, known, self.price.window);
            self.price.paused(cycle.paused);
            self.price.surprised(&episode, before.as_ref());
            if episode.is_window() {
                self.price.counted_in(cycle.length);
            }
            self.state = State::Within(match held {
                Some(rate) => Bracket::at(rate),
                None => Bracket::after(episode, before),
            });
            self.step(now);
        }
    }

    fn on_suspended(&mut self, now: Instant) {
        self.ledger.reopen(now);
        self.counts = Counts::default();
        self.episode = None;
    }

    fn on_quota(&mut self, now: Instant, quota: Rate) {
        // What was announced before may have been disproved since.
        if self.announced.replace(quota) != Some(quota) {
            self.counts = Counts::default();
            self.episode = None;
            self.calm = self.busy.at(now);
            self.state = State::Within(Bracket::announced(quota.get()));
            self.step(now);
        }
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.ledger.reopen(now);
        self.price = Price::new();
        self.counts = Counts::default();
        self.episode = None;
        self.grow(now, rate.get(), START);
    }

    fn rate(&mut self, _: Instant) -> Rate {
        self.rate
    }

    fn least_wait(&mut self, _: Instant, attempts: f64) -> Duration {
        let secs = attempts / self.rate.get();
        match self.state {
            // n = r · (exp(g · t) − 1) / g
            State::Growing { by, .. } => seconds((by * secs).ln_1p() / by),
            State::Within(_) => seconds(secs),
        }
    }
}

impl Learner {
    /// A law that begins at `rate`, and stays within `floor` and `ceiling`.
    pub(super) fn new(now: Instant, rate: f64, floor: f64, ceiling: f64) -> Self {
        let mut law = Self {
            floor,
            ceiling,
            state: State::Growing {
                rate,
                since: 0.0,
                by: START,
            },
            rate: Rate::SLOWEST,
            stepped: now,
            ledger: Ledger::new(now),
            busy: Busy::new(now),
            price: Price::new(),
            counts: Counts::default(),
            calm: 0.0,
            episode: None,
            announced: None,
        };
        law.step(now);
        law
    }

    /// Looks at what the state comes to.
    fn step(&mut self, now: Instant) {
        let busy = self.busy.at(now);
        let rate = match &self.state {
            State::Growing { rate, since, by } => rate * (by * (busy - since)).exp(),
            State::Within(bracket) => bracket.rate(busy - self.calm, &self.price),
        };
        self.rate = Rate::per_second(rate.min(self.ceiling).max(self.floor));
        self.stepped = now;
    }

    fn grow(&mut self, now: Instant, rate: f64, by: f64) {
        let since = self.busy.at(now);
        self.calm = since;
        self.state = State::Growing { rate, since, by };
        self.step(now);
    }

    /// A refusal that is not stale.
    fn exhausted(&mut self, now: Instant, asked: f64) {
        let rate = self.rate.get();
        let busy = self.busy.at(now);
        let calm = busy - std::mem::replace(&mut self.calm, busy);
        match self.ledger.exhausted(now) {
            // It was spent already.
            Exhaustion::Same => {}
            // Nothing is known of what came before: this only opens the account.
            // It disproves no quota that was announced, for nobody held it yet.
            Exhaustion::First => {
                if let State::Growing { .. } = self.state {
                    self.grow(now, (rate / 2.0).max(1.0).min(rate), START);
                }
            }
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
                    again: false,
                };
                self.state = State::Within(Bracket::after(episode, before));
                self.episode = Some((episode, before));
                self.step(now);
            }
        }
    }

    /// Raises the lower bound by what was accepted, and drops the upper one
    /// when it is disproved.
    fn follow(&mut self, now: Instant) {
        let low = self.ledger.low(now, self.price.window);
        let calm = self.busy.at(now) - self.calm;
        if let State::Within(bracket) = &mut self.state {
            if low > bracket.high || bracket.outlasted(calm, &self.price) {
                self.price.impatient();
                self.grow(now, self.rate.get(), self.price.growth());
            } else {
                bracket.low = bracket.low.max(low);
            }
        }
    }

    /// Trusts what is known a little less, after `silent` seconds. What was there
    /// before says nothing of what is there now.
    fn fade(&mut self, now: Instant, silent: f64) {
        self.ledger.reopen(now);
        if let State::Within(bracket) = &mut self.state {
            bracket.low *= 0.5f64.powf(silent / HALF_LIFE);
            self.calm = self.busy.at(now);
            self.step(now);
        }
    }
}
