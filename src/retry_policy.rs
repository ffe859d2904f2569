//! Whether a refused call may be sent again: decides, never sleeps.

use http::{HeaderMap, HeaderName, Method};

use crate::{
    outcome::Reason,
    time::Instant,
    verdict::{RetryAdvice, Ruling},
};

/// Names a request by a key of its caller's, so that a server can tell that it
/// has already served it. draft-ietf-httpapi-idempotency-key-header-07, section 2.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whether sending a request twice is as good as sending it once.
///
/// It is if its method is idempotent (RFC 9110, section 9.2.2), if it carries
/// an `Idempotency-Key`, or if its caller has `marked` it. A key is never
/// invented here: only who knows the operation knows whether two requests mean
/// the same one.
pub(crate) fn is_idempotent(method: &Method, headers: &HeaderMap, marked: bool) -> bool {
    let has_key = || {
        let key = headers.get(IDEMPOTENCY_KEY);
        key.is_some_and(|key| !key.as_bytes().trim_ascii().is_empty())
    };
    marked || method.is_idempotent() || has_key()
}

/// What decides whether one call goes round again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// How often it was sent.
    pub(crate) attempts: u32,
    /// How often it may be sent.
    pub(crate) max_attempts: u32,
    /// Whether it may be sent twice, see [`is_idempotent`].
    pub(crate) idempotent: bool,
    /// Whether retries are switched on.
    pub(crate) retry: bool,
    /// When it must have its answer; [`Instant::NEVER`] if it may take for ever.
    pub(crate) deadline: Instant,
}

/// What to do with the answer to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is no refusal: give it back.
    Done,
    /// Send the call again when its turn comes.
    Again,
    /// It is a refusal and stays one: give it back, and say why.
    GiveUp(Reason),
}

impl Call {
    /// Decides on an answer.
    ///
    /// `opens` is the earliest instant at which the call could be sent again, as
    /// its scope was settled by the answer; or why it would not be let wait.
    ///
    /// Whether there is a body to send again is not asked here but afterwards,
    /// for that costs something.
    pub(crate) fn decide(&self, ruling: &Ruling, opens: Result<Instant, Reason>) -> Decision {
        let advice = match ruling {
            Ruling::Accepted | Ruling::Neutral => return Decision::Done,
            Ruling::Exhausted(_) => return Decision::GiveUp(Reason::Exhausted),
            Ruling::Throttled(throttle) => throttle.retry,
        };
        let most = match advice {
            RetryAdvice::AtMost(most) => most.min(self.max_attempts),
            _ => self.max_attempts,
        };
        let repeatable = self.idempotent || advice == RetryAdvice::Unprocessed;
        // What the caller wants comes first, then what the service says, then
        // what is possible at all, then what would take too long.
        let reasons = [
            (!self.retry, Reason::Disabled),
            (advice == RetryAdvice::Never, Reason::Advice),
            (!repeatable, Reason::NotRepeatable),
            (self.attempts >= most, Reason::Attempts),
        ];
        match (reasons.into_iter().find(|(holds, _)| *holds), opens) {
            (Some((_, reason)), _) | (None, Err(reason)) => Decision::GiveUp(reason),
            (None, Ok(opens)) if opens >= self.deadline => Decision::GiveUp(Reason::Deadline),
            (None, Ok(_)) => Decision::Again,
        }
    }
}

/// How many retries a scope may make over all its calls.
///
/// # Why a budget and not only a number of attempts
///
/// Four attempts a call are right when one call in a hundred is refused, and
/// make four times the load when all are. The budget bounds what retries add,
/// however many calls there are.
///
/// # The bound
///
/// Time is cut into slots of a second. A retry at `t` is granted only if with
/// it the retries of the last eleven slots are at most 100 plus a fifth of the
/// attempts of the last ten. Eleven slots cover the 10 s before `t`, ten never
/// reach beyond them, so for every retry:
///
/// > retries in [t − 10 s, t] ≤ 100 + attempts in (t − 10 s, t] ÷ 5
///
/// A count of attempts counts for a fifth of a retry: all in whole numbers.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// The newest slot.
    slot: u32,
    /// The slot in which attempts were counted last.
    counted: u32,
    attempts: [u32; 10],
    retries: [u32; 11],
}

impl Budget {
    /// Attempts that pay for one retry: 20 %.
    const PER_RETRY: u64 = 5;

    /// Retries that need no attempts to pay for them: 10/s over 10 s.
    const FREE: u64 = 100;

    /// A budget that counts from `since` on.
    pub(crate) fn new(since: Instant) -> Self {
        let slot = slot(since);
        Self {
            slot,
            counted: slot,
            attempts: [0; 10],
            retries: [0; 11],
        }
    }

    /// Counts `n` attempts sent since the last count.
    ///
    /// They are spread evenly over that time: a scope that has nothing to learn
    /// need not count one by one, and what was sent an hour ago pays nothing.
    pub(crate) fn attempts(&mut self, now: Instant, n: u32) {
        self.advance(now);
        let slots = (self.slot - self.counted).max(1);
        let recent = slots.min(self.attempts.len() as u32);
        self.counted = self.slot;
        // n · recent ÷ slots of them are recent enough, and that is at most n.
        let n = (u64::from(n) * u64::from(recent) / u64::from(slots)) as u32;
        for back in 0..recent {
            let rest = if back == 0 { n % recent } else { 0 };
            let count = at(&mut self.attempts, self.slot - back);
            *count = count.saturating_add(n / recent + rest);
        }
    }

    /// Pays for one retry sent at `now`, if there is anything to pay with.
    pub(crate) fn withdraw(&mut self, now: Instant) -> bool {
        let granted = self.has(now);
        if granted {
            let count = at(&mut self.retries, self.slot);
            *count = count.saturating_add(1);
        }
        granted
    }

    /// Whether a retry could be paid for at `now`.
    pub(crate) fn has(&mut self, now: Instant) -> bool {
        self.advance(now);
        let sum = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>();
        let spent = Self::PER_RETRY * (sum(&self.retries) + 1);
        spent <= Self::PER_RETRY * Self::FREE + sum(&self.attempts)
    }

    /// Forgets what is too old at `now`. An earlier `now` counts as the newest.
    fn advance(&mut self, now: Instant) {
        let passed = slot(now).saturating_sub(self.slot);
        self.slot += passed;
        for back in 0..passed.min(self.retries.len() as u32) {
            *at(&mut self.attempts, self.slot - back) = 0;
            *at(&mut self.retries, self.slot - back) = 0;
        }
    }
}

/// The slot of `now`: seconds, for 136 years.
fn slot(now: Instant) -> u32 {
    u32::try_from(now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}

/// The count of `slot` in a ring of the last `N`.
fn at<const N: usize>(ring: &mut [u32; N], slot: u32) -> &mut u32 {
    &mut ring[slot as usize % N]
}
