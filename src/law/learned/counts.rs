//! Whether it is time that refills what the server serves.

use super::ledger::Cycle;

/// This many cycles tell, half of them against the other half.
const CYCLES: usize = 6;

/// By how much their counts may differ, as a share.
const ALIKE: f64 = 0.05;

/// How much longer one half has to be than the other.
const LONGER: f64 = 1.5;

/// A cycle in which nobody came for a larger share of the time than this says
/// nothing of what time does.
const IDLE: f64 = 0.1;

/// So many cycles after they were found alike they are proven to be so again.
///
/// At one rate those of any server are alike; and a slow one more in so many is
/// three per cent.
const AGAIN: u32 = 32;

/// What the last cycles held.
///
/// Some servers serve so many requests and then close for a while, however
/// slowly those were spent. To go slower for their sake is in vain.
#[derive(Debug, Default)]
pub(super) struct Counts {
    last: [Spent; CYCLES],
    /// Time was found to play no part: the fastest rate that was refused.
    held: Option<f64>,
    /// Cycles since that was proven.
    since: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    accepted: f64,
    secs: f64,
    rate: f64,
}

impl Counts {
    /// A cycle has ended that was refused at `rate`. Gives the rate to hold, if
    /// no slower one would be served longer.
    pub(super) fn spent(&mut self, cycle: &Cycle, rate: f64) -> Option<f64> {
        if cycle.idle > IDLE * cycle.length {
            return self.held;
        }
        self.last.rotate_left(1);
        self.last[CYCLES - 1] = Spent {
            accepted: cycle.accepted,
            secs: cycle.length,
            rate,
        };
        if !self.are_alike() {
            self.held = None;
        } else if self.held.is_none() && self.refute_time() {
            self.held = self.last.iter().map(|spent| spent.rate).reduce(f64::max);
            self.since = 0;
        }
        let held = self.held?;
        self.since += 1;
        if self.since <= AGAIN {
            return Some(held);
        }
        // What time refills is not refused at what it served on average.
        self.since = 0;
        Some(cycle.low())
    }

    fn are_alike(&self) -> bool {
        let counts = || self.last.iter().map(|spent| spent.accepted);
        let (least, most) = (
            counts().fold(f64::MAX, f64::min),
            counts().fold(0.0, f64::max),
        );
        least > 0.0 && most - least <= ALIKE * most
    }

    /// Of what time refills, twice the time holds twice as much; one more or one
    /// less, for a part of one may be left over from before.
    fn refute_time(&self) -> bool {
        let (older, newer) = self.last.split_at(CYCLES / 2);
        let sum = |half: &[Spent], of: fn(&Spent) -> f64| half.iter().map(of).sum::<f64>();
        let served = sum(older, |spent| spent.accepted);
        let [older, newer] = [older, newer].map(|half| sum(half, |spent| spent.secs));
        let longer = (older / newer).max(newer / older);
        longer > LONGER.max((served + 1.0) / (served - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_counts_over_unequal_times_are_known_until_another_count() {
        let mut counts = Counts::default();
        let cycle = |length| Cycle {
            accepted: 9.0,
            length,
            paused: 1.0,
            idle: 0.0,
            again: false,
        };
        let mut spend = |secs: f64| counts.spent(&cycle(secs), 100.0 / secs);
        let lengths = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        assert_eq!(
            lengths.map(&mut spend),
            [None, None, None, None, None, Some(50.0)]
        );
        // Another count disproves it.
        assert_eq!(spend(64.0), Some(50.0));
        let other = Cycle {
            accepted: 10.0,
            ..cycle(64.0)
        };
        assert_eq!(counts.spent(&other, 1.0), None);
    }

    /// Bursts of half as much again as a window serves, at odd times.
    #[test]
    fn cycles_in_which_nobody_came_for_a_while_are_no_evidence() {
        let mut counts = Counts::default();
        for length in [12.0, 13.0, 14.0, 40.0, 50.0, 60.0, 70.0] {
            let cycle = Cycle {
                accepted: 150.0,
                length,
                paused: 5.0,
                idle: length - 10.0,
                again: false,
            };
            assert_eq!(counts.spent(&cycle, 100.0), None);
        }
    }

    #[test]
    fn what_time_may_have_refilled_is_no_evidence() {
        let refuted = |accepted: [f64; CYCLES], lengths: [f64; CYCLES]| {
            let mut counts = Counts::default();
            let cycles = accepted.into_iter().zip(lengths);
            cycles
                .map(|(accepted, length)| Cycle {
                    accepted,
                    length,
                    paused: 1.0,
                    idle: 0.0,
                    again: false,
                })
                .filter_map(|cycle| counts.spent(&cycle, 1.0))
                .count()
                > 0
        };
        // One or none may be left over: three in two seconds, three in four.
        assert!(!refuted([1.0; CYCLES], [0.7, 0.7, 0.6, 1.3, 1.3, 1.4]));
        assert!(refuted([1.0; CYCLES], [0.7, 0.7, 0.6, 1.4, 1.4, 1.4]));
        // A window is as long as the last, and twice as long holds twice as much.
        assert!(!refuted([50.0; CYCLES], [60.0; CYCLES]));
        let growing = [50.0, 100.0, 200.0, 400.0, 800.0, 1600.0];
        assert!(!refuted(growing, growing));
    }
}
