//! Admission: who may pass, who waits where, and who is refused.
//!
//! One critical section per root. An attempt passes when every level of its
//! scope lets it, and then takes a token, a slot and, where a gate wants one,
//! the part of the probe at all of them; or it takes nothing and waits at the
//! level that refused. So no child hoards a token of its parent, and no paused
//! leaf blocks its siblings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;
use tokio::runtime::Id as RuntimeId;

use super::{
    Refusal, Scope, Want,
    after::After,
    awake::{Awake, Pace},
    flight::Word,
    forecast::closed,
    hints::HintCounts,
    pause::Answer,
    queue::{Ask, Costs, Grant, Probe, Queue, Waiter, WaiterId},
    registry::Common,
    tally::Meter,
};
use crate::{
    error::ErrorKind,
    law::{Bucket, Rate},
    time::Instant,
};

/// All scopes below one first segment, and their lock.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) word: Word,
    pub(super) common: Arc<Common>,
    tree: Mutex<Tree>,
}

impl Root {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self {
            word: Word::default(),
            common,
            tree: Mutex::new(Tree {
                // Most roots have no scope below them.
                nodes: Slab::with_capacity(1),
                ..Tree::default()
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tree> {
        // Nothing under the lock leaves the tree half changed when it panics:
        // laws are guarded, and no other foreign code runs there.
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of all scopes of one root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Slab<Node>,
    pub(super) waiters: Slab<Waiter>,
    /// Numbers calls that have waited or were throttled.
    pub(super) calls: u64,
    /// Numbers probes.
    probes: u32,
}

/// The state of one scope.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The root's epoch at this scope's last pause or cut.
    pub(super) epoch: u64,
    pub(super) throttled: u64,
    /// Boxed, for few scopes are sent hints that mean nothing.
    pub(super) hints: Option<Box<HintCounts>>,
    pub(super) meter: Meter,
    /// The rate that the server's quota fields tell.
    pub(super) known: Option<Rate>,
    pub(super) awake: Option<Box<Awake>>,
}

impl Node {
    pub(super) fn born(now: Instant) -> Self {
        Self {
            meter: Meter::new(now),
            ..Self::default()
        }
    }
}

/// The answer to one who wants to pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admission {
    /// It holds all it needs.
    Granted(Grant),
    /// The pause does not stop it, and nothing is held.
    Pass,
    /// It has to wait at `node`, at least until `at`.
    Wait {
        node: usize,
        at: Instant,
    },
    Refused(Refusal),
}

/// An attempt that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) epoch: u64,
    pub(super) probe: Probe,
    /// The levels at which it had been waiting for the gate to open.
    pub(super) waited: u8,
}

impl Tree {
    pub(super) fn node(&mut self, scope: &Arc<Scope>) -> Option<&mut Node> {
        self.nodes.get_mut(scope.node)
    }

    /// The state of `scope`, unless it is dormant.
    pub(super) fn awake(&mut self, scope: &Arc<Scope>) -> Option<&mut Awake> {
        self.nodes.get_mut(scope.node)?.awake.as_deref_mut()
    }

    /// The state of `scope`, which is woken if it is dormant.
    pub(super) fn wake(&mut self, scope: &Arc<Scope>, now: Instant) -> Option<&mut Awake> {
        let node = self.nodes.get_mut(scope.node)?;
        if node.awake.is_none() {
            scope.root.word.wake();
            let seed = scope.root.common.seed();
            node.awake = Some(Box::new(Awake::new(seed, now)));
        }
        node.awake.as_deref_mut()
    }

    /// Gives `scope` a law that begins at `rate`, or where its settings have it
    /// begin, or at the measured rate, if it has none yet.
    ///
    /// The bucket of a scope that has sent something begins empty.
    pub(super) fn wake_law(&mut self, scope: &Arc<Scope>, now: Instant, rate: Option<Rate>) {
        let config = Arc::clone(&scope.root.common.policy.law);
        let total = scope.flight.total();
        let Some(node) = self.nodes.get(scope.node) else {
            return;
        };
        let (known, served) = (node.known, total.saturating_sub(node.throttled));
        let rate = rate
            .or_else(|| config.start())
            .or(known)
            .unwrap_or_else(|| node.meter.rate(now, served));
        if let Some(awake) = self.wake(scope, now)
            && awake.pace.is_none()
        {
            let bucket = match total {
                0 => Bucket::full(now),
                _ => Bucket::empty(now),
            };
            let mut pace = Pace::new(config.as_ref(), now, rate, bucket);
            if let Some(quota) = known {
                pace.on_quota(now, quota);
            }
            awake.pace = Some(pace);
        }
    }

    /// Asks whether a call may pass, and takes what it needs if it may.
    ///
    /// `first_at` names a node at whose queue the call has already been chosen.
    pub(super) fn admit(
        &mut self,
        scope: &Arc<Scope>,
        ask: &Ask,
        now: Instant,
        want: Want,
        first_at: Option<usize>,
        after: &mut After,
    ) -> Admission {
        let policy = &scope.root.common.policy;
        let mut grant = Grant {
            epoch: scope.root.word.read().epoch(),
            probe: Probe::new(self.probes.wrapping_add(1)),
            ..Grant::default()
        };
        let mut wait = None;
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.notice(level, now, after) else {
                continue;
            };
            if awake.gate.has_held_since(ask.since) {
                grant.waited |= 1 << i;
            }
            let behind = first_at != Some(level.node)
                && awake
                    .queue
                    .first()
                    .is_some_and(|(first, _)| first < ask.place);
            match awake.gate.ask(now, policy) {
                Answer::Refuse {
                    until, exhausted, ..
                } => {
                    return Admission::Refused(closed(now, until, exhausted));
                }
                Answer::Wait(at) => {
                    wait.get_or_insert(Admission::Wait {
                        node: level.node,
                        at,
                    });
                }
                // Those ahead go first; their driver knows when.
                _ if behind => {
                    wait.get_or_insert(Admission::Wait {
                        node: level.node,
                        at: Instant::NEVER,
                    });
                }
                Answer::Probe => grant.probe.choose(i),
                Answer::Open => {}
            }
            if i == 0 && ask.pays && !awake.budget.has(now) {
                return Admission::Refused(Refusal::new(ErrorKind::Budget, None));
            }
        }
        if let Some(wait) = wait {
            return wait;
        }
        match self.take(scope, &ask.costs, &mut grant, now) {
            Ok(()) => {
                self.commit(scope, grant, now);
                Admission::Granted(grant)
            }
            // A closed gate is passed by its probe alone.
            Err(_) if want == Want::Pause && grant.probe.is_none() => Admission::Pass,
            Err(wait) => wait,
        }
    }

    /// Takes a token, and finds a slot, at every level; or takes nothing.
    fn take(
        &mut self,
        scope: &Arc<Scope>,
        costs: &Costs,
        grant: &mut Grant,
        now: Instant,
    ) -> Result<(), Admission> {
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            let limit = awake.limit(now);
            if limit.is_some() && !level.root.word.read().is_limited() {
                // Then the count: see `flight`.
                level.root.word.limit();
            }
            let mut taken = match awake.leases.are_full(&level.flight, limit, now) {
                true => Err(Instant::NEVER),
                false => Ok(()),
            };
            // A probe pays by the pause: after it the bucket is empty.
            if taken.is_ok()
                && grant.probe.at(i).is_none()
                && let Some(pace) = &mut awake.pace
            {
                taken = pace.take(now, costs.requests);
                grant.tokens |= u8::from(taken.is_ok()) << i;
                awake.held_up |= taken.is_err();
            }
            if taken.is_ok() && i == 0 {
                taken = awake.buckets.take(now, costs);
                grant.named = taken.is_ok();
            }
            if let Err(at) = taken {
                let node = level.node;
                self.give_tokens_back(scope, costs, grant);
                return Err(Admission::Wait { node, at });
            }
        }
        Ok(())
    }

    fn give_tokens_back(&mut self, scope: &Arc<Scope>, costs: &Costs, grant: &mut Grant) {
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            if grant.tokens & (1 << i) != 0
                && let Some(pace) = &mut awake.pace
            {
                pace.give_back(costs.requests);
            }
            if grant.named && i == 0 {
                awake.buckets.give_back(costs);
            }
        }
        grant.tokens = 0;
        grant.named = false;
    }

    fn commit(&mut self, scope: &Arc<Scope>, grant: Grant, now: Instant) {
        scope.count_sent();
        self.probes = self.probes.wrapping_add(u32::from(!grant.probe.is_none()));
        for (i, level) in scope.path().enumerate() {
            let policy = &scope.root.common.policy;
            let Some(node) = self.node(level) else {
                continue;
            };
            let served = level.flight.total().saturating_sub(node.throttled);
            let read = node.meter.read(now, served);
            let window = read.then(|| node.meter.in_window(now, served));
            let Some(awake) = node.awake.as_deref_mut() else {
                continue;
            };
            if let Some(served) = window {
                awake.tally.window(served);
            }
            match grant.probe.at(i) {
                None => awake.gate.let_go(now),
                Some(number) => {
                    let lease = now + awake.lease(policy);
                    awake.gate.probe_chosen(number, now, lease);
                }
            }
            if i == 0 {
                awake.budget.attempts(now, 1);
            }
        }
    }

    /// Undoes a grant: the attempt is not sent after all.
    pub(super) fn give_back(
        &mut self,
        scope: &Arc<Scope>,
        costs: &Costs,
        mut grant: Grant,
        after: &mut After,
    ) {
        scope.count_unsent();
        for (i, level) in scope.path().enumerate() {
            if let Some(awake) = self.awake(level) {
                if let Some(number) = grant.probe.at(i) {
                    awake.gate.probe_withdrawn(number);
                }
                if !awake.drivers.is_empty() {
                    after.changed(level);
                }
            }
        }
        self.give_tokens_back(scope, costs, &mut grant);
    }

    /// Whether a gate has closed on the path since the epoch of a grant.
    pub(super) fn has_closed_since(&mut self, scope: &Arc<Scope>, epoch: u64) -> bool {
        scope.path().any(|level| {
            self.node(level).is_some_and(|node| {
                let closed = |awake: &Awake| awake.gate.closed_until().is_some();
                node.epoch > epoch && node.awake.as_deref().is_some_and(closed)
            })
        })
    }

    /// Lets waiter `id` stand at its node, and sees that a driver of `runtime`
    /// looks after it.
    pub(super) fn stand(
        &mut self,
        id: WaiterId,
        runtime: Option<RuntimeId>,
        now: Instant,
        after: &mut After,
    ) {
        let Some(waiter) = self.waiters.get(id) else {
            return;
        };
        let (scope, ask, node) = (Arc::clone(&waiter.scope), waiter.ask, waiter.node);
        let Some(level) = scope.path().find(|level| level.node == node) else {
            return;
        };
        let Some(awake) = self.wake(level, now) else {
            return;
        };
        awake.queue.insert(id, &ask);
        let first = awake.queue.first().is_some_and(|(_, first)| first == id);
        if !awake.drivers.serve(runtime) {
            let number = awake.drivers.add(runtime, now);
            after.drive(level, number);
        } else if first || ask.deadline < awake.drivers.due {
            after.changed(level);
        }
    }

    /// Takes waiter `id` out of its queue and forgets it.
    pub(super) fn forget(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.waiters.try_remove(id)?;
        if let Some(queue) = self.queue(waiter.node) {
            queue.remove(id, &waiter.ask, &waiter.turn);
        }
        Some(waiter)
    }

    pub(super) fn queue(&mut self, node: usize) -> Option<&mut Queue> {
        Some(&mut self.nodes.get_mut(node)?.awake.as_deref_mut()?.queue)
    }
}
