//! What one episode showed of a hint, and what a window of them adds up to.

use std::time::Duration;

use crate::time::Instant;

/// Seconds in half the bytes of a [`Duration`], exact to a millisecond over
/// hours: a measurement, never a deadline.
pub(super) type Seconds = f32;

pub(super) fn seconds_of(wait: Duration) -> Seconds {
    wait.as_secs_f32()
}

/// How far a scope's hints are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// Fewer than three observations.
    #[default]
    Unknown,
    /// The server serves about when it says, within a factor of two.
    Truthful,
    /// The hint is always zero, which says nothing.
    AlwaysZero,
    /// The hint is always the same, and the server serves long before.
    ConstantOverstated,
    /// The hints have no bearing on when the server serves.
    Unreliable,
    /// There are no hints.
    Absent,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Truthful,
        Self::AlwaysZero,
        Self::ConstantOverstated,
        Self::Unreliable,
        Self::Absent,
    ];

    /// A static name for events and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Truthful => "truthful",
            Self::AlwaysZero => "always_zero",
            Self::ConstantOverstated => "constant_overstated",
            Self::Unreliable => "unreliable",
            Self::Absent => "absent",
        }
    }
}

/// Where a hint was read, in four bytes: a digest of the name.
///
/// Names may come from a user's classifier and be of any number. The window
/// bounds how many of them are known at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source(u32);

impl Source {
    /// No hint at all, which is a source of its own.
    pub(super) const NONE: Self = Self(0);

    pub(super) fn named(name: &str) -> Self {
        // FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv. Never zero.
        let digest = name.bytes().fold(0x811c_9dc5_u32, |digest, byte| {
            (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        Self(digest | 1)
    }
}

/// One episode: what was asked, and between which times it ended. 20 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// When it was made, in seconds of the monotonic clock.
    pub(super) at: u32,
    pub(super) source: Source,
    /// The wait asked for by its first refusal.
    pub(super) asked: Seconds,
    /// From the first refusal's receipt to the last refused send.
    pub(super) refused: Seconds,
    /// From the same to the first send that was served.
    pub(super) served: Seconds,
}

/// What one observation says of its hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Absent,
    Zero,
    Kept,
    Overstated,
    Understated,
}

impl Observation {
    const DAY: u32 = 86_400;

    /// `now` as an observation keeps it.
    pub(super) fn stamp(now: Instant) -> u32 {
        u32::try_from(now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
    }

    /// Whether what was stamped `at` is of the last 24 hours.
    pub(super) fn is_fresh(at: u32, now: Instant) -> bool {
        Self::stamp(now).saturating_sub(at) <= Self::DAY
    }

    /// A hint is kept if the measured interval meets half to twice of it.
    fn kind(&self) -> Kind {
        if self.source == Source::NONE {
            Kind::Absent
        } else if !self.is_hinted() {
            Kind::Zero
        } else if self.served < self.asked / 2.0 {
            Kind::Overstated
        } else if self.refused > self.asked * 2.0 {
            Kind::Understated
        } else {
            Kind::Kept
        }
    }

    /// Whether the server asked for a wait at all.
    pub(super) fn is_hinted(&self) -> bool {
        self.source != Source::NONE && self.asked > 0.0
    }

    /// Whether the hint was kept, absent or zero ones apart.
    pub(super) fn is_truthful(&self) -> bool {
        self.kind() == Kind::Kept
    }

    /// Whether the server served before its own instant, by more than what
    /// rounding up to whole seconds makes.
    pub(super) fn is_early(&self) -> bool {
        self.is_hinted() && self.served < self.asked * 0.9
    }

    /// Whether a refusal late in the wait shows that it was meant: a wait that
    /// was only obeyed shows nothing.
    pub(super) fn is_confirmed(&self) -> bool {
        self.is_truthful() && self.refused >= self.asked / 2.0
    }

    /// Measured ÷ asked, as near to one as the interval allows.
    fn ratio(&self) -> Option<Seconds> {
        let nearest = self.asked.clamp(self.refused, self.served);
        self.is_hinted().then(|| nearest / self.asked)
    }

    /// An observation without a hint, for tests of what is measured alone.
    #[cfg(test)]
    pub(super) const fn measured(refused: Seconds, served: Seconds) -> Self {
        Self {
            at: 0,
            source: Source::NONE,
            asked: 0.0,
            refused,
            served,
        }
    }
}

/// The last 20 observations of a scope, at most 24 hours old.
///
/// Everything is computed from them anew whenever it is asked for, so nothing
/// that was once concluded outlives its grounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Window(Vec<Observation>);

impl Window {
    /// How many observations are kept, over all sources.
    const MOST: usize = 20;

    /// How many of the newest decide on a category: few enough that a server
    /// that changes is found out soon, enough to bear an outlier.
    const DECIDING: usize = 5;

    /// How many a category needs.
    const LEAST: usize = 3;

    /// How many long hints are obeyed before one is put to the proof again: a
    /// server of which every second hint is long is then refused by some five
    /// per cent more often than if it was never doubted.
    const SPARED: usize = 12;

    pub(super) fn push(&mut self, now: Instant, seen: Observation) {
        self.0.retain(|old| Observation::is_fresh(old.at, now));
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        // By four, not doubling: a scope costs what it has seen.
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(4);
        }
        self.0.push(seen);
    }

    /// The observations of the last 24 hours, oldest first.
    fn fresh(&self, now: Instant) -> impl DoubleEndedIterator<Item = &Observation> {
        let fresh = move |seen: &&Observation| Observation::is_fresh(seen.at, now);
        self.0.iter().filter(fresh)
    }

    fn of(&self, source: Source, now: Instant) -> impl DoubleEndedIterator<Item = &Observation> {
        self.fresh(now).filter(move |seen| seen.source == source)
    }

    #[cfg(test)]
    pub(super) const fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(super) fn len(&self, now: Instant) -> usize {
        self.fresh(now).count()
    }

    /// The source of the newest observation.
    pub(super) fn newest_source(&self, now: Instant) -> Option<Source> {
        self.fresh(now).next_back().map(|seen| seen.source)
    }

    /// How far hints from `source` are believed.
    ///
    /// The observations are gone through in their order: the first three give
    /// a category, and two in a row that say the same other one change it.
    pub(super) fn category(&self, source: Source, now: Instant) -> Category {
        let mut category = Category::Unknown;
        let mut said = Category::Unknown;
        let mut recent = Vec::with_capacity(Self::DECIDING);
        for seen in self.of(source, now) {
            if recent.len() == Self::DECIDING {
                recent.remove(0);
            }
            recent.push(*seen);
            if recent.len() < Self::LEAST {
                continue;
            }
            let says = classify(&recent);
            if category == Category::Unknown || says == said {
                category = says;
            }
            said = says;
        }
        category
    }

    /// Whether no hint of `source` below `floor` was refused once obeyed.
    pub(super) fn keeps_short_hints(&self, source: Source, floor: Seconds, now: Instant) -> bool {
        self.of(source, now)
            .filter(|seen| seen.is_hinted() && seen.asked < floor)
            .all(|seen| seen.refused < seen.asked)
    }

    /// Whether a hint of `asked` is as good as proven, so that probing it early
    /// would only cost a refusal: one of at least half its length was
    /// confirmed not long ago.
    pub(super) fn confirms(&self, source: Source, asked: Seconds, now: Instant) -> bool {
        self.of(source, now)
            .rev()
            .filter(|seen| seen.asked >= asked / 2.0)
            .take(Self::SPARED)
            .take_while(|seen| !seen.is_early() || seen.is_confirmed())
            .any(Observation::is_confirmed)
    }

    /// The median of measured ÷ asked, once there are three.
    pub(super) fn median_ratio(&self, now: Instant) -> Option<Seconds> {
        let mut ratios: Vec<_> = self.fresh(now).filter_map(Observation::ratio).collect();
        ratios.sort_by(Seconds::total_cmp);
        let median = ratios.get(ratios.len() / 2).copied();
        median.filter(|_| ratios.len() >= Self::LEAST)
    }
}

/// What the most recent observations of a source say, by majority.
fn classify(recent: &[Observation]) -> Category {
    let most = |kind| recent.iter().filter(|seen| seen.kind() == kind).count() * 2 > recent.len();
    if most(Kind::Absent) {
        Category::Absent
    } else if most(Kind::Zero) {
        Category::AlwaysZero
    } else if most(Kind::Kept) {
        Category::Truthful
    } else if most(Kind::Overstated) && is_one_value(recent) {
        Category::ConstantOverstated
    } else {
        Category::Unreliable
    }
}

/// How far apart hints may be that are one value: a date is a second off, and a
/// countdown moves a little.
pub(super) const ONE_VALUE: Seconds = 1.25;

/// Whether the overstated hints among them are all the same.
fn is_one_value(recent: &[Observation]) -> bool {
    let overstated = recent.iter().filter(|seen| seen.kind() == Kind::Overstated);
    let asked = overstated.map(|seen| seen.asked);
    let (least, most) = asked.fold((Seconds::MAX, 0.0), |(least, most), asked| {
        (Seconds::min(least, asked), Seconds::max(most, asked))
    });
    most <= least * ONE_VALUE
}
