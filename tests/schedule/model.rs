//! What the schedule knows of each scope: a lower bound of what must hold.
//!
//! Only what is certain counts. A refusal of a retry may pause its call alone,
//! so it closes nothing here; an attempt sent after the last certain pause
//! opens what it passed. Where the model says "closed", the gate must be.

use std::time::Duration;

use crate::{MAX_PAUSE, MIN_PAUSE};

/// The paths of the scopes, each with those above it, the leaf first.
pub(crate) const PATHS: [&[usize]; 5] = [&[0], &[1, 0], &[2, 0], &[3, 1, 0], &[4]];

/// One scope, as far as it is certain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    /// Number of the event that paused it last, for certain; or perhaps.
    paused: u64,
    perhaps: u64,
    /// Nothing but an early probe is sent before this, and when that was asked.
    until: Option<(Duration, Duration)>,
    /// Not even an early probe is sent before this.
    floor: Duration,
    ban: bool,
    exhausted: bool,
    /// The last probe: when it was sent, by whom, and whether it has ended.
    probe: Option<(Duration, usize, bool)>,
}

/// What a server's refusal, or somebody's hand, asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) wait: Duration,
    pub(crate) ban: bool,
    pub(crate) exhausted: bool,
    pub(crate) by_hand: bool,
}

impl Level {
    /// An attempt numbered `sent` was refused, or somebody paused the scope.
    pub(crate) fn pause(&mut self, sent: u64, seq: u64, now: Duration, asked: Asked) {
        if sent <= self.perhaps {
            self.perhaps(seq);
            return;
        }
        self.paused = seq;
        self.perhaps(seq);
        let least = if asked.by_hand {
            Duration::ZERO
        } else {
            MIN_PAUSE
        };
        let until = now + asked.wait.max(least);
        if self.until.is_none_or(|(old, _)| old < until) {
            self.until = Some((until, now));
            self.exhausted = asked.exhausted;
        }
        let floor = match asked.by_hand || asked.wait <= MAX_PAUSE {
            true => until,
            false => now + least,
        };
        self.floor = self.floor.max(floor);
        self.ban |= asked.ban;
    }

    /// An attempt was refused that may have been stale, or may have paused its
    /// call alone.
    pub(crate) fn perhaps(&mut self, seq: u64) {
        self.perhaps = seq;
        self.probe = None;
    }

    /// An attempt numbered `sent` was accepted.
    pub(crate) fn accepted(&mut self, sent: u64) {
        if sent > self.paused {
            self.open();
        }
    }

    /// Somebody resumed it.
    pub(crate) fn open(&mut self) {
        let (paused, perhaps) = (self.paused, self.perhaps);
        *self = Self {
            paused,
            perhaps,
            ..Self::default()
        };
    }

    /// Whether an attempt may be sent at `now`.
    pub(crate) fn may_send(&self, now: Duration) -> bool {
        let Some((until, asked)) = self.until else {
            return true;
        };
        let long = self.exhausted || until - asked > MAX_PAUSE;
        now >= until || (long && !self.ban && now >= self.floor)
    }

    /// For how long it is certainly still closed.
    pub(crate) fn closed_for(&self, now: Duration) -> Option<Duration> {
        let (until, _) = self.until?;
        until.checked_sub(now).filter(|left| !left.is_zero())
    }

    /// An attempt is sent into the pause. Says whether it may be the probe: the
    /// one before it is back, or was given up on.
    pub(crate) fn probe(&mut self, now: Duration, call: usize) -> bool {
        match self.probe.replace((now, call, false)) {
            Some((sent, _, true)) => now >= sent + MIN_PAUSE,
            // The shortest lease, and the pause after it.
            Some((sent, _, false)) => now >= sent + 2 * MIN_PAUSE,
            None => true,
        }
    }

    /// The probe of `call` is back, or was dropped.
    pub(crate) fn probe_ended(&mut self, of: usize) {
        if let Some((_, call, ended)) = &mut self.probe
            && *call == of
        {
            *ended = true;
        }
    }
}
