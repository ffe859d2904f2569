//! The default law: it keeps a bracket around the quota and rests below it.
//!
//! # The model
//!
//! A server serves *q* requests a second, whatever it counts with: a token
//! bucket, a fixed window, a log of the last minute, places that are taken for
//! a while. It has some of them in stock, and nobody tells how many. Two things
//! are certain all the same.
//!
//! - *What was accepted was there.* At a refusal the stock is spent. So all
//!   that was sent and accepted from then on was refilled from then on, and *q*
//!   is at least that much per second, pauses counted in:
//!
//!   ```text
//!   low  = accepted since the last exhaustion / (seconds since it + W)
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
//! That is all the law believes. It needs no idea of the stock, and of the kind
//! of the server only *W*: how many seconds it counts together, zero for one
//! that refills all the time. Both bounds close by themselves: `low` follows
//! the rate the longer nothing is refused, and `high` falls whenever something
//! is.
//!
//! # The rate
//!
//! ```text
//! within the bracket:     r = low^(1 − x) · high^x,  at most high / (1 + ½ %)
//!                         x climbs from ½ to 1 in the time R
//! rested for the time H:  r = high · (1 − ½ % + s · seconds),   s = min(0.1 %, 1 % / W)
//! ```
//!
//! The second line asks whether the quota has grown. A refusal says no, and the
//! bracket stays as it was. Else `low` overtakes `high`, which is the proof: the
//! upper bound is dropped, and the rate climbs until the next refusal gives a
//! new one:
//!
//! ```text
//! r ← r · exp(g · seconds),   g = min(2 %, 30 % / W)
//! ```
//!
//! Both times come from what a refusal costs. With *c* refusals an episode
//! (measured; a window refuses all that are in flight, a bucket few of them),
//! and *p* seconds that an episode is paused (measured),
//!
//! ```text
//! R = patience · c / (0.04 % · r),  at least two of the last cycles
//! H = patience · p / 0.35 %,        at least R
//! ```
//!
//! so that refusals stay below 0.1 % of the sends, and pauses below 1 % of the
//! time. `patience` is 1 while the quota is steady: a rise of it that was asked
//! for in vain makes the law twice as patient; a quota that has changed,
//! half as patient, down to an eighth. Who is often surprised asks often.
//!
//! # The start
//!
//! Until the first throttle the scope was left alone, and what was measured is
//! what it happened to send. The law begins at half of that, but at 10/s at
//! least: a quiet scope has measured nothing, and those who wait must not pay
//! for it. From there it climbs by 10 % a second to the second exhaustion, the
//! first that tells both bounds.
//!
//! # Windows
//!
//! A server seems to count in windows if it asks for two seconds or more, or
//! refuses again what is sent after a pause. *W* is then the shortest cycle seen,
//! from resume to resume, though no single one shortens it by more than 30 %: a
//! log of the last five minutes can be full again after three seconds. It enters where a window misleads: a whole one is
//! refilled at once, so `low` may be too high by one; and a rate above *q* is
//! refused only when the whole window is spent, so that who climbs faster climbs
//! far beyond. In turn, two windows on end hold a whole one: a rate that has been
//! above `high` by ½ %, and by two requests a window, for so long and was not
//! refused disproves it, long before `low` overtakes it.
//!
//! Of a cycle that was only a part of *W*, only as large a part of the old `low` is
//! forgotten: what was served in a whole window is likely to be served again.
//!
//! Between two refusals by a window lies not quite a whole number of windows.
//! From resume to resume it is a whole number, if the server names the end of
//! its window. The lower of the two figures counts; the latter, if the server
//! itself asked for two seconds or more. It is even likely to be the truth, since
//! a pause until a window's end wastes nothing, and the rate begins close above
//! `low` (x = 0.15 instead of ½).
//!
//! But where a pause is longer than it need be, as some servers ask for, `low` is
//! far below *q*: it is no more than what was sent. While the cycles grow, each
//! refused rate is about half as far above *q* as the one before, so that *q* is
//! likely to lie within three steps as the last:
//!
//! ```text
//! low ← max(low, high − 3 · (high before − high))
//! ```
//!
//! # Quotas that the server announces
//!
//! A new figure, less ½ %, is taken for the bracket, both bounds of it, and held
//! without questions: who announces a quota would announce a larger one. A refusal
//! disproves it, and from then on it counts no more than any other bracket.
//!
//! # Servers that answer to load
//!
//! One that serves *n* at a time, each in *s* seconds, serves *n / s* a second,
//! and to a paced rate it looks like a bucket that holds next to nothing. The
//! rate gets more of it than a limit on what is in flight could: a place is
//! free again while the answer is still on its way. If such a server grows
//! slower, that is a smaller quota. One that names concurrency as its reason
//! ([`ConcurrencyLimited`]) is limited in flight instead, and its rate is left
//! alone.
//!
//! # What it assumes, and when to choose another
//!
//! - Callers wait: without, there is nothing to measure, and the law holds
//!   what it knows. After a minute in which nobody came it counts anew, and after
//!   a long silence it trusts what it knows less: `low` halves every hour.
//! - The quota is steady for longer than a few hundred requests. One that
//!   changes faster is followed with a delay, on the low side.
//! - The server forgives a way that takes a little more or less: it holds more
//!   in stock than arrives in the time by which round trips differ. To one that
//!   serves a request every 20 ms and none in advance, over a way that varies by
//!   10 ms, only a third less can be sent without refusals, and that is held.
//! - Time refills the stock. To a server that serves so many and then closes for
//!   a while, however slowly they were spent, slower is only slower, and each
//!   episode looks like a smaller quota. It is known by six cycles that held the
//!   same number, three of them in half as much time again as the others, while
//!   somebody came all the time: then the fastest rate of the six is held, until a
//!   cycle holds another number. At one rate the cycles of any server are alike,
//!   so that one in 32 is spent at what was served on average, which a server that
//!   time refills does not refuse.
//! - Other consumers look like a smaller quota. Several processes that share
//!   one find even shares, since who sends more is refused more.
//! - A known quota that is yours alone is held by [`Fixed`] without a single
//!   refusal. [`Aimd`] has a bound that can be stated beforehand.
//!
//! | constant | where it comes from |
//! | --- | --- |
//! | ½ % below `high` | the price of resting: less than it cannot be told from *q* within a few hundred requests |
//! | 0.04 %, 0.35 % | little more than a third of what refusals and pauses may cost: 0.1 % of the sends, 1 % of the time |
//! | 0.1 %/s | a bucket of one second is overdrawn by 1 % when it refuses |
//! | 2 %/s, 30 % a window | a doubling takes 35 s, or three windows |
//! | 1 % a window | the margin below `high` and as much above it, in the time a window needs to tell |
//! | 10/s, 10 %/s at the start | one or two are in flight when the first is refused; 50/s is reached in 16 s |
//! | x = ½, 0.15 | halves the bracket, in logarithms; the latter only where `low` is likely the truth |
//! | six cycles, half as much again | what is left of a request from one to the next explains less, and no quota has yet fallen so evenly by chance |
//! | three steps | one would reach *q*, if each were half of the last; three begin below it |
//! | one cycle in 32 | a cycle at half the speed costs a server that counts 3 % |
//! | 30 % shorter | a handful of short cycles tell a shorter window, one does not |
//! | one cycle weighs 0.3 | an average over the last few episodes, for what they cost |
//! | patience ⅛ to 1 | questions come up to eight times as often as the budget alone has it, while the quota moves |
//!
//! [`ConcurrencyLimited`]: crate::verdict::ThrottleKind::ConcurrencyLimited
//! [`Fixed`]: super::Fixed
//! [`Aimd`]: super::Aimd

mod bracket;
mod busy;
mod counts;
mod learner;
mod ledger;
mod price;

use self::learner::Learner;
use crate::{
    law::{Law, LawConfig, Rate},
    time::Instant,
};

/// Requests a second to begin at where next to nothing was measured.
///
/// So slow that one or two of them are in flight when the first is refused, and
/// so fast that a handful of callers hardly notice.
const UNKNOWN: f64 = 10.0;

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
        let rate = match self.start {
            Some(_) => rate.get(),
            // What a quiet scope has sent tells nothing of what it might, and
            // the throttle that is to come halves it.
            None => rate.get().max(2.0 * UNKNOWN),
        };
        Box::new(Learner::new(
            now,
            rate,
            self.floor.get(),
            self.ceiling.get(),
        ))
    }
}

#[cfg(test)]
mod tests;
