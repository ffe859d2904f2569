//! One host in words and figures.

use std::{fmt, time::Duration};

use tower_retry_after::{
    trust::{Category, Decision, Reason},
    verdict::Hint,
};

use crate::replay::Host;

/// Displays what is known of one host.
pub(crate) struct Report<'a>(pub(crate) &'a Host);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0;
        writeln!(f, "{}: {}", host.name, title(host))?;
        let share = 100.0 * host.refused as f64 / host.answers.max(1) as f64;
        writeln!(
            f,
            "  answers    {}, {} refused ({share:.2} %)",
            host.answers, host.refused
        )?;
        for (reason, count) in &host.ignored {
            writeln!(
                f,
                "  ignored    {count} Retry-After: {}",
                reason.replace('_', " ")
            )?;
        }
        if host.refused == 0 {
            return Ok(());
        }
        let measured = host.episodes.len();
        let dropped = host.dropped;
        writeln!(
            f,
            "  episodes   {measured} measured, {dropped} that show nothing"
        )?;
        let asked = host.episodes.iter().filter_map(|seen| seen.hint.as_ref());
        spread(f, "asked", asked.map(Hint::wait).collect())?;
        spread(
            f,
            "measured",
            host.episodes.iter().map(|seen| seen.served).collect(),
        )?;
        if let Some(ratio) = host.known.median_ratio {
            writeln!(f, "  ratio      {ratio:.3} (median of measured ÷ asked)")?;
        }
        if let Some(skew) = host.known.clock_skew.filter(|skew| *skew != 0) {
            writeln!(
                f,
                "  clock      {} s {} the server's",
                skew.abs(),
                side(skew)
            )?;
        }
        for (episode, category) in host.categories() {
            writeln!(
                f,
                "  category   {} from episode {episode} on",
                words(category)
            )?;
        }
        if let Some((hint, decision)) = &host.next {
            writeln!(f, "  the layer  {}", plan(host, hint.as_ref(), decision))?;
        }
        Ok(())
    }
}

fn title(host: &Host) -> &'static str {
    if host.refused == 0 {
        return "never refused";
    }
    match host.known.category {
        Category::Unknown => "too few episodes to tell",
        category => words(category),
    }
}

const fn words(category: Category) -> &'static str {
    match category {
        Category::Truthful => "truthful",
        Category::AlwaysZero => "always zero",
        Category::ConstantOverstated => "constant, and overstated",
        Category::Unreliable => "unreliable",
        Category::Absent => "no hints",
        _ => "unknown",
    }
}

const fn side(skew: i64) -> &'static str {
    if skew < 0 { "behind" } else { "ahead of" }
}

/// Least, median and most.
fn spread(f: &mut fmt::Formatter<'_>, name: &str, mut waits: Vec<Duration>) -> fmt::Result {
    waits.sort();
    let (Some(least), Some(most)) = (waits.first(), waits.last()) else {
        return Ok(());
    };
    let median = waits[waits.len() / 2];
    writeln!(
        f,
        "  {name:<10} {} to {}, median {}",
        Secs(*least),
        Secs(*most),
        Secs(median),
    )
}

/// What would be done about a refusal.
fn plan(host: &Host, hint: Option<&Hint>, decision: &Decision) -> String {
    let asked = hint.map_or_else(String::new, |hint| {
        format!("{:?} asks for {}; ", hint.raw_value(), Secs(hint.wait()))
    });
    let tried = |learned: Option<Duration>| {
        let learned = Secs(learned.unwrap_or(decision.wait));
        format!("is tried: earlier episodes had ended after {learned}")
    };
    let why = match decision.reason {
        Reason::Obeyed => "is waited for, to the letter".into(),
        Reason::NoHint => "is waited, doubling while it is refused: there is no hint".into(),
        Reason::LearnedRecovery => tried(host.known.learned_recovery),
        Reason::ZeroIgnored => "is waited: a hint of zero tells nothing".into(),
        Reason::RaisedToMinPause => "is waited, the shortest pause there is".into(),
        Reason::RaisedToBackoff => "is waited: the hint is shorter than the own backoff".into(),
        Reason::CutToCeiling => tried(host.known.learned_ceiling),
        _ => "is waited".into(),
    };
    let wait = Secs(decision.wait);
    format!("{asked}{wait} {why} ({})", decision.reason.as_str())
}

/// Seconds, with no more digits than say something.
struct Secs(Duration);

impl fmt::Display for Secs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs_f64();
        if secs > 1e9 {
            f.write_str("for ever")
        } else if secs.fract() == 0.0 || secs >= 100.0 {
            write!(f, "{secs:.0} s")
        } else {
            write!(f, "{secs:.1} s")
        }
    }
}
