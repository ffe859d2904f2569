//! The counters without a lock, under a model checker: every order in which two
//! threads can see each other's steps.

#[allow(dead_code, reason = "the model needs a part of it")]
#[path = "../src/scope/flight.rs"]
mod flight;

use flight::{Flight, Word};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicU64 as LoomU64, fence},
    },
    thread,
};

pub(crate) use loom::sync::atomic::Ordering;

/// In place of the one in `std`, for the file above.
///
/// loom takes sequentially consistent steps for acquire and release, and knows
/// the total order of fences only: here one stands on both sides of such a step.
#[derive(Debug)]
pub(crate) struct AtomicU64(LoomU64);

impl Default for AtomicU64 {
    fn default() -> Self {
        Self(LoomU64::new(0))
    }
}

impl AtomicU64 {
    fn step<T>(&self, order: Ordering, step: impl FnOnce(&LoomU64) -> T) -> T {
        let fenced = || {
            if order == Ordering::SeqCst {
                fence(Ordering::SeqCst);
            }
        };
        fenced();
        let result = step(&self.0);
        fenced();
        result
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        self.step(order, |value| value.load(order))
    }

    pub(crate) fn fetch_add(&self, by: u64, order: Ordering) -> u64 {
        self.step(order, |value| value.fetch_add(by, order))
    }

    pub(crate) fn fetch_sub(&self, by: u64, order: Ordering) -> u64 {
        self.step(order, |value| value.fetch_sub(by, order))
    }

    pub(crate) fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.step(order, |value| value.fetch_or(bits, order))
    }
}

/// Runs `step` on another thread while this one limits the root: what `step`
/// gave, and how many it then sees in flight.
fn beside_a_limit<T: 'static>(
    flight: Flight,
    step: impl FnOnce(&Flight, &Word) -> T + 'static,
) -> (T, u64) {
    let shared = Arc::new((flight, Word::default()));
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || step(&shared.0, &shared.1)
    });
    shared.1.limit();
    let in_flight = shared.0.in_flight();
    (other.join().expect("the other thread"), in_flight)
}

#[test]
fn none_is_sent_uncounted_past_a_limit_that_is_being_set() {
    loom::model(|| {
        let (dormant, in_flight) = beside_a_limit(Flight::default(), |flight, word| {
            flight.sent();
            !word.read().is_awake()
        });
        assert!(!dormant || in_flight == 1, "neither saw the other");
    });
}

#[test]
fn no_slot_comes_free_unseen_by_who_begins_to_wait_for_it() {
    loom::model(|| {
        let flight = Flight::default();
        flight.sent();
        let (tells, in_flight) = beside_a_limit(flight, |flight, word| {
            flight.ended();
            word.read().is_limited()
        });
        assert!(tells || in_flight == 0, "it waits, and nobody tells it");
    });
}
