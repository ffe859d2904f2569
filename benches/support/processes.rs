//! One bench, several processes: a single one can be bimodal.
//!
//! Where the loader and the allocator happen to put things moves a figure of a
//! few hundred nanoseconds by a tenth, for as long as the process lives. So a
//! bench starts itself again several times, takes every ratio within one
//! process, and reports the median over all.

#![allow(dead_code, reason = "each bench uses its part")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench measures the real machine"
)]

use std::{
    collections::HashMap,
    env,
    ops::Index,
    process::{Command, Stdio},
    time::Instant,
};

/// Set in the processes that measure, for the one that reports.
const MEASURE: &str = "RETRY_AFTER_BENCH_MEASURE";

/// The figures of one process, by name.
#[derive(Debug)]
pub(crate) struct Figures(HashMap<String, f64>);

impl Index<&str> for Figures {
    type Output = f64;

    /// The figure of that name, NaN if the process did not print it.
    fn index(&self, name: &str) -> &f64 {
        self.0.get(name).unwrap_or(&f64::NAN)
    }
}

/// The figures of all processes.
#[derive(Debug)]
pub(crate) struct Runs(Vec<Figures>);

impl Runs {
    /// The median of `figure` over the processes.
    pub(crate) fn median(&self, figure: impl Fn(&Figures) -> f64) -> f64 {
        median(self.0.iter().map(figure).collect())
    }
}

/// Runs `measure` in `count` processes, one after another.
///
/// `None` in the processes that measure: they have printed their figures, and
/// have nothing to report.
pub(crate) fn run<N: AsRef<str>>(
    count: usize,
    measure: impl FnOnce() -> Vec<(N, f64)>,
) -> Option<Runs> {
    if env::var_os(MEASURE).is_some() {
        for (name, figure) in measure() {
            println!("{figure} {}", name.as_ref());
        }
        return None;
    }
    let program = env::current_exe().expect("the path of this bench");
    let one_process = || {
        let output = Command::new(&program)
            .env(MEASURE, "")
            .stderr(Stdio::inherit())
            .output()
            .expect("this bench starts again");
        let figures = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(figure, name)| Some((name.to_owned(), figure.parse().ok()?)))
            .collect();
        Figures(figures)
    };
    Some(Runs((0..count).map(|_| one_process()).collect()))
}

/// The nanoseconds that `work` takes, for each of its `calls`.
pub(crate) fn time(calls: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / calls as f64
}

/// Takes a sample of each row in turn, `rounds` times over and once before to
/// warm up: the median of each.
///
/// In turn, so that what disturbs the machine for a second disturbs all rows.
pub(crate) fn interleaved<N>(rounds: usize, rows: Vec<(N, impl FnMut() -> f64)>) -> Vec<(N, f64)> {
    let mut rows: Vec<_> = rows.into_iter().map(|row| (row, Vec::new())).collect();
    for round in 0..=rounds {
        for ((_, sample), samples) in &mut rows {
            let ns = sample();
            if round > 0 {
                samples.push(ns);
            }
        }
    }
    rows.into_iter()
        .map(|((name, _), samples)| (name, median(samples)))
        .collect()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
