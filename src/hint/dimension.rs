//! The dimensions of a quota: requests, tokens, one policy among several.

use std::{borrow::Cow, time::Duration};

use crate::verdict::{Hint, Quota};

/// What an answer tells of one dimension.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dimension {
    /// Its name, where it has one.
    pub(crate) name: Option<Cow<'static, str>>,
    /// Units allowed in a window.
    pub(crate) limit: Option<u64>,
    /// Units left in it.
    pub(crate) remaining: Remaining,
    /// How long until there are more.
    pub(crate) reset: Option<Hint>,
    /// How long a window lasts.
    pub(crate) window: Option<Duration>,
    /// It counts what is under way at once.
    pub(crate) concurrent: bool,
}

/// Units left in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// The answer does not say.
    #[default]
    Untold,
    /// The answer says what is no number of units: -1, say, for "unknown".
    Sentinel,
    /// This many.
    Units(u64),
}

impl Dimension {
    /// Whether it is what ran out; `None` if the answer does not say.
    fn is_spent(&self) -> Option<bool> {
        match self.remaining {
            Remaining::Untold => None,
            Remaining::Sentinel => Some(false),
            Remaining::Units(left) => Some(left == 0),
        }
    }

    /// Of two that ran out, the one that takes longer to come back counts.
    fn takes(&self) -> (Option<Duration>, Option<Duration>) {
        (self.reset.as_ref().map(Hint::wait), self.window)
    }

    /// What to tell of it.
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            limit: self.limit,
            remaining: match self.remaining {
                Remaining::Units(left) => Some(left),
                Remaining::Untold | Remaining::Sentinel => None,
            },
            reset: self.reset.as_ref().map(Hint::wait),
            window: self.window,
        }
    }
}

/// The dimension that ran out, on an answer that is a refusal.
///
/// A reset is used of no other one: many services send the reset of every
/// bucket on every answer. Only where no dimension says what is left in it, one
/// that has a reset is taken to be meant.
pub(crate) fn spent(dimensions: &[Dimension]) -> Option<&Dimension> {
    let among = |is_spent| {
        let which = move |dimension: &&Dimension| dimension.is_spent() == is_spent;
        dimensions.iter().filter(which)
    };
    let spent = among(Some(true)).max_by_key(|dimension| dimension.takes());
    spent.or_else(|| {
        let untold = among(None).filter(|dimension| dimension.reset.is_some());
        untold.max_by_key(|dimension| dimension.takes())
    })
}

/// The dimension to tell of: the one that ran out, else the first.
pub(crate) fn told(dimensions: &[Dimension]) -> Option<&Dimension> {
    let spent = dimensions
        .iter()
        .filter(|dimension| dimension.is_spent() == Some(true))
        .max_by_key(|dimension| dimension.takes());
    spent.or_else(|| dimensions.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(remaining: Remaining, reset: u64) -> Dimension {
        Dimension {
            remaining,
            reset: Some(Hint::new(Duration::from_secs(reset), "reset")),
            ..Dimension::default()
        }
    }

    fn wait(dimensions: &[Dimension]) -> Option<u64> {
        let reset = spent(dimensions)?.reset.as_ref();
        reset.map(|hint| hint.wait().as_secs())
    }

    #[test]
    fn a_reset_counts_only_of_what_ran_out() {
        let [full, empty, long] = [(9, 99), (0, 5), (0, 50)]
            .map(|(left, reset)| dimension(Remaining::Units(left), reset));
        assert_eq!(wait(std::slice::from_ref(&full)), None);
        assert_eq!(wait(&[full.clone(), empty.clone()]), Some(5));
        assert_eq!(wait(&[full, long, empty]), Some(50));
    }

    #[test]
    fn what_is_not_told_is_meant_only_where_nothing_else_can_be() {
        let untold = dimension(Remaining::Untold, 55);
        let full = dimension(Remaining::Units(17), 1);
        let empty = dimension(Remaining::Units(0), 2);
        assert_eq!(wait(&[full, untold.clone()]), Some(55));
        assert_eq!(wait(&[untold, empty]), Some(2));
        assert_eq!(wait(&[dimension(Remaining::Sentinel, 0)]), None);
    }
}
