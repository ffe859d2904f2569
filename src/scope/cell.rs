//! Admission: who may pass, who waits where, and who is refused.
//!
//! One critical section per root. An attempt passes when every level of its
//! scope lets it, and then takes a token, a slot and, where a gate wants one,
//! the part of the probe at all of them; or it takes nothing and waits at the
//! level that refused. So no child hoards a token of its parent, and no paused
//! leaf blocks its siblings.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use slab::Slab;

use super::{
    Refusal, Scope, Want,
    awake::{Awake, Meter, Pace},
    driver,
    flight::Word,
    pause::Answer,
    queue::{Ask, Grant, Place, Probe, Queue, Turn, Waiter, WaiterId},
    registry::Common,
};
use crate::{
    error::{Error, ErrorKind},
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
            tree: Mutex::default(),
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
}

/// The state of one scope.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The root's epoch at this scope's last pause or cut.
    pub(super) epoch: u64,
    pub(super) throttled: u64,
    pub(super) ignored: u64,
    pub(super) meter: Meter,
    pub(super) awake: Option<Box<Awake>>,
}

/// What is to be done once the lock is released.
#[derive(Debug, Default)]
#[must_use = "what was decided under the lock must be done after it"]
pub(super) struct After {
    pub(super) wakers: Vec<Waker>,
    /// Drivers to be started, each with its generation.
    pub(super) drivers: Vec<(Arc<Scope>, u64)>,
    /// Scopes whose gates have opened.
    pub(super) opened: Vec<Arc<Scope>>,
    /// Scopes whose drivers must look again.
    pub(super) changed: Vec<Arc<Scope>>,
    /// Scopes whose law has panicked.
    pub(super) broken: Vec<Arc<Scope>>,
    /// Scopes of which a slot came free.
    pub(super) freed: Vec<Arc<Scope>>,
}

impl After {
    /// Does it.
    ///
    /// # Errors
    ///
    /// Returns an error if a driver is needed and no runtime is there.
    pub(super) fn run(self) -> Result<(), Refusal> {
        for scope in self.broken {
            crate::observe::law_panicked(&scope.key());
        }
        for scope in self.freed {
            scope.release();
        }
        for scope in self.opened {
            crate::observe::resumed(&scope.key());
            scope.opened.notify_waiters();
            scope.changed.notify_one();
        }
        for scope in self.changed {
            scope.changed.notify_one();
        }
        let mut started = Ok(());
        for (scope, generation) in self.drivers {
            if let Err(error) = driver::start(scope, generation) {
                started = Err(error);
            }
        }
        self.wakers.into_iter().for_each(Waker::wake);
        started
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

/// The answer to one who would rather wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queued {
    Granted(Grant),
    Pass,
    /// It waits, as this waiter.
    Place(WaiterId),
    Refused(Refusal),
}

/// An attempt that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) epoch: u64,
    pub(super) probe: Probe,
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
            node.awake = Some(Box::new(Awake::new(seed, now, None)));
        }
        node.awake.as_deref_mut()
    }

    /// Gives `scope` a law that begins at `rate`, or at the measured rate, if
    /// it has none yet.
    ///
    /// The bucket of a scope that has sent something begins empty.
    pub(super) fn wake_law(&mut self, scope: &Arc<Scope>, now: Instant, rate: Option<Rate>) {
        let config = Arc::clone(&scope.root.common.policy.law);
        let total = scope.flight.total();
        let Some(node) = self.nodes.get(scope.node) else {
            return;
        };
        let rate = rate.unwrap_or_else(|| node.meter.rate(now, total));
        if let Some(awake) = self.wake(scope, now)
            && awake.pace.is_none()
        {
            let bucket = match total {
                0 => Bucket::full(now),
                _ => Bucket::empty(now),
            };
            awake.pace = Some(Pace::new(config.as_ref(), now, rate, bucket));
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
            probe: Probe::new(now),
            tokens: 0,
        };
        let mut wait = None;
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            if awake.gate.over(now).is_some() {
                awake.resume(now);
                after.opened.push(Arc::clone(level));
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
        match self.take(scope, &mut grant, now) {
            Ok(()) => {
                self.commit(scope, grant, now);
                Admission::Granted(grant)
            }
            Err(_) if want == Want::Pause => Admission::Pass,
            Err(wait) => wait,
        }
    }

    /// Takes a token, and finds a slot, at every level; or takes nothing.
    fn take(
        &mut self,
        scope: &Arc<Scope>,
        grant: &mut Grant,
        now: Instant,
    ) -> Result<(), Admission> {
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            let mut at = None;
            let full = |limit| level.flight.in_flight() >= u64::from(limit);
            if awake.limit.is_some_and(full) {
                at = Some(Instant::NEVER);
            } else if grant.probe.at(i).is_none()
                && let Some(pace) = &mut awake.pace
            {
                // A probe pays by the pause: after it the bucket is empty.
                match pace.take(now) {
                    Ok(()) => grant.tokens |= 1 << i,
                    Err(then) => at = Some(then),
                }
            }
            if let Some(at) = at {
                let node = level.node;
                self.give_tokens_back(scope, grant);
                return Err(Admission::Wait { node, at });
            }
        }
        Ok(())
    }

    fn give_tokens_back(&mut self, scope: &Arc<Scope>, grant: &mut Grant) {
        for (i, level) in scope.path().enumerate() {
            if grant.tokens & (1 << i) != 0
                && let Some(pace) = self.awake(level).and_then(|awake| awake.pace.as_mut())
            {
                pace.give_back();
            }
        }
        grant.tokens = 0;
    }

    fn commit(&mut self, scope: &Arc<Scope>, grant: Grant, now: Instant) {
        scope.count_sent();
        for (i, level) in scope.path().enumerate() {
            let policy = &scope.root.common.policy;
            let Some(awake) = self.awake(level) else {
                continue;
            };
            match grant.probe.at(i) {
                None => awake.gate.let_go(now),
                Some(chosen) => {
                    let lease = now + awake.lease(policy);
                    awake.gate.probe_chosen(chosen, lease);
                }
            }
            if i == 0 {
                awake.budget.attempts(now, 1);
            }
        }
    }

    /// Undoes a grant: the attempt is not sent after all.
    pub(super) fn give_back(&mut self, scope: &Arc<Scope>, mut grant: Grant, after: &mut After) {
        scope.count_unsent();
        for (i, level) in scope.path().enumerate() {
            if let Some(awake) = self.awake(level) {
                if let Some(chosen) = grant.probe.at(i) {
                    awake.gate.probe_withdrawn(chosen);
                }
                if awake.driver.running {
                    after.changed.push(Arc::clone(level));
                }
            }
        }
        self.give_tokens_back(scope, &mut grant);
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

    /// When a call's turn would come at the earliest.
    ///
    /// # Errors
    ///
    /// Returns a refusal if that is too late for the call, or if too many wait.
    pub(super) fn forecast(
        &mut self,
        scope: &Arc<Scope>,
        ask: &Ask,
        now: Instant,
    ) -> Result<Instant, Refusal> {
        let policy = &scope.root.common.policy;
        let mut turn = now;
        if let Some(awake) = self.awake(scope)
            && ask.pays
            && !awake.budget.has(now)
        {
            return Err(Refusal::new(ErrorKind::Budget, None));
        }
        for level in scope.path() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            if let Answer::Refuse {
                until, exhausted, ..
            } = awake.gate.ask(now, policy)
            {
                return Err(closed(now, until, exhausted));
            }
            let opens = awake.gate.closed_until().unwrap_or(now).max(now);
            // Who came before those that wait does not wait for all of them.
            let last = awake.queue.last().is_none_or(|last| last < ask.place);
            let ahead = if last { awake.queue.waiting() } else { 0 };
            let queued = match &mut awake.pace {
                Some(pace) => pace.least_wait(now, ahead),
                None => std::time::Duration::ZERO,
            };
            let then = opens + queued;
            // A pause has its own bound; this one is for what comes after it.
            if ask.deadline == Instant::NEVER && queued > policy.max_pause {
                return Err(Refusal::new(ErrorKind::QueueFull, Some(then - now)));
            }
            if awake.queue.len() >= policy.max_waiters {
                return Err(Refusal::new(ErrorKind::QueueFull, Some(then - now)));
            }
            turn = turn.max(then);
        }
        if turn >= ask.deadline {
            return Err(Refusal::new(ErrorKind::Deadline, Some(turn - now)));
        }
        Ok(turn)
    }

    /// Lets waiter `id` stand at its node, and sees that the driver looks.
    pub(super) fn stand(&mut self, id: WaiterId, now: Instant, after: &mut After) {
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
        let driver = &mut awake.driver;
        // One that is long overdue sits on a runtime that nobody drives.
        let dead = now - driver.due > driver::OVERDUE;
        if !driver.running || dead {
            driver.running = true;
            driver.generation += 1;
            driver.due = now;
            after.drivers.push((Arc::clone(level), driver.generation));
        } else if first || ask.deadline < driver.due {
            after.changed.push(Arc::clone(level));
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

/// A refusal by a gate that stays closed.
fn closed(now: Instant, until: Instant, exhausted: bool) -> Refusal {
    match (exhausted, until) {
        (true, Instant::NEVER) => Refusal::new(ErrorKind::Exhausted, None),
        (true, _) => Refusal::new(ErrorKind::Exhausted, Some(until - now)),
        (false, _) => Refusal::new(ErrorKind::Paused, Some(until - now)),
    }
}

impl Scope {
    /// Asks to pass at once.
    pub(super) fn admit(self: &Arc<Self>, ask: &Ask, now: Instant, want: Want) -> Admission {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let admission = tree.admit(self, ask, now, want, None, &mut after);
        drop(tree);
        // Nobody began to wait, so that no driver is started.
        let _ = after.run();
        admission
    }

    /// Asks to pass, or to wait for it.
    pub(super) fn admit_or_queue(
        self: &Arc<Self>,
        place: &mut Place,
        mut ask: Ask,
        was_sent: bool,
        now: Instant,
        want: Want,
        waker: &Waker,
    ) -> Queued {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let node = match tree.admit(self, &ask, now, want, None, &mut after) {
            Admission::Wait { node, .. } => node,
            decided => {
                drop(tree);
                let _ = after.run();
                return match decided {
                    Admission::Granted(grant) => Queued::Granted(grant),
                    Admission::Refused(refusal) => Queued::Refused(refusal),
                    _ => Queued::Pass,
                };
            }
        };
        place.number(&mut tree.calls, was_sent);
        ask.place = *place;
        if let Err(refusal) = tree.forecast(self, &ask, now) {
            return Queued::Refused(refusal);
        }
        let waiter = Waiter {
            scope: Arc::clone(self),
            ask,
            node,
            waker: Some(waker.clone()),
            turn: Turn::Waiting,
        };
        let id = tree.waiters.insert(waiter);
        tree.stand(id, now, &mut after);
        drop(tree);
        match after.run() {
            Ok(()) => Queued::Place(id),
            Err(refusal) => {
                self.leave(id);
                Queued::Refused(refusal)
            }
        }
    }

    /// Whether waiter `id` may go.
    pub(super) fn poll_turn(
        self: &Arc<Self>,
        id: WaiterId,
        now: Instant,
        waker: &Waker,
    ) -> Poll<Result<Grant, Refusal>> {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let Some(waiter) = tree.waiters.get_mut(id) else {
            // Not reached: a ticket forgets its place when it gives it up.
            return Poll::Ready(Err(Refusal::new(ErrorKind::QueueFull, None)));
        };
        let turn = waiter.turn;
        let polled = match turn {
            Turn::Granted { grant, .. } => Poll::Ready(Ok(grant)),
            Turn::Refused(refusal) => Poll::Ready(Err(refusal)),
            Turn::Waiting | Turn::Aside if waiter.ask.deadline <= now => {
                Poll::Ready(Err(Refusal::new(ErrorKind::Deadline, None)))
            }
            Turn::Waiting | Turn::Aside => Poll::Pending,
        };
        if polled.is_ready() {
            tree.forget(id);
            return polled;
        }
        let old = match &mut waiter.waker {
            Some(old) if old.will_wake(waker) => None,
            slot => slot.replace(waker.clone()),
        };
        let (ask, node) = (waiter.ask, waiter.node);
        if matches!(turn, Turn::Aside) {
            // It is polled again: back to its place.
            waiter.turn = Turn::Waiting;
            if let Some(queue) = tree.queue(node) {
                queue.remove(id, &ask, &Turn::Aside);
            }
        }
        let abandoned =
            |queue: &Awake| !queue.driver.running || now - queue.driver.due > driver::OVERDUE;
        let lost = tree
            .nodes
            .get(node)
            .and_then(|node| node.awake.as_deref())
            .is_some_and(abandoned);
        if lost || matches!(turn, Turn::Aside) {
            tree.stand(id, now, &mut after);
        }
        drop(tree);
        drop(old);
        match after.run() {
            Ok(()) => Poll::Pending,
            Err(refusal) => {
                self.leave(id);
                Poll::Ready(Err(refusal))
            }
        }
    }

    /// Gives up the place of waiter `id`, and what it was granted.
    pub(super) fn leave(self: &Arc<Self>, id: WaiterId) {
        let mut after = After::default();
        let mut tree = self.root.lock();
        let gone = tree.forget(id);
        if let Some(waiter) = &gone {
            if let Turn::Granted { grant, .. } = waiter.turn {
                tree.give_back(&waiter.scope, grant, &mut after);
            }
            // The next one may be due earlier than the driver expects.
            let level = waiter.scope.path().find(|level| level.node == waiter.node);
            after.changed.extend(level.cloned());
        }
        drop(tree);
        let _ = after.run();
    }

    /// Gives back what was granted and claimed.
    pub(super) fn give_back(self: &Arc<Self>, grant: Grant) {
        let mut after = After::default();
        self.root.lock().give_back(self, grant, &mut after);
        let _ = after.run();
    }

    /// The last check before a granted attempt is sent: no gate has closed
    /// meanwhile, and the budget pays for it if it is a retry.
    ///
    /// Gives the epoch in which it is sent: one that begins after this look has
    /// not been seen. `None` says that it has to wait again.
    pub(super) fn confirm(
        self: &Arc<Self>,
        grant: &Grant,
        pays: bool,
        now: Instant,
    ) -> Result<Option<u64>, Error> {
        let epoch = self.root.word.read().epoch();
        if epoch == grant.epoch && !pays {
            return Ok(Some(epoch));
        }
        let mut tree = self.root.lock();
        if epoch != grant.epoch && tree.has_closed_since(self, grant.epoch) {
            return Ok(None);
        }
        let paid = !pays
            || tree
                .awake(self)
                .is_none_or(|awake| awake.budget.withdraw(now));
        drop(tree);
        match paid {
            true => Ok(Some(epoch)),
            false => Err(Refusal::new(ErrorKind::Budget, None).error(self)),
        }
    }
}
