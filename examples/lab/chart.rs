//! Rate, quota and refusals over time, as SVG.

use std::{error::Error, path::Path};

use plotters::prelude::*;

use crate::{scenario::Scenario, tally::Tally};

/// Points in time that a line is drawn through, about.
const POINTS: usize = 480;
const ACCEPTED: RGBColor = RGBColor(46, 134, 171);
const ALLOWED: RGBColor = RGBColor(120, 120, 120);
const REFUSED: RGBColor = RGBColor(214, 69, 65);

/// Draws what `law` did in `scenario` into the SVG file `path`.
pub(crate) fn draw(
    path: &Path,
    scenario: &Scenario,
    law: &str,
    tally: &Tally,
) -> Result<(), Box<dyn Error>> {
    let step = (tally.seconds.len() / POINTS).max(1);
    let steps = |of: fn(f64, &Tally, usize, usize) -> f64| {
        (0..tally.seconds.len()).step_by(step).map(move |from| {
            let to = (from + step).min(tally.seconds.len());
            (from as f64, of((to - from) as f64, tally, from, to))
        })
    };
    let quota: Vec<_> = steps(|_, _, from, _| from as f64)
        .map(|(at, _)| (at, scenario.quota(at)))
        .collect();
    let accepted: Vec<_> =
        steps(|secs, tally, from, to| tally.accepted(from as f64, to as f64) / secs).collect();
    let allowed: Vec<_> = steps(|secs, tally, from, to| {
        let rates = tally.seconds[from..to].iter().map(|second| second.rate);
        rates.sum::<f64>() / secs
    })
    .collect();
    let top = quota.iter().map(|(_, quota)| *quota).fold(0.0, f64::max) * 1.6;

    let root = SVGBackend::new(path, (960, 360)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("{}: {law}", scenario.name), ("sans-serif", 18))
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..scenario.duration_s, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .x_desc("seconds")
        .y_desc("requests per second")
        .draw()?;
    // A refusal is a tick whose height is the number refused in its second.
    let refusals = tally
        .seconds
        .iter()
        .enumerate()
        .filter(|(_, s)| s.rejected > 0);
    chart
        .draw_series(refusals.map(|(at, second)| {
            let high = f64::from(second.rejected).min(top);
            PathElement::new([(at as f64, 0.0), (at as f64, high)], REFUSED)
        }))?
        .label("refused")
        .legend(|at| line(at, REFUSED));
    let lines = [
        ("quota", quota, BLACK),
        ("allowed by the law", allowed, ALLOWED),
        ("accepted", accepted, ACCEPTED),
    ];
    for (label, points, color) in lines {
        let points = points.into_iter().map(|(at, rate)| (at, rate.min(top)));
        chart
            .draw_series(LineSeries::new(points, color))?
            .label(label)
            .legend(move |at| line(at, color));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}

fn line((x, y): (i32, i32), color: RGBColor) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 10, y)], color)
}
