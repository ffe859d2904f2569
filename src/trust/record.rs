//! What is kept of one scope once it was refused.

use std::time::Duration;

use super::{
    Bounds, Category, Observed, Reading, Sent,
    episode::{Ceiling, Episode},
    observation::{Observation, Seconds, Source, Window, seconds_of},
    recovery::Recovery,
};
use crate::{time::Instant, verdict::Hint};

/// Everything in a scope's [`Trust`](super::Trust).
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    window: Window,
    /// How long episodes last where no hint says so.
    recovery: Option<Recovery>,
    /// How long they last where the hint says longer.
    ceiling: Option<Ceiling>,
    /// When bans were last seen to be lengthened for whoever comes early.
    escalated: Option<u32>,
    /// The median ratio that was last told of.
    ratio: Option<Seconds>,
    skew: Option<i64>,
    episode: Option<Box<Episode>>,
}

/// What is known of a scope's hints, as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TrustSnapshot {
    /// How far its newest source of hints is believed.
    pub category: Category,
    /// Observations of the last 24 hours, at most 20.
    pub observations: usize,
    /// The median of measured ÷ asked; one is a perfectly truthful server.
    pub median_ratio: Option<f64>,
    /// How long episodes last where no hint says so.
    pub learned_recovery: Option<Duration>,
    /// How long they last where the hint says longer.
    pub learned_ceiling: Option<Duration>,
    /// Seconds by which the local wall clock is ahead of the server's.
    pub clock_skew: Option<i64>,
}

impl Record {
    pub(super) fn throttle(
        &mut self,
        at: Reading,
        sent: Sent,
        hint: Option<&Hint>,
        status: Option<u16>,
    ) {
        self.forget(at.now);
        self.skew = hint.and_then(Hint::observed_skew).or(self.skew);
        match &mut self.episode {
            Some(episode) if !episode.is_broken_off(at, sent) => {
                if episode.refuse(at.now, sent, hint) {
                    self.escalated = Some(Observation::stamp(at.now));
                }
            }
            // Nothing was served since, so no promise is believed more.
            Some(episode) => {
                let broken = episode.is_broken() || episode.breaks(sent);
                **episode = Episode::new(at, hint, status, broken);
            }
            None => self.episode = Some(Box::new(Episode::new(at, hint, status, false))),
        }
    }

    /// Forgets what is older than a day; the window does so by itself.
    fn forget(&mut self, now: Instant) {
        self.recovery.take_if(|learned| !learned.is_fresh(now));
        self.ceiling
            .take_if(|ceiling| !ceiling.recovery.is_fresh(now));
        self.escalated
            .take_if(|at| !Observation::is_fresh(*at, now));
    }

    pub(super) fn accept(&mut self, at: Reading, sent: Sent) -> Option<Observed> {
        let episode = self.episode.take_if(|episode| episode.is_ended_by(sent))?;
        let shows = !episode.is_broken_off(at, sent);
        shows.then(|| self.observe(*episode, at.now, sent))
    }

    pub(super) const fn is_observing(&self) -> bool {
        self.episode.is_some()
    }

    pub(super) fn snapshot(&self, now: Instant) -> TrustSnapshot {
        let window = &self.window;
        let source = window.newest_source(now);
        let served = |learned: &Recovery| learned.is_fresh(now).then(|| learned.served());
        let recovery = self.recovery.as_ref();
        let ceiling = self.ceiling.as_ref();
        TrustSnapshot {
            category: source.map_or(Category::Unknown, |source| window.category(source, now)),
            observations: window.len(now),
            median_ratio: window.median_ratio(now).map(f64::from),
            learned_recovery: recovery
                .filter(|learned| learned.is_proven())
                .and_then(served),
            learned_ceiling: ceiling.and_then(|ceiling| served(&ceiling.recovery)),
            clock_skew: self.skew,
        }
    }

    /// How far `hint` is believed as of `now`, and the time from now in which
    /// earlier episodes had ended.
    pub(super) fn belief(
        &self,
        now: Instant,
        hint: Option<&Hint>,
        bounds: &Bounds,
    ) -> (Category, Option<Duration>) {
        let source = hint.map_or(Source::NONE, |hint| Source::named(hint.source()));
        let category = self.window.category(source, now);
        let episode = self.episode.as_deref();
        let elapsed = episode.map_or(Duration::ZERO, |episode| now - episode.began());
        let left = |learned: &Recovery| Some(learned.next(elapsed)?.saturating_sub(elapsed));

        let Some(hint) = hint.filter(|hint| !hint.wait().is_zero()) else {
            let learned = self.recovery.as_ref();
            let learned = learned.filter(|learned| learned.is_proven());
            return (category, learned.and_then(left));
        };
        match category {
            Category::Truthful | Category::Unknown if episode.is_some_and(Episode::is_broken) => {
                (Category::Unreliable, None)
            }
            Category::Truthful if hint.wait() < bounds.min_pause => {
                let floor = seconds_of(bounds.min_pause);
                let kept = self.window.keeps_short_hints(source, floor, now);
                (if kept { category } else { Category::Unknown }, None)
            }
            Category::ConstantOverstated => {
                let ceiling = self.ceiling.as_ref();
                let ceiling = ceiling.filter(|ceiling| ceiling.is_for(hint));
                // Another value is not proven wrong; and where the ceiling
                // itself was refused, neither is this one.
                match ceiling.and_then(|ceiling| left(&ceiling.recovery)) {
                    Some(left) => (category, Some(left)),
                    None => (Category::Unknown, None),
                }
            }
            _ => (category, None),
        }
    }

    /// The hint of the running episode: its category, source and length.
    fn asked(&self, now: Instant) -> Option<(Category, Source, Seconds)> {
        let hint = self.episode.as_ref()?.hint()?;
        let source = Source::named(hint.source());
        let category = self.window.category(source, now);
        Some((category, source, seconds_of(hint.wait())))
    }

    /// Whether a probe of the running pause would only do harm.
    pub(super) fn spares(&self, now: Instant) -> bool {
        match self.asked(now) {
            None | Some((Category::Unreliable | Category::ConstantOverstated, ..)) => false,
            Some((_, source, asked)) => {
                self.escalated.is_some() || self.window.confirms(source, asked, now)
            }
        }
    }

    /// The next time to try that was learned of hints such as the running
    /// episode's, of which `elapsed` has passed.
    pub(super) fn ceiling_beyond(&self, now: Instant, elapsed: Duration) -> Option<Duration> {
        let (category, _, asked) = self.asked(now)?;
        let ceiling = self.ceiling.as_ref()?;
        let applies = ceiling.is_near(asked, category);
        ceiling.recovery.next(elapsed).filter(|_| applies)
    }

    /// Adds what an ended episode shows.
    fn observe(&mut self, episode: Episode, now: Instant, sent: Sent) -> Observed {
        let (refused, served) = episode.measured(sent);
        let source = episode.source();
        let seen = Observation {
            at: Observation::stamp(now),
            source,
            asked: seconds_of(episode.hint().map_or(Duration::ZERO, Hint::wait)),
            refused: seconds_of(refused),
            served: seconds_of(served),
        };
        let was = self.window.category(source, now);
        self.learn(&seen, was);
        self.window.push(now, seen);
        let category = self.window.category(source, now);
        Observed {
            status: episode.status(),
            hint: episode.into_hint(),
            refused,
            served,
            truthful: seen.is_truthful(),
            category,
            was: Some(was).filter(|was| *was != category),
            ratio: self.ratio_moved(now),
        }
    }

    fn learn(&mut self, seen: &Observation, category: Category) {
        match (&mut self.recovery, &mut self.ceiling) {
            (Some(learned), _) if !seen.is_hinted() => learned.learn(seen),
            (None, _) if !seen.is_hinted() => self.recovery = Some(Recovery::new(seen)),
            (_, Some(ceiling)) if ceiling.is_near(seen.asked, category) => {
                if seen.is_early() {
                    ceiling.learn(seen);
                } else if ceiling.recovery.is_refuted_by(seen) {
                    self.ceiling = None;
                }
            }
            _ if seen.is_early() => self.ceiling = Some(Ceiling::new(seen)),
            _ => {}
        }
    }

    /// The median ratio before and after, once it has moved by more than a
    /// factor of two since it was last told of.
    fn ratio_moved(&mut self, now: Instant) -> Option<(f64, f64)> {
        let ratio = self.window.median_ratio(now)?;
        let told = *self.ratio.get_or_insert(ratio);
        if (told / 2.0..=told * 2.0).contains(&ratio) {
            return None;
        }
        self.ratio = Some(ratio);
        Some((f64::from(told), f64::from(ratio)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_costs_a_few_hundred_bytes_whatever_it_has_seen() {
        let window = 20 * size_of::<Observation>();
        assert!(size_of::<Record>() + window <= 560);
        // The longest raw value of a hint is kept beside it.
        assert!(size_of::<Episode>() + 64 <= 240);
    }

    #[test]
    fn whatever_a_server_sends_it_is_no_more() {
        let mut record = Record::default();
        let raw = vec![0xff; 10_000];
        for n in 0..1_000_u64 {
            let at = |secs| Reading {
                now: Instant::from_nanos((n * 100 + secs) * 1_000_000_000),
                wall: std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(n * 100 + secs),
            };
            let sent = |secs| Sent {
                at: at(secs).now,
                waited: true,
            };
            let hint = Hint::new(Duration::from_secs(n), n.to_string()).raw(&raw);
            for second in 0..50 {
                record.throttle(at(second), sent(second), Some(&hint), Some(429));
            }
            let kept = record.episode.as_ref().and_then(|episode| episode.hint());
            assert!(kept.is_some_and(|hint| hint.raw_value().len() <= 64));
            record.accept(at(60), sent(60));
            assert!(record.window.capacity() <= 20);
        }
    }
}
