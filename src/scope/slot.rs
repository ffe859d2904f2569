//! Slots: what an attempt in flight takes up until its response has ended.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Scope, after::After, flight::Flight};
use crate::time::Instant;

/// How long a response body may go unpolled before its slot is taken back.
const UNPOLLED: Duration = Duration::from_secs(30);

/// An attempt in flight; dropping it gives the slot back.
///
/// It rides in the response body, until that has ended. A body that nobody
/// polls any more loses its slot after 30 s, or a caller that keeps responses
/// would stop all others.
#[derive(Debug)]
#[must_use = "the slot is given back as soon as this is dropped"]
pub struct Slot {
    scope: Arc<Scope>,
    lease: Option<Arc<Lease>>,
}

/// When a body was last polled, where slots are limited.
#[derive(Debug)]
struct Lease {
    scope: Weak<Scope>,
    polled: AtomicU64,
    ended: AtomicBool,
}

impl Lease {
    /// When it runs out, if the body is not polled before.
    fn ends(&self) -> Instant {
        Instant::from_nanos(self.polled.load(Ordering::Relaxed)) + UNPOLLED
    }

    /// Ends the lease; says whether it had not ended before.
    fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::SeqCst)
    }
}

/// The leases of one scope.
#[derive(Debug, Default)]
pub(super) struct Leases {
    held: Vec<Arc<Lease>>,
    /// Since when slots are limited.
    limited: Option<Instant>,
    /// At this length those that ended are forgotten.
    crowded: usize,
    /// None runs out before: a body that is polled only puts it off.
    due: Instant,
}

impl Leases {
    fn insert(&mut self, lease: Arc<Lease>) {
        if self.held.len() >= self.crowded {
            self.held.retain(|held| !held.ended.load(Ordering::SeqCst));
            // As many again must come before the next look: constant on average.
            self.crowded = self.held.len().max(8).saturating_mul(2);
        }
        self.due = self.due.min(lease.ends());
        self.held.push(lease);
    }

    /// Whether `limit` slots of `flight` are taken at `now`.
    ///
    /// One that was taken before there was a limit, and was not polled since, is
    /// as good as free once a lease would have run out.
    pub(super) fn are_full(&mut self, flight: &Flight, limit: Option<u32>, now: Instant) -> bool {
        let Some(limit) = limit else {
            self.limited = None;
            return false;
        };
        let since = *self.limited.get_or_insert(now);
        let taken = match now < since + UNPOLLED {
            true => flight.in_flight(),
            false => flight.leased(),
        };
        taken >= u64::from(limit)
    }

    /// Ends the leases that ran out by `now`, and gives the instant at which to
    /// look again.
    pub(super) fn sweep(&mut self, now: Instant, after: &mut After) -> Instant {
        let unleased = self.limited.map(|since| since + UNPOLLED);
        let unleased = unleased.filter(|ends| now < *ends);
        self.sweep_leases(now, after)
            .min(unleased.unwrap_or(Instant::NEVER))
    }

    fn sweep_leases(&mut self, now: Instant, after: &mut After) -> Instant {
        if now < self.due {
            return self.due;
        }
        let mut next = Instant::NEVER;
        self.held.retain(|lease| {
            let ends = lease.ends();
            if lease.ended.load(Ordering::SeqCst) {
                return false;
            }
            if ends <= now {
                if let Some(scope) = lease.end().then(|| lease.scope.upgrade()).flatten() {
                    after.freed(scope);
                }
                return false;
            }
            next = next.min(ends);
            true
        });
        self.due = next;
        next
    }
}

impl Slot {
    /// The slot of an attempt of `scope` whose answer came.
    pub(super) fn new(scope: Arc<Scope>) -> Self {
        let lease = scope.root.word.read().is_limited().then(|| scope.lease());
        let lease = lease.flatten();
        if lease.is_none() {
            scope.path().for_each(|level| level.flight.taken_unleased());
        }
        Self { scope, lease }
    }

    /// Notes that the body is still being read.
    pub(crate) fn touch(&mut self) {
        if let Some(lease) = &self.lease {
            let now = self.scope.root.common.clock.now();
            lease.polled.store(now.as_nanos(), Ordering::Relaxed);
        } else if self.scope.root.word.read().is_limited() {
            // A limit has begun since it was taken.
            self.lease = self.scope.lease();
            if self.lease.is_some() {
                self.scope
                    .path()
                    .for_each(|level| level.flight.no_longer_unleased());
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.lease.is_none() {
            self.scope
                .path()
                .for_each(|level| level.flight.no_longer_unleased());
        }
        if self.lease.as_ref().is_none_or(|lease| lease.end()) {
            self.scope.release();
        }
    }
}

impl Scope {
    /// A lease at the limited levels; `None` where none is limited.
    fn lease(self: &Arc<Self>) -> Option<Arc<Lease>> {
        let now = self.root.common.clock.now();
        let mut lease = None;
        let mut tree = self.root.lock();
        for level in self.path() {
            if let Some(awake) = tree.awake(level)
                && awake.limit(now).is_some()
            {
                // Not before: a limit elsewhere below the root costs nothing here.
                let lease = lease.get_or_insert_with(|| {
                    Arc::new(Lease {
                        scope: Arc::downgrade(self),
                        polled: AtomicU64::new(now.as_nanos()),
                        ended: AtomicBool::new(false),
                    })
                });
                awake.leases.insert(Arc::clone(lease));
                // A driver that fell asleep before does not know of it.
                if awake.drivers.due > now + UNPOLLED {
                    level.changed.notify_waiters();
                }
            }
        }
        lease
    }

    /// One attempt has ended: its slot is free at every level.
    pub(super) fn release(self: &Arc<Self>) {
        self.path().for_each(|level| level.flight.ended());
        if self.root.word.read().is_limited() {
            self.path().for_each(|level| level.changed.notify_waiters());
        }
    }
}
