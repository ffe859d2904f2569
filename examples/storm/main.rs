//! Sixty callers against a server with a quota, three ways.
//!
//! A real HTTP server on a loopback port accepts 50 requests a second and
//! refuses the others with a 429. The same calls are made through it with a
//! naive sleep-and-retry in every task, with `tower::retry` and exponential
//! backoff, and with `RetryAfterLayer`. What the server and the callers counted
//! ends in a table and in `target/storm.svg`.
//!
//! ```text
//! cargo run --release --example storm
//! cargo run --release --example storm -- --callers 200 --retry-after 5
//! ```

// The library asks its own clock so that tests can pause it; here real time is
// what is to be measured.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod args;
mod callers;
mod chart;
mod layer;
mod naive;
mod progress;
mod run;
mod server;
mod table;
mod tower_retry;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicUsize},
    time::Instant,
};

use clap::Parser;
use tower::BoxError;

use self::{args::Args, callers::drive, run::Run, server::Server};

/// How often one call may be sent, in each of the three ways.
const ATTEMPTS: u32 = 10;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/storm.svg");

/// A way of living with a quota.
#[derive(Clone, Copy)]
enum Way {
    Naive,
    TowerRetry,
    Layer,
}

impl Way {
    const ALL: [Self; 3] = [Self::Naive, Self::TowerRetry, Self::Layer];

    const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive sleep",
            Self::TowerRetry => "tower::retry",
            Self::Layer => "RetryAfterLayer",
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    println!("{args}\n");

    let mut runs = Vec::new();
    for way in Way::ALL {
        runs.push(storm(way, &args).await?);
    }

    // A bar leaves the cursor at its end.
    eprintln!();
    println!("\n{}", table::render(&runs));
    chart::draw(Path::new(CHART), &runs, args.quota)?;
    println!("Sends over time: {CHART}");
    Ok(())
}

/// Makes all calls in one way, against a server of its own.
async fn storm(way: Way, args: &Args) -> Result<Run, BoxError> {
    let server = Server::start(args.quota()).await?;
    let client = callers::client();
    let load = args.load(server.uri());
    let done = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();

    let calls = progress::watch(way, load.calls, &done, &server, async {
        match way {
            Way::Naive => drive(naive::service(client), &load, &done).await,
            Way::TowerRetry => drive(tower_retry::service(client), &load, &done).await,
            Way::Layer => drive(layer::service(client), &load, &done).await,
        }
    })
    .await;

    Ok(Run {
        way,
        total: load.calls,
        quota: args.quota,
        seconds: started.elapsed().as_secs_f64(),
        calls,
        arrivals: server.arrivals(),
    })
}
