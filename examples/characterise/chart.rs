//! What was asked against what was measured, on two logarithmic axes.

use std::{error::Error, path::Path, time::Duration};

use plotters::prelude::*;
use tower_retry_after::verdict::Hint;

use crate::replay::Host;

const SIZE: (u32, u32) = (960, 640);

/// Where what is shorter is drawn, zero and no hint at all among it.
const LEAST: f64 = 0.1;

/// Where what is longer is drawn.
const MOST: f64 = 1e6;

/// One for each host in the legend; the last is for all that are not.
const COLORS: [RGBColor; 8] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
    RGBColor(140, 86, 75),
    RGBColor(23, 160, 180),
    RGBColor(140, 140, 140),
];

/// One episode: asked, last refused, first served.
type Point = (f64, f64, f64);

/// Draws one mark an episode, from its last refused send to its first served
/// one. On the diagonal the hint is exact, within the band it is truthful.
pub(crate) fn draw(path: &Path, hosts: &[Host]) -> Result<(), Box<dyn Error>> {
    let hosts: Vec<_> = hosts
        .iter()
        .filter(|host| !host.episodes.is_empty())
        .collect();
    let all = hosts.iter().flat_map(|host| points(host));
    let most = all.fold(100.0, |most, (asked, _, served)| {
        asked.max(served).max(most)
    }) * 2.0;

    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let axis = || (LEAST..most).log_scale();
    let mut chart = ChartBuilder::on(&root)
        .caption("Asked against measured", ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(axis(), axis())?;
    chart
        .configure_mesh()
        .x_desc("asked, seconds (0.1: zero, or no hint); truthful between the outer lines")
        .y_desc("measured, seconds")
        .x_label_formatter(&|secs| format!("{secs}"))
        .y_label_formatter(&|secs| format!("{secs}"))
        .light_line_style(WHITE)
        .draw()?;
    for (factor, share) in [(0.5, 0.3), (1.0, 0.7), (2.0, 0.3)] {
        let ends = [LEAST.max(LEAST / factor), most.min(most / factor)];
        let line = ends.map(|asked| (asked, asked * factor));
        chart.draw_series(LineSeries::new(line, BLACK.mix(share)))?;
    }

    for (number, host) in hosts.iter().enumerate() {
        let color = COLORS[number.min(COLORS.len() - 1)];
        let marks = points(host).flat_map(|(asked, refused, served)| {
            let interval = vec![(asked, refused), (asked, served)];
            [
                PathElement::new(interval, color.mix(0.4)).into_dyn(),
                Circle::new((asked, served), 3, color.filled()).into_dyn(),
            ]
        });
        let series = chart.draw_series(marks)?;
        let name = match (COLORS.len() - 1).cmp(&number) {
            std::cmp::Ordering::Greater => host.name.clone(),
            std::cmp::Ordering::Equal => format!("{} others", hosts.len() - number),
            std::cmp::Ordering::Less => continue,
        };
        series
            .label(name)
            .legend(move |(x, y)| Circle::new((x + 10, y), 4, color.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .draw()?;
    root.present()?;
    Ok(())
}

fn points(host: &Host) -> impl Iterator<Item = Point> {
    let drawn = |wait: Duration| wait.as_secs_f64().clamp(LEAST, MOST);
    host.episodes.iter().map(move |seen| {
        let asked = seen.hint.as_ref().map_or(Duration::ZERO, Hint::wait);
        (drawn(asked), drawn(seen.refused), drawn(seen.served))
    })
}
