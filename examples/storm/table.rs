//! The figures of the three ways, side by side.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};

use crate::run::Run;

/// What is measured of each way; of all of it, less is better.
struct Figure {
    name: &'static str,
    decimals: usize,
    of: fn(&Run) -> f64,
}

#[rustfmt::skip]
const FIGURES: [Figure; 10] = [
    Figure { name: "calls", decimals: 0, of: |run| run.total as f64 },
    Figure { name: "attempts", decimals: 0, of: |run| run.arrivals.len() as f64 },
    Figure { name: "429s", decimals: 0, of: |run| run.refused() as f64 },
    Figure { name: "429s per success", decimals: 3, of: |run| run.refused() as f64 / run.served() as f64 },
    Figure { name: "429s after 5 s, %", decimals: 2, of: Run::refused_since },
    Figure { name: "off the quota after 5 s, %", decimals: 2, of: |run| run.unused().abs() },
    Figure { name: "seconds", decimals: 1, of: |run| run.seconds },
    Figure { name: "median latency, s", decimals: 2, of: |run| run.latency(0.5) },
    Figure { name: "99th percentile, s", decimals: 2, of: |run| run.latency(0.99) },
    Figure { name: "failed calls", decimals: 0, of: |run| run.failed() as f64 },
];

/// One row for each figure, then why calls failed.
pub(crate) fn render(runs: &[Run]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let names = runs.iter().map(|run| run.way.name());
    table.set_header([""].into_iter().chain(names).chain(["best"]));
    for Figure { name, decimals, of } in FIGURES {
        let figures: Vec<f64> = runs.iter().map(of).collect();
        let mut row = vec![name.to_owned()];
        // Too few calls have no figure after the first seconds.
        row.extend(figures.iter().map(|figure| match figure.is_nan() {
            true => String::new(),
            false => format!("{figure:.decimals$}"),
        }));
        row.push(best(runs, &figures).unwrap_or_default().to_owned());
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1).take(runs.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }

    let mut text = table.to_string();
    for run in runs {
        if let Some(reason) = run.first_failure() {
            let (way, failed, total) = (run.way.name(), run.failed(), run.total);
            let _ = write!(
                text,
                "\n{way}: {failed} of {total} calls failed, the first with: {reason}"
            );
        }
    }
    text
}

/// The way whose figure is lower than all others' by more than noise.
///
/// A way that failed more calls than another did less of the work, and is
/// best at nothing.
fn best(runs: &[Run], figures: &[f64]) -> Option<&'static str> {
    const NOISE: f64 = 0.02;
    let fewest_failed = runs.iter().map(Run::failed).min()?;
    let is_best = |&i: &usize| {
        let limit = figures[i] / (1.0 - NOISE);
        let mut others = (0..runs.len()).filter(|&other| other != i);
        runs[i].failed() == fewest_failed && others.all(|other| limit < figures[other])
    };
    let i = (0..runs.len()).find(is_best)?;
    Some(runs[i].way.name())
}
