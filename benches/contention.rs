//! One hot scope and two threads, beside a tokio `Semaphore`.
//!
//! Neither ever has to wait for a turn: what is measured is two cores that
//! pull at one state.

#[path = "support/processes.rs"]
mod processes;
#[path = "support/settled.rs"]
mod settled;

use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    thread,
};

use tokio::{runtime::Builder, sync::Semaphore, task::unconstrained};

use tower::{Service, ServiceExt};
use tower_retry_after::{Policy, Scoped, Scopes};

use crate::processes::{interleaved, time};

const PROCESSES: usize = 7;
const ROUNDS: usize = 10;
const OPERATIONS: usize = 200_000;

const ROWS: [&str; 3] = [SEMAPHORE, OPEN, PACED];
const SEMAPHORE: &str = "tokio Semaphore";
const OPEN: &str = "open scope";
const PACED: &str = "scope with a rate";

fn main() {
    let Some(runs) = processes::run(PROCESSES, measure) else {
        return;
    };
    println!("nanoseconds to be admitted and settled; median of {PROCESSES} processes\n");
    println!(
        "{:<24}{:>14}{:>14}{:>14}",
        "", "one thread", "two threads", "two, ratio"
    );
    for row in ROWS {
        println!(
            "{row:<24}{:>14.0}{:>14.0}{:>13.2}x",
            runs.median(|f| f[&*name(row, 1)]),
            runs.median(|f| f[&*name(row, 2)]),
            runs.median(|f| f[&*name(row, 2)] / f[&*name(SEMAPHORE, 2)]),
        );
    }
    println!("\nThe bar is the semaphore with two threads.");
}

fn name(row: &str, threads: usize) -> String {
    format!("{row}, {threads}")
}

fn measure() -> Vec<(String, f64)> {
    let semaphore = Arc::new(Semaphore::new(1_000));
    let acquire = async move || drop(black_box(semaphore.acquire().await));

    let scopes = Scopes::new(Policy::new());
    // So high that nobody waits for a token.
    scopes.get(PACED).set_rate(1e9);
    let call = |scope: &'static str| {
        let (scope, mut service) = (scopes.get(scope), settled::admitted());
        async move || {
            let ready = service.ready().await.expect("a ready service");
            let scoped = Scoped::new((), scope.ticket());
            ready.call(scoped).await.expect("a turn");
        }
    };

    let mut rows: Vec<(_, Box<dyn FnMut() -> f64>)> = Vec::new();
    for count in [1, 2] {
        rows.push((
            name(SEMAPHORE, count),
            Box::new(threads(count, acquire.clone())),
        ));
        rows.push((name(OPEN, count), Box::new(threads(count, call(OPEN)))));
        rows.push((name(PACED, count), Box::new(threads(count, call(PACED)))));
    }
    interleaved(ROUNDS, rows)
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
    let runtime = Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    // Unconstrained: tokio's semaphore would make its users yield.
    let work = unconstrained(async {
        for _ in 0..OPERATIONS {
            operation().await;
        }
    });
    start.wait();
    time(OPERATIONS, || runtime.block_on(work))
}
