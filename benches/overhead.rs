//! What the layer costs a call that meets no limit, beside its peers.
//!
//! Nanoseconds for a call beyond those of the bare service; `allocations`
//! counts the allocations of the same stacks.

#[path = "support/processes.rs"]
mod processes;
#[path = "support/settled.rs"]
mod settled;
#[path = "support/stacks.rs"]
mod stacks;

use std::hint::black_box;

use tokio::runtime::{Builder, Runtime};
use tower::{Service, ServiceExt};
use tower_retry_after::{Policy, Scoped, Scopes};

use crate::{
    processes::{Figures, interleaved, time},
    stacks::{OURS, OURS_POST, PEER, TOWER_RETRY, bare_of},
};

const PROCESSES: usize = 9;
const ROUNDS: usize = 500;
/// Few enough to stay in the cache, though each is a request of its own.
const CALLS: usize = 100;

/// A ticket that is dropped unused: what reading the clock costs.
const TICKET: &str = "ticket";
/// With nothing to wait for, so that no lock is taken.
const OPEN: &str = "open";
/// With a rate so high that nobody waits for a token, and a lock.
const PACED: &str = "with a rate";

fn main() {
    let Some(runs) = processes::run(PROCESSES, measure) else {
        return;
    };
    let over = |f: &Figures, name: &str| f[name] - f[bare_of(name)];
    println!("nanoseconds a call, beyond the bare service; median of {PROCESSES} processes\n");
    println!(
        "{:<24}{:>8}{:>18}{:>18}",
        "", "ns", "of tower::retry", "of the peer"
    );
    for name in [TOWER_RETRY, PEER, OURS, OURS_POST] {
        println!(
            "{name:<24}{:>8.0}{:>17.2}x{:>17.2}x",
            runs.median(|f| over(f, name)),
            runs.median(|f| over(f, name) / over(f, TOWER_RETRY)),
            runs.median(|f| over(f, name) / over(f, PEER)),
        );
    }
    println!("\nThe bars are 0.90x and 0.33x, and for a call that can't be repeated 0.60x.\n");

    println!("nanoseconds to be admitted and settled by Gate and Rate, beyond a ticket\n");
    for (name, bar) in [(OPEN, "20 to 30"), (PACED, "100 to 130")] {
        let ns = runs.median(|f| f[name] - f[TICKET]);
        println!("{name:<24}{ns:>8.0}, the bar is {bar}");
    }
    println!("{TICKET:<24}{:>8.0}", runs.median(|f| f[TICKET]));
}

fn measure() -> Vec<(&'static str, f64)> {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let scopes = Scopes::new(Policy::new());
    scopes.get(PACED).set_rate(1e9);

    let mut rows: Vec<(_, Box<dyn FnMut() -> f64>)> = Vec::new();
    for (name, method, mut call) in stacks::all(&runtime) {
        let sample = move || {
            let requests = stacks::requests(&method, CALLS);
            time(CALLS, || call(requests))
        };
        rows.push((name, Box::new(sample)));
    }
    let scope = scopes.get(OPEN);
    let tickets = move || (0..CALLS).for_each(|_| drop(black_box(scope.ticket())));
    rows.push((TICKET, Box::new(move || time(CALLS, &tickets))));
    rows.push((OPEN, Box::new(admitted(&runtime, &scopes, OPEN))));
    rows.push((PACED, Box::new(admitted(&runtime, &scopes, PACED))));
    interleaved(ROUNDS, rows)
}

/// Calls of `scope` that are admitted and settled.
fn admitted(runtime: &Runtime, scopes: &Scopes, scope: &'static str) -> impl FnMut() -> f64 {
    let (scope, mut service) = (scopes.get(scope), settled::admitted());
    move || {
        time(CALLS, || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    let ready = service.ready().await.expect("a ready service");
                    let scoped = Scoped::new((), scope.ticket());
                    ready.call(scoped).await.expect("a turn");
                }
            });
        })
    }
}
