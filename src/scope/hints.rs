//! How often hints were not followed, by reason.

use crate::{trust, verdict::IgnoredReason};

/// How often the hints of one scope were not followed to the letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintCounts {
    ignored: [u32; IgnoredReason::ALL.len()],
    overridden: [u32; trust::Reason::ALL.len()],
}

impl HintCounts {
    /// Hints that were not followed at all, for `reason`.
    pub const fn ignored(&self, reason: IgnoredReason) -> u32 {
        self.ignored[reason as usize]
    }

    /// Hints instead of which another wait was chosen, for `reason`.
    pub const fn overridden(&self, reason: trust::Reason) -> u32 {
        self.overridden[reason as usize]
    }

    /// All counts that are not zero, each with its reason's static name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let ignored = IgnoredReason::ALL.map(IgnoredReason::as_str);
        let overridden = trust::Reason::ALL.map(trust::Reason::as_str);
        let ignored = ignored.into_iter().zip(self.ignored);
        let all = ignored.chain(overridden.into_iter().zip(self.overridden));
        all.filter(|(_, count)| *count > 0)
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| u64::from(count)).sum()
    }

    pub(super) fn count_ignored(&mut self, reason: IgnoredReason) {
        let count = &mut self.ignored[reason as usize];
        *count = count.saturating_add(1);
    }

    pub(super) fn count_overridden(&mut self, reason: trust::Reason) {
        let count = &mut self.overridden[reason as usize];
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_itself() {
        let mut counts = HintCounts::default();
        counts.count_ignored(IgnoredReason::NotAThrottle);
        counts.count_overridden(trust::Reason::ZeroIgnored);
        counts.count_overridden(trust::Reason::ZeroIgnored);
        let all: Vec<_> = counts.iter().collect();
        assert_eq!(all, [("not_a_throttle", 1), ("zero_ignored", 2)]);
        assert_eq!(counts.ignored(IgnoredReason::NotAThrottle), 1);
        assert_eq!(counts.overridden(trust::Reason::ZeroIgnored), 2);
        assert_eq!(counts.total(), 3);
    }
}
