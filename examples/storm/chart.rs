//! Sends over time, one panel for each way.

use std::{fs, path::Path};

use plotters::prelude::*;
use tower::BoxError;

use crate::run::Run;

/// Sends are counted in steps of this many seconds.
const STEP: f64 = 0.25;
const ACCEPTED: RGBColor = RGBColor(46, 134, 171);
const REFUSED: RGBColor = RGBColor(214, 69, 65);

/// Draws `runs` into the SVG file `path`; a line stands at `quota` per second.
pub(crate) fn draw(path: &Path, runs: &[Run], quota: u32) -> Result<(), BoxError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let steps: Vec<Vec<Step>> = runs.iter().map(count).collect();
    let longest = steps.iter().map(Vec::len).max().unwrap_or(0);
    let tallest = steps.iter().flatten().map(|s| s.accepted + s.refused);
    let tallest = tallest.fold(f64::from(quota), f64::max);

    let root = SVGBackend::new(path, (960, 240 * runs.len() as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    for ((area, run), steps) in root
        .split_evenly((runs.len(), 1))
        .iter()
        .zip(runs)
        .zip(&steps)
    {
        let caption = format!(
            "{}: {} sends, {} refused, {:.1} s",
            run.way.name(),
            run.arrivals.len(),
            run.refused(),
            run.seconds
        );
        let mut chart = ChartBuilder::on(area)
            .caption(caption, ("sans-serif", 18))
            .margin(8)
            .x_label_area_size(32)
            .y_label_area_size(64)
            // One scale for all, or the panels could not be compared.
            .build_cartesian_2d(0.0..longest as f64 * STEP, 0.0..tallest * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .y_labels(5)
            .y_label_formatter(&|y| format!("{y:.0}"))
            .x_desc("seconds")
            .y_desc("sends per second")
            .draw()?;
        let bars = |color: RGBColor, ends: fn(&Step) -> (f64, f64)| {
            steps.iter().enumerate().map(move |(i, step)| {
                let (low, high) = ends(step);
                let (from, to) = (i as f64 * STEP, (i as f64 + 0.9) * STEP);
                Rectangle::new([(from, low), (to, high)], color.filled())
            })
        };
        chart
            .draw_series(bars(ACCEPTED, |s| (0.0, s.accepted)))?
            .label("accepted")
            .legend(|at| square(at, ACCEPTED));
        chart
            .draw_series(bars(REFUSED, |s| (s.accepted, s.accepted + s.refused)))?
            .label("refused")
            .legend(|at| square(at, REFUSED));
        let ends = [0.0, longest as f64 * STEP].map(|x| (x, f64::from(quota)));
        chart
            .draw_series([PathElement::new(ends, BLACK)])?
            .label("quota")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 10, y)], BLACK));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE)
            .draw()?;
    }
    root.present()?;
    Ok(())
}

fn square((x, y): (i32, i32), color: RGBColor) -> Rectangle<(i32, i32)> {
    Rectangle::new([(x, y - 5), (x + 10, y + 5)], color.filled())
}

/// Sends per second in one step.
#[derive(Clone, Default)]
struct Step {
    accepted: f64,
    refused: f64,
}

fn count(run: &Run) -> Vec<Step> {
    let mut steps = Vec::new();
    for arrival in &run.arrivals {
        let i = (arrival.at.as_secs_f64() / STEP) as usize;
        if steps.len() <= i {
            steps.resize(i + 1, Step::default());
        }
        let step: &mut Step = &mut steps[i];
        if arrival.accepted {
            step.accepted += 1.0 / STEP;
        } else {
            step.refused += 1.0 / STEP;
        }
    }
    steps
}
