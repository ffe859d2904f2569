//! Tickets: an attempt's place, token and slot, given back when dropped.

mod late;
mod scoped;
mod turn;

use std::{fmt, sync::Arc, time::Duration};

pub(crate) use self::late::Late;
pub use self::scoped::{Classified, Scoped};
use super::{
    Scope, Slot,
    cell::Sent,
    queue::{Ask, Costs, Grant, Place, Probe, WaiterId},
    settle::{Stage, Throttled},
};
use crate::{
    cost::Cost,
    error::{Error, ErrorKind},
    outcome::Progress,
    retry_policy::Allowance,
    scope_key::ScopeKey,
    time::Instant,
    trust::Reason,
    verdict::Verdict,
};

/// An attempt's place, token and slot in its scope.
///
/// Dropping it gives all three back, whatever state the attempt is in. One
/// that was sent and never [settled](Self::settle) is unknown: its quota is
/// spent, and its outcome teaches nothing.
#[must_use = "dropping a ticket gives back what it holds"]
pub struct Ticket {
    scope: Arc<Scope>,
    arrived: Instant,
    deadline: Instant,
    hold: Hold,
    attempt: u32,
    mode: Mode,
    /// Boxed, for most calls have nothing of it and all are moved.
    story: Option<Box<Story>>,
}

/// What there is to tell of a call that was throttled, has to wait, or asks for
/// more than others do.
#[derive(Debug)]
struct Story {
    place: Place,
    /// The epoch of the call's last throttle, zero without one.
    throttled: u64,
    /// How long the call has waited in all.
    waited: Duration,
    /// A call that is paused alone is not sent before this.
    not_before: Instant,
    /// Why the pause that it met is as long as it is.
    why: Option<Reason>,
    /// It is a retry that the budget pays for.
    pays: bool,
    stage: Stage,
    costs: Costs,
    /// Kept up to date where somebody wants to know.
    progress: Option<Arc<Progress>>,
}

impl Story {
    /// Nothing has happened to a call that arrived at `arrived`.
    const fn new(arrived: Instant) -> Self {
        Self {
            place: Place::new(arrived),
            throttled: 0,
            waited: Duration::ZERO,
            not_before: Instant::ZERO,
            why: None,
            pays: false,
            stage: Stage::Whole,
            costs: Costs::ONE,
            progress: None,
        }
    }

    fn add_waited(&mut self, time: Duration) {
        self.waited = self.waited.saturating_add(time);
        if let Some(progress) = &self.progress {
            progress.waited(self.waited);
        }
    }
}

/// What a ticket holds.
#[derive(Clone, Copy, Debug)]
enum Hold {
    Nothing,
    Place(WaiterId, Instant),
    /// Nothing, and it stands in no queue: its call waits alone since then.
    Alone(Instant),
    Grant(Grant),
    Flight(Sent),
    /// The answer came and the scope is settled; the slot is still held.
    Slot(Sent),
}

/// How far a call is governed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By everything.
    Govern,
    /// It is counted and learned from, but never held back.
    Observe,
    /// Not at all.
    Bypass,
}

/// What a service waits for before it passes a call on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// The pause, and what a resume hands out.
    Pause,
    /// Token and slot too.
    All,
}

impl Ticket {
    pub(super) const fn new(scope: Arc<Scope>, arrived: Instant) -> Self {
        Self {
            scope,
            arrived,
            deadline: Instant::NEVER,
            hold: Hold::Nothing,
            attempt: 1,
            mode: Mode::Govern,
            story: None,
        }
    }

    /// The call's story, which begins now if it has none.
    fn story(&mut self) -> &mut Story {
        let arrived = self.arrived;
        self.story
            .get_or_insert_with(|| Box::new(Story::new(arrived)))
    }

    fn place(&self) -> Place {
        let begun = self.story.as_ref().map(|story| story.place);
        begun.unwrap_or(Place::new(self.arrived))
    }

    fn costs(&self) -> Costs {
        self.story.as_ref().map_or(Costs::ONE, |story| story.costs)
    }

    /// The number of this attempt in its call, from one.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the call arrived.
    pub const fn arrived(&self) -> Instant {
        self.arrived
    }

    /// The instant by which the call must end, [`Instant::NEVER`] for none.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long the call has waited for its turns until now.
    pub fn waited(&self) -> Duration {
        self.story
            .as_ref()
            .map_or(Duration::ZERO, |story| story.waited)
    }

    /// The number of its call in its root; zero until that was throttled or
    /// had to wait.
    pub(crate) fn call(&self) -> u64 {
        self.story.as_ref().map_or(0, |story| story.place.call())
    }

    /// Why the pause that it met is as long as it is.
    pub(crate) fn why(&self) -> Option<Reason> {
        self.story.as_ref()?.why
    }

    /// The scope it belongs to.
    pub fn scope(&self) -> ScopeKey<'static> {
        self.scope.key()
    }

    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(crate) fn set_cost(&mut self, cost: &Cost) {
        self.story().costs = Costs::of(cost, &self.scope.root.common.policy);
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Whether the call may be held back, and so be sent again later.
    pub(crate) fn may_wait(&self) -> bool {
        self.mode == Mode::Govern
    }

    /// What is left for the recordings of request bodies.
    pub(crate) fn allowance(&self) -> &Allowance {
        &self.scope.root.common.allowance
    }

    pub(crate) fn clock(&self) -> &crate::time::Clock {
        &self.scope.root.common.clock
    }

    pub(crate) fn not_before(&self) -> Instant {
        self.story
            .as_ref()
            .map_or(Instant::ZERO, |story| story.not_before)
    }

    /// Begins a wait that is in no queue: the answer is drained, and the call may
    /// be paused alone.
    pub(crate) fn pause_alone(&mut self) {
        self.hold = Hold::Alone(self.clock().now());
    }

    /// Ends that wait.
    pub(crate) fn resume_alone(&mut self) {
        if let Hold::Alone(since) = self.hold {
            self.hold = Hold::Nothing;
            let waited = self.clock().now() - since;
            self.story().add_waited(waited);
        }
    }

    /// Where it can be read from now on how far the call, sent `attempts` times
    /// until now, has come.
    pub(crate) fn progress(&mut self, attempts: u32) -> Arc<Progress> {
        let story = self.story();
        let waited = story.waited;
        let progress = story.progress.get_or_insert_with(|| {
            let progress = Progress::default();
            progress.sent(attempts);
            progress.waited(waited);
            Arc::new(progress)
        });
        Arc::clone(progress)
    }

    fn note_sent(&self) {
        if let Some(story) = &self.story
            && let Some(progress) = &story.progress
        {
            progress.sent(self.attempt);
        }
    }

    /// An error that refuses this call.
    pub(crate) fn refuse(&self, kind: ErrorKind, retry_after: Option<Duration>) -> Error {
        Error::refused(kind, self.scope.key(), retry_after)
    }

    /// An error for a deadline that passed while the attempt was in flight.
    pub(crate) fn timed_out(&self) -> Error {
        Error::timed_out(self.scope.key())
    }

    fn ask(&self, now: Instant) -> Ask {
        let story = self.story.as_deref();
        Ask {
            place: self.place().or_last(),
            since: now,
            deadline: self.deadline,
            throttled: story.map_or(0, |story| story.throttled),
            pays: story.is_some_and(|story| story.pays),
            costs: self.costs(),
        }
    }

    const fn is_governed(&self) -> bool {
        matches!((self.mode, self.hold), (Mode::Govern, Hold::Nothing))
    }

    /// Settles the attempt's outcome with its scope, in one critical section.
    ///
    /// The slot is held on until the ticket is dropped. Settling twice, or
    /// what was never sent, does nothing.
    pub fn settle(&mut self, verdict: &Verdict) {
        self.ensure_sent();
        let Hold::Flight(sent) = self.hold else {
            return;
        };
        self.hold = Hold::Slot(sent);
        let dormant = !self.scope.root.word.read().is_awake();
        if dormant && verdict.is_plain() {
            return;
        }
        if let Some(actual) = verdict.cost() {
            self.scope.correct(&self.costs(), actual);
        }
        let stage = self
            .story
            .as_ref()
            .map_or(Stage::Whole, |story| story.stage);
        if let Some(throttled) = self.settle_as(&sent, stage, verdict) {
            let story = self.story();
            story.throttled = throttled.epoch;
            story.not_before = throttled.not_before;
            story.why = throttled.why;
            story.pays = match stage {
                Stage::Rest { free } => !free,
                _ => !throttled.free,
            };
        }
        if let Some(story) = &mut self.story {
            story.stage = Stage::Whole;
        }
    }

    /// Closes the gate by what the head of an answer says, until its body has
    /// said more. Only a throttle is worth it.
    pub(crate) fn settle_meanwhile(&mut self, verdict: &Verdict) {
        self.ensure_sent();
        let Hold::Flight(mut sent) = self.hold else {
            return;
        };
        if verdict.throttle().is_none() {
            return;
        }
        if let Some(throttled) = self.settle_as(&sent, Stage::Meanwhile, verdict) {
            // What follows is of the epoch that this one began.
            if !throttled.stale {
                sent.epoch = throttled.epoch;
            }
            sent.probe = Probe::default();
            self.story().stage = Stage::Rest {
                free: throttled.free,
            };
            self.hold = Hold::Flight(sent);
        }
    }

    fn settle_as(&mut self, sent: &Sent, stage: Stage, verdict: &Verdict) -> Option<Throttled> {
        let now = self.clock().now();
        // Only a throttle numbers a call's place.
        if !verdict.is_refusal() && self.story.is_none() {
            let mut place = self.place();
            return self.scope.settle(sent, stage, &mut place, 0, verdict, now);
        }
        let scope = Arc::clone(&self.scope);
        let story = self.story();
        scope.settle(sent, stage, &mut story.place, story.throttled, verdict, now)
    }

    /// Hands the slot over, from now on held by what it gives.
    pub(crate) fn take_slot(&mut self) -> Option<Slot> {
        matches!(self.hold, Hold::Slot(_)).then(|| {
            self.hold = Hold::Nothing;
            Slot::new(Arc::clone(&self.scope))
        })
    }

    /// The ticket of the call's next attempt.
    pub(crate) fn next_attempt(mut self) -> Self {
        self.step_aside();
        self.attempt = self.attempt.saturating_add(1);
        self
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Hold::Place(_, since) | Hold::Alone(since) = self.hold
            && let Some(story) = &mut self.story
            && story.progress.is_some()
        {
            story.add_waited(self.scope.root.common.clock.now() - since);
        }
        match self.hold {
            Hold::Nothing | Hold::Alone(_) => {}
            Hold::Place(id, _) => self.scope.leave(id),
            Hold::Grant(grant) => self.scope.give_back(&self.costs(), grant),
            Hold::Flight(sent) => {
                self.scope.lost(&sent);
                self.scope.release();
            }
            Hold::Slot(_) => self.scope.release(),
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("scope", &self.scope.key())
            .field("attempt", &self.attempt)
            .field("hold", &self.hold)
            .finish_non_exhaustive()
    }
}
