//! What waiters and idle scopes cost, beside a tokio `Semaphore` and a map.
//!
//! Bytes are those on the heap, less the waiter's task and the scope's key.

#[path = "support/processes.rs"]
mod processes;
#[path = "support/settled.rs"]
mod settled;

use std::{
    collections::HashMap,
    hint::black_box,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use allocation_counter::measure as allocated;
use tokio::{
    runtime::{Builder, Runtime},
    sync::Semaphore,
    task::{JoinHandle, yield_now},
};

use tower::{Service, ServiceExt};
use tower_retry_after::{Policy, Scoped, Scopes};

use crate::processes::time;

const PROCESSES: usize = 3;
const WAITERS: [usize; 2] = [10_000, 100_000];
const SCOPES: [usize; 2] = [1_000, 1_000_000];
const LOOK_UPS: usize = 1_000_000;

const SCOPE: &str = "paused scope";
const SEMAPHORE: &str = "tokio Semaphore";
const REGISTRY: &str = "Scopes";
const MAP: &str = "Mutex<HashMap<_, Arc<Semaphore>>>";

fn main() {
    let Some(runs) = processes::run(PROCESSES, measure) else {
        return;
    };
    println!("median of {PROCESSES} processes\n");
    let table = |title, time, names: [&str; 2], counts: [usize; 2], bar| {
        println!("{title:<34}{:>10}{:>12}{time:>16}", "", "bytes each");
        for name in names {
            for count in counts {
                println!(
                    "{name:<34}{count:>10}{:>12.0}{:>16.0}",
                    runs.median(|f| f[&*bytes(name, count)]),
                    runs.median(|f| f[&*ns(name, count)]),
                );
            }
        }
        println!("{bar}\n");
    };
    table(
        "waiters",
        "ns to let go",
        [SCOPE, SEMAPHORE],
        WAITERS,
        "The bar is 512 bytes, and time that grows no faster than their number.",
    );
    table(
        "idle scopes",
        "ns to look up",
        [REGISTRY, MAP],
        SCOPES,
        "The bar is 512 bytes.",
    );
}

fn bytes(name: &str, count: usize) -> String {
    format!("{name}, {count}, bytes")
}

fn ns(name: &str, count: usize) -> String {
    format!("{name}, {count}, ns")
}

fn measure() -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    for count in WAITERS {
        figures.extend(waiters_of_a_scope(count));
        figures.extend(waiters_of_a_semaphore(count));
    }
    for count in SCOPES {
        let registry = Scopes::new(Policy::new().max_scopes(count));
        figures.extend(scopes(REGISTRY, count, |key| registry.get(key)));
        let map = Mutex::new(HashMap::new());
        figures.extend(scopes(MAP, count, |key| semaphore_of(&map, key)));
    }
    figures
}

fn waiters_of_a_scope(count: usize) -> [(String, f64); 2] {
    let runtime = paused_runtime();
    let _entered = runtime.enter();
    let scopes = Scopes::new(Policy::new().max_waiters(count));
    let scope = scopes.get(SCOPE);
    scope.pause_for(Duration::from_secs(10));
    let wait = || {
        let mut service = settled::admitted();
        let scoped = Scoped::new((), scope.ticket());
        async move {
            let ready = service.ready().await.expect("a ready service");
            ready.call(scoped).await.expect("a turn");
        }
    };
    // Time goes on by itself once every task waits.
    waiters(SCOPE, count, &runtime, wait, || {})
}

fn waiters_of_a_semaphore(count: usize) -> [(String, f64); 2] {
    let semaphore = Arc::new(Semaphore::new(0));
    let wait = || {
        let permit = Arc::clone(&semaphore).acquire_owned();
        async { drop(permit.await) }
    };
    let open = || semaphore.add_permits(count);
    waiters(SEMAPHORE, count, &paused_runtime(), wait, open)
}

/// A runtime in paused time: only work takes any, and not the pause.
fn paused_runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

fn semaphore_of(map: &Mutex<HashMap<String, Arc<Semaphore>>>, key: &str) -> Arc<Semaphore> {
    let mut map = map.lock().expect("a lock");
    if let Some(known) = map.get(key) {
        return Arc::clone(known);
    }
    let semaphore = Arc::new(Semaphore::new(1));
    map.insert(key.to_owned(), Arc::clone(&semaphore));
    semaphore
}

/// Lets `count` tasks wait, then opens.
///
/// The tasks count each allocation that waiting makes, but not themselves.
fn waiters<F>(
    name: &str,
    count: usize,
    runtime: &Runtime,
    wait: impl Fn() -> F,
    open: impl FnOnce(),
) -> [(String, f64); 2]
where
    F: Future<Output = ()> + Send + 'static,
{
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
