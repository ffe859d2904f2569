//! Tells what an HTTP answer means for retries, as the layer would judge it.
//!
//! ```text
//! curl -si https://api.github.com/rate_limit | cargo run --all-features \
//!     --example explain -- --url https://api.github.com/rate_limit
//! cargo run --all-features --example explain -- --cases tests/cases/responses.jsonl
//! ```
//!
//! It sends nothing: the answer is read from a file or from the standard input.

mod answer;
mod cases;
mod curl;
mod report;

use std::{
    error::Error,
    fs,
    io::{self, Read as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use http::Uri;
use tower_retry_after::classifier::providers;

use self::report::Report;

/// Tells what an HTTP answer, as `curl -i` prints it, means for retries.
#[derive(Debug, Parser)]
struct Args {
    /// The answer; the standard input if there is none.
    answer: Option<PathBuf>,

    /// What was asked for: its host tells the service.
    #[arg(long)]
    url: Option<Uri>,

    /// The service by its name, where its host does not tell it.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Judges by the general rules alone, without any profile.
    #[arg(long)]
    general: bool,

    /// Checks a file of answers whose meaning is known, one JSON object a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["answer", "url", "provider"])]
    cases: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.cases {
        Some(file) => check(file, args.general),
        None => explain(&args).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn explain(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut text = Vec::new();
    match &args.answer {
        Some(file) => text = fs::read(file)?,
        None => drop(io::stdin().lock().read_to_end(&mut text)?),
    }
    let answer = curl::read(&text, args.url.clone())?;
    if let Some(name) = &args.provider
        && providers::named(name).is_none()
    {
        return Err(format!("nobody has declared a service `{name}`").into());
    }
    let profile = answer.profile(args.provider.as_deref());
    let profile = profile.as_ref().filter(|_| !args.general);
    let verdict = answer.judge(profile, args.general);
    let verdict = &verdict;
    let answer = &answer;
    print!(
        "{}",
        Report {
            answer,
            profile,
            verdict
        }
    );
    Ok(())
}

/// Whether all cases of `file` are judged as they should be.
fn check(file: &PathBuf, general: bool) -> Result<bool, Box<dyn Error>> {
    let cases = cases::read(&fs::read_to_string(file)?)?;
    let mut failed = 0;
    for case in &cases {
        let profile = case.answer.profile(Some(&case.provider));
        let verdict = case.answer.judge(profile.as_ref(), general);
        let mismatches = case.compare(&verdict);
        failed += usize::from(!mismatches.is_empty());
        for mismatch in mismatches {
            println!("{mismatch}");
        }
    }
    println!("{} passed, {failed} failed", cases.len() - failed);
    Ok(failed == 0)
}
