//! The registry: where the scopes of a layer live.
//!
//! Sharded by hash. A known scope is found by borrowed parts, without an
//! allocation. The number of scopes is bounded, so that hostile keys can
//! neither grow memory nor push others out: beyond the bound, a new key shares
//! the overflow scope of its parent. Idle scopes that nothing holds are
//! forgotten when a new one comes; no task sweeps.

use std::{
    hash::BuildHasher as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use hashbrown::{DefaultHashBuilder, HashTable};
use rand::Rng as _;
use tokio::sync::Notify;

use super::{
    Policy, Scope, ScopeHandle, ScopeSnapshot, Ticket,
    buckets::Buckets,
    cell::{Node, Root},
    flight::Flight,
};
use crate::{
    retry_policy::Allowance,
    scope_key::{ScopeKey, Segment},
    time::{Clock, Instant, nanos},
};

/// How many locks the registry has.
const SHARDS: usize = 32;

/// How often a full registry is searched for idle scopes.
const SEARCH: Duration = Duration::from_secs(1);

/// All scopes of one or more layers, and the policy they obey.
///
/// A clone shares them. A layer makes its own; give several layers the same
/// `Scopes` and they pause together.
#[derive(Clone, Debug)]
pub struct Scopes(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    common: Arc<Common>,
    hasher: DefaultHashBuilder,
    shards: [Mutex<Shard>; SHARDS],
    len: AtomicUsize,
    /// When all of it was searched for idle scopes, in nanoseconds.
    searched: AtomicU64,
}

/// What all scopes of one registry share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) policy: Policy,
    pub(crate) clock: Clock,
    /// For the recordings of all calls.
    pub(crate) allowance: Allowance,
    seeds: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    scopes: HashTable<Arc<Scope>>,
    searched: Instant,
}

impl Common {
    /// A seed for the jitter of one scope.
    pub(super) fn seed(&self) -> u64 {
        // Far apart, so that neighbours do not jitter alike.
        self.seeds
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

impl Default for Scopes {
    fn default() -> Self {
        Self::new(Policy::default())
    }
}

impl Scopes {
    /// An empty registry under `policy`.
    pub fn new(policy: Policy) -> Self {
        let seed = policy.seed.unwrap_or_else(|| rand::rng().next_u64());
        Self(Arc::new(Registry {
            common: Arc::new(Common {
                policy,
                clock: Clock::new(),
                allowance: Allowance::default(),
                seeds: AtomicU64::new(seed),
            }),
            hasher: DefaultHashBuilder::default(),
            shards: std::array::from_fn(|_| Mutex::default()),
            len: AtomicUsize::new(0),
            searched: AtomicU64::new(0),
        }))
    }

    /// The policy that the scopes obey.
    pub fn policy(&self) -> &Policy {
        &self.0.common.policy
    }

    /// A handle on the scope of `key`, which begins to exist if it did not.
    ///
    /// Of a host: `scopes.get(ScopeKey::host_of(&uri)?)`. A text is a segment of
    /// its own, as `scope_fn` may give it, and never a host.
    pub fn get<'a>(&self, key: impl Into<ScopeKey<'a>>) -> ScopeHandle {
        ScopeHandle::new(self.used(self.find(&key.into())))
    }

    /// How many scopes there are.
    pub fn len(&self) -> usize {
        self.0.len.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is known of each scope, in no order.
    pub fn snapshot(&self) -> Vec<ScopeSnapshot> {
        let mut scopes = Vec::new();
        for shard in &self.0.shards {
            scopes.extend(lock(shard).scopes.iter().cloned());
        }
        scopes.iter().map(ScopeSnapshot::of).collect()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.common.clock
    }

    /// `scope`, which is used now.
    fn used(&self, scope: Arc<Scope>) -> Arc<Scope> {
        let now = self.clock().now();
        scope.used.store(now.as_nanos(), Ordering::Relaxed);
        scope
    }

    /// The scope of `key`.
    pub(crate) fn find(&self, key: &ScopeKey<'_>) -> Arc<Scope> {
        let hash = self.0.hasher.hash_one(key);
        let scope = match self.0.known(hash, key) {
            Some(known) => known,
            None => self.0.create(hash, key),
        };
        if !scope.named.load(Ordering::Relaxed) {
            scope.name();
        }
        scope
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The table itself goes by the other bits.
        let at = usize::try_from(hash >> 48).unwrap_or(0) % SHARDS;
        lock(&self.shards[at])
    }

    fn known(&self, hash: u64, key: &ScopeKey<'_>) -> Option<Arc<Scope>> {
        self.shard(hash).find(hash, key)
    }

    /// Makes the scope of `key`, and those above it; or finds the overflow
    /// scope where there is no place for it.
    #[cold]
    fn create(&self, hash: u64, key: &ScopeKey<'_>) -> Arc<Scope> {
        let above = key.parent();
        let parent = above.as_ref().map(|above| {
            let hash = self.hasher.hash_one(above);
            let known = self.known(hash, above);
            known.unwrap_or_else(|| self.create(hash, above))
        });
        // No place for the parent, so none for the child.
        if let Some(parent) = &parent
            && parent.segments.last() == Some(&Segment::Overflow)
        {
            return Arc::clone(parent);
        }
        let is_overflow = key.segments().last() == Some(&Segment::Overflow);
        let now = self.common.clock.now();
        let most = self.common.policy.max_scopes;
        if self.len.load(Ordering::Relaxed) >= most {
            self.make_room(now);
        }
        let mut shard = self.shard(hash);
        if let Some(known) = shard.find(hash, key) {
            return known;
        }
        if now - shard.searched >= self.common.policy.idle / 8 {
            self.forget_idle(&mut shard, now);
        }
        // One overflow scope for each parent: bounded as they are.
        if !is_overflow && self.len.load(Ordering::Relaxed) >= most {
            drop(shard);
            let key = ScopeKey::overflow(above);
            let hash = self.hasher.hash_one(&key);
            return self
                .known(hash, &key)
                .unwrap_or_else(|| self.create(hash, &key));
        }
        let root = match &parent {
            Some(parent) => Arc::clone(&parent.root),
            None => Arc::new(Root::new(Arc::clone(&self.common))),
        };
        let node = root.lock().nodes.insert(Node::born(now));
        let owned = key.clone().into_owned();
        let scope = Arc::new(Scope {
            segments: owned.segments().into(),
            root,
            parent,
            node,
            flight: Flight::default(),
            metered: AtomicU64::new(now.as_nanos()),
            used: AtomicU64::new(now.as_nanos()),
            named: AtomicBool::new(false),
            changed: Notify::new(),
            opened: Notify::new(),
        });
        let rehash = |scope: &Arc<Scope>| self.hasher.hash_one(scope.key());
        shard.scopes.insert_unique(hash, Arc::clone(&scope), rehash);
        self.len.fetch_add(1, Ordering::Relaxed);
        scope
    }

    /// Looks for idle scopes wherever they are.
    fn make_room(&self, now: Instant) {
        let searched = Instant::from_nanos(self.searched.load(Ordering::Relaxed));
        if now - searched >= SEARCH {
            self.searched.store(now.as_nanos(), Ordering::Relaxed);
            for shard in &self.shards {
                self.forget_idle(&mut lock(shard), now);
            }
        }
    }

    /// Forgets the scopes of a shard that nothing has used for long.
    fn forget_idle(&self, shard: &mut Shard, now: Instant) {
        shard.searched = now;
        let idle = nanos(self.common.policy.idle);
        let before = shard.scopes.len();
        shard.scopes.retain(|scope| {
            let used = scope.used.load(Ordering::Relaxed);
            // A ticket, a handle, a waiter and a child each hold it.
            Arc::strong_count(scope) > 1
                || now.as_nanos().saturating_sub(used) < idle
                || scope.is_paused(now)
        });
        let gone = before - shard.scopes.len();
        self.len.fetch_sub(gone, Ordering::Relaxed);
    }
}

impl Shard {
    fn find(&self, hash: u64, key: &ScopeKey<'_>) -> Option<Arc<Scope>> {
        let same = |scope: &Arc<Scope>| scope.is(key);
        self.scopes.find(hash, same).cloned()
    }
}

impl Scope {
    /// A ticket for a call that arrives now.
    pub(crate) fn ticket(self: Arc<Self>) -> Ticket {
        let now = self.root.common.clock.now();
        self.used.store(now.as_nanos(), Ordering::Relaxed);
        Ticket::new(self, now)
    }

    /// The scope is asked for itself: it gets the limit and the law that its
    /// policy begins with.
    #[cold]
    fn name(self: &Arc<Self>) {
        let policy = &self.root.common.policy;
        let now = self.root.common.clock.now();
        let mut tree = self.root.lock();
        if self.named.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(limit) = policy.max_in_flight
            && let Some(awake) = tree.wake(self, now)
        {
            self.root.word.limit();
            awake.most = Some(limit);
        }
        if !policy.buckets.is_empty()
            && let Some(awake) = tree.wake(self, now)
        {
            awake.buckets = Buckets::of(policy, now);
        }
        if let Some(rate) = policy.law.start() {
            tree.wake_law(self, now, Some(rate));
        }
    }

    /// Whether its gate is closed at `now`.
    fn is_paused(self: &Arc<Self>, now: Instant) -> bool {
        let mut tree = self.root.lock();
        let until = tree.awake(self).and_then(|awake| awake.gate.closed_until());
        until.is_some_and(|until| now < until)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.root.lock().nodes.try_remove(self.node);
    }
}
