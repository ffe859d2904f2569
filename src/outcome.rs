//! What became of one call, told to the caller.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{scope_key::ScopeKey, time::nanos, verdict::Hint};

/// What became of one call: how often it was sent, and how it ended.
///
/// It is in the extensions of the answer unless nothing happened: one attempt,
/// no wait, nothing given up.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// How many times the call was sent.
    pub attempts: u32,
    /// How long it waited: for pauses, tokens and slots, all attempts together.
    pub waited: Duration,
    /// Why it was not sent again although the last answer was a refusal.
    pub gave_up: Option<Reason>,
    /// The wait that the last refusal asked for, uncapped.
    pub hint: Option<Hint>,
    /// The service's own error code, of the last answer.
    pub code: Option<Box<str>>,
    /// The service's request id, of the last answer.
    pub request_id: Option<Box<str>>,
    /// The scope that the call was charged to.
    pub scope: Option<ScopeKey<'static>>,
}

impl Outcome {
    /// Whether there is anything to tell: more than one attempt, or a wait, or
    /// a retry that was not made.
    pub(crate) const fn is_worth_telling(&self) -> bool {
        self.attempts != 1 || !self.waited.is_zero() || self.gave_up.is_some()
    }
}

/// How far a call has come: kept by its ticket, for those who must tell of a
/// call whose ticket is gone.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    attempts: AtomicU32,
    waited: AtomicU64,
}

impl Progress {
    /// The call has been sent for the `attempt`th time.
    pub(crate) fn sent(&self, attempt: u32) {
        // Relaxed: who reads it has the call's future, and so came after.
        self.attempts.store(attempt, Ordering::Relaxed);
    }

    /// The call has waited this long in all.
    pub(crate) fn waited(&self, waited: Duration) {
        self.waited.store(nanos(waited), Ordering::Relaxed);
    }

    /// Brings `outcome` up to date.
    pub(crate) fn tell(&self, outcome: &mut Outcome) {
        outcome.attempts = self.attempts.load(Ordering::Relaxed);
        outcome.waited = Duration::from_nanos(self.waited.load(Ordering::Relaxed));
    }
}

/// Why a refused call was not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It was sent as often as allowed.
    Attempts,
    /// Its method is not idempotent, and nothing says that it may be repeated.
    NotRepeatable,
    /// Its body could not be sent again whole.
    BodyNotReplayable,
    /// Too many retries for too few calls: the scope's budget is spent.
    Budget,
    /// The wait would have ended after its deadline.
    Deadline,
    /// The wait asked for is longer than the longest pause.
    PauseTooLong,
    /// A hard quota or the money is spent.
    Exhausted,
    /// The service says that it must not be sent again.
    Advice,
    /// A layer below has already retried it.
    Nested,
    /// Retries are switched off, for the layer or for this call.
    Disabled,
    /// The scope refused to let it wait: its queue is full, say.
    Refused,
}

impl Reason {
    /// A static name for events and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::NotRepeatable => "not_repeatable",
            Self::BodyNotReplayable => "body_not_replayable",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::PauseTooLong => "pause_too_long",
            Self::Exhausted => "exhausted",
            Self::Advice => "advice",
            Self::Nested => "nested",
            Self::Disabled => "disabled",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attempts => "sent as often as allowed",
            Self::NotRepeatable => "method is not idempotent",
            Self::BodyNotReplayable => "body can't be sent again whole",
            Self::Budget => "retry budget is spent",
            Self::Deadline => "wait ends after the deadline",
            Self::PauseTooLong => "wait is longer than the longest pause",
            Self::Exhausted => "quota is exhausted",
            Self::Advice => "service forbids a retry",
            Self::Nested => "a layer below has retried it",
            Self::Disabled => "retries are disabled",
            Self::Refused => "scope refused to let it wait",
        })
    }
}

/// Learns the [`Outcome`] of a call whose answer may lose its extensions.
///
/// Put a clone of it into the request's extensions, and ask it when the call
/// has ended, however that was: a gRPC error and a call that is dropped have no
/// answer in which an outcome could stand.
///
/// # Example
///
/// ```
/// use tower_retry_after::OutcomeHandle;
///
/// let outcome = OutcomeHandle::new();
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(outcome.clone());
/// // … send the request …
/// assert_eq!(outcome.get(), None, "it was not sent");
/// ```
#[derive(Clone, Debug, Default)]
pub struct OutcomeHandle(Arc<Mutex<Option<Outcome>>>);

impl OutcomeHandle {
    /// A handle of a call that has not ended yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The outcome; `None` until the call has ended.
    ///
    /// Of several calls with the same handle, that of the last to end. Unlike
    /// the extension, it is there even if nothing happened.
    pub fn get(&self) -> Option<Outcome> {
        let outcome = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.clone()
    }

    /// Tells it the outcome.
    pub(crate) fn set(&self, outcome: Outcome) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_of_the_handle_tells_what_the_original_was_told() {
        let handle = OutcomeHandle::new();
        let clone = handle.clone();
        assert_eq!(clone.get(), None);
        let outcome = Outcome {
            attempts: 3,
            gave_up: Some(Reason::Attempts),
            ..Outcome::default()
        };
        handle.set(outcome.clone());
        assert_eq!(clone.get(), Some(outcome));
    }

    #[test]
    fn one_attempt_without_a_wait_is_not_worth_telling() {
        let plain = Outcome {
            attempts: 1,
            ..Outcome::default()
        };
        assert!(!plain.is_worth_telling());
        for told in [
            Outcome {
                attempts: 2,
                ..plain.clone()
            },
            Outcome {
                waited: Duration::from_nanos(1),
                ..plain.clone()
            },
            Outcome {
                gave_up: Some(Reason::Budget),
                ..plain.clone()
            },
        ] {
            assert!(told.is_worth_telling(), "{told:?}");
        }
    }
}
