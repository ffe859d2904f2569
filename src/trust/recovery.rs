//! Learned recovery: bisecting the time after which a server serves again.

use std::time::Duration;

use super::observation::{Observation, Seconds};
use crate::time::{Instant, seconds};

/// A bracket round the time that a server's episodes take to end.
///
/// An episode tells two times from its beginning: refused still, served again.
/// The next one is tried in the middle between them, and so on, until the
/// bracket is narrow; after a try that was refused comes the time that is known
/// to work.
///
/// # When it is wrong
///
/// Every episode has its say. One that fits narrows the bracket; one that falls
/// beside it moves it, and one far off starts it anew: a quota was changed, or
/// the time differs from episode to episode and there is nothing to learn. That
/// a server has become *quicker* does not show while its time is waited out, so
/// every sixteenth episode tries a shorter one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    refused: Seconds,
    served: Seconds,
    learned_at: u32,
    /// Episodes that agree with the bracket.
    agreed: u8,
    /// Episodes since the last refusal that told how low the bracket goes.
    held: u8,
}

impl Recovery {
    /// A bracket this narrow, as a share of its upper end, is narrow enough.
    const NARROW: Seconds = 1.0 / 16.0;

    /// An episode this near to the bracket moves it, a farther one breaks it.
    const NEAR: Seconds = 1.0 / 8.0;

    /// How many episodes pass before a shorter time is tried again. Such a try
    /// costs a refusal; one in sixteen is within the noise.
    const HOLD: u8 = 16;

    /// How many episodes must agree before anybody *waits* by the bracket
    /// alone. To probe by it, one is enough.
    const PROVEN: u8 = 3;

    pub(super) const fn new(seen: &Observation) -> Self {
        Self {
            refused: seen.refused,
            served: seen.served,
            learned_at: seen.at,
            agreed: 1,
            held: 0,
        }
    }

    /// Learns from one episode.
    pub(super) fn learn(&mut self, seen: &Observation) {
        let too_late = seen.refused > self.served * (1.0 + Self::NEAR);
        let too_early = seen.served < self.refused * (1.0 - Self::NEAR);
        if too_late || too_early {
            *self = Self::new(seen);
            return;
        }
        let overlaps = seen.refused < self.served && seen.served > self.refused;
        (self.refused, self.served) = if overlaps {
            let refused = self.refused.max(seen.refused);
            (refused, self.served.min(seen.served))
        } else {
            (seen.refused, seen.served)
        };
        self.learned_at = seen.at;
        self.agreed = self.agreed.saturating_add(1);
        self.held = if seen.refused > self.served / 2.0 {
            0
        } else {
            self.held.saturating_add(1)
        };
    }

    /// Whether it is of the last 24 hours.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        Observation::is_fresh(self.learned_at, now)
    }

    /// Whether enough episodes agree to wait by it.
    pub(super) const fn is_proven(&self) -> bool {
        self.agreed >= Self::PROVEN
    }

    /// The next time to try, from an episode's beginning, of which `elapsed`
    /// has passed. `None` once the time that was known to work has not.
    pub(super) fn next(&self, elapsed: Duration) -> Option<Duration> {
        [self.trial(), self.served]
            .into_iter()
            .map(|step| seconds(f64::from(step)))
            .find(|step| *step > elapsed)
    }

    fn trial(&self) -> Seconds {
        if self.served - self.refused > self.served * Self::NARROW {
            self.refused + (self.served - self.refused) / 2.0
        } else if self.held >= Self::HOLD {
            self.refused * 0.75
        } else {
            self.served
        }
    }

    /// The time that is known to work.
    pub(super) fn served(&self) -> Duration {
        seconds(f64::from(self.served))
    }

    /// Whether an episode was still refused at the time that worked.
    pub(super) fn is_refuted_by(&self, seen: &Observation) -> bool {
        seen.refused >= self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `episodes` of a server that serves after `truth` seconds: tries
    /// what is learned, then doubles. Gives how often it was refused.
    fn play(learned: &mut Option<Recovery>, truth: f64, episodes: u32) -> u32 {
        let mut refusals = 0;
        for _ in 0..episodes {
            let (mut refused, mut at) = (0.0, 0.0);
            while at < truth {
                refused = at;
                let elapsed = seconds(at);
                at = learned
                    .and_then(|l| l.next(elapsed))
                    .map_or_else(|| f64::max(at * 2.0, 60.0), |step| step.as_secs_f64());
                refusals += u32::from(at < truth);
            }
            let seen = Observation::measured(refused as f32, at as f32);
            match learned {
                Some(learned) => learned.learn(&seen),
                None => *learned = Some(Recovery::new(&seen)),
            }
        }
        refusals
    }

    #[test]
    fn halving_closes_in_on_the_time_that_a_server_takes() {
        let mut learned = None;
        let refusals = play(&mut learned, 20.0, 12);
        let served = learned.unwrap().served().as_secs_f64();
        assert!((20.0..21.3).contains(&served), "{served}");
        assert!(refusals <= 4, "{refusals}");
        assert!(
            play(&mut learned, 20.0, 160) <= 10,
            "a narrow bracket is rarely tried"
        );
    }

    #[test]
    fn a_server_that_changes_is_followed_both_ways() {
        let mut learned = None;
        play(&mut learned, 20.0, 12);
        play(&mut learned, 45.0, 12);
        let served = learned.unwrap().served().as_secs_f64();
        assert!((45.0..48.0).contains(&served), "{served}");
        play(&mut learned, 3.0, 30);
        let served = learned.unwrap().served().as_secs_f64();
        assert!((3.0..3.3).contains(&served), "{served}");
    }

    #[test]
    fn times_that_differ_from_episode_to_episode_prove_nothing() {
        let mut learned: Option<Recovery> = None;
        for (refused, served) in [
            (1.0, 3.0),
            (12.0, 20.0),
            (4.0, 9.0),
            (0.0, 2.0),
            (6.0, 14.0),
        ] {
            let seen = Observation::measured(refused, served);
            match &mut learned {
                Some(learned) => learned.learn(&seen),
                None => learned = Some(Recovery::new(&seen)),
            }
            assert!(!learned.unwrap().is_proven());
        }
    }
}
