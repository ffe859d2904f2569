//! What a scope of the layer would have learned from the same answers.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use http::Response;
use tower_retry_after::{
    classifier::{Classifier as _, HttpClassifier, Phase, Receipt},
    time::Instant,
    trust::{Bounds, Category, Decision, Observed, Reading, Sent, Trust, TrustSnapshot},
    verdict::{Hint, Verdict},
};

use crate::fields::Answer;

/// One host's answers, and what follows from them.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) answers: usize,
    pub(crate) refused: usize,
    /// Answers with a hint that is not followed, whoever sends it.
    pub(crate) ignored: BTreeMap<&'static str, usize>,
    pub(crate) episodes: Vec<Observed>,
    /// Episodes that showed nothing.
    pub(crate) dropped: usize,
    pub(crate) known: TrustSnapshot,
    /// The newest hint, and what would be done about it.
    pub(crate) next: Option<(Option<Hint>, Decision)>,
}

impl Host {
    /// The categories in their order, each with the episode that brought it.
    pub(crate) fn categories(&self) -> impl Iterator<Item = (usize, Category)> {
        let numbered = self.episodes.iter().enumerate();
        numbered.filter_map(|(n, seen)| seen.was.map(|_| (n + 1, seen.category)))
    }
}

/// Plays all answers to one scope for each host, in the order of their times.
pub(crate) fn replay(mut answers: Vec<Answer>, in_flight: Duration) -> Vec<Host> {
    answers.sort_by_key(|answer| answer.time);
    let origin = answers
        .first()
        .map_or(SystemTime::UNIX_EPOCH, |answer| answer.time);
    let mut hosts: BTreeMap<String, Player> = BTreeMap::new();
    for answer in answers {
        let player = hosts.entry(answer.host.clone());
        player
            .or_insert_with(|| Player::new(origin))
            .play(answer, in_flight);
    }
    let ended = hosts.into_iter().map(|(name, player)| player.end(name));
    ended.collect()
}

struct Player {
    origin: SystemTime,
    now: Instant,
    trust: Trust,
    host: Host,
    bounds: Bounds,
    /// Nobody who is waiting waits for longer than this.
    patient_until: Instant,
    /// When the last refusal was answered.
    refused_at: Option<Instant>,
    hint: Option<Hint>,
}

impl Player {
    fn new(origin: SystemTime) -> Self {
        Self {
            origin,
            now: Instant::ZERO,
            trust: Trust::new(),
            host: Host::default(),
            bounds: Bounds::default(),
            patient_until: Instant::ZERO,
            refused_at: None,
            hint: None,
        }
    }

    fn play(&mut self, answer: Answer, in_flight: Duration) {
        self.now = Instant::ZERO + answer.time.duration_since(self.origin).unwrap_or_default();
        let verdict = judge(&answer);
        self.host.answers += 1;
        if let Some(ignored) = verdict.ignored() {
            *self
                .host
                .ignored
                .entry(ignored.reason.as_str())
                .or_default() += 1;
        }
        let at = Reading {
            now: self.now,
            wall: answer.time,
        };
        let took = answer.duration.unwrap_or_default();
        let sent = Sent {
            at: Instant::from_nanos(self.now.as_nanos().saturating_sub(nanos(took))),
            // A log does not tell who was waiting. Who comes within a minute of
            // the instant asked for may have been.
            waited: self.now <= self.patient_until,
        };
        if let Some(throttle) = verdict.throttle() {
            self.host.refused += 1;
            let asked = throttle.hint.as_ref().map_or(Duration::ZERO, Hint::wait);
            self.patient_until = self.now + asked + self.bounds.max_pause;
            self.refused_at = Some(self.now);
            self.trust.on_throttle(
                at,
                sent,
                throttle.hint.as_ref(),
                Some(answer.status.as_u16()),
            );
            self.hint.clone_from(&throttle.hint);
        } else if verdict.is_accepted() && self.is_after_refusal(&answer, in_flight) {
            let was_observing = self.trust.is_observing();
            match self.trust.on_accepted(at, sent) {
                Some(seen) => self.host.episodes.push(seen),
                None if was_observing && !self.trust.is_observing() => self.host.dropped += 1,
                None => {}
            }
        }
    }

    /// Whether the request was surely sent after the last refusal.
    fn is_after_refusal(&self, answer: &Answer, in_flight: Duration) -> bool {
        let took = answer.duration.unwrap_or(in_flight);
        let refused = self.refused_at.is_some_and(|at| self.now - at > took);
        refused || self.refused_at.is_none()
    }

    fn end(mut self, name: String) -> Host {
        self.host.name = name;
        self.host.known = self.trust.snapshot(self.now);
        if self.host.refused > 0 {
            let hint = self.hint.take();
            let at = Reading {
                now: self.now,
                wall: SystemTime::UNIX_EPOCH,
            };
            let sent = Sent {
                at: self.now,
                waited: false,
            };
            // The next refusal, were it to come now and in the same words.
            let mut trust = self.trust;
            trust.on_accepted(at, sent);
            trust.on_throttle(at, sent, hint.as_ref(), None);
            let own = self.bounds.min_pause;
            let decision = trust.sanitise(self.now, hint.as_ref(), own, &self.bounds);
            self.host.next = Some((hint, decision));
        }
        self.host
    }
}

/// What the layer's general rules say of an answer.
fn judge(answer: &Answer) -> Verdict {
    let mut response = Response::new(());
    *response.status_mut() = answer.status;
    response.headers_mut().clone_from(&answer.headers);
    let (head, ()) = response.into_parts();
    let phase = HttpClassifier::new().head(&head, &Receipt::at(answer.time));
    phase.map_or(Verdict::NEUTRAL, Phase::into_verdict)
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log;

    fn hosts(text: &str) -> Vec<Host> {
        let log = log::read(text.as_bytes()).unwrap();
        assert_eq!(log.problems, []);
        replay(log.answers, Duration::from_secs(1))
    }

    #[test]
    fn the_sample_is_seen_through() {
        let hosts = hosts(include_str!("sample.csv"));
        let known = hosts.iter().map(|host| (&*host.name, host.known.category));
        let expected = [
            ("always-zero.example", Category::AlwaysZero),
            ("an-hour.example", Category::ConstantOverstated),
            ("api.truthful.example", Category::Truthful),
            ("dice.example", Category::Unreliable),
            ("no-header.example", Category::Absent),
            ("quiet.example", Category::Unknown),
        ];
        assert_eq!(known.collect::<Vec<_>>(), expected);
        assert_eq!(hosts[5].ignored, BTreeMap::from([("not_a_throttle", 1)]));
    }

    #[test]
    fn the_order_of_the_lines_does_not_matter() {
        let text = include_str!("sample.csv");
        let (header, lines) = text.split_once('\n').unwrap();
        let backwards: Vec<_> = lines.lines().rev().collect();
        let backwards = format!("{header}\n{}\n", backwards.join("\n"));
        let known = |text| {
            hosts(text)
                .into_iter()
                .map(|host| host.known)
                .collect::<Vec<_>>()
        };
        assert_eq!(known(&backwards), known(text));
    }

    #[test]
    fn a_success_that_was_under_way_ends_no_episode() {
        let text = "time,status,retry-after\n100,429,60\n100.5,200,\n160,200,\n";
        let host = hosts(text).remove(0);
        assert_eq!(host.episodes.len(), 1);
        assert_eq!(host.episodes[0].served, Duration::from_secs(60));
        let text =
            "time,status,retry-after,duration_ms\n100,429,60,20\n100.5,200,,900\n160,200,,10\n";
        let host = hosts(text).remove(0);
        assert_eq!(host.episodes[0].served, Duration::from_millis(59_990));
    }

    #[test]
    fn a_night_without_requests_shows_nothing() {
        let text = "time,status,retry-after\n100,429,60\n30000,200,\n";
        let host = hosts(text).remove(0);
        assert_eq!((host.episodes.len(), host.dropped), (0, 1));
    }
}
