//! Throttles: how one refusal closes a gate, and what it means for its call.

use std::{sync::Arc, time::Duration};

use super::{
    Scope,
    after::After,
    believe::Refused,
    cell::{Sent, Tree},
    pause::{Asked, Cause},
    settle::{Stage, Throttled, Told, close, tell_broken},
};
use crate::{
    law::{Attempt, Concurrency, Ended},
    time::Instant,
    verdict::{Hint, Throttle, ThrottleKind},
};

/// Which call was throttled, and in which epoch it had been before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) number: u64,
    pub(super) before: u64,
    pub(super) stage: Stage,
    /// The status of its answer, if that is known.
    pub(super) status: Option<u16>,
}

impl Tree {
    #[allow(
        clippy::too_many_arguments,
        reason = "one critical section, one caller"
    )]
    pub(super) fn throttled(
        &mut self,
        scope: &Arc<Scope>,
        sent: &Sent,
        call: Call,
        throttle: &Throttle,
        now: Instant,
        after: &mut After,
        told: &mut Option<Told>,
    ) -> Throttled {
        let policy = &scope.root.common.policy;
        let height = scope.height(throttle.level);
        let first = !matches!(call.stage, Stage::Rest { .. });
        if first {
            let took = Some(now - sent.at);
            self.learnt_nothing(scope, sent, now, took, Some(height), after);
            for level in scope.path() {
                if let Some(node) = self.node(level) {
                    node.throttled += 1;
                }
            }
        }
        let level = scope.path().nth(height).unwrap_or(scope);
        if throttle.kind != ThrottleKind::ConcurrencyLimited {
            self.wake_law(level, now, None);
        }
        self.wake(level, now);
        self.notice(level, now, after);
        let nothing = Throttled {
            epoch: sent.epoch,
            free: false,
            stale: false,
            not_before: Instant::ZERO,
            why: None,
        };
        let Some(node) = self.node(level) else {
            return nothing;
        };
        let stale = sent.epoch < node.epoch;
        let Some(awake) = node.awake.as_deref_mut() else {
            return nothing;
        };
        let at = level.reading(now);
        awake.read(at);
        let probe = sent.probe.at(height);
        if probe.is_some() {
            after.changed(level);
        }
        let asked = throttle.hint.as_ref().map(Hint::wait);
        let poisoned = awake.is_poisoned(call.number, call.before);
        awake.note_throttle(sent.epoch, call.number);
        if poisoned {
            if let Some(number) = probe {
                awake.gate.probe_failed(number, now, policy);
            }
            let wait = asked.unwrap_or_default().max(awake.gate.backoff(policy));
            let not_before = now + wait;
            if first && !stale && awake.gate.closed_until().is_none() {
                node.epoch = scope.root.word.next_epoch();
                let longer = close(awake, now, doubtful(now), policy);
                after.changed(level);
                *told = Some(Told {
                    scope: Arc::clone(level),
                    wait: longer.then_some(Duration::ZERO),
                    decision: None,
                });
            }
            return Throttled {
                epoch: call.before,
                stale,
                not_before,
                ..nothing
            };
        }
        let ended = Ended::Throttled {
            kind: throttle.kind,
            asked,
        };
        let in_flight = level.in_flight();
        let attempt = Attempt::new(sent.at, now, ended)
            .stale(stale)
            .waiting(awake.is_wanted())
            .in_flight(in_flight);
        if throttle.kind == ThrottleKind::ConcurrencyLimited && call.stage != Stage::Meanwhile {
            match &mut awake.concurrency {
                Some(concurrency) => concurrency.refused(in_flight),
                None => awake.concurrency = Some(Concurrency::new(in_flight)),
            }
            scope.root.word.limit();
            // As long as others are served, a slot will come free, and that is
            // all there is to wait for.
            if asked.is_none() && in_flight > 1 && probe.is_none() && first {
                if let Some(pace) = &mut awake.pace {
                    pace.on_attempt(&attempt);
                }
                return Throttled {
                    epoch: node.epoch.max(1),
                    free: call.before == 0,
                    stale,
                    not_before: now + awake.gate.backoff(policy),
                    why: None,
                };
            }
        }
        let mut pause = None;
        if let Some(number) = probe {
            awake.gate.probe_withdrawn(number);
        }
        if stale {
            // It was refused by the server as it was before the pause: it may
            // know of a later instant, unless a later send was accepted.
            if awake.gate.closed_until().is_some() && awake.accepted <= (sent.epoch, sent.at) {
                pause = awake.lengthen(throttle, now, policy);
            }
        } else {
            if first {
                node.epoch = scope.root.word.next_epoch();
                awake.gate.throttled(now, node.epoch);
            }
            if call.stage != Stage::Meanwhile {
                let refused = Refused {
                    throttle,
                    status: call.status,
                    sent,
                    height,
                };
                awake.distrust(&refused, at);
            }
            pause = Some(awake.decide(throttle, now, policy));
        }
        if call.stage != Stage::Meanwhile {
            if let Some(pace) = &mut awake.pace {
                pace.on_attempt(&attempt);
            }
            let sent = level.flight.total();
            let served = sent.saturating_sub(node.throttled);
            awake.tally.window(node.meter.in_window(now, served));
            if awake.tally.refused(now, sent, node.throttled) {
                after.contested(level);
            }
        }
        if awake.limit(now).is_some() && !scope.root.word.read().is_limited() {
            scope.root.word.limit();
        }
        if let Some(decision) = pause {
            let until = now + decision.wait;
            let asked = Asked {
                until,
                cause: Cause::Throttled,
                ban: throttle.ban,
                probe: decision.probe,
                early: awake.early_probe(now, until, policy),
            };
            let longer = close(awake, now, asked, policy);
            if !stale && decision.reason.overrides() && call.stage != Stage::Meanwhile {
                node.hints
                    .get_or_insert_default()
                    .count_overridden(decision.reason);
            }
            *told = Some(Told {
                scope: Arc::clone(level),
                wait: longer.then_some(decision.wait),
                decision: (!stale).then_some(decision),
            });
        }
        let began = awake.gate.episode().is_some_and(|epoch| sent.epoch < epoch);
        let free = call.before == 0 && (stale || began);
        let epoch = node.epoch;
        tell_broken(awake, level, after);
        Throttled {
            epoch,
            free,
            stale,
            not_before: Instant::ZERO,
            why: pause.map(|decision| decision.reason),
        }
    }
}

/// A pause for as long as it is not known whom a refusal meant.
///
/// A call may also be refused twice by chance. Another tells: it goes at once
/// and alone, and all others when it has been accepted.
const fn doubtful(now: Instant) -> Asked {
    Asked {
        until: now,
        cause: Cause::Throttled,
        ban: false,
        probe: true,
        early: Some(now),
    }
}
