//! What a scenario file says, checked before anything runs.

use std::{fs, path::Path, str::FromStr};

use serde::{Deserialize, Deserializer};

/// What went wrong with a scenario file, in one line.
pub(crate) type Invalid = String;

/// Reads and checks the scenarios of `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<Scenario>, Invalid> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Scenario>, Invalid> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    for (nth, scenario) in file.scenario.iter().enumerate() {
        let name = &scenario.name;
        scenario
            .check()
            .map_err(|error| format!("{name}: {error}"))?;
        if file.scenario[..nth].iter().any(|other| other.name == *name) {
            return Err(format!("{name}: this name is used twice"));
        }
    }
    Ok(file.scenario)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: Vec<Scenario>,
}

/// One server, its callers, and how long they run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Unique, in kebab-case.
    pub(crate) name: String,
    pub(crate) model: Model,
    /// Requests per window; requests in flight for [`Model::Concurrency`].
    pub(crate) limit: f64,
    #[serde(default = "one")]
    pub(crate) window_s: f64,
    /// Depth of a token bucket; `limit` unless given.
    pub(crate) burst: Option<f64>,
    #[serde(default)]
    pub(crate) phase_s: f64,
    #[serde(default, deserialize_with = "from_str")]
    pub(crate) hint: Hint,
    #[serde(default)]
    pub(crate) rejected_costs: bool,
    #[serde(default)]
    pub(crate) fields: Fields,
    /// Concurrent callers of each replica, where the demand is saturating.
    #[serde(default = "callers")]
    pub(crate) callers: usize,
    #[serde(default, deserialize_with = "from_str")]
    pub(crate) demand: Demand,
    #[serde(default = "rtt")]
    pub(crate) rtt_ms: f64,
    #[serde(default = "jitter")]
    pub(crate) rtt_jitter: f64,
    #[serde(default = "rtt")]
    pub(crate) service_ms: f64,
    #[serde(default = "replica")]
    pub(crate) replicas: usize,
    /// From each instant on, the quota is `limit × factor`.
    #[serde(default)]
    pub(crate) changes: Vec<(f64, f64)>,
    #[serde(default, deserialize_with = "others")]
    pub(crate) others: Others,
    #[serde(default = "duration")]
    pub(crate) duration_s: f64,
    #[serde(default = "warmup")]
    pub(crate) warmup_s: f64,
}

fn one() -> f64 {
    1.0
}
fn callers() -> usize {
    64
}
fn rtt() -> f64 {
    100.0
}
fn jitter() -> f64 {
    0.1
}
fn replica() -> usize {
    1
}
fn duration() -> f64 {
    14_400.0
}
fn warmup() -> f64 {
    1_800.0
}

/// How the server counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Model {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
    Concurrency,
}

/// Which fields every answer carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fields {
    #[default]
    None,
    Draft,
}

/// What a rejection says of the wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Hint {
    /// The true wait, rounded up to whole seconds.
    #[default]
    Ceil,
    /// The true wait in decimal seconds.
    Exact,
    /// The true instant as an HTTP-date, with a `Date` beside it.
    Date,
    /// As `Date`, both off by this many seconds.
    DateSkewed(f64),
    Zero,
    Constant(f64),
    Random(f64, f64),
    Absent,
}

impl FromStr for Hint {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let unknown = || {
            format!(
                "hint {text:?} is none of ceil, exact, date, date-skewed:S, zero, constant:S, random:LO..HI, absent"
            )
        };
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        match (word, rest) {
            ("ceil", "") => Ok(Self::Ceil),
            ("exact", "") => Ok(Self::Exact),
            ("date", "") => Ok(Self::Date),
            ("zero", "") => Ok(Self::Zero),
            ("absent", "") => Ok(Self::Absent),
            ("date-skewed", secs) => Ok(Self::DateSkewed(number(secs, f64::MIN)?)),
            ("constant", secs) => Ok(Self::Constant(number(secs, 0.0)?)),
            ("random", range) => {
                let (low, high) = range.split_once("..").ok_or_else(unknown)?;
                let low = number(low, 0.0)?;
                Ok(Self::Random(low, number(high, low)?))
            }
            _ => Err(unknown()),
        }
    }
}

/// When callers want something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Demand {
    /// Each caller sends its next request when the last is answered.
    #[default]
    Saturating,
    /// Single calls, this many a second.
    Poisson(f64),
    /// So many calls at once, every so many seconds.
    Bursts(usize, f64),
}

impl FromStr for Demand {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let unknown = || format!("demand {text:?} is none of saturating, poisson:R, bursts:N/P");
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        match (word, rest) {
            ("saturating", "") => Ok(Self::Saturating),
            ("poisson", rate) => Ok(Self::Poisson(number(rate, 1e-3)?)),
            ("bursts", rest) => {
                let (calls, period) = rest.split_once('/').ok_or_else(unknown)?;
                let calls = calls.parse().map_err(|_| unknown())?;
                Ok(Self::Bursts(calls, number(period, 1e-3)?))
            }
            _ => Err(unknown()),
        }
    }
}

/// The share of the quota that strangers use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Others {
    Share(f64),
    /// `low` and `high` by turns, each for half a period.
    Square {
        low: f64,
        high: f64,
        period_s: f64,
    },
}

impl Default for Others {
    fn default() -> Self {
        Self::Share(0.0)
    }
}

impl Others {
    pub(crate) fn share(self, secs: f64) -> f64 {
        match self {
            Self::Share(share) => share,
            Self::Square {
                low,
                high,
                period_s,
            } => {
                if secs.rem_euclid(period_s) < period_s / 2.0 {
                    low
                } else {
                    high
                }
            }
        }
    }
}

impl FromStr for Others {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let square = text.strip_prefix("square:").map(|rest| rest.split('/'));
        let parts: Vec<&str> = square.into_iter().flatten().collect();
        let [low, high, period] = parts[..] else {
            return Err(format!(
                "others {text:?} is neither a share nor square:LO/HI/PERIOD_S"
            ));
        };
        Ok(Self::Square {
            low: share(number(low, 0.0)?)?,
            high: share(number(high, 0.0)?)?,
            period_s: number(period, 1e-3)?,
        })
    }
}

fn share(share: f64) -> Result<f64, Invalid> {
    if share < 1.0 {
        Ok(share)
    } else {
        Err(format!("others use {share}, but a share is below 1"))
    }
}

fn number(text: &str, least: f64) -> Result<f64, Invalid> {
    let number: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number"))?;
    if number.is_finite() && number >= least {
        Ok(number)
    } else {
        Err(format!("{number} must be at least {least}"))
    }
}

fn from_str<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err = Invalid>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn others<'de, D: Deserializer<'de>>(from: D) -> Result<Others, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a share, or square:LO/HI/PERIOD_S")]
    enum Either {
        Number(f64),
        Text(String),
    }
    match Either::deserialize(from)? {
        Either::Number(number) if number >= 0.0 => share(number).map(Others::Share),
        Either::Number(number) => Err(format!("others {number} is negative")),
        Either::Text(text) => text.parse(),
    }
    .map_err(serde::de::Error::custom)
}

// ===== impl Scenario =====

impl Scenario {
    /// The depth of the bucket: `burst`, or the limit, at least one request.
    pub(crate) fn depth(&self) -> f64 {
        self.burst.unwrap_or(self.limit).max(1.0)
    }

    /// The share of `limit` that is left for the callers at `secs`.
    pub(crate) fn factor(&self, secs: f64) -> f64 {
        let changes = self.changes.iter().rev();
        let factor = changes
            .filter(|(at, _)| *at <= secs)
            .map(|(_, factor)| *factor)
            .next();
        factor.unwrap_or(1.0) * (1.0 - self.others.share(secs))
    }

    /// How many requests a second the callers may have served at `secs`.
    pub(crate) fn quota(&self, secs: f64) -> f64 {
        let per_second = match self.model {
            Model::Concurrency => self.limit / (self.service_ms / 1000.0),
            _ => self.limit / self.window_s,
        };
        per_second * self.factor(secs)
    }

    fn check(&self) -> Result<(), Invalid> {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(kebab) {
            return Err("a name is written in kebab-case".into());
        }
        let positive = [
            ("limit", self.limit),
            ("window_s", self.window_s),
            ("burst", self.depth()),
            ("rtt_ms", self.rtt_ms),
            ("service_ms", self.service_ms),
            ("duration_s", self.duration_s),
        ];
        for (field, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{field} is {value}, but must be above zero"));
            }
        }
        if !(0.0..1.0).contains(&self.rtt_jitter) {
            return Err(format!("rtt_jitter is {}, not a share", self.rtt_jitter));
        }
        if !(0.0..self.duration_s).contains(&self.warmup_s) {
            return Err("warmup_s must be within the duration".into());
        }
        if self.callers == 0 || self.replicas == 0 {
            return Err("there must be at least one caller and one replica".into());
        }
        let sorted = self.changes.is_sorted_by(|(a, _), (b, _)| a < b);
        let usable = |(at, factor): &(f64, f64)| *at >= 0.0 && *factor > 0.0 && factor.is_finite();
        if !sorted || !self.changes.iter().all(usable) {
            return Err("changes go forward in time, each to a factor above zero".into());
        }
        if !self.phase_s.is_finite() {
            return Err("phase_s must be a number".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(lines: &str) -> Result<Scenario, Invalid> {
        let text = format!("[[scenario]]\nname = \"a\"\nmodel = \"token-bucket\"\n{lines}");
        parse(&text).map(|mut all| all.remove(0))
    }

    #[test]
    fn defaults_are_those_of_the_form() {
        let scenario = one("limit = 50").unwrap();
        assert_eq!(scenario.depth(), 50.0);
        assert_eq!((scenario.callers, scenario.replicas), (64, 1));
        assert_eq!(
            (scenario.hint, scenario.demand),
            (Hint::Ceil, Demand::Saturating)
        );
        assert_eq!(scenario.duration_s, 14_400.0);
    }

    #[test]
    fn what_is_unknown_or_impossible_is_a_clear_error() {
        for (lines, word) in [
            ("limit = 50\nlimmit = 1", "limmit"),
            ("limit = 0", "limit is 0"),
            ("limit = 1\nhint = \"soon\"", "none of ceil"),
            ("limit = 1\nhint = \"random:9..3\"", "at least 9"),
            ("limit = 1\nothers = 1.5", "below 1"),
            ("limit = 1\nothers = \"square:0.1/0.2\"", "PERIOD_S"),
            ("limit = 1\nchanges = [[9, 1], [3, 1]]", "forward"),
            ("limit = 1\nwarmup_s = 1e9", "warmup_s"),
            ("limit = nan", "limit is NaN"),
        ] {
            let error = one(lines).unwrap_err();
            assert!(error.contains(word), "{lines}: {error}");
        }
    }

    #[test]
    fn strangers_and_changes_leave_a_share() {
        let scenario =
            one("limit = 100\nchanges = [[10, 0.5]]\nothers = \"square:0.2/0.4/20\"").unwrap();
        assert_eq!(scenario.quota(5.0), 80.0);
        assert_eq!(scenario.quota(12.0), 30.0);
    }
}
