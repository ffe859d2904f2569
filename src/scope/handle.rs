//! Manual control of one scope.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout_at;

use super::{
    Scope, ScopeSnapshot, Ticket,
    after::After,
    cell::Sent,
    pause::{Answer, Asked, Cause},
    queue::{Place, Probe},
    settle::{self, Stage},
};
use crate::{law::Rate, scope_key::ScopeKey, time::Instant, verdict::Verdict};

/// A handle on one scope: pause it, resume it, set its rate, watch it.
///
/// A clone is a handle on the same scope, which is kept while one lives.
#[derive(Clone, Debug)]
pub struct ScopeHandle(Arc<Scope>);

impl ScopeHandle {
    pub(super) const fn new(scope: Arc<Scope>) -> Self {
        Self(scope)
    }

    /// The scope's key.
    pub fn key(&self) -> ScopeKey<'static> {
        self.0.key()
    }

    /// A ticket for a call that arrives now.
    ///
    /// For services that are stacked by hand; the layer makes its own.
    pub fn ticket(&self) -> Ticket {
        Arc::clone(&self.0).ticket()
    }

    /// Pauses the scope, and all below it, for `wait` from now on.
    ///
    /// A pause that lasts longer already is not shortened.
    pub fn pause_for(&self, wait: Duration) {
        let scope = &self.0;
        let now = scope.root.common.clock.now();
        let mut after = After::default();
        let mut tree = scope.root.lock();
        tree.wake(scope, now);
        tree.notice(scope, now, &mut after);
        if let Some(node) = tree.node(scope)
            && let Some(awake) = node.awake.as_deref_mut()
        {
            node.epoch = scope.root.word.next_epoch();
            let asked = Asked {
                until: now + wait,
                cause: Cause::Manual,
                ban: false,
                probe: false,
                early: None,
            };
            settle::close(awake, now, asked, &scope.root.common.policy);
        }
        drop(tree);
        // Nobody began to wait, so that no driver is started.
        let _ = after.run();
        scope.changed.notify_waiters();
    }

    /// Ends the scope's pause now, whoever asked for it. Waiters go as a ramp.
    pub fn resume(&self) {
        let scope = &self.0;
        let now = scope.root.common.clock.now();
        let mut after = After::default();
        let mut tree = scope.root.lock();
        if let Some(awake) = tree.awake(scope)
            && awake.gate.closed_until().is_some()
        {
            awake.gate.cut_short(now);
            awake.resume(now);
            after.opened(scope);
        }
        drop(tree);
        // Nobody began to wait, so that no driver is started.
        let _ = after.run();
    }

    /// Holds the scope to `per_second` requests a second from now on, where
    /// its law goes on from; a dormant law is woken.
    pub fn set_rate(&self, per_second: f64) {
        let scope = &self.0;
        let now = scope.root.common.clock.now();
        let rate = Rate::per_second(per_second);
        let mut tree = scope.root.lock();
        tree.wake_law(scope, now, Some(rate));
        if let Some(pace) = tree.awake(scope).and_then(|awake| awake.pace.as_mut()) {
            pace.set_rate(now, rate);
        }
        drop(tree);
        scope.changed.notify_waiters();
    }

    /// Reports an outcome that no classifier saw: what turned up in the middle
    /// of a stream, say.
    ///
    /// A refusal counts as that of a request sent now. A success ends no pause,
    /// for nobody knows when its request was sent; [`resume`](Self::resume)
    /// does.
    pub fn report(&self, verdict: &Verdict) {
        let scope = &self.0;
        let now = scope.root.common.clock.now();
        let sent = Sent {
            at: now,
            epoch: match verdict.is_refusal() {
                true => scope.root.word.read().epoch(),
                false => 0,
            },
            probe: Probe::default(),
            waited: 0,
        };
        scope.settle(&sent, Stage::Whole, &mut Place::new(now), 0, verdict, now);
    }

    /// Waits until a call could pass the gate. Takes nothing: no place, no
    /// token, no slot.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Panics
    ///
    /// Panics while the scope is paused if polled outside a tokio runtime with
    /// time enabled.
    pub async fn ready(&self) {
        loop {
            let Some((level, at)) = self.closed() else {
                return;
            };
            // Enlisted before the second look, so that no opening is missed.
            let mut opened = std::pin::pin!(level.opened.notified());
            opened.as_mut().enable();
            if self.closed().is_none() {
                return;
            }
            let _ = timeout_at(level.root.common.clock.timer(at), opened).await;
        }
    }

    /// The first level that is closed, and when to ask it again.
    fn closed(&self) -> Option<(Arc<Scope>, Instant)> {
        let policy = &self.0.root.common.policy;
        let now = self.0.root.common.clock.now();
        let mut tree = self.0.root.lock();
        for level in self.0.path() {
            if let Some(awake) = tree.awake(level)
                && awake.gate.over(now).is_none()
            {
                match awake.gate.ask(now, policy) {
                    Answer::Open | Answer::Probe => {}
                    Answer::Wait(at) | Answer::Refuse { probe: at, .. } => {
                        return Some((Arc::clone(level), at));
                    }
                }
            }
        }
        None
    }

    /// What is known of the scope.
    pub fn snapshot(&self) -> ScopeSnapshot {
        ScopeSnapshot::of(&self.0)
    }
}
