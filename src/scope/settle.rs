//! Settling: what an outcome changes, in one critical section.
//!
//! Epoch, pause, law and counters change together or not at all. A throttle
//! changes only the level that its verdict names; an accepted attempt counts
//! at every level. An attempt is *stale* at a level when it was sent in an
//! earlier epoch than that of the level's last pause or cut: it may lengthen a
//! pause, but never cuts the rate and never ends a pause.

use std::{sync::Arc, time::Duration};

use super::{
    Policy, Refusal, Scope,
    after::After,
    awake::Awake,
    cell::{Sent, Tree},
    pause::{Asked, Cause},
    queue::{Ask, Place},
    throttle::Call,
};
use crate::{
    law::{Attempt, Ended},
    observe,
    time::Instant,
    trust::{self, Decision},
    verdict::{Exhausted, Hint, Level, Ruling, Verdict},
};

/// How much of an answer a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// All of it.
    Whole,
    /// Its head, while the body is being read: the gate closes, but the law is
    /// taught by what the body says.
    Meanwhile,
    /// The rest, the gate having been closed by the head.
    Rest {
        /// Whether a retry is free, as the head was settled.
        free: bool,
    },
}

/// What a throttle means for the call that met it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throttled {
    /// The epoch of the throttle.
    pub(super) epoch: u64,
    /// Sending again costs the budget nothing: the attempt was sent before its
    /// pause began.
    pub(super) free: bool,
    /// The attempt was stale.
    pub(super) stale: bool,
    /// The call alone is paused until then.
    pub(super) not_before: Instant,
    /// Why the gate is closed for as long as it is.
    pub(super) why: Option<trust::Reason>,
}

/// What a refusal came to, to be told after the lock.
pub(super) struct Told {
    pub(super) scope: Arc<Scope>,
    /// A pause has begun, or was lengthened, and lasts so long from now on.
    pub(super) wait: Option<Duration>,
    /// Why it is that long, of a throttle that is not stale.
    pub(super) decision: Option<Decision>,
}

impl Scope {
    /// Settles one outcome of an attempt that was sent.
    ///
    /// `place` is that of its call, which was throttled before in the epoch
    /// `before` (zero for never). Gives what a throttle means for the call.
    pub(super) fn settle(
        self: &Arc<Self>,
        sent: &Sent,
        stage: Stage,
        place: &mut Place,
        before: u64,
        verdict: &Verdict,
        now: Instant,
    ) -> Option<Throttled> {
        let mut after = After::default();
        let mut told = None;
        let mut tree = self.root.lock();
        // What the head says is said again with the rest.
        let whole = stage != Stage::Meanwhile;
        let ignored = verdict.ignored().filter(|_| whole);
        if let Some(ignored) = ignored
            && let Some(node) = tree.node(self)
        {
            node.hints
                .get_or_insert_default()
                .count_ignored(ignored.reason);
        }
        if let Some(quota) = verdict.quota() {
            tree.know(self, sent, quota, verdict.is_accepted(), now, &mut after);
        }
        let throttled = match verdict.ruling() {
            Ruling::Accepted => {
                tree.accepted(self, sent, now, &mut after);
                None
            }
            Ruling::Neutral => {
                tree.learnt_nothing(self, sent, now, Some(now - sent.at), None, &mut after);
                None
            }
            Ruling::Throttled(throttle) => {
                place.number(&mut tree.calls, true);
                let call = Call {
                    number: place.call(),
                    before,
                    stage,
                    status: verdict.status(),
                };
                Some(tree.throttled(self, sent, call, throttle, now, &mut after, &mut told))
            }
            Ruling::Exhausted(exhausted) => {
                tree.exhausted(self, sent, exhausted, now, &mut after, &mut told);
                None
            }
        };
        drop(tree);
        if let Some(ignored) = ignored {
            observe::hint_ignored(&self.key(), verdict.status(), ignored);
        }
        if let Some(Told {
            scope,
            wait,
            decision,
        }) = &told
        {
            if let Some(wait) = *wait {
                observe::paused(&scope.key(), wait, verdict);
            }
            let overrides = |decision: &Decision| whole && decision.reason.overrides();
            if let Some(decision) = decision.filter(overrides) {
                observe::hint_overridden(&scope.key(), verdict, decision);
            }
            scope.changed.notify_waiters();
        }
        // Nobody began to wait, so that no driver is started.
        let _ = after.run();
        throttled
    }

    /// An attempt was sent, and its outcome will never be known.
    pub(super) fn lost(self: &Arc<Self>, sent: &Sent) {
        if sent.probe.is_none() {
            return;
        }
        let now = self.root.common.clock.now();
        let mut after = After::default();
        let mut tree = self.root.lock();
        tree.learnt_nothing(self, sent, now, None, None, &mut after);
        drop(tree);
        // Nobody began to wait, so that no driver is started.
        let _ = after.run();
    }

    /// When the turn of a call would come at the earliest.
    pub(super) fn forecast(self: &Arc<Self>, ask: &Ask, now: Instant) -> Result<Instant, Refusal> {
        self.root.lock().forecast(self, ask, now)
    }

    pub(super) fn in_flight(&self) -> u32 {
        u32::try_from(self.flight.in_flight()).unwrap_or(u32::MAX)
    }

    /// How many levels up from the leaf `level` is.
    pub(super) fn height(&self, level: Level) -> usize {
        let depth = self.segments.len();
        match level {
            Level::Leaf => 0,
            Level::Depth(named) => depth - usize::from(named).clamp(1, depth),
            Level::Credential => self.credential().unwrap_or(depth - 1),
        }
    }

    /// How many levels up from the leaf the deepest credential is.
    fn credential(&self) -> Option<usize> {
        self.segments
            .iter()
            .rev()
            .position(|segment| segment.is_secret())
    }
}

impl Tree {
    /// The state of `scope`, unless it is dormant; its gate is opened if time has
    /// ended its pause, which is noticed only when somebody looks.
    pub(super) fn notice(
        &mut self,
        scope: &Arc<Scope>,
        now: Instant,
        after: &mut After,
    ) -> Option<&mut Awake> {
        let awake = self.awake(scope)?;
        if awake.gate.over(now).is_some() {
            awake.resume(now);
            after.opened(scope);
        }
        Some(awake)
    }

    fn accepted(&mut self, scope: &Arc<Scope>, sent: &Sent, now: Instant, after: &mut After) {
        for (i, level) in scope.path().enumerate() {
            let Some(node) = self.node(level) else {
                continue;
            };
            let stale = sent.epoch < node.epoch;
            let Some(awake) = node.awake.as_deref_mut() else {
                continue;
            };
            if awake.is_unread(now) {
                awake.read(level.reading(now));
            }
            awake.head_took(now - sent.at);
            awake.accepted = awake.accepted.max((sent.epoch, sent.at));
            if !stale {
                after.observed(level, awake.observe(level, sent, i, now));
            }
            if !stale && awake.gate.accepted() {
                awake.resume(now);
                after.opened(level);
            } else if let Some(number) = sent.probe.at(i) {
                awake.gate.probe_withdrawn(number);
                after.changed(level);
            }
            let in_flight = level.in_flight();
            let wanted = awake.is_wanted();
            let attempt = Attempt::new(sent.at, now, Ended::Accepted)
                .stale(stale)
                .waiting(wanted)
                .in_flight(in_flight);
            // It matters only to those who wait whether they are due earlier.
            let before = (awake.queue.waiting() > 0).then(|| awake.flow(now));
            if let Some(concurrency) = &mut awake.concurrency {
                concurrency.accepted(in_flight);
            }
            if let Some(pace) = &mut awake.pace {
                pace.on_attempt(&attempt);
            }
            if before.is_some_and(|before| awake.flow(now).exceeds(before)) {
                after.changed(level);
            }
            tell_broken(awake, level, after);
        }
    }

    /// The attempt says nothing of the quota: where it was the probe, another
    /// must be sent. `save` names a level that is settled otherwise.
    pub(super) fn learnt_nothing(
        &mut self,
        scope: &Arc<Scope>,
        sent: &Sent,
        now: Instant,
        head_took: Option<Duration>,
        save: Option<usize>,
        after: &mut After,
    ) {
        for (i, level) in scope.path().enumerate() {
            let Some(awake) = self.awake(level) else {
                continue;
            };
            if let Some(took) = head_took {
                awake.head_took(took);
            }
            if save != Some(i)
                && let Some(number) = sent.probe.at(i)
            {
                let policy = &scope.root.common.policy;
                awake.gate.probe_failed(number, now, policy);
                after.changed(level);
            }
        }
    }

    fn exhausted(
        &mut self,
        scope: &Arc<Scope>,
        sent: &Sent,
        exhausted: &Exhausted,
        now: Instant,
        after: &mut After,
        told: &mut Option<Told>,
    ) {
        let policy = &scope.root.common.policy;
        let named = exhausted.level.map(|level| scope.height(level));
        // Under a bare host one key's empty account must not stop all tenants.
        let height = named.or_else(|| scope.credential());
        let took = Some(now - sent.at);
        self.learnt_nothing(scope, sent, now, took, height, after);
        let Some(height) = height else {
            return;
        };
        let level = scope.path().nth(height).unwrap_or(scope);
        self.wake(level, now);
        self.notice(level, now, after);
        let Some(node) = self.node(level) else {
            return;
        };
        let Some(awake) = node.awake.as_deref_mut() else {
            return;
        };
        if let Some(number) = sent.probe.at(height) {
            awake.gate.probe_withdrawn(number);
            after.changed(level);
        }
        if sent.epoch < node.epoch {
            return;
        }
        node.epoch = scope.root.word.next_epoch();
        awake.gate.throttled(now, node.epoch);
        let wait = exhausted.resets.as_ref().map_or(Duration::MAX, Hint::wait);
        // It is money that is spent: a wait of zero makes no hot loop either.
        let until = now + wait.max(awake.gate.least(policy));
        let asked = Asked {
            until,
            cause: Cause::Exhausted,
            ban: false,
            probe: true,
            early: awake.early_probe(now, until, policy),
        };
        let longer = close(awake, now, asked, policy);
        *told = Some(Told {
            scope: Arc::clone(level),
            wait: longer.then_some(wait),
            decision: None,
        });
    }
}

/// Closes the gate, and tells the law. Says whether it is closed for longer now.
pub(super) fn close(awake: &mut Awake, now: Instant, asked: Asked, policy: &Policy) -> bool {
    let before = awake.gate.closed_until();
    let until = awake.gate.pause(now, asked, policy);
    if let Some(pace) = &mut awake.pace {
        pace.pause(now, until);
    }
    before.is_none_or(|before| before < until)
}

pub(super) fn tell_broken(awake: &mut Awake, level: &Arc<Scope>, after: &mut After) {
    if let Some(pace) = &mut awake.pace
        && std::mem::take(&mut pace.broken)
    {
        after.broken(level);
    }
}
