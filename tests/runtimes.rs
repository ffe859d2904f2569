//! Callers on several runtimes share a scope, and one of the runtimes stops.
//!
//! In real time, for each runtime has a clock of its own to stop.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

mod support;

use std::{future::Future, pin::Pin, thread};

use support::*;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};
use tower::ServiceExt as _;
use tower_retry_after::{CallOptions, RetryAfterLayer};

const A: &str = "http://a.test/";

/// What becomes of a runtime on which a call waits.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Dropped,
    ShutDown,
    /// It is kept, but nobody drives it.
    Idle,
}

/// A runtime on which a call was polled once, and the call.
struct Elsewhere {
    runtime: Option<Runtime>,
    _call: Pin<Box<dyn Future<Output = Reply> + std::marker::Send>>,
}

impl Elsewhere {
    /// Polls a call of `client` once, on a runtime of its own.
    fn poll_once(client: &Client, mut runtime: Builder) -> Self {
        let mut call: Pin<Box<dyn Future<Output = _> + std::marker::Send>> =
            Box::pin(client.clone().oneshot(get(A)));
        let thread = thread::spawn(move || {
            let runtime = runtime.enable_time().build().unwrap();
            runtime.block_on(async { assert!(futures_util::poll!(&mut call).is_pending()) });
            Self {
                runtime: Some(runtime),
                _call: call,
            }
        });
        thread.join().unwrap()
    }

    fn meet(&mut self, fate: Fate) {
        let runtime = match fate {
            Fate::Idle => None,
            _ => self.runtime.take(),
        };
        thread::spawn(move || match fate {
            Fate::ShutDown => runtime.unwrap().shutdown_background(),
            _ => drop(runtime),
        })
        .join()
        .unwrap();
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // One that is dropped waits for its tasks, which must not block here.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runtimes and what becomes of them.
fn fates() -> impl Iterator<Item = (Builder, Fate)> {
    let workers = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1);
        builder
    };
    [
        (Builder::new_current_thread(), Fate::Dropped),
        (Builder::new_current_thread(), Fate::Idle),
        (workers(), Fate::Dropped),
        (workers(), Fate::ShutDown),
    ]
    .into_iter()
}

async fn waiting(layer: &RetryAfterLayer, count: usize) {
    while layer.scopes().get(scope_of(A)).snapshot().waiting < count {
        tokio::task::yield_now().await;
    }
}

async fn assert_is_served(waits: JoinHandle<Reply>, fate: Fate) {
    let answer = tokio::time::timeout(secs(10), waits).await;
    let answer = answer.unwrap_or_else(|_| panic!("{fate:?}: it waits for ever"));
    assert_eq!(status_of(&answer.unwrap()), 200);
}

#[tokio::test]
async fn a_runtime_that_stops_leaves_a_pause_to_others() {
    for (runtime, fate) in fates() {
        let server = Server::new(ms(1), |_| ok());
        let (client, layer) = client_of(&server, policy());
        layer.scopes().get(scope_of(A)).pause_for(ms(300));
        let mut elsewhere = Elsewhere::poll_once(&client, runtime);
        let waits = send(&client, get(A));
        waiting(&layer, 2).await;
        elsewhere.meet(fate);
        assert_is_served(waits, fate).await;
    }
}

#[tokio::test]
async fn a_runtime_that_stops_leaves_a_slot_to_others() {
    for (runtime, fate) in fates() {
        let server = Server::new(ms(1), |_| ok());
        let (client, layer) = client_of(&server, policy().max_in_flight(1));
        let holds = reply(send(&client, get(A))).await;
        let mut elsewhere = Elsewhere::poll_once(&client, runtime);
        let waits = send(&client, get(A));
        waiting(&layer, 2).await;
        elsewhere.meet(fate);
        drop(holds);
        assert_is_served(waits, fate).await;
    }
}

#[tokio::test]
async fn a_runtime_that_stops_leaves_deadlines_to_others() {
    for (runtime, fate) in fates() {
        let server = Server::new(ms(1), |_| ok());
        let (client, layer) = client_of(&server, policy().max_in_flight(1));
        let _holds = reply(send(&client, get(A))).await;
        let mut elsewhere = Elsewhere::poll_once(&client, runtime);
        let mut request = get(A);
        let options = CallOptions::new().deadline(ms(300));
        request.extensions_mut().insert(options);
        let waits = send(&client, request);
        waiting(&layer, 2).await;
        elsewhere.meet(fate);
        let answer = tokio::time::timeout(secs(10), waits).await;
        let answer = answer.unwrap_or_else(|_| panic!("{fate:?}: it waits for ever"));
        assert!(answer.unwrap().unwrap_err().is_refusal());
    }
}
