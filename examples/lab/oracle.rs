//! The oracle: the same callers, led by somebody who knows the server.
//!
//! Each request is sent so that it arrives at the first instant at which it
//! will be served; nothing is ever refused. No law can do better.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{
    demand::{Arrivals, Path},
    scenario::{Demand, Scenario},
    server::Server,
    tally::Tally,
};

pub(crate) fn run(scenario: &Scenario, seed: u64) -> Tally {
    let mut server = Server::new(scenario, seed);
    let mut tally = Tally::new(scenario);
    let mut path = Path::new(scenario, seed);
    let mut ready = BinaryHeap::new();
    for replica in 0..scenario.replicas {
        for (nth, at) in Arrivals::new(scenario, seed, replica).enumerate() {
            ready.push(Reverse((nanos(at), replica, nth)));
        }
    }
    let mut last = 0.0f64;
    while let Some(Reverse((at, replica, caller))) = ready.pop() {
        let wanted = at as f64 / 1e9;
        let arrives = server.opens(last.max(wanted + path.one_way()));
        if arrives >= scenario.duration_s {
            // Those behind it would arrive later still.
            break;
        }
        last = arrives;
        server.arrive(arrives);
        let answered = arrives + server.service() + path.one_way();
        tally.answered(arrives, true, replica, caller);
        tally.waited(wanted, answered);
        if scenario.demand == Demand::Saturating {
            ready.push(Reverse((nanos(answered), replica, caller)));
        }
    }
    tally
}

fn nanos(secs: f64) -> u64 {
    (secs * 1e9) as u64
}
