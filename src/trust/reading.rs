//! Both clocks at one moment, and what they tell together.

use std::time::{Duration, SystemTime};

use crate::time::Instant;

/// Both clocks, read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The monotonic time.
    pub now: Instant,
    /// The wall time.
    pub wall: SystemTime,
}

impl Reading {
    /// By how much the wall clock may run ahead before it counts: more than
    /// what a time server corrects at once, less than any sleep of a machine.
    const AHEAD: Duration = Duration::from_secs(5);

    /// Whether the machine was suspended since `earlier`.
    ///
    /// The monotonic clock stands still meanwhile and the wall clock does not.
    /// No wait is too short for that, but what was measured across it is wrong.
    pub fn slept_since(&self, earlier: &Self) -> bool {
        let wall = self.wall.duration_since(earlier.wall).unwrap_or_default();
        wall.saturating_sub(self.now - earlier.now) > Self::AHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now: u64, wall: u64) -> Reading {
        Reading {
            now: Instant::ZERO + Duration::from_secs(now),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(wall),
        }
    }

    #[test]
    fn a_wall_clock_that_ran_ahead_tells_a_suspended_machine() {
        let before = at(100, 5_000);
        assert!(!at(200, 5_100).slept_since(&before));
        assert!(!at(200, 5_105).slept_since(&before));
        assert!(at(200, 5_106).slept_since(&before));
        assert!(at(100, 40_000).slept_since(&before));
    }

    #[test]
    fn a_wall_clock_that_was_set_back_tells_nothing() {
        assert!(!at(200, 10).slept_since(&at(100, 5_000)));
        assert!(!at(200, 5_050).slept_since(&at(100, 5_000)));
    }
}
