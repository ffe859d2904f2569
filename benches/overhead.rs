//! What the layer costs a call that meets no limit, beside its peers.
//!
//! Nanoseconds for a call beyond those of the bare service; `allocations`
//! counts the allocations of the same stacks.

#[path = "support/processes.rs"]
mod processes;
#[path = "support/stacks.rs"]
mod stacks;

use tokio::runtime::Builder;

use crate::processes::{Figures, interleaved, time};

const PROCESSES: usize = 9;
const ROUNDS: usize = 400;
/// Few enough to stay in the cache, though each is a request of its own.
const CALLS: usize = 100;

fn main() {
    let Some(runs) = processes::run(PROCESSES, measure) else {
        return;
    };
    println!("nanoseconds a call beyond the bare service's; median of {PROCESSES} processes\n");
    println!(
        "{:<24}{:>8}{:>18}{:>18}",
        "", "ns", "of tower::retry", "of the peer"
    );
    for name in ["tower::retry", "assembled peer"] {
        println!(
            "{name:<24}{:>+8.0}{:>17.2}x{:>17.2}x",
            runs.median(|f| over_bare(f, name)),
            runs.median(|f| over_bare(f, name) / over_bare(f, "tower::retry")),
            runs.median(|f| over_bare(f, name) / over_bare(f, "assembled peer")),
        );
    }
    println!(
        "{:<24}{:>8.0}",
        "the bare service itself",
        runs.median(|f| f["bare"])
    );
}

fn over_bare(figures: &Figures, name: &str) -> f64 {
    let bare = if name.ends_with("POST") {
        "bare, POST"
    } else {
        "bare"
    };
    figures[name] - figures[bare]
}

fn measure() -> Vec<(&'static str, f64)> {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let rows = stacks::all(&runtime)
        .into_iter()
        .map(|(name, method, mut call)| {
            let sample = move || {
                let requests = stacks::requests(&method, CALLS);
                time(CALLS, || call(requests))
            };
            (name, sample)
        })
        .collect();
    interleaved(ROUNDS, rows)
}
