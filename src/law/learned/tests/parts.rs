//! What the parts of the law make of single episodes.

use super::{
    super::{
        bracket::Bracket,
        ledger::{Cycle, Episode, Ledger},
        price::Price,
    },
    at,
};

#[test]
fn a_part_of_a_window_tells_no_more_than_a_part() {
    let mut price = Price::new();
    price.counted_in(300.0);
    price.counted_in(3.0);
    assert!(price.window > 200.0, "{}", price.window);
    (0..20).for_each(|_| price.counted_in(3.0));
    assert_eq!(price.window, 3.0);
    // A log of the last five minutes serves one in three seconds, if many were
    // sent in the same three seconds of the one before.
    let episode = Episode {
        rate: 6.0,
        low: 0.3,
        asked: 2.0,
        asking: false,
        cycle: 0.0,
        again: false,
    };
    let low = |length, window| {
        let cycle = Cycle {
            accepted: 0.1 * length,
            length,
            paused: 2.0,
            idle: 0.0,
            again: false,
        };
        episode.closed_by(&cycle, 5.0, window).low
    };
    assert_eq!(low(3.0, 300.0), 4.95);
    assert_eq!(low(150.0, 300.0), 2.5);
    for window in [0.0, 299.0, 300.0] {
        assert_eq!(low(300.0, window), 0.1);
    }
}

#[test]
fn refused_rates_that_fall_more_slowly_tell_where_they_fall_to() {
    let refused = |rate, cycle, before| {
        let episode = Episode {
            rate,
            low: 20.0,
            asked: 2.0,
            asking: false,
            cycle,
            again: false,
        };
        Bracket::after(episode, before)
    };
    let first = refused(60.0, 100.0, None);
    let second = refused(55.0, 200.0, Some(first));
    assert_eq!((second.low, second.high), (40.0, 55.0));
    // Not if it was refused sooner, nor if it was a higher one.
    for sooner in [
        refused(55.0, 99.0, Some(first)),
        refused(61.0, 200.0, Some(first)),
    ] {
        assert_eq!(sooner.low, 20.0);
    }
}

#[test]
fn what_was_on_its_way_at_an_exhaustion_proves_no_larger_quota() {
    let mut ledger = Ledger::new(at(0.0));
    ledger.exhausted(at(1.0));
    (0..100).for_each(|_| ledger.accepted(true));
    assert_eq!(ledger.low(at(2.0), 0.0), 0.0);
    (0..101).for_each(|_| ledger.accepted(false));
    assert_eq!(ledger.low(at(3.0), 0.0), 50.0);
    // Nor does a window's worth that was refilled at once.
    assert_eq!(ledger.low(at(3.0), 8.0), 10.0);
}
