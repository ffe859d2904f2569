//! What the lab reports on one scenario under one law.

use std::fmt;

use serde::Serialize;

use crate::{
    scenario::{Demand, Scenario},
    tally::{Tally, share},
};

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) scenario: String,
    pub(crate) law: String,
    pub(crate) goodput_steady: f64,
    pub(crate) goodput_total: f64,
    pub(crate) rejected_steady: f64,
    pub(crate) rejected_total: f64,
    pub(crate) converged_s: Option<f64>,
    pub(crate) early: u64,
    pub(crate) wait_p50_s: Option<f64>,
    pub(crate) wait_p99_s: Option<f64>,
    /// Only in the table.
    #[serde(skip)]
    pub(crate) oracle_p99_s: Option<f64>,
    pub(crate) fairness_callers: Option<f64>,
    pub(crate) fairness_replicas: Option<f64>,
}

impl Report {
    /// Sets the run of `law` against the oracle's.
    pub(crate) fn new(scenario: &Scenario, law: &str, run: &mut Tally, oracle: &mut Tally) -> Self {
        let goodput = |from: f64| {
            share(
                run.accepted(from, f64::MAX),
                oracle.accepted(from, f64::MAX),
            )
        };
        // Only callers that always want something can be compared.
        let callers = (scenario.demand == Demand::Saturating).then(|| jain(&run.callers));
        let replicas = (scenario.replicas > 1).then(|| jain(&run.replicas));
        Self {
            scenario: scenario.name.clone(),
            law: law.into(),
            goodput_steady: goodput(scenario.warmup_s),
            goodput_total: goodput(0.0),
            rejected_steady: run.rejected_share(scenario.warmup_s),
            rejected_total: run.rejected_share(0.0),
            converged_s: converged(scenario, run, oracle),
            early: run.early,
            fairness_callers: callers,
            fairness_replicas: replicas,
            wait_p50_s: run.percentile(0.5),
            wait_p99_s: run.percentile(0.99),
            oracle_p99_s: oracle.percentile(0.99),
        }
    }

    /// One JSON object on one line.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What stands above the columns.
pub(crate) const HEADING: &str = "\
scenario                           law          goodput   total  rejected    total  \
converged  early  wait p50     p99 (oracle)  fair: callers replicas";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = |secs: Option<f64>| secs.map_or("-".into(), |secs| format!("{secs:.2}"));
        let index = |index: Option<f64>| index.map_or("-".into(), |index| format!("{index:.3}"));
        let converged = self
            .converged_s
            .map_or("never".into(), |at| format!("{at:.0} s"));
        write!(
            f,
            "{:<34} {:<11} {:>8.4} {:>7.4} {:>9.5} {:>8.5} {:>10} {:>6} {:>9} {:>7} {:>8} {:>14} {:>8}",
            self.scenario,
            self.law,
            self.goodput_steady,
            self.goodput_total,
            self.rejected_steady,
            self.rejected_total,
            converged,
            self.early,
            secs(self.wait_p50_s),
            secs(self.wait_p99_s),
            secs(self.oracle_p99_s),
            index(self.fairness_callers),
            index(self.fairness_replicas),
        )
    }
}

/// From when on each of eleven minutes on end has 90 % of the oracle's.
///
/// Of a quota with a longer window, eleven of those: the oracle spends each at
/// once.
fn converged(scenario: &Scenario, run: &Tally, oracle: &Tally) -> Option<f64> {
    let window = scenario.window_s.max(60.0).ceil();
    let end = scenario.duration_s - window;
    let good = |from: f64| {
        from > end
            || run.accepted(from, from + window) >= 0.9 * oracle.accepted(from, from + window)
    };
    let next = |from: usize| (0..11).all(|nth| good(from as f64 + f64::from(nth) * window));
    (0..=end as usize)
        .find(|from| next(*from))
        .map(|from| from as f64)
}

/// Jain's index: 1 where all have the same, 1/n where one has everything.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    share(sum * sum, squares * shares.len() as f64)
}
