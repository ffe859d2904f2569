//! Progress while it runs: a bar on a terminal, else a line now and then.

use std::{
    future::Future,
    io::{IsTerminal, stderr},
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::interval;

use crate::{Way, server::Server};

/// Runs `running` to its end and shows how far it is.
pub(crate) async fn watch<F: Future>(
    way: Way,
    calls: usize,
    done: &AtomicUsize,
    server: &Server,
    running: F,
) -> F::Output {
    let shown = Shown::new(way, calls);
    let mut running = pin!(running);
    let mut ticks = interval(shown.period());
    loop {
        let output = tokio::select! {
            output = &mut running => Some(output),
            _ = ticks.tick() => None,
        };
        shown.update(done.load(Ordering::Relaxed), server.refused());
        if let Some(output) = output {
            shown.finish();
            return output;
        }
    }
}

enum Shown {
    Bar(ProgressBar),
    Lines { way: Way, calls: usize },
}

impl Shown {
    fn new(way: Way, calls: usize) -> Self {
        if !stderr().is_terminal() {
            return Self::Lines { way, calls };
        }
        let style = ProgressStyle::with_template(
            "{prefix:16} {bar:32} {pos:>6}/{len} calls  {msg:>12}  {elapsed:>4}",
        )
        .expect("the template is well-formed");
        let bar = ProgressBar::new(calls as u64).with_style(style);
        bar.set_prefix(way.name());
        Self::Bar(bar)
    }

    const fn period(&self) -> Duration {
        match self {
            Self::Bar(_) => Duration::from_millis(100),
            Self::Lines { .. } => Duration::from_secs(1),
        }
    }

    fn update(&self, done: usize, refused: usize) {
        match self {
            Self::Bar(bar) => {
                bar.set_position(done as u64);
                bar.set_message(format!("{refused} × 429"));
            }
            Self::Lines { way, calls } => {
                eprintln!(
                    "{:16} {done:>6}/{calls} calls  {refused:>6} × 429",
                    way.name()
                );
            }
        }
    }

    fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.abandon();
        }
    }
}
