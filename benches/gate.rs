//! What waiters and idle scopes cost, beside a tokio `Semaphore` and a map.
//!
//! Bytes are those on the heap, less the waiter's task and the scope's key.

#[path = "support/processes.rs"]
mod processes;

use std::{
    collections::HashMap,
    hint::black_box,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use allocation_counter::measure as allocated;
use tokio::{
    runtime::Builder,
    sync::Semaphore,
    task::{JoinHandle, yield_now},
};

use crate::processes::time;

const PROCESSES: usize = 3;
const WAITERS: [usize; 2] = [10_000, 100_000];
const SCOPES: [usize; 2] = [1_000, 1_000_000];
const LOOK_UPS: usize = 1_000_000;

fn main() {
    let Some(runs) = processes::run(PROCESSES, figures) else {
        return;
    };
    println!("median of {PROCESSES} processes\n");
    let table = |title, time, counts, names: [&str; 1]| {
        println!("{title:<32}{:>10}{:>10}{:>14}", "", "bytes", time);
        for name in names {
            for count in counts {
                println!(
                    "{name:<32}{count:>10}{:>10.0}{:>14.0}",
                    runs.median(|f| f[&*bytes(name, count)]),
                    runs.median(|f| f[&*ns(name, count)]),
                );
            }
        }
        println!();
    };
    table("waiters", "ns to let go", WAITERS, ["Semaphore"]);
    table(
        "idle scopes",
        "ns to look up",
        SCOPES,
        ["Mutex<HashMap<_, Semaphore>>"],
    );
}

fn bytes(name: &str, count: usize) -> String {
    format!("{name}, {count}, bytes")
}

fn ns(name: &str, count: usize) -> String {
    format!("{name}, {count}, ns")
}

fn figures() -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    for count in WAITERS {
        let semaphore = Arc::new(Semaphore::new(0));
        let wait = || {
            let permit = Arc::clone(&semaphore).acquire_owned();
            async { drop(permit.await) }
        };
        let open = || semaphore.add_permits(count);
        figures.extend(waiters("Semaphore", count, wait, open));
    }
    for count in SCOPES {
        let map = Mutex::new(HashMap::new());
        let look_up = |key: &str| {
            let mut map = map.lock().expect("a lock");
            if let Some(semaphore) = map.get(key) {
                return Arc::clone(semaphore);
            }
            let semaphore = Arc::new(Semaphore::new(1));
            map.insert(key.to_owned(), Arc::clone(&semaphore));
            semaphore
        };
        figures.extend(scopes("Mutex<HashMap<_, Semaphore>>", count, look_up));
    }
    figures
}

/// Lets `count` tasks wait, then opens.
///
/// The tasks count each allocation that waiting makes, but not themselves.
fn waiters<F>(
    name: &str,
    count: usize,
    wait: impl Fn() -> F,
    open: impl FnOnce(),
) -> [(String, f64); 2]
where
    F: Future<Output = ()> + Send + 'static,
{
    // In paused time, so that only the work counts and not the pause.
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let begun = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<JoinHandle<()>> = (0..count)
        .map(|_| {
            let (begun, wait) = (Arc::clone(&begun), wait());
            runtime.spawn(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                wait.await;
            })
        })
        .collect();
    let waiting = allocated(|| {
        runtime.block_on(async {
            while begun.load(Ordering::Relaxed) < count {
                yield_now().await;
            }
        });
    });
    let let_go = time(count, || {
        runtime.block_on(async {
            open();
            for task in tasks {
                task.await.expect("a task");
            }
        });
    });
    [
        (
            bytes(name, count),
            waiting.bytes_current as f64 / count as f64,
        ),
        (ns(name, count), let_go),
    ]
}

/// Makes `count` scopes by looking them up, then looks them up again in no
/// order.
fn scopes<T>(name: &str, count: usize, look_up: impl Fn(&str) -> T) -> [(String, f64); 2] {
    let keys: Vec<_> = (0..count).map(|i| format!("tenant-{i:07}")).collect();
    let made = allocated(|| keys.iter().for_each(|key| drop(look_up(key))));
    // A prime that divides no count: every scope once, far from the last.
    let order = (0..LOOK_UPS).map(|i| i * 7_919 % count);
    let keys_alone: usize = keys.iter().map(String::len).sum();
    let found = time(LOOK_UPS, || {
        order.for_each(|i| drop(black_box(look_up(&keys[i]))));
    });
    let beyond = made.bytes_current as f64 - keys_alone as f64;
    [
        (bytes(name, count), beyond / count as f64),
        (ns(name, count), found),
    ]
}
