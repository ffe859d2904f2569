//! How many attempts a scope may have in flight, where that is what a server
//! limits.
//!
//! Limits on concurrency are another thing than limits on rate: a refusal tells
//! at once how many were too many, and nothing has to be waited for but an
//! attempt that ends.
//!
//! # The model
//!
//! A server that serves `n` at once and refuses the next leaves, once all its
//! refusals are in, exactly `n` in flight. So each refusal sets the limit to
//! the number of *other* attempts in flight, if that is less:
//!
//! > limit ← max(1, min(limit, in flight − 1))
//!
//! Above it one more is tried after `plateau` acceptances at the limit. A try
//! that is refused doubles the plateau, up to [`PLATEAU`]'s end: at most one
//! refusal in some four thousand attempts. A try that succeeds halves it.

/// The shortest and the longest plateau, in acceptances.
const PLATEAU: (u32, u32) = (16, 4096);

/// An adaptive limit on attempts in flight. Pure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Concurrency {
    limit: u32,
    /// The last rise has not been refused yet.
    trying: bool,
    /// Acceptances at the limit since it changed.
    accepted: u32,
    plateau: u32,
}

impl Concurrency {
    /// The limit after a first refusal, with `in_flight` attempts, it included.
    pub(crate) fn new(in_flight: u32) -> Self {
        Self {
            limit: in_flight.saturating_sub(1).max(1),
            trying: false,
            accepted: 0,
            plateau: PLATEAU.0,
        }
    }

    /// How many may be in flight, at least one.
    pub(crate) const fn limit(&self) -> u32 {
        self.limit
    }

    /// An attempt was refused while `in_flight`, it included, were in flight.
    pub(crate) fn refused(&mut self, in_flight: u32) {
        let others = in_flight.saturating_sub(1).max(1);
        if others < self.limit {
            self.limit = others;
        }
        if std::mem::take(&mut self.trying) {
            self.plateau = self.plateau.saturating_mul(2).min(PLATEAU.1);
        }
        self.accepted = 0;
    }

    /// An attempt was accepted while `in_flight`, it included, were in flight.
    pub(crate) fn accepted(&mut self, in_flight: u32) {
        // Below the limit an acceptance is no evidence that more would pass.
        if in_flight < self.limit {
            return;
        }
        self.accepted += 1;
        // A rise is proven by as many acceptances as there are places.
        if self.trying && self.accepted > self.limit {
            self.trying = false;
            self.plateau = (self.plateau / 2).max(PLATEAU.0);
        }
        if self.accepted >= self.plateau.max(self.limit.saturating_mul(2)) {
            self.limit = self.limit.saturating_add(1);
            self.trying = true;
            self.accepted = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server that serves `capacity` at once, and a client that keeps as many
    /// in flight as it may: gives refusals and attempts of `rounds` rounds.
    fn saturate(concurrency: &mut Concurrency, capacity: u32, rounds: u32) -> (u32, u32) {
        let (mut refused, mut sent) = (0, 0);
        for _ in 0..rounds {
            let flying = concurrency.limit();
            sent += flying;
            for in_flight in (capacity + 1..=flying).rev() {
                concurrency.refused(in_flight);
                refused += 1;
            }
            for _ in 0..flying.min(capacity) {
                concurrency.accepted(flying.min(capacity));
            }
        }
        (refused, sent)
    }

    #[test]
    fn the_first_burst_of_refusals_tells_the_limit() {
        let mut concurrency = Concurrency::new(64);
        for in_flight in (9..64).rev() {
            concurrency.refused(in_flight);
        }
        assert_eq!(concurrency.limit(), 8);
    }

    #[test]
    fn tries_get_rare_while_they_are_refused() {
        let mut concurrency = Concurrency::new(9);
        saturate(&mut concurrency, 8, 5_000);
        let (refused, sent) = saturate(&mut concurrency, 8, 20_000);
        assert!(refused > 0, "a limit that is never tried never rises");
        assert!(refused * 1_000 < sent, "{refused} of {sent}");
        assert!((8..=9).contains(&concurrency.limit()));
    }

    #[test]
    fn a_server_that_grows_is_followed() {
        let mut concurrency = Concurrency::new(9);
        saturate(&mut concurrency, 8, 5_000);
        saturate(&mut concurrency, 16, 20_000);
        assert!(concurrency.limit() >= 16, "{concurrency:?}");
    }

    proptest! {
        #[test]
        fn the_limit_is_never_zero_and_falls_to_what_was_served(
            events in prop::collection::vec((any::<bool>(), any::<u32>()), 1..200),
        ) {
            let mut concurrency = Concurrency::new(events[0].1);
            for (refused, in_flight) in events {
                match refused {
                    true => concurrency.refused(in_flight),
                    false => concurrency.accepted(in_flight),
                }
                prop_assert!(concurrency.limit() >= 1);
                prop_assert!(!refused || concurrency.limit() < in_flight.max(2));
            }
        }
    }
}
