//! The gate of one scope: a pure state machine of pauses, probes and ramps.
//!
//! ```text
//!          throttle                       ramp begins, nothing to prove
//!   Open ───────────▶ Closed ──────────────────────────────────────▶ Ramp ──▶ Open
//!                      │  ▲  probe refused                            ▲   no waiter left
//!              until   ▼  │                                           │
//!                     probe in flight ────────────────────────────────┘
//!                                          probe accepted
//! ```
//!
//! One goes alone, at the very instant that the server named: the probe. All
//! others follow as a ramp that begins a little later, by a time that is drawn,
//! so that of several processes no more than their probes arrive together. Where
//! there is something to prove they wait for its success besides.
//!
//! `now` is an argument; nothing here sleeps, wakes or locks.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::{
    Policy,
    pause::{Answer, Asked, Pause},
};
use crate::time::{Instant, scale};

/// The shortest and the longest time over which a ramp is spread.
const SPREAD: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// A timer later than this has been stalled.
const STALL: Duration = Duration::from_millis(10);

/// How much jitter an own backoff gets at most.
const MOST_JITTER: Duration = Duration::from_secs(8);

/// The gate of one scope.
#[derive(Debug)]
pub(super) struct Gate {
    state: State,
    episode: Option<Episode>,
    rng: StdRng,
}

#[derive(Debug)]
enum State {
    Open,
    Closed(Pause),
    // Waiters are let go one by one, `every` apart.
    Ramp { next: Instant, every: Duration },
}

/// One exhaustion, from its first throttle to the first accepted attempt that
/// was sent after it.
#[derive(Clone, Copy, Debug)]
struct Episode {
    began: Instant,
    /// The epoch that its first throttle began.
    epoch: u64,
    /// Rounds throttled, the first one not counted.
    rounds: u32,
    /// Until when its last pause was asked for.
    until: Instant,
}

impl Gate {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: State::Open,
            episode: None,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Asks to pass at `now`; changes nothing but what time alone changes.
    pub(super) fn ask(&mut self, now: Instant, policy: &Policy) -> Answer {
        match &mut self.state {
            State::Open => Answer::Open,
            State::Ramp { next, .. } if now < *next => Answer::Wait(*next),
            State::Ramp { .. } => Answer::Open,
            State::Closed(pause) => pause.ask(now, policy),
        }
    }

    /// When time has ended a pause that no probe has to prove.
    pub(super) fn over(&self, now: Instant) -> Option<Instant> {
        match &self.state {
            State::Closed(pause) => pause.over(now),
            _ => None,
        }
    }

    /// Closes the gate, or keeps it closed for longer; it is never shortened.
    ///
    /// Gives the instant until which it is closed.
    pub(super) fn pause(&mut self, now: Instant, asked: Asked, policy: &Policy) -> Instant {
        let old = match &self.state {
            State::Closed(pause) => Some(*pause),
            _ => None,
        };
        let since = self.episode.map(|episode| episode.began);
        let pause = Pause::new(now, asked, since, old, policy, |wait| self.start(wait));
        if let Some(episode) = &mut self.episode {
            episode.until = pause.until;
        }
        let until = pause.until;
        self.state = State::Closed(pause);
        until
    }

    /// How long after a pause of `pause` its ramp begins, drawn once so that
    /// several processes disperse too: within the first half of the spread, or it
    /// alone would cost a twentieth of every pause.
    fn start(&mut self, pause: Duration) -> Duration {
        match pause {
            Duration::ZERO => pause,
            _ => scale(spread(pause) / 2, self.rng.random::<f64>()),
        }
    }

    /// The wait that we choose ourselves after `rounds` in vain:
    /// `min_pause · 2^k`, at most half of `max_pause`, plus jitter.
    pub(super) fn backoff(&mut self, policy: &Policy) -> Duration {
        let rounds = self.episode.map_or(0, |episode| episode.rounds);
        let step = backoff_step(rounds, policy);
        let jitter = scale(step.min(MOST_JITTER), self.rng.random::<f64>());
        step.saturating_add(jitter)
    }

    /// The same without jitter: the least that a refusal after refusals waits.
    pub(super) fn least(&self, policy: &Policy) -> Duration {
        backoff_step(self.episode.map_or(0, |episode| episode.rounds), policy)
    }

    /// A throttle that is not stale: an episode begins or has another round.
    pub(super) fn throttled(&mut self, now: Instant, epoch: u64) {
        match &mut self.episode {
            Some(episode) => episode.rounds = episode.rounds.saturating_add(1),
            None => {
                self.episode = Some(Episode {
                    began: now,
                    epoch,
                    rounds: 0,
                    until: now,
                });
            }
        }
    }

    /// Whether who has been asking since `since` was held back by the running
    /// episode's pause.
    pub(super) fn has_held_since(&self, since: Instant) -> bool {
        self.episode.is_some_and(|episode| since < episode.until)
    }

    /// When the running episode began.
    pub(super) fn began(&self) -> Option<Instant> {
        self.episode.map(|episode| episode.began)
    }

    /// The epoch that began the running episode.
    pub(super) fn episode(&self) -> Option<u64> {
        self.episode.map(|episode| episode.epoch)
    }

    /// An attempt that is not stale was accepted: the episode is over.
    ///
    /// Says whether that ends a pause; then [`resume`](Self::resume).
    pub(super) fn accepted(&mut self) -> bool {
        self.episode = None;
        // Only a probe is sent into a pause.
        self.is_probed()
    }

    /// Whether it is closed, and one goes ahead of the ramp.
    pub(super) const fn is_probed(&self) -> bool {
        matches!(&self.state, State::Closed(pause) if pause.is_probed())
    }

    /// Whether it is, and nobody has gone yet.
    pub(super) fn awaits_probe(&self) -> bool {
        matches!(&self.state, State::Closed(pause) if pause.is_probed() && pause.probe.is_none())
    }

    /// Probe `number` is chosen: it holds the gate's lease until `lease`.
    ///
    /// It is known by its number, for one that was given up on may come back
    /// when another is out, or when the gate has long been closed anew.
    pub(super) fn probe_chosen(&mut self, number: u32, now: Instant, lease: Instant) {
        if let State::Closed(pause) = &mut self.state {
            pause.probed(number, now, lease);
        }
    }

    /// The probe says nothing: the next may go at once.
    pub(super) fn probe_withdrawn(&mut self, number: u32) {
        self.end_probe(number);
    }

    /// The probe taught nothing: the next may go after `min_pause`, or when
    /// the next early one may.
    pub(super) fn probe_failed(&mut self, number: u32, now: Instant, policy: &Policy) {
        if let Some(pause) = self.end_probe(number) {
            pause.retry_probe(now, now, policy);
        }
    }

    /// Ends the lease of the probe in flight, if it is the one meant.
    fn end_probe(&mut self, number: u32) -> Option<&mut Pause> {
        match &mut self.state {
            State::Closed(pause) if pause.probe.is_some_and(|(other, _)| other == number) => {
                pause.probe = None;
                Some(pause)
            }
            _ => None,
        }
    }

    /// Opens the gate: at once, or as a ramp for `waiting` callers over the
    /// spread of the pause, when no law paces them.
    ///
    /// Gives the instant at which the first of them may go.
    pub(super) fn resume(&mut self, now: Instant, waiting: usize, paced: bool) -> Instant {
        let (paused, begins) = match &self.state {
            State::Closed(pause) => (pause.lasted(now), pause.ramps(now)),
            _ => (Duration::ZERO, now),
        };
        self.state = match u32::try_from(waiting) {
            Ok(n) if n > 0 && !paced => State::Ramp {
                next: begins.max(now),
                every: spread(paused) / n,
            },
            _ => State::Open,
        };
        begins
    }

    /// One waiter was let go.
    pub(super) fn let_go(&mut self, now: Instant) {
        if let State::Ramp { next, every } = &mut self.state {
            // By schedule and not by `now`, or a coarse timer would stretch it;
            // but a timer that was much too late must not make a herd.
            let due = *next + *every;
            *next = if now - due > STALL { now } else { due };
        }
    }

    /// Nobody waits any more: a ramp is over.
    pub(super) fn drained(&mut self) {
        if matches!(self.state, State::Ramp { .. }) {
            self.state = State::Open;
        }
    }

    /// Until when it is closed, as was asked.
    pub(super) fn closed_until(&self) -> Option<Instant> {
        match &self.state {
            State::Closed(pause) => Some(pause.until),
            _ => None,
        }
    }

    /// Since when it is closed, and for how long that has lasted if it ends at
    /// `now`.
    pub(super) fn closed_for(&self, now: Instant) -> Option<(Instant, Duration)> {
        match &self.state {
            State::Closed(pause) => Some((pause.began, pause.lasted(now))),
            _ => None,
        }
    }

    /// Its pause is to end, and its ramp to begin, at `now` at the latest.
    pub(super) fn cut_short(&mut self, now: Instant) {
        if let State::Closed(pause) = &mut self.state {
            pause.opens = pause.opens.min(now);
        }
    }
}

/// `min_pause · 2^k`, at most half of `max_pause`, at least `min_pause`.
fn backoff_step(rounds: u32, policy: &Policy) -> Duration {
    let factor = 1_u32.checked_shl(rounds).unwrap_or(u32::MAX);
    let least = policy.min_pause_bounded();
    least
        .saturating_mul(factor)
        .min(policy.max_pause / 2)
        .max(least)
}

/// Over what time the callers of a pause of `pause` are spread.
fn spread(pause: Duration) -> Duration {
    (pause / 10).clamp(SPREAD.0, SPREAD.1)
}
