//! One hot scope and two threads, beside a tokio `Semaphore`.
//!
//! Neither ever has to wait for a turn: what is measured is two cores that
//! pull at one state.

#[path = "support/processes.rs"]
mod processes;

use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    thread,
};

use tokio::{runtime::Builder, sync::Semaphore, task::unconstrained};

use crate::processes::{interleaved, time};

const PROCESSES: usize = 7;
const ROUNDS: usize = 10;
const OPERATIONS: usize = 200_000;

fn main() {
    let Some(runs) = processes::run(PROCESSES, measure) else {
        return;
    };
    println!("nanoseconds an operation of one thread; median of {PROCESSES} processes\n");
    println!("{:<32}{:>12}{:>12}", "", "one thread", "two threads");
    println!(
        "{:<32}{:>12.0}{:>12.0}",
        "Semaphore, acquire and release",
        runs.median(|f| f["semaphore, 1"]),
        runs.median(|f| f["semaphore, 2"]),
    );
}

fn measure() -> Vec<(String, f64)> {
    let semaphore = Arc::new(Semaphore::new(1_000));
    let acquire = async move || drop(black_box(semaphore.acquire().await));
    interleaved(
        ROUNDS,
        vec![
            ("semaphore, 1".into(), threads(1, acquire.clone())),
            ("semaphore, 2".into(), threads(2, acquire)),
        ],
    )
}

/// The time of an operation while `count` threads do nothing else.
fn threads(count: usize, operation: impl AsyncFnMut() + Clone + Send) -> impl FnMut() -> f64 {
    move || {
        let barrier = Barrier::new(count);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|_| operation.clone())
                .map(|operation| scope.spawn(|| repeat(operation, &barrier)))
                .collect();
            let ns = threads.into_iter().map(|t| t.join().expect("a thread"));
            ns.fold(0.0, f64::max)
        })
    }
}

fn repeat(mut operation: impl AsyncFnMut(), start: &Barrier) -> f64 {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    // Unconstrained: tokio's semaphore would make its users yield.
    let work = unconstrained(async {
        for _ in 0..OPERATIONS {
            operation().await;
        }
    });
    start.wait();
    time(OPERATIONS, || runtime.block_on(work))
}
