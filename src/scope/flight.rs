//! What is known of a scope without its root's lock: counters and one word.
//!
//! # Why counting comes first
//!
//! A scope that has nothing to wait for and nothing to learn is *dormant*: an
//! attempt only counts itself. Whoever wakes a root raises the flag and then
//! reads the counters; whoever is sent or ends counts and then reads the flag.
//! Both steps are sequentially consistent, so that one of the two sees the
//! other: no attempt goes uncounted past a limit that is being set, and no slot
//! comes free without the one who waits for it being told. With acquire and
//! release alone, both could miss each other; `tests/flight.rs` lets a model
//! checker find that.

use super::{AtomicU64, Ordering};

/// How many attempts of a scope were sent and have ended.
#[derive(Debug, Default)]
pub(super) struct Flight {
    sent: AtomicU64,
    ended: AtomicU64,
    /// Of those in flight, the slots that have no lease: taken before there was
    /// a limit.
    unleased: AtomicU64,
}

impl Flight {
    /// One more was sent. Then read the [`Word`].
    pub(super) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::SeqCst);
    }

    /// One was counted that is not sent after all.
    pub(super) fn unsent(&self) {
        self.sent.fetch_sub(1, Ordering::SeqCst);
    }

    /// One has ended. Then read the [`Word`].
    pub(super) fn ended(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// A slot was taken without a lease.
    pub(super) fn taken_unleased(&self) {
        self.unleased.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them has ended, or has a lease now.
    pub(super) fn no_longer_unleased(&self) {
        self.unleased.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many have not ended, but for slots without a lease.
    pub(super) fn leased(&self) -> u64 {
        let unleased = self.unleased.load(Ordering::Relaxed);
        self.in_flight().saturating_sub(unleased)
    }

    /// How many were ever sent.
    pub(super) fn total(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// How many have not ended.
    pub(super) fn in_flight(&self) -> u64 {
        // In this order a count may be too high for a moment, never too low.
        let ended = self.ended.load(Ordering::SeqCst);
        self.sent.load(Ordering::SeqCst).saturating_sub(ended)
    }
}

/// A root's epoch and flags in one word, so that one load reads all.
#[derive(Debug, Default)]
pub(super) struct Word(AtomicU64);

/// What a [`Word`] said when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading(u64);

impl Word {
    const AWAKE: u64 = 1;
    const LIMITED: u64 = 2;
    const EPOCH: u64 = 4;

    pub(super) fn read(&self) -> Reading {
        Reading(self.0.load(Ordering::SeqCst))
    }

    /// There is something to wait for or to learn: the lock must be taken.
    pub(super) fn wake(&self) {
        self.0.fetch_or(Self::AWAKE, Ordering::SeqCst);
    }

    /// Attempts in flight are limited: who waits for a slot must be told.
    pub(super) fn limit(&self) {
        self.0
            .fetch_or(Self::AWAKE | Self::LIMITED, Ordering::SeqCst);
    }

    /// Begins a new epoch, and gives it.
    pub(super) fn next_epoch(&self) -> u64 {
        Reading(self.0.fetch_add(Self::EPOCH, Ordering::SeqCst) + Self::EPOCH).epoch()
    }
}

impl Reading {
    pub(super) const fn is_awake(self) -> bool {
        self.0 & Word::AWAKE != 0
    }

    pub(super) const fn is_limited(self) -> bool {
        self.0 & Word::LIMITED != 0
    }

    pub(super) const fn epoch(self) -> u64 {
        self.0 / Word::EPOCH
    }
}
