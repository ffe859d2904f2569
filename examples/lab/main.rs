//! The quota lab: the layer against simulated servers, in virtual time.
//!
//! Hours pass in seconds, and a run with the same seed gives the same figures.
//! Each law is set against an oracle that knows the server.
//!
//! ```text
//! cargo run --release --example lab -- examples/lab/scenarios.toml
//! cargo run --release --example lab -- FILE.toml --law learned --law aimd --only bucket-50 --svg target
//! ```

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a lab in tokio's paused time, on figures it has checked"
)]

mod aws_cubic;
mod chart;
mod demand;
mod laws;
mod oracle;
mod report;
mod run;
mod scenario;
mod server;
mod tally;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use clap::Parser;

use self::{laws::Rival, report::Report, scenario::Scenario};

/// Sets control laws against simulated servers that enforce a quota.
#[derive(Debug, Parser)]
struct Args {
    /// The scenarios, as TOML.
    file: PathBuf,
    /// A law to be tried; may be given more than once. All by default.
    #[arg(long = "law", value_name = "NAME")]
    laws: Vec<Rival>,
    /// Only scenarios of this name, or whose name begins with it.
    #[arg(long, value_name = "SCENARIO")]
    only: Option<String>,
    /// Seeds every draw.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Prints one JSON object a line, and no table.
    #[arg(long)]
    json: bool,
    /// Draws rate, quota and refusals over time into this folder.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

fn main() -> ExitCode {
    match lab(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn lab(args: &Args) -> Result<(), String> {
    let mut scenarios = scenario::read(&args.file)?;
    if let Some(only) = &args.only {
        scenarios.retain(|scenario| scenario.name.starts_with(only.as_str()));
        // A name that is another's beginning means that one alone.
        if let Some(exact) = scenarios.iter().find(|scenario| scenario.name == *only) {
            scenarios = vec![exact.clone()];
        }
    }
    if scenarios.is_empty() {
        return Err("no such scenario".into());
    }
    let laws = match &args.laws[..] {
        [] => <Rival as clap::ValueEnum>::value_variants(),
        some => some,
    };
    if let Some(folder) = &args.svg {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    if !args.json {
        println!("{}", report::HEADING);
    }
    let show = |report: &Report| match args.json {
        true => println!("{}", report.json()),
        false => println!("{report}"),
    };
    in_order(&scenarios, laws, args, show)
}

/// Runs all pairs on all processors, and shows them in order.
fn in_order(
    scenarios: &[Scenario],
    laws: &[Rival],
    args: &Args,
    show: impl Fn(&Report) + Sync,
) -> Result<(), String> {
    let jobs: Vec<(&Scenario, Rival)> = scenarios
        .iter()
        .flat_map(|scenario| laws.iter().map(move |law| (scenario, *law)))
        .collect();
    let next = AtomicUsize::new(0);
    // Those that are done, but follow one that is not.
    let done = Mutex::new((0, BTreeMap::new()));
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some((scenario, law)) = jobs.get(nth) else {
                return Ok(());
            };
            let report = try_out(scenario, *law, args)?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            let (shown, waiting) = &mut *done;
            waiting.insert(nth, report);
            while let Some(report) = waiting.remove(shown) {
                show(&report);
                *shown += 1;
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut ended = workers.into_iter().map(|worker| worker.join());
        ended.try_for_each(|end| end.unwrap_or_else(|_| Err("a run panicked".into())))
    })
}

fn try_out(scenario: &Scenario, law: Rival, args: &Args) -> Result<Report, String> {
    let mut oracle = oracle::run(scenario, args.seed);
    let mut run = match law {
        Rival::Oracle => oracle::run(scenario, args.seed),
        _ => run::run(scenario, law, args.seed),
    };
    if let Some(folder) = &args.svg {
        let path = folder.join(format!("{}-{}.svg", scenario.name, law.name()));
        chart::draw(&path, scenario, &law.name(), &run).map_err(|error| error.to_string())?;
    }
    Ok(Report::new(scenario, &law.name(), &mut run, &mut oracle))
}
