//! From a hint to a wait: one pure function.

use std::time::Duration;

use super::Category;

/// What no hint and no category goes beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The shortest wait after a refusal, and the first step of the own
    /// backoff.
    pub min_pause: Duration,
    /// The longest wait that is chosen without a server's word for it, and the
    /// longest that is slept through.
    pub max_pause: Duration,
}

impl Default for Bounds {
    /// One second, one minute.
    fn default() -> Self {
        Self {
            min_pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(60),
        }
    }
}

/// How long to wait, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// From the receipt of the refusal on.
    pub wait: Duration,
    /// Why it is that long.
    pub reason: Reason,
    /// Whether one attempt goes alone when the wait is over: the hint has not
    /// earned that a whole queue goes by it.
    pub probe: bool,
}

/// Why a wait is as long as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The hint, to the letter.
    Obeyed,
    /// There is no hint: own backoff.
    NoHint,
    /// There is no hint: what earlier episodes took to end.
    LearnedRecovery,
    /// A hint of zero tells nothing: as if there was none.
    ZeroIgnored,
    /// The hint is shorter than `min_pause`.
    RaisedToMinPause,
    /// The hint is shorter than the own backoff, and not to be relied on.
    RaisedToBackoff,
    /// The hint is the one that this server always sends, and it serves long
    /// before: what earlier episodes took to end.
    CutToCeiling,
}

impl Reason {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Self; 7] = [
        Self::Obeyed,
        Self::NoHint,
        Self::LearnedRecovery,
        Self::ZeroIgnored,
        Self::RaisedToMinPause,
        Self::RaisedToBackoff,
        Self::CutToCeiling,
    ];

    /// A static name for events and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Obeyed => "obeyed",
            Self::NoHint => "no_hint",
            Self::LearnedRecovery => "learned_recovery",
            Self::ZeroIgnored => "zero_ignored",
            Self::RaisedToMinPause => "raised_to_min_pause",
            Self::RaisedToBackoff => "raised_to_backoff",
            Self::CutToCeiling => "cut_to_ceiling",
        }
    }

    /// Whether a hint was there and something else was done: worth an event.
    pub const fn overrides(self) -> bool {
        !matches!(self, Self::Obeyed | Self::NoHint | Self::LearnedRecovery)
    }
}

/// Decides how long to wait after a refusal.
///
/// | hint | category | wait | reason |
/// | --- | --- | --- | --- |
/// | none | any | own backoff; at least what was learned, at most `max_pause` of it | [`NoHint`], [`LearnedRecovery`] |
/// | zero | any | the same | [`ZeroIgnored`] |
/// | *h* | [`Truthful`] | *h* | [`Obeyed`] |
/// | *h* | [`Unknown`] | *h*, at least `min_pause` | [`Obeyed`], [`RaisedToMinPause`] |
/// | *h* | [`Unreliable`], [`AlwaysZero`], [`Absent`] | the longer of *h* and own backoff | [`Obeyed`], [`RaisedToBackoff`] |
/// | *h* | [`ConstantOverstated`] | what was learned, at least own backoff, at most *h* | [`CutToCeiling`] |
///
/// `min_pause` is the floor under every line but the third: there a hint below
/// a second has been kept before. `learned` is the time from now in which
/// earlier episodes had ended.
///
/// # Where the rules come from
///
/// - A wait is shorter than a hint in one line only, the last, and there only
///   once it was proven: RFC 9110 (section 10.2.3) calls `Retry-After` the time
///   that a client *ought to* wait.
/// - A zero says as little as no header, whatever is thought of its sender, so
///   both wait the same: own backoff at first, and what episodes were seen to
///   take once that is known. By own backoff alone a window of twenty seconds
///   costs four refusals an episode.
/// - What was learned replaces the server's word, and so it is bounded where
///   that word is not: nobody asked for more than `max_pause`.
/// - The own backoff floors a hint that is not believed and never one that is:
///   a truthful server knows better than a doubling.
///
/// [`NoHint`]: Reason::NoHint
/// [`LearnedRecovery`]: Reason::LearnedRecovery
/// [`ZeroIgnored`]: Reason::ZeroIgnored
/// [`Obeyed`]: Reason::Obeyed
/// [`RaisedToMinPause`]: Reason::RaisedToMinPause
/// [`RaisedToBackoff`]: Reason::RaisedToBackoff
/// [`CutToCeiling`]: Reason::CutToCeiling
/// [`Truthful`]: Category::Truthful
/// [`Unknown`]: Category::Unknown
/// [`Unreliable`]: Category::Unreliable
/// [`AlwaysZero`]: Category::AlwaysZero
/// [`Absent`]: Category::Absent
/// [`ConstantOverstated`]: Category::ConstantOverstated
pub fn sanitise(
    hint: Option<Duration>,
    category: Category,
    learned: Option<Duration>,
    backoff: Duration,
    bounds: &Bounds,
) -> Decision {
    let floor = bounds.min_pause;
    let backoff = backoff.max(floor);
    let (wait, reason) = match (hint, category) {
        (None | Some(Duration::ZERO), _) => {
            let learned = learned.unwrap_or_default().min(bounds.max_pause);
            let reason = match hint {
                Some(_) => Reason::ZeroIgnored,
                None if learned > backoff => Reason::LearnedRecovery,
                None => Reason::NoHint,
            };
            (learned.max(backoff), reason)
        }
        (Some(asked), Category::Truthful) => (asked, Reason::Obeyed),
        (Some(asked), Category::ConstantOverstated) => match learned {
            Some(learned) if learned.max(backoff) < asked => {
                (learned.max(backoff), Reason::CutToCeiling)
            }
            _ => raised(asked, floor, Reason::RaisedToMinPause),
        },
        (Some(asked), Category::Unknown) => raised(asked, floor, Reason::RaisedToMinPause),
        (Some(asked), Category::Unreliable | Category::AlwaysZero | Category::Absent) => {
            raised(asked, backoff, Reason::RaisedToBackoff)
        }
    };
    let probe = category != Category::Truthful || wait < floor;
    Decision {
        wait,
        reason,
        probe,
    }
}

/// `asked`, unless it is less than `floor`.
fn raised(asked: Duration, floor: Duration, reason: Reason) -> (Duration, Reason) {
    if asked < floor {
        (floor, reason)
    } else {
        (asked, Reason::Obeyed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Category::*, Reason::*, *};

    const MS: Duration = Duration::from_millis(1);

    /// Hint, category, learned, own backoff; wait and reason: in seconds.
    type Row = (Option<f64>, Category, Option<f64>, f64, f64, Reason);

    #[rustfmt::skip]
    const TABLE: &[Row] = &[
        // What the issue names.
        (Some(0.0),    AlwaysZero,         None,        4.0,  4.0,    ZeroIgnored),
        (Some(3600.0), ConstantOverstated, Some(20.0),  4.0,  20.0,   CutToCeiling),
        (Some(45.0),   Truthful,           None,        2.0,  45.0,   Obeyed),
        (Some(3.0),    Unreliable,         None,        12.0, 12.0,   RaisedToBackoff),
        (Some(30.0),   Unreliable,         None,        4.0,  30.0,   Obeyed),
        (None,         Absent,             None,        4.0,  4.0,    NoHint),
        // No hint, or one of zero.
        (None,         Unknown,            None,        4.0,  4.0,    NoHint),
        (None,         Truthful,           None,        0.0,  1.0,    NoHint),
        (None,         Absent,             Some(18.0),  2.0,  18.0,   LearnedRecovery),
        (None,         Absent,             Some(18.0),  24.0, 24.0,   NoHint),
        (None,         Absent,             Some(900.0), 2.0,  60.0,   LearnedRecovery),
        (Some(0.0),    Unknown,            None,        1.5,  1.5,    ZeroIgnored),
        (Some(0.0),    Truthful,           None,        0.0,  1.0,    ZeroIgnored),
        (Some(0.0),    AlwaysZero,         Some(18.0),  2.0,  18.0,   ZeroIgnored),
        // A believed hint is not touched, however long or short.
        (Some(0.25),   Truthful,           None,        2.0,  0.25,   Obeyed),
        (Some(3600.0), Truthful,           Some(20.0),  2.0,  3600.0, Obeyed),
        (Some(3.0),    Truthful,           None,        12.0, 3.0,    Obeyed),
        (Some(0.25),   Unknown,            None,        2.0,  1.0,    RaisedToMinPause),
        (Some(1.0),    Unknown,            None,        2.0,  1.0,    Obeyed),
        (Some(3600.0), Unknown,            Some(20.0),  2.0,  3600.0, Obeyed),
        // A server that sends something else than it always did.
        (Some(30.0),   AlwaysZero,         Some(5.0),   4.0,  30.0,   Obeyed),
        (Some(3.0),    Absent,             None,        4.0,  4.0,    RaisedToBackoff),
        // A ceiling that is not known, or not lower than the hint.
        (Some(3600.0), ConstantOverstated, None,        4.0,  3600.0, Obeyed),
        (Some(30.0),   ConstantOverstated, Some(40.0),  4.0,  30.0,   Obeyed),
        (Some(3600.0), ConstantOverstated, Some(0.0),   4.0,  4.0,    CutToCeiling),
        (Some(0.25),   ConstantOverstated, Some(0.1),   0.0,  1.0,    RaisedToMinPause),
    ];

    fn secs(secs: f64) -> Duration {
        crate::time::seconds(secs)
    }

    #[test]
    fn the_table_of_the_docs_holds() {
        for row in TABLE {
            let (hint, category, learned, backoff, wait, reason) = *row;
            let learned = learned.map(secs);
            let bounds = Bounds::default();
            let decision = sanitise(hint.map(secs), category, learned, secs(backoff), &bounds);
            assert_eq!(
                (decision.wait, decision.reason),
                (secs(wait), reason),
                "{row:?}"
            );
            assert_eq!(
                decision.probe,
                category != Truthful || wait < 1.0,
                "{row:?}"
            );
        }
    }

    #[test]
    fn each_reason_has_its_own_place_and_name() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            let names = Reason::ALL.iter().filter(|r| r.as_str() == reason.as_str());
            assert_eq!(names.count(), 1);
        }
    }

    fn any_wait() -> impl Strategy<Value = Duration> {
        prop_oneof![
            Just(Duration::ZERO),
            Just(Duration::MAX),
            (0..5_000_u32).prop_map(|ms| MS * ms),
            (0..10_000_u32).prop_map(|secs| MS * 1000 * secs),
            any::<u64>().prop_map(Duration::from_nanos),
        ]
    }

    fn any_category() -> impl Strategy<Value = Category> {
        prop::sample::select(Category::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn no_category_lifts_the_floor_and_one_alone_shortens(
            hint in prop::option::of(any_wait()),
            category in any_category(),
            learned in prop::option::of(any_wait()),
            backoff in any_wait(),
            min_pause in any_wait(),
            max_pause in any_wait(),
        ) {
            let bounds = Bounds { min_pause, max_pause };
            let Decision { wait, reason, .. } = sanitise(hint, category, learned, backoff, &bounds);
            let asked = hint.unwrap_or_default();
            let believed = category == Truthful && !asked.is_zero();
            prop_assert!(wait >= min_pause || believed && wait == asked);
            prop_assert!(wait >= asked || reason == CutToCeiling);
            prop_assert!(reason != CutToCeiling || category == ConstantOverstated);
            prop_assert!(reason != CutToCeiling || wait >= backoff.max(learned.unwrap()));
            prop_assert!(reason != Obeyed || Some(wait) == hint);
            prop_assert_eq!(reason.overrides(), hint.is_some() && reason != Obeyed);
            if asked.is_zero() {
                prop_assert!(wait >= backoff && wait <= backoff.max(min_pause).max(max_pause));
            }
        }
    }
}
