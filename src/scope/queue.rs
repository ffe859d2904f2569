//! The waiters of one scope, in order of their calls' first arrival.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    task::Waker,
    time::Duration,
};

use tokio::runtime::Id as RuntimeId;

use super::{Policy, Refusal, Scope};
use crate::{cost::Cost, time::Instant};

/// How long a grant is kept for a waiter that is not polled.
pub(super) const UNCLAIMED: Duration = Duration::from_millis(200);

/// Index of a waiter in its root's slab.
pub(super) type WaiterId = usize;

/// A call's place among the waiters of its scope: kept over all its attempts,
/// so that a retried call stands ahead of those that came later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    arrived: Instant,
    /// Zero until it is needed: most calls never wait.
    seq: u64,
}

impl Place {
    /// Set in `seq` where the call waited before it was first sent: of calls
    /// that arrived together, the one that was sent at once came first.
    const WAITED: u64 = 1 << 63;

    pub(super) const fn new(arrived: Instant) -> Self {
        Self { arrived, seq: 0 }
    }

    /// Numbers the place, if it has no number yet.
    pub(super) fn number(&mut self, seq: &mut u64, was_sent: bool) {
        if self.seq == 0 {
            *seq += 1;
            self.seq = *seq | if was_sent { 0 } else { Self::WAITED };
        }
    }

    /// The place, or that of one who comes last of those who arrived with it,
    /// as long as it has no number.
    pub(super) const fn or_last(self) -> Self {
        let seq = if self.seq == 0 { u64::MAX } else { self.seq };
        Self {
            arrived: self.arrived,
            seq,
        }
    }

    /// The call's number in its root; zero for one that never waited.
    pub(super) const fn call(self) -> u64 {
        self.seq & !Self::WAITED
    }
}

/// What an attempt takes of its scope's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Costs {
    pub(super) requests: u32,
    /// By the order of the policy's named buckets.
    named: [u32; NAMED],
}

/// How many named buckets a policy has at most.
pub(super) const NAMED: usize = 3;

impl Costs {
    pub(super) const ONE: Self = Self {
        requests: 1,
        named: [0; NAMED],
    };

    /// `cost` by the names of `policy`.
    pub(super) fn of(cost: &Cost, policy: &Policy) -> Self {
        let mut costs = Self {
            requests: cost.of_requests(),
            ..Self::ONE
        };
        for (of_name, (name, _)) in costs.named.iter_mut().zip(&policy.buckets) {
            *of_name = cost.of(name);
        }
        costs
    }

    pub(super) fn named(&self, i: usize) -> u32 {
        self.named.get(i).copied().unwrap_or(0)
    }
}

/// What several calls take together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) requests: u64,
    named: [u64; NAMED],
}

impl Sum {
    fn add(&mut self, costs: &Costs) {
        self.requests += u64::from(costs.requests);
        for (sum, cost) in self.named.iter_mut().zip(costs.named) {
            *sum += u64::from(cost);
        }
    }

    fn subtract(&mut self, costs: &Costs) {
        self.requests -= u64::from(costs.requests);
        for (sum, cost) in self.named.iter_mut().zip(costs.named) {
            *sum -= u64::from(cost);
        }
    }

    pub(super) fn named(&self, i: usize) -> u64 {
        self.named.get(i).copied().unwrap_or(0)
    }
}

/// What a call asks for when it wants to pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) place: Place,
    /// Since when it has been asking.
    pub(super) since: Instant,
    pub(super) deadline: Instant,
    /// The epoch of the call's last throttle, zero without one.
    pub(super) throttled: u64,
    /// It is a retry that the budget pays for.
    pub(super) pays: bool,
    pub(super) costs: Costs,
}

/// One call that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) scope: Arc<Scope>,
    pub(super) ask: Ask,
    /// The node in whose queue it stands.
    pub(super) node: usize,
    /// Where it was polled last.
    pub(super) runtime: Option<RuntimeId>,
    pub(super) waker: Option<Waker>,
    pub(super) turn: Turn,
}

/// How far a waiter has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// It stands in the queue.
    Waiting,
    /// It may go: it holds all it needs, until the lease ends.
    Granted { lease: Instant, grant: Grant },
    /// It did not claim its grant and is skipped until it is polled again.
    Aside,
    /// It will not get a turn.
    Refused(Refusal),
}

/// Where an attempt is the probe: the levels, counted from the leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Probe {
    /// By which the gates know it.
    number: u32,
    levels: u8,
}

impl Probe {
    /// No probe yet, of this number if one at all.
    pub(super) const fn new(number: u32) -> Self {
        Self { number, levels: 0 }
    }

    /// It is the probe at the level `height` above the leaf.
    pub(super) const fn choose(&mut self, height: usize) {
        self.levels |= 1 << height;
    }

    /// Its number, if it is the probe `height` above the leaf.
    pub(super) fn at(self, height: usize) -> Option<u32> {
        (self.levels & (1 << height) != 0).then_some(self.number)
    }

    /// Whether it is none at any level.
    pub(super) const fn is_none(self) -> bool {
        self.levels == 0
    }
}

/// What a call holds that may go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grant {
    /// The epoch in which it was given.
    pub(super) epoch: u64,
    pub(super) probe: Probe,
    /// The levels at which it took tokens.
    pub(super) tokens: u8,
    /// It took of the named buckets.
    pub(super) named: bool,
    /// The levels at which it had been waiting for the gate to open.
    pub(super) waited: u8,
}

/// The queue of one scope: indices only, the waiters are in the root's slab.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeSet<(Place, WaiterId)>,
    /// All leases are equally long, so the first to be granted ends first.
    granted: VecDeque<(Instant, WaiterId)>,
    deadlines: BTreeSet<(Instant, WaiterId)>,
    aside: usize,
    /// What those take who stand in the queue.
    costs: Sum,
}

impl Queue {
    /// Puts a waiter in its place.
    pub(super) fn insert(&mut self, id: WaiterId, ask: &Ask) {
        if self.waiting.insert((ask.place, id)) {
            self.costs.add(&ask.costs);
        }
        if ask.deadline < Instant::NEVER {
            self.deadlines.insert((ask.deadline, id));
        }
    }

    /// Takes a waiter out, as one that is `turn`.
    pub(super) fn remove(&mut self, id: WaiterId, ask: &Ask, turn: &Turn) {
        match turn {
            Turn::Waiting => {
                if self.waiting.remove(&(ask.place, id)) {
                    self.costs.subtract(&ask.costs);
                }
                self.deadlines.remove(&(ask.deadline, id));
            }
            // Looked up by lease: what was claimed is gone from the front.
            Turn::Granted { lease, .. } => {
                let from = self.granted.partition_point(|(at, _)| at < lease);
                let same = self
                    .granted
                    .iter()
                    .skip(from)
                    .take_while(|(at, _)| at == lease);
                if let Some(i) = same.map(|(_, other)| *other).position(|other| other == id) {
                    self.granted.remove(from + i);
                }
            }
            Turn::Aside => self.aside = self.aside.saturating_sub(1),
            Turn::Refused(_) => {}
        }
    }

    /// Notes a grant, which ends with `lease`.
    pub(super) fn grant(&mut self, id: WaiterId, ask: &Ask, lease: Instant) {
        self.remove(id, ask, &Turn::Waiting);
        self.granted.push_back((lease, id));
    }

    /// The waiter whose grant has not been claimed in time.
    pub(super) fn unclaimed(&mut self, now: Instant) -> Option<WaiterId> {
        let (lease, id) = *self.granted.front()?;
        if now < lease {
            return None;
        }
        self.granted.pop_front();
        self.aside += 1;
        Some(id)
    }

    /// The waiter whose deadline has passed.
    pub(super) fn expired(&self, now: Instant) -> Option<WaiterId> {
        let (deadline, id) = *self.deadlines.first()?;
        (deadline <= now).then_some(id)
    }

    /// Who stands first.
    pub(super) fn first(&self) -> Option<(Place, WaiterId)> {
        self.waiting.first().copied()
    }

    /// What those take at least who stand ahead of `place`.
    pub(super) fn ahead_of(&self, place: Place) -> Sum {
        // Who came before those that wait does not wait for all of them.
        match self.waiting.last() {
            Some((last, _)) if *last < place => self.costs,
            _ => Sum::default(),
        }
    }

    /// All who stand in the queue, in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = WaiterId> + '_ {
        self.waiting.iter().map(|(_, id)| *id)
    }

    /// All who stand in the queue or hold a grant.
    pub(super) fn all(&self) -> impl Iterator<Item = WaiterId> + '_ {
        self.iter().chain(self.granted.iter().map(|(_, id)| *id))
    }

    /// How many stand in the queue.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many are known in all: waiting, granted and set aside.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.granted.len() + self.aside
    }

    /// Whether nobody is left for a driver to look after.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.granted.is_empty()
    }

    /// When a lease or a deadline ends next.
    pub(super) fn next_end(&self) -> Instant {
        let lease = self.granted.front().map_or(Instant::NEVER, |(at, _)| *at);
        let deadline = self.deadlines.first().map_or(Instant::NEVER, |(at, _)| *at);
        lease.min(deadline)
    }
}
