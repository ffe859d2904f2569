//! One pause of a gate: until when it lasts, and who may go before its ramp.

use std::time::Duration;

use super::Policy;
use crate::time::Instant;

/// A gate's pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    pub(super) began: Instant,
    /// The instant that was asked for: never sent before it but by a probe.
    pub(super) until: Instant,
    /// When the ramp begins: `until` and the jitter, drawn once.
    pub(super) opens: Instant,
    cause: Cause,
    ban: bool,
    /// Where it is probed before its end: since when, and after how long.
    early: Option<(Instant, Duration)>,
    /// Never probed before: what was asked for by hand, or as a wait that is
    /// waited out.
    floor: Instant,
    /// It stays closed until a probe has proven it open.
    to_prove: bool,
    /// The next probe goes no earlier. `None` for what was asked for by hand.
    next_probe: Option<Instant>,
    /// The probe in flight: its number, and when its lease ends.
    pub(super) probe: Option<(u32, Instant)>,
    /// For how long nobody was there to be a probe.
    idle: Duration,
}

/// Why a gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asked for it by hand.
    Manual,
    /// The server refused.
    Throttled,
    /// A hard quota is spent: nobody waits for that.
    Exhausted,
}

/// A pause that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) until: Instant,
    pub(super) cause: Cause,
    pub(super) ban: bool,
    /// Whether the gate must be proven open by a probe.
    pub(super) probe: bool,
    /// When a probe may go before `until`.
    pub(super) early: Option<Instant>,
}

/// What the gate says to one who asks to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Pass.
    Open,
    /// Pass, as the probe.
    Probe,
    /// Wait; ask again at this instant, or when something has changed.
    Wait(Instant),
    /// Do not wait: the gate stays closed for too long.
    Refuse {
        /// For how long, or for how long at least; never is "unknown".
        until: Instant,
        /// When it would let a probe through.
        probe: Instant,
        exhausted: bool,
    },
}

impl Pause {
    /// The pause that is `asked` for at `now`, upon the `old` one if the gate is
    /// closed, in an episode that began at `since` if a refusal began it.
    ///
    /// `start` draws how long after a wait its ramp begins.
    pub(super) fn new(
        now: Instant,
        asked: Asked,
        since: Option<Instant>,
        old: Option<Self>,
        policy: &Policy,
        start: impl FnOnce(Duration) -> Duration,
    ) -> Self {
        let by_hand = asked.cause == Cause::Manual;
        let (until, opens, cause) = match old {
            // The start of its ramp was drawn with the pause that stays.
            Some(old) if old.until >= asked.until => (old.until, old.opens, old.cause),
            _ if by_hand => (asked.until, asked.until, asked.cause),
            _ => {
                let opens = asked.until + start(asked.until - now);
                (asked.until, opens, asked.cause)
            }
        };
        let mut floor = old.map_or(Instant::ZERO, |old| old.floor);
        if by_hand || asked.until - now <= policy.max_pause {
            floor = floor.max(asked.until);
        }
        let began = old.map_or(now, |old| old.began);
        let ban = asked.ban || old.is_some_and(|old| old.ban);
        let early = asked.early.map(|early| early.max(floor));
        let early = early.filter(|early| !ban && *early < until);
        let since = since.unwrap_or(began);
        let is_probed = !by_hand || old.is_some_and(|old| old.is_probed());
        Self {
            began,
            until,
            opens,
            cause,
            ban,
            early: early.map(|early| (since, early - since)),
            floor,
            to_prove: asked.probe || asked.early.is_some() || old.is_some_and(|old| old.to_prove),
            next_probe: is_probed.then(|| early.unwrap_or(until)),
            probe: old.and_then(|old| old.probe),
            idle: old.map_or(Duration::ZERO, |old| old.idle),
        }
    }

    /// Whether one goes ahead of its ramp.
    pub(super) const fn is_probed(&self) -> bool {
        self.next_probe.is_some()
    }

    /// Probe `number` goes at `now`, with a lease until `lease`.
    pub(super) fn probed(&mut self, number: u32, now: Instant, lease: Instant) {
        self.probe = Some((number, lease));
        let due = self.next_probe.replace(now).unwrap_or(now);
        self.idle = self.idle.saturating_add(now - due.max(self.until));
    }

    /// For how long it has lasted when it ends at `now`: not while it stayed
    /// closed because nobody came to prove it open.
    pub(super) fn lasted(&self, now: Instant) -> Duration {
        let ended = self.over(now).unwrap_or(now);
        (ended - self.began).saturating_sub(self.idle)
    }

    /// When time has ended it, if no probe has to.
    pub(super) fn over(&self, now: Instant) -> Option<Instant> {
        (!self.to_prove && now >= self.opens).then_some(self.opens)
    }

    pub(super) fn ask(&mut self, now: Instant, policy: &Policy) -> Answer {
        // The lease ran out: that probe is as good as lost.
        if let Some((_, lease)) = self.probe
            && now >= lease
        {
            self.probe = None;
            self.retry_probe(lease, now, policy);
        }
        let too_long = self.cause == Cause::Exhausted || self.until - now > policy.max_pause;
        let at = match (self.next_probe, self.probe) {
            (Some(next), None) if now >= next => return Answer::Probe,
            (_, Some((_, lease))) if self.to_prove => lease,
            (Some(next), None) if self.to_prove || next < self.opens => next,
            _ => self.opens,
        };
        if too_long && now < self.until {
            return Answer::Refuse {
                until: self.until,
                probe: at,
                exhausted: self.cause == Cause::Exhausted,
            };
        }
        Answer::Wait(at)
    }

    /// When its ramp begins, or has begun, if it ends at `now`.
    pub(super) fn ramps(&self, now: Instant) -> Instant {
        match self.to_prove {
            // Where it was to end plays no part any more.
            _ if now < self.until => now,
            true => now.max(self.opens),
            // That may be noticed only much later.
            false => self.opens,
        }
    }

    /// Another probe may go, the last one having come to nothing at `ended`.
    pub(super) fn retry_probe(&mut self, ended: Instant, now: Instant, policy: &Policy) {
        let soon = ended + policy.min_pause_bounded();
        // One that taught nothing leaves the server's word standing: the next
        // goes when the early one after it would have gone, or at the end.
        let due = match &mut self.early {
            None => self.until,
            Some((since, after)) => {
                while *since + *after <= now && *after < Duration::MAX {
                    *after = after.saturating_mul(2).max(Duration::from_nanos(1));
                }
                self.until.min(self.floor.max(*since + *after))
            }
        };
        self.next_probe = Some(soon.max(due));
    }
}
