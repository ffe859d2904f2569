//! The layer before servers that lie, beside two other ways of waiting.
//!
//! Each row is a server; `cargo test --test trust -- --nocapture` prints the
//! table: for each of the three ways the seconds for which nobody was served
//! although the server would have, the sends in vain, both for each exhaustion
//! of the quota, and the longest such time. With eight callers under way some
//! eight sends are in vain unless a law paces them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use httpdate::fmt_http_date;
use rand::{RngExt as _, rngs::StdRng};
use tower_retry_after::trust::Category;

use crate::{
    client::seconds,
    ways::{self, Run},
    world::{CALLERS, Cost, Exhaustion, Row, Server, between},
};

const HOUR: Duration = Duration::from_secs(3600);

type Fields = Vec<(&'static str, String)>;

/// A row made of two functions.
struct Rule<T, F> {
    takes: T,
    fields: F,
    lengthens: f64,
}

impl<T, F> Row for Rule<T, F>
where
    T: Fn(u32, f64, &mut StdRng) -> f64 + Send + Sync + 'static,
    F: Fn(Exhaustion, SystemTime, &mut StdRng) -> Fields + Send + Sync + 'static,
{
    fn takes(&self, nth: u32, at: f64, rng: &mut StdRng) -> f64 {
        (self.takes)(nth, at, rng)
    }

    fn fields(&self, now: Exhaustion, wall: SystemTime, rng: &mut StdRng) -> Fields {
        (self.fields)(now, wall, rng)
    }

    fn lengthens(&self) -> f64 {
        self.lengthens
    }
}

fn row<T, F>(takes: T, fields: F) -> Arc<dyn Row>
where
    T: Fn(u32, f64, &mut StdRng) -> f64 + Send + Sync + 'static,
    F: Fn(Exhaustion, SystemTime, &mut StdRng) -> Fields + Send + Sync + 'static,
{
    let lengthens = 1.0;
    Arc::new(Rule {
        takes,
        fields,
        lengthens,
    })
}

/// Always the same number of seconds.
fn always(secs: f64) -> impl Fn(u32, f64, &mut StdRng) -> f64 {
    move |_, _, _| secs
}

/// From one second to `most`, whatever comes.
fn up_to(most: f64) -> impl Fn(u32, f64, &mut StdRng) -> f64 {
    move |_, _, rng| between(rng, 1.0, most)
}

fn retry_after(value: impl ToString) -> Fields {
    vec![("retry-after", value.to_string())]
}

/// A server that asks for the same wait always.
fn constant(asked: u64, takes: f64) -> Arc<dyn Row> {
    row(always(takes), move |_, _, _| retry_after(asked))
}

fn truthful(now: Exhaustion) -> Fields {
    retry_after(now.left.ceil())
}

/// A date, by a clock that is `skew` seconds off: the whole second after the
/// instant that is meant.
fn date(now: Exhaustion, wall: SystemTime, skew: i64, with_date: bool) -> Fields {
    let by = Duration::from_secs(skew.unsigned_abs());
    let clock = if skew < 0 { wall - by } else { wall + by };
    let until = clock + seconds(now.left) + Duration::from_nanos(999_999_999);
    let mut fields = retry_after(fmt_http_date(until));
    fields.extend(with_date.then(|| ("date", fmt_http_date(clock))));
    fields
}

fn unix(wall: SystemTime) -> f64 {
    wall.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

/// `wall` as of a run that began on the second: dates are rounded, and no run is
/// to depend on when it was made.
fn on_the_second(now: Exhaustion, wall: SystemTime) -> SystemTime {
    let began = (unix(wall) - now.at).floor();
    SystemTime::UNIX_EPOCH + seconds(began + now.at)
}

/// Runs one server three ways, and prints a line of the table.
///
/// Each way has a runtime of its own: a clock that one run has moved would be
/// the next one's skew.
fn compare(name: &str, minutes: u32, row: Arc<dyn Row>) -> [Run; 3] {
    let lasts = HOUR / 60 * minutes;
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap()
    };
    let server = || Server::new(Arc::clone(&row), 1);
    let runs = [
        runtime().block_on(async { ways::to_the_letter(server(), lasts).await }),
        runtime().block_on(async { ways::by_a_plain_rule(server(), lasts).await }),
        runtime().block_on(async { ways::by_trust(server(), lasts).await }),
    ];
    let figures = runs.each_ref().map(|Run { cost, .. }| {
        let (wasted, refused, longest) = (cost.wasted(), cost.refusals(), cost.longest);
        format!("{wasted:8.2} {refused:8.2} {longest:6.0}")
    });
    let categories = runs[2].categories.iter();
    let categories: Vec<_> = categories
        .map(|(nth, category)| format!("{} from {nth}", category.as_str()))
        .collect();
    let known = categories.join(", ");
    println!("{name:24} {} | {known}", figures.join(" | "));
    runs
}

/// How many refusals within one second are a hot loop.
const HOT: u32 = 3 * CALLERS as u32;

/// By how much a hint in whole seconds is too long: by less than this, as the
/// second falls.
const ROUNDED: f64 = 1.0;

/// Whether trust is the best of the three, or within 5 % of it, in both
/// figures, and never stands still for an hour nor runs hot.
///
/// A way that runs hot wastes no time, and is no way.
fn assert_best(runs: &[Run; 3]) {
    let [.., Run { cost: this, .. }] = runs;
    let others = || runs.iter().map(|run| &run.cost);
    let sane = others().filter(|cost| cost.busiest < HOT);
    let wasted = sane.map(Cost::wasted).fold(f64::MAX, f64::min);
    let refusals = others().map(Cost::refusals).fold(f64::MAX, f64::min);
    assert!(
        this.wasted() <= wasted * 1.05 + ROUNDED,
        "{} of {wasted}",
        this.wasted()
    );
    assert!(
        this.refusals() <= refusals * 1.05,
        "{} of {refusals}",
        this.refusals()
    );
    assert!(this.busiest < HOT && this.longest < 120.0, "{this:?}");
}

fn assert_known(runs: &[Run; 3], expected: &[Category]) {
    let known = runs[2].categories.iter().map(|(_, category)| *category);
    assert_eq!(known.collect::<Vec<_>>(), expected);
}

#[test]
fn a_truthful_server_is_obeyed() {
    let runs = compare(
        "truthful 1-120",
        180,
        row(up_to(120.0), |now, _, _| truthful(now)),
    );
    assert_best(&runs);
    assert_known(&runs, &[Category::Truthful]);
}

#[test]
fn a_zero_does_no_harm() {
    let runs = compare("always 0", 60, constant(0, 20.0));
    assert_best(&runs);
    assert_known(&runs, &[Category::AlwaysZero]);
}

#[test]
fn an_hour_for_a_window_of_twenty_seconds_stalls_nobody() {
    let runs = compare("always 3600 on 20 s", 180, constant(3600, 20.0));
    assert_best(&runs);
    assert_known(&runs, &[Category::ConstantOverstated]);
}

#[test]
fn five_minutes_for_a_window_of_twenty_seconds_stall_nobody() {
    let runs = compare("always 300 on 20 s", 60, constant(300, 20.0));
    assert_best(&runs);
    assert_known(&runs, &[Category::ConstantOverstated]);
}

#[test]
fn what_is_overstated_below_the_ceiling_is_obeyed_as_everybody_does() {
    let runs = compare("always 60 on 20 s", 180, constant(60, 20.0));
    assert_best(&runs);
    assert_known(&runs, &[Category::Truthful]);
}

#[test]
fn a_date_in_the_past_is_a_zero() {
    let past = |_, wall: SystemTime, _: &mut StdRng| retry_after(fmt_http_date(wall - HOUR));
    let runs = compare("date in the past", 15, row(always(20.0), past));
    assert_best(&runs);
    assert_known(&runs, &[Category::AlwaysZero]);
}

#[test]
fn a_skewed_date_with_a_date_beside_it_is_truthful() {
    for (name, skew) in [
        ("date +5 min, with Date", 300),
        ("date -5 min, with Date", -300),
    ] {
        let dated = move |now: Exhaustion, wall, _: &mut StdRng| {
            date(now, on_the_second(now, wall), skew, true)
        };
        let runs = compare(name, 20, row(up_to(55.0), dated));
        assert_best(&runs);
        assert_known(&runs, &[Category::Truthful]);
        let seen = runs[2].snapshot.as_ref().unwrap().trust.clock_skew.unwrap();
        // The server's clock began on the second, and its dates are rounded down:
        // together it is up to two seconds behind.
        assert!((0..=2).contains(&(seen + skew)), "{seen}");
    }
}

#[test]
fn a_skewed_date_alone_is_seen_through() {
    let ahead = |now, wall, _: &mut StdRng| date(now, wall, 300, false);
    let runs = compare("date +5 min, no Date", 60, row(always(20.0), ahead));
    assert_best(&runs);
    assert_known(&runs, &[Category::ConstantOverstated]);
    let behind = |now, wall, _: &mut StdRng| date(now, wall, -300, false);
    let runs = compare("date -5 min, no Date", 15, row(always(20.0), behind));
    assert_best(&runs);
    assert_known(&runs, &[Category::AlwaysZero]);
}

#[test]
fn random_hints_are_seen_through() {
    let random = |_, _, rng: &mut StdRng| retry_after(rng.random_range(0..600));
    let runs = compare("random 0-600 on 30 s", 180, row(always(30.0), random));
    assert_best(&runs);
    assert_eq!(
        runs[2].snapshot.as_ref().unwrap().trust.category,
        Category::Unreliable
    );
}

#[test]
fn without_a_hint_the_time_is_learned() {
    let runs = compare("absent", 60, row(always(20.0), |_, _, _| Vec::new()));
    assert_best(&runs);
    assert_known(&runs, &[Category::Absent]);
}

#[test]
fn a_unix_time_is_an_instant() {
    let epoch = |now: Exhaustion, wall, _: &mut StdRng| retry_after((unix(wall) + now.left).ceil());
    let runs = compare("epoch seconds", 60, row(up_to(55.0), epoch));
    assert_best(&runs);
    assert_known(&runs, &[Category::Truthful]);
}

#[test]
fn a_server_that_begins_to_lie_is_found_out() {
    let hour = HOUR.as_secs_f64();
    let takes = move |_, at, rng: &mut StdRng| {
        if at < hour {
            between(rng, 1.0, 120.0)
        } else {
            20.0
        }
    };
    let lies = move |now: Exhaustion, _, _: &mut StdRng| match now.at < hour {
        true => truthful(now),
        false => retry_after(3600),
    };
    let runs = compare("truthful, then 3600", 180, row(takes, lies));
    assert_best(&runs);
    assert_known(&runs, &[Category::Truthful, Category::ConstantOverstated]);
}

#[test]
fn a_server_that_ceases_to_lie_is_believed_again() {
    let hour = HOUR.as_secs_f64();
    let takes = move |_, at, rng: &mut StdRng| {
        if at < hour {
            20.0
        } else {
            between(rng, 1.0, 55.0)
        }
    };
    let lies = move |now: Exhaustion, _, _: &mut StdRng| match now.at < hour {
        true => retry_after(3600),
        false => truthful(now),
    };
    let runs = compare("3600, then truthful", 180, row(takes, lies));
    assert_best(&runs);
    assert_known(&runs, &[Category::ConstantOverstated, Category::Truthful]);
}

#[test]
fn one_outlier_in_ten_stalls_nobody_and_changes_no_mind() {
    let mostly = |now: Exhaustion, _, _: &mut StdRng| match now.nth % 10 {
        9 => retry_after(3600),
        _ => truthful(now),
    };
    let runs = compare("one outlier in ten", 180, row(up_to(55.0), mostly));
    assert_best(&runs);
    assert_known(&runs, &[Category::Truthful]);
}

#[test]
fn a_ban_that_doubles_is_not_provoked() {
    let row = Rule {
        takes: always(90.0),
        fields: |now, _: SystemTime, _: &mut StdRng| truthful(now),
        lengthens: 2.0,
    };
    let runs = compare("bans that double", 180, Arc::new(row));
    assert_best(&runs);
    assert_known(&runs, &[Category::Truthful]);
}
