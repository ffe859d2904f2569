//! Reads a log of answers and tells how far each host's hints can be believed.
//!
//! A log is CSV with a header line, or JSON lines, or one JSON array, as your
//! client has written it: for each answer a time, a host, a status and the
//! `Retry-After` if there was one. Column names are taken as they come
//! (`time`, `timestamp`, `ts`; `host`, `url`; `status`, `status_code`;
//! `retry-after`, `Retry_After`, `headers.Retry-After`, …), times as RFC 3339,
//! as a Unix time in whatever unit, or as a web server writes them.
//!
//! ```text
//! cargo run --example characterise -- examples/characterise/sample.csv
//! cat client.jsonl | cargo run --example characterise -- - --svg hints.svg
//! ```
//!
//! What it prints for a host is what a scope of the layer would have learned
//! from the same answers, and what it would do at the next refusal.

mod chart;
mod fields;
mod log;
mod replay;
mod report;
mod times;

use std::{error::Error, fs, io::Read as _, path::PathBuf, process::ExitCode};

use clap::Parser;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/characterise.svg");

/// Tells from a log of answers how far each host's hints can be believed.
#[derive(Debug, Parser)]
struct Args {
    /// The log, CSV or JSON lines; `-` reads from the standard input.
    log: PathBuf,

    /// Where to draw what was asked against what was measured.
    #[arg(long, value_name = "FILE", default_value = CHART)]
    svg: PathBuf,

    /// How long a request may have been under way, in seconds: a success that
    /// is logged this soon after a refusal was perhaps sent before it. A column
    /// `duration` or `duration_ms` tells it exactly.
    #[arg(long, value_name = "SECS", default_value_t = 1.0)]
    in_flight: f64,
}

/// How many unreadable entries are shown, of however many there are.
const SHOWN: usize = 10;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", args.log.display());
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut bytes = Vec::new();
    if args.log.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes)?;
    } else {
        bytes = fs::read(&args.log)?;
    }

    let log = log::read(&bytes)?;
    for problem in log.problems.iter().take(SHOWN) {
        eprintln!("{problem}");
    }
    if let Some(more) = log.problems.len().checked_sub(SHOWN).filter(|n| *n > 0) {
        eprintln!("and {more} more");
    }
    if log.answers.is_empty() {
        return Err("no answer in it could be read".into());
    }

    let in_flight = std::time::Duration::try_from_secs_f64(args.in_flight)?;
    let hosts = replay::replay(log.answers, in_flight);
    for host in &hosts {
        println!("{}", report::Report(host));
    }
    if let Some(folder) = args.svg.parent() {
        fs::create_dir_all(folder)?;
    }
    chart::draw(&args.svg, &hosts)?;
    println!("Asked against measured: {}", args.svg.display());
    Ok(())
}
