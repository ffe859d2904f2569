//! The driver: one task and one timer for each scope that has waiters.
//!
//! It lets waiters go by time and order, ends deadlines and leases, and ends
//! with the queue. A timer in the head waiter's own future would stop the
//! scope whenever that future is not polled, as with a `buffer_unordered` whose
//! consumer calls the same client.
//!
//! A driver dies with its runtime. Its guard then wakes all its waiters, and
//! the first of them that is polled starts another, on its own runtime.

use std::{sync::Arc, task::Waker, time::Duration};

use tokio::{runtime::Handle, time::timeout_at};

use super::{
    Refusal, Scope, Want,
    after::After,
    cell::{Admission, Tree},
    pause::Answer,
    queue::{Ask, Turn, UNCLAIMED, WaiterId},
    settle::tell_broken,
};
use crate::{error::ErrorKind, time::Instant};

/// A driver that should have woken this long ago is taken for dead.
pub(super) const OVERDUE: Duration = Duration::from_millis(500);

/// How many waiters are let go under one lock.
const AT_ONCE: usize = 64;

/// What the driver does next.
enum Step {
    Sleep(Instant),
    Again,
    Done,
}

/// Starts the driver of `scope` on this runtime.
///
/// # Errors
///
/// Returns a refusal outside a tokio runtime.
///
/// # Panics
///
/// Panics on a runtime without time enabled, as every timer of tokio does.
pub(super) fn start(scope: Arc<Scope>, generation: u64) -> Result<(), Refusal> {
    let guard = Guard { scope, generation };
    let Ok(runtime) = Handle::try_current() else {
        return Err(Refusal::new(ErrorKind::NoRuntime, None));
    };
    // Without time enabled this panics here and not in the task, where the
    // panic would be lost and the waiters would start driver after driver.
    drop(guard.scope.root.common.clock.sleep_until(Instant::ZERO));
    runtime.spawn(drive(guard));
    Ok(())
}

async fn drive(guard: Guard) {
    let scope = &guard.scope;
    let clock = scope.root.common.clock;
    loop {
        let now = clock.now();
        let mut after = After::default();
        let step = scope
            .root
            .lock()
            .drive(scope, guard.generation, now, &mut after);
        // Drivers of other levels start here, where a runtime is at hand.
        let _ = after.run();
        match step {
            Step::Done => return,
            Step::Again => tokio::task::yield_now().await,
            Step::Sleep(until) => {
                let _ = timeout_at(clock.timer(until), scope.changed.notified()).await;
            }
        }
    }
}

/// Hands the queue over when a driver ends before it is done.
struct Guard {
    scope: Arc<Scope>,
    generation: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let wakers = self.scope.root.lock().orphan(&self.scope, self.generation);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Tree {
    /// Takes driver `generation` off, if it still drives; gives those who must
    /// look for another.
    fn orphan(&mut self, scope: &Arc<Scope>, generation: u64) -> Vec<Waker> {
        let Some(awake) = self.awake(scope) else {
            return Vec::new();
        };
        if !awake.driver.running || awake.driver.generation != generation {
            return Vec::new();
        }
        awake.driver.running = false;
        let ids: Vec<WaiterId> = awake.queue.all().collect();
        let wakers = ids
            .into_iter()
            .filter_map(|id| self.waiters.get_mut(id)?.waker.take());
        wakers.collect()
    }

    fn drive(
        &mut self,
        scope: &Arc<Scope>,
        generation: u64,
        now: Instant,
        after: &mut After,
    ) -> Step {
        match self.awake(scope) {
            Some(awake) if awake.driver.generation == generation => {}
            // Another has taken over.
            _ => return Step::Done,
        }
        self.end_leases(scope, now, after);
        for _ in 0..AT_ONCE {
            let Some(next) = self.let_one_go(scope, now, after) else {
                continue;
            };
            return self.rest(scope, now, next, after);
        }
        Step::Again
    }

    /// Ends deadlines, and sets aside who has not claimed a grant.
    fn end_leases(&mut self, scope: &Arc<Scope>, now: Instant, after: &mut After) {
        while let Some(id) = self
            .queue(scope.node)
            .and_then(|queue| queue.unclaimed(now))
        {
            if let Some(waiter) = self.waiters.get_mut(id)
                && let Turn::Granted { grant, .. } = waiter.turn
            {
                waiter.turn = Turn::Aside;
                let (of, costs) = (Arc::clone(&waiter.scope), waiter.ask.costs);
                self.give_back(&of, &costs, grant, after);
            }
        }
        while let Some(id) = self.queue(scope.node).and_then(|queue| queue.expired(now)) {
            self.refuse(id, Refusal::new(ErrorKind::Deadline, None), after);
        }
    }

    /// Ends the turn of waiter `id` with a refusal.
    fn refuse(&mut self, id: WaiterId, refusal: Refusal, after: &mut After) {
        let Some(waiter) = self.waiters.get_mut(id) else {
            return;
        };
        let turn = std::mem::replace(&mut waiter.turn, Turn::Refused(refusal));
        after.wakers.extend(waiter.waker.take());
        let (ask, node) = (waiter.ask, waiter.node);
        if let Some(queue) = self.queue(node) {
            queue.remove(id, &ask, &turn);
        }
    }

    /// Lets the next waiter go, or moves or refuses it. Gives the instant at
    /// which to try again if it has to wait here.
    fn let_one_go(
        &mut self,
        scope: &Arc<Scope>,
        now: Instant,
        after: &mut After,
    ) -> Option<Instant> {
        let Some((_, first)) = self.queue(scope.node).and_then(|queue| queue.first()) else {
            return Some(Instant::NEVER);
        };
        let spared = self.spared(scope, now).filter(|id| *id != first);
        for id in [spared, Some(first)].into_iter().flatten() {
            let Some(waiter) = self.waiters.get(id) else {
                continue;
            };
            let (of, ask) = (Arc::clone(&waiter.scope), waiter.ask);
            let admission = self.admit(&of, &ask, now, Want::All, Some(scope.node), after);
            // Only who stands first goes on to another level: if two of them
            // preferred different probes, they would hand them over for ever.
            let waits = matches!(admission, Admission::Wait { .. });
            if id != first && waits {
                continue;
            }
            return self.carry_out(scope, id, &ask, admission, now, after);
        }
        Some(Instant::NEVER)
    }

    /// Does with waiter `id` of `scope` as was decided.
    fn carry_out(
        &mut self,
        scope: &Arc<Scope>,
        id: WaiterId,
        ask: &Ask,
        admission: Admission,
        now: Instant,
        after: &mut After,
    ) -> Option<Instant> {
        match admission {
            Admission::Granted(grant) => {
                let lease = now + UNCLAIMED;
                if let Some(waiter) = self.waiters.get_mut(id) {
                    waiter.turn = Turn::Granted { lease, grant };
                    after.wakers.extend(waiter.waker.take());
                }
                if let Some(queue) = self.queue(scope.node) {
                    queue.grant(id, ask, lease);
                }
                None
            }
            Admission::Wait { node, at } if node == scope.node => Some(at),
            Admission::Wait { node, .. } => {
                // Another level holds it back: its place is there now.
                if let Some(queue) = self.queue(scope.node) {
                    queue.remove(id, ask, &Turn::Waiting);
                }
                if let Some(waiter) = self.waiters.get_mut(id) {
                    waiter.node = node;
                }
                self.stand(id, now, after);
                None
            }
            Admission::Refused(refusal) => {
                self.refuse(id, refusal, after);
                None
            }
            // Not an answer to one that wants all.
            Admission::Pass => Some(Instant::NEVER),
        }
    }

    /// Who should be the probe, if one may go: the oldest that was not
    /// throttled in this episode.
    fn spared(&mut self, scope: &Arc<Scope>, now: Instant) -> Option<WaiterId> {
        let policy = &scope.root.common.policy;
        let node = self.nodes.get_mut(scope.node)?;
        let awake = node.awake.as_deref_mut()?;
        if awake.gate.ask(now, policy) != Answer::Probe {
            return None;
        }
        let episode = awake.gate.episode().unwrap_or(u64::MAX);
        let mut waiters = awake.queue.iter();
        waiters.find(|id| {
            let waiter = self.waiters.get(*id);
            waiter.is_some_and(|waiter| waiter.ask.throttled < episode)
        })
    }

    /// Nobody can go before `next`: ends the ramp and the driver if nobody is
    /// left, else gives when to look again.
    fn rest(&mut self, scope: &Arc<Scope>, now: Instant, next: Instant, after: &mut After) -> Step {
        let Some(awake) = self.awake(scope) else {
            return Step::Done;
        };
        tell_broken(awake, scope, after);
        if awake.queue.waiting() == 0 {
            awake.gate.drained();
        }
        if awake.queue.is_idle() {
            awake.driver.running = false;
            return Step::Done;
        }
        let slots = awake.leases.sweep(now, &mut after.freed);
        let until = next.min(slots).min(awake.queue.next_end());
        awake.driver.due = until;
        Step::Sleep(until)
    }
}
