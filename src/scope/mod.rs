//! Scopes: what a quota applies to, and all the state that callers share.
//!
//! A scope is a path; a throttle closes one level of it, and an attempt must
//! pass all levels. All scopes below one root share one lock, under which
//! admission takes all or nothing (`cell`). Who cannot pass waits in the
//! queue (`queue`) of the level that refuses; one driver task per queue
//! (`driver`) lets waiters go by time and order. How long a gate stays closed
//! is decided by a pure state machine (`pause`).
//!
//! A root that has nothing to wait for and nothing to learn is *dormant*: its
//! attempts take no lock (`flight`).

mod admit;
mod after;
mod awake;
mod believe;
mod buckets;
mod cell;
mod driver;
mod flight;
mod forecast;
mod gate;
mod handle;
mod hints;
mod know;
mod pause;
mod policy;
mod queue;
mod registry;
mod settle;
mod slot;
mod snapshot;
mod tally;
mod throttle;
mod ticket;
mod wait;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

pub(crate) use self::ticket::{Late, Mode, Want};
pub use self::{
    admit::AdmitFuture,
    handle::ScopeHandle,
    hints::HintCounts,
    policy::Policy,
    registry::Scopes,
    slot::Slot,
    snapshot::ScopeSnapshot,
    ticket::{Classified, Scoped, Ticket},
};
use self::{cell::Root, flight::Flight};
use crate::{
    error::{Error, ErrorKind},
    scope_key::{ScopeKey, Segment},
    time::Instant,
};

/// How long the rate of a dormant scope is measured over, at least.
const METER: Duration = Duration::from_secs(1);

/// One scope: what is known of it without a lock, and where its node is.
#[derive(Debug)]
pub(crate) struct Scope {
    segments: Box<[Segment<'static>]>,
    root: Arc<Root>,
    parent: Option<Arc<Self>>,
    /// Its node in the root's tree.
    node: usize,
    flight: Flight,
    /// When the meter was read, and when the scope was last asked for, in
    /// nanoseconds.
    metered: AtomicU64,
    used: AtomicU64,
    /// It was asked for itself, and not only as a level of another.
    named: AtomicBool,
    /// Tells the drivers that something has changed.
    changed: Notify,
    /// Tells those who watch that the gate has opened.
    opened: Notify,
}

impl Scope {
    /// The scope's key.
    pub(crate) fn key(&self) -> ScopeKey<'static> {
        ScopeKey::from_segments(&self.segments)
    }

    /// Whether this is the scope of `key`.
    pub(crate) fn is(&self, key: &ScopeKey<'_>) -> bool {
        *self.segments == *key.segments()
    }

    /// The scope and those above it, from the leaf to the root.
    fn path(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(self), |scope| scope.parent.as_ref())
    }

    fn count_sent(self: &Arc<Self>) {
        self.path().for_each(|level| level.flight.sent());
    }

    fn count_unsent(self: &Arc<Self>) {
        self.path().for_each(|level| level.flight.unsent());
    }

    /// Notes how many were sent, about once a second.
    ///
    /// The rate that a dormant scope was called at is where its law begins.
    fn meter(self: &Arc<Self>, now: Instant) {
        let metered = Instant::from_nanos(self.metered.load(Ordering::Relaxed));
        if now - metered >= METER {
            self.read_meter(now);
        }
    }

    #[cold]
    fn read_meter(self: &Arc<Self>, now: Instant) {
        let mut tree = self.root.lock();
        for level in self.path() {
            level.metered.store(now.as_nanos(), Ordering::Relaxed);
            if let Some(node) = tree.nodes.get_mut(level.node) {
                node.meter
                    .read(now, level.flight.total().saturating_sub(node.throttled));
            }
        }
    }
}

/// Why a call is refused and not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refusal {
    kind: ErrorKind,
    retry_after: Option<Duration>,
}

impl Refusal {
    const fn new(kind: ErrorKind, retry_after: Option<Duration>) -> Self {
        Self { kind, retry_after }
    }

    fn error(self, scope: &Scope) -> Error {
        Error::refused(self.kind, scope.key(), self.retry_after)
    }
}
