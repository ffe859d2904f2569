//! The driver: one task and one timer for each scope that has waiters.
//!
//! It lets waiters go by time and order, ends deadlines and leases, and ends
//! with the queue. A timer in the head waiter's own future would stop the
//! scope whenever that future is not polled, as with a `buffer_unordered` whose
//! consumer calls the same client.
//!
//! A runtime may be shut down, or kept and no longer driven, and its tasks stand
//! still. So where the waiters of one scope are polled on several runtimes, each
//! has a driver there: all do the same work, and whoever is first has done it.
//! The guard of one that dies wakes the waiters, and the first of them that is
//! polled starts another, on its own runtime.

use std::{sync::Arc, task::Waker};

use tokio::{
    runtime::{Handle, Id as RuntimeId},
    time::timeout_at,
};

use super::{
    Refusal, Scope, Want,
    after::After,
    cell::{Admission, Tree},
    pause::Answer,
    queue::{Turn, UNCLAIMED, WaiterId},
    settle::tell_broken,
};
use crate::{error::ErrorKind, time::Instant};

/// How many waiters are let go under one lock.
const AT_ONCE: usize = 64;

/// Who looks after a queue.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    /// On which runtime each runs, and its number.
    running: Vec<(Option<RuntimeId>, u64)>,
    /// How many there were: a runtime's id may be given to another after it.
    count: u64,
    /// When they wake next.
    pub(super) due: Instant,
}

impl Drivers {
    pub(super) const fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether one of them runs on `runtime`; who waits on none has to do with
    /// any of them.
    pub(super) fn serve(&self, runtime: Option<RuntimeId>) -> bool {
        match runtime {
            None => !self.is_empty(),
            Some(_) => self.running.iter().any(|(on, _)| *on == runtime),
        }
    }

    /// Notes one on `runtime`, which is to look at once. Gives its number.
    pub(super) fn add(&mut self, runtime: Option<RuntimeId>, now: Instant) -> u64 {
        self.count += 1;
        self.running.push((runtime, self.count));
        self.due = now;
        self.count
    }

    fn has(&self, number: u64) -> bool {
        self.running.iter().any(|(_, other)| *other == number)
    }

    fn remove(&mut self, number: u64) {
        self.running.retain(|(_, other)| *other != number);
    }

    /// Ends them all. Those that sleep must be told.
    fn dismiss(&mut self) {
        self.running.clear();
    }
}

/// The runtime on which this is called.
pub(super) fn runtime_id() -> Option<RuntimeId> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

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
pub(super) fn start(scope: Arc<Scope>, number: u64) -> Result<(), Refusal> {
    let guard = Guard { scope, number };
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
    let runtime = runtime_id();
    loop {
        // From here on it is told of what changes, also before it sleeps.
        let changed = scope.changed.notified();
        let now = clock.now();
        let mut after = After::default();
        let step = scope
            .root
            .lock()
            .drive(scope, guard.number, runtime, now, &mut after);
        // Drivers of other levels start here, where a runtime is at hand.
        let _ = after.run();
        match step {
            Step::Done => return,
            Step::Again => tokio::task::yield_now().await,
            Step::Sleep(until) => {
                let _ = timeout_at(clock.timer(until), changed).await;
            }
        }
    }
}

/// Hands the queue over when a driver ends before it is done.
struct Guard {
    scope: Arc<Scope>,
    number: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let wakers = self.scope.root.lock().orphan(&self.scope, self.number);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Tree {
    /// Takes driver `number` off, if it still drives; gives those who must see
    /// that another does.
    fn orphan(&mut self, scope: &Arc<Scope>, number: u64) -> Vec<Waker> {
        let Some(awake) = self.awake(scope) else {
            return Vec::new();
        };
        if !awake.drivers.has(number) {
            return Vec::new();
        }
        awake.drivers.remove(number);
        let ids: Vec<WaiterId> = awake.queue.all().collect();
        let wakers = ids
            .into_iter()
            .filter_map(|id| self.waiters.get_mut(id)?.waker.take());
        wakers.collect()
    }

    /// Does what is due, as driver `number`, which runs on `runtime`.
    fn drive(
        &mut self,
        scope: &Arc<Scope>,
        number: u64,
        runtime: Option<RuntimeId>,
        now: Instant,
        after: &mut After,
    ) -> Step {
        match self.awake(scope) {
            Some(awake) if awake.drivers.has(number) => {}
            // It was dismissed.
            _ => return Step::Done,
        }
        self.end_leases(scope, now, after);
        for _ in 0..AT_ONCE {
            let Some(next) = self.let_one_go(scope, runtime, now, after) else {
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
        after.wake(waiter.waker.take());
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
        runtime: Option<RuntimeId>,
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
            return self.carry_out(scope, id, admission, runtime, now, after);
        }
        Some(Instant::NEVER)
    }

    /// Does with waiter `id` of `scope` as was decided.
    fn carry_out(
        &mut self,
        scope: &Arc<Scope>,
        id: WaiterId,
        admission: Admission,
        runtime: Option<RuntimeId>,
        now: Instant,
        after: &mut After,
    ) -> Option<Instant> {
        match admission {
            Admission::Granted(grant) => {
                let lease = now + UNCLAIMED;
                let waiter = self.waiters.get_mut(id)?;
                waiter.turn = Turn::Granted { lease, grant };
                after.wake(waiter.waker.take());
                let ask = waiter.ask;
                self.queue(scope.node)?.grant(id, &ask, lease);
                None
            }
            Admission::Wait { node, at } if node == scope.node => Some(at),
            Admission::Wait { node, .. } => {
                // Another level holds it back: its place is there now.
                let waiter = self.waiters.get_mut(id)?;
                waiter.node = node;
                // Polled on another runtime, it sees to a driver there.
                if waiter.runtime != runtime {
                    after.wake(waiter.waker.take());
                }
                let ask = waiter.ask;
                self.queue(scope.node)?.remove(id, &ask, &Turn::Waiting);
                self.stand(id, runtime, now, after);
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
            awake.drivers.dismiss();
            after.changed(scope);
            return Step::Done;
        }
        let slots = awake.leases.sweep(now, after);
        let until = next.min(slots).min(awake.queue.next_end());
        awake.drivers.due = until;
        Step::Sleep(until)
    }
}
