//! The named buckets of a scope: units besides requests.

use std::{sync::Arc, time::Duration};

use super::{
    Policy, Scope,
    queue::{Costs, Sum},
};
use crate::{
    cost::Cost,
    law::{Bucket, Rate},
    time::{Instant, seconds},
};

impl Scope {
    /// Settles the difference between what was taken for an attempt and what it
    /// really cost.
    pub(super) fn correct(self: &Arc<Self>, taken: &Costs, actual: &Cost) {
        let names = &self.root.common.policy.buckets;
        let mut tree = self.root.lock();
        let Some(awake) = tree.awake(self) else {
            return;
        };
        for (i, (name, _)) in names.iter().enumerate() {
            if actual.names(name) {
                awake.buckets.correct(i, taken.named(i), actual.of(name));
            }
        }
        drop(tree);
        self.changed.notify_waiters();
    }
}

/// One bucket for each name in the policy; none where it names none.
#[derive(Debug, Default)]
pub(super) struct Buckets(Vec<(Rate, Bucket)>);

impl Buckets {
    /// The buckets of `policy`, full.
    pub(super) fn of(policy: &Policy, now: Instant) -> Self {
        let rates = policy.buckets.iter().map(|(_, rate)| *rate);
        Self(rates.map(|rate| (rate, Bucket::full(now))).collect())
    }

    /// Takes `costs` of all of them, or nothing.
    ///
    /// # Errors
    ///
    /// Returns when the one that refused will have enough.
    pub(super) fn take(&mut self, now: Instant, costs: &Costs) -> Result<(), Instant> {
        for i in 0..self.0.len() {
            let (rate, bucket) = &mut self.0[i];
            if let Err(at) = bucket.take(now, *rate, costs.named(i)) {
                for (j, (_, bucket)) in self.0[..i].iter_mut().enumerate() {
                    bucket.give_back(costs.named(j));
                }
                return Err(at);
            }
        }
        Ok(())
    }

    /// How long it takes from `now` on until `costs` can be taken once `ahead`
    /// were.
    pub(super) fn least_wait(&self, now: Instant, ahead: &Sum, costs: &Costs) -> Duration {
        let waits = self.0.iter().enumerate().map(|(i, (rate, bucket))| {
            let (ahead, cost) = (ahead.named(i), costs.named(i));
            if ahead == 0 && cost == 0 {
                return Duration::ZERO;
            }
            seconds(bucket.missing(now, *rate, ahead, cost) / rate.get())
        });
        waits.max().unwrap_or_default()
    }

    /// Gives all of `costs` back.
    pub(super) fn give_back(&mut self, costs: &Costs) {
        for (i, (_, bucket)) in self.0.iter_mut().enumerate() {
            bucket.give_back(costs.named(i));
        }
    }

    /// Settles the difference between what was taken of bucket `i` and what the
    /// attempt really cost.
    fn correct(&mut self, i: usize, taken: u32, actual: u32) {
        if let Some((_, bucket)) = self.0.get_mut(i) {
            bucket.give_back(taken.saturating_sub(actual));
            bucket.charge(actual.saturating_sub(taken));
        }
    }
}
