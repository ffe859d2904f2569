//! What a scope has once there is something to wait for or to learn.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use super::{
    Policy, buckets::Buckets, driver::Drivers, gate::Gate, queue::Queue, slot::Leases, tally::Tally,
};
use crate::{
    law::{Attempt, Bucket, Concurrency, Fixed, Law, LawConfig, Rate},
    retry_policy::Budget,
    time::Instant,
    trust::{Reading, Trust},
};

/// The state of one scope that is not dormant.
#[derive(Debug)]
pub(super) struct Awake {
    pub(super) gate: Gate,
    pub(super) trust: Trust,
    pub(super) queue: Queue,
    pub(super) pace: Option<Pace>,
    /// How many attempts may be in flight, as the policy says.
    pub(super) most: Option<u32>,
    /// The same as the server's refusals tell; dormant until the first.
    pub(super) concurrency: Option<Concurrency>,
    pub(super) tally: Tally,
    pub(super) buckets: Buckets,
    pub(super) leases: Leases,
    pub(super) budget: Budget,
    pub(super) drivers: Drivers,
    /// Since the last answer the rate has let somebody wait, or refused one who
    /// would have had to wait for it too long.
    pub(super) held_up: bool,
    /// The usual time to a response head; zero until one was seen.
    head_time: Duration,
    /// Epoch and instant of sending of the latest-sent accepted attempt.
    pub(super) accepted: (u64, Instant),
    /// Epoch of sending and call of the last throttles, of two calls.
    throttles: [(u64, u64); 2],
    /// For how long the gate was closed, the running pause not included.
    paused: Duration,
    /// Both clocks, when they were last looked at.
    read: Option<Reading>,
}

impl Awake {
    pub(super) fn new(seed: u64, now: Instant) -> Self {
        Self {
            gate: Gate::new(seed),
            trust: Trust::new(),
            queue: Queue::default(),
            pace: None,
            most: None,
            concurrency: None,
            tally: Tally::default(),
            buckets: Buckets::default(),
            leases: Leases::default(),
            budget: Budget::new(now),
            drivers: Drivers::default(),
            held_up: false,
            head_time: Duration::ZERO,
            accepted: (0, Instant::ZERO),
            throttles: [(0, 0); 2],
            paused: Duration::ZERO,
            read: None,
        }
    }

    /// Whether it is time to look at the wall clock: once a second, for that is
    /// how long nobody is misled by what a suspended machine has missed.
    pub(super) fn is_unread(&self, now: Instant) -> bool {
        const OFTEN: Duration = Duration::from_secs(1);
        self.read.is_none_or(|read| now - read.now >= OFTEN)
    }

    /// Looks at both clocks. If the machine was suspended since the last time,
    /// the law is told; pauses go on, for no wait is shortened by that.
    pub(super) fn read(&mut self, at: Reading) {
        let last = self.read.replace(at);
        if last.is_some_and(|last| at.slept_since(&last))
            && let Some(pace) = &mut self.pace
        {
            pace.suspended(at.now);
        }
    }

    /// How many attempts may be in flight at `now`, if that is limited.
    pub(super) fn limit(&mut self, now: Instant) -> Option<u32> {
        let law = self.pace.as_mut().and_then(|pace| pace.limit(now));
        let concurrency = self.concurrency.as_ref().map(Concurrency::limit);
        [self.most, concurrency, law].into_iter().flatten().min()
    }

    /// What it lets pass at `now`.
    pub(super) fn flow(&mut self, now: Instant) -> Flow {
        let rate = self.pace.as_mut().map(|pace| pace.rate(now));
        Flow {
            limit: self.limit(now),
            rate: rate.map_or(f64::INFINITY, Rate::get),
        }
    }

    /// Whether callers wait for the rate, or were held up by it since the last
    /// answer: one who calls again and again never waits when it is answered.
    pub(super) fn is_wanted(&mut self) -> bool {
        std::mem::take(&mut self.held_up) || self.queue.waiting() > 0
    }

    /// How long the law holds a call back at least from when the gate `opens`
    /// on, for `ahead` tokens of others and `cost` of its own.
    pub(super) fn least_wait(
        &mut self,
        now: Instant,
        opens: Instant,
        ahead: u64,
        cost: u32,
    ) -> Duration {
        let Some(pace) = self.pace.as_mut().filter(|_| ahead > 0 || cost > 0) else {
            return Duration::ZERO;
        };
        let rate = pace.rate(now);
        let mut bucket = pace.bucket;
        if self.gate.closed_until().is_some() {
            bucket.drain(opens);
        }
        let missing = bucket.missing(opens, rate, ahead, cost);
        // A probe pays by the pause.
        let free = f64::from(u8::from(self.gate.is_probed()));
        pace.guarded(now, |law| law.least_wait(now, (missing - free).max(0.0)))
    }

    /// Opens the gate. Those who watch it must be told.
    pub(super) fn resume(&mut self, now: Instant) {
        self.paused = self.paused_by(now);
        // What is over may be noticed only much later.
        let closed = self.gate.closed_for(now);
        let ended = closed.map_or(now, |(since, lasted)| since + lasted);
        let waiting = self.queue.waiting();
        let begins = self.gate.resume(now, waiting, self.pace.is_some());
        if let Some(pace) = &mut self.pace {
            pace.resume(ended, begins);
        }
    }

    /// For how long the gate has been closed in all, a pause that has not ended
    /// by `now` not included.
    pub(super) fn ended_pauses(&self, now: Instant) -> Duration {
        match self.gate.over(now) {
            Some(_) => self.paused_by(now),
            None => self.paused,
        }
    }

    fn paused_by(&self, now: Instant) -> Duration {
        let last = self.gate.closed_for(now);
        let last = last.map_or(Duration::ZERO, |(_, lasted)| lasted);
        self.paused.saturating_add(last)
    }

    /// How long a probe is waited for: four times the usual time to a response
    /// head, within `min_pause..max_pause`.
    pub(super) fn lease(&self, policy: &Policy) -> Duration {
        let least = policy.min_pause_bounded();
        let most = policy.max_pause.max(least);
        self.head_time.saturating_mul(4).clamp(least, most)
    }

    /// Learns from the time to one response head (an average over eight).
    pub(super) fn head_took(&mut self, took: Duration) {
        // One that took no time at all was reported by hand.
        if took.is_zero() {
            return;
        }
        self.head_time = match self.head_time {
            Duration::ZERO => took,
            usual => (usual / 8).saturating_mul(7).saturating_add(took / 8),
        };
    }

    /// Notes a throttle of `call`, sent in `epoch`.
    pub(super) fn note_throttle(&mut self, epoch: u64, call: u64) {
        if self.throttles[0].1 != call {
            self.throttles[1] = self.throttles[0];
        }
        self.throttles[0] = (epoch, call);
    }

    /// Whether `call`, throttled before in the epoch `since`, stands alone:
    /// sends of others were accepted since, and no other was throttled.
    pub(super) fn is_poisoned(&self, call: u64, since: u64) -> bool {
        let others = self.throttles.iter().filter(|(_, other)| *other != call);
        since > 0
            && self.accepted.0 >= since
            && others.map(|(epoch, _)| *epoch).all(|epoch| epoch < since)
    }
}

/// What a scope lets pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// How many attempts may be in flight.
    limit: Option<u32>,
    /// How many may be sent in a second.
    rate: f64,
}

impl Flow {
    /// Whether waiters are due earlier than by `old`. A driver that sleeps by a
    /// rate a little lower is late by as little.
    pub(super) fn exceeds(self, old: Self) -> bool {
        self.limit > old.limit || self.rate > old.rate * 1.1
    }
}

/// A law and the bucket that holds its rate.
#[derive(Debug)]
pub(super) struct Pace {
    law: Box<dyn Law>,
    bucket: Bucket,
    /// The law panicked and was replaced; told once.
    pub(super) broken: bool,
}

impl Pace {
    /// The law of `config` at `rate`, with `bucket`.
    pub(super) fn new(config: &dyn LawConfig, now: Instant, rate: Rate, bucket: Bucket) -> Self {
        let built = catch_unwind(AssertUnwindSafe(|| config.build(now, rate)));
        let broken = built.is_err();
        Self {
            law: built.unwrap_or_else(|_| floor(now)),
            bucket,
            broken,
        }
    }

    /// A law that panics must not take every caller of its scope with it.
    fn guarded<T>(&mut self, now: Instant, ask: impl Fn(&mut dyn Law) -> T) -> T {
        match catch_unwind(AssertUnwindSafe(|| ask(self.law.as_mut()))) {
            Ok(answer) => answer,
            Err(_) => {
                self.broken = true;
                self.law = floor(now);
                ask(self.law.as_mut())
            }
        }
    }

    pub(super) fn rate(&mut self, now: Instant) -> Rate {
        self.guarded(now, |law| law.rate(now))
    }

    pub(super) fn on_attempt(&mut self, attempt: &Attempt) {
        self.guarded(attempt.now, |law| law.on_attempt(attempt));
    }

    pub(super) fn on_quota(&mut self, now: Instant, quota: Rate) {
        self.guarded(now, |law| law.on_quota(now, quota));
    }

    fn suspended(&mut self, now: Instant) {
        self.guarded(now, |law| law.on_suspended(now));
    }

    pub(super) fn pause(&mut self, now: Instant, until: Instant) {
        self.guarded(now, |law| law.on_pause(now, until));
    }

    /// When the ramp after a pause begins, the bucket is empty: a resume is no herd.
    fn resume(&mut self, now: Instant, begins: Instant) {
        self.bucket.drain(begins);
        self.guarded(now, |law| law.on_resume(now));
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.guarded(now, |law| law.set_rate(now, rate));
    }

    /// How many attempts the law lets be in flight.
    fn limit(&mut self, now: Instant) -> Option<u32> {
        let limit = self.guarded(now, |law| law.limit(now));
        // With none in flight, nothing would ever end the wait for a slot.
        limit.map(|limit| limit.max(1))
    }

    pub(super) fn take(&mut self, now: Instant, cost: u32) -> Result<(), Instant> {
        let rate = self.rate(now);
        self.bucket.take(now, rate, cost)
    }

    pub(super) fn give_back(&mut self, cost: u32) {
        self.bucket.give_back(cost);
    }
}

fn floor(now: Instant) -> Box<dyn Law> {
    Fixed::per_second(Rate::FLOOR.get()).build(now, Rate::FLOOR)
}
