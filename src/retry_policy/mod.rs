//! Whether a refused call may be sent again: decides, never sleeps.

mod allowance;
mod budget;

use http::{HeaderMap, HeaderName, Method};

pub(crate) use self::{allowance::Allowance, budget::Budget};
use crate::{
    outcome::Reason,
    time::Instant,
    verdict::{RetryAdvice, Ruling},
};

/// Names a request by a key of its caller's, so that a server can tell that it
/// has already served it. draft-ietf-httpapi-idempotency-key-header-07.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whether sending a request twice is as good as sending it once.
///
/// It is if its method is idempotent (RFC 9110, section 9.2.2), if it carries
/// an `Idempotency-Key`, or if its caller has `marked` it. A key is never
/// invented here: only who knows the operation knows whether two requests mean
/// the same one.
pub(crate) fn is_idempotent(method: &Method, headers: &HeaderMap, marked: bool) -> bool {
    // To go through a few names costs less than to hash the one.
    let has_key = || {
        let mut fields = headers.iter();
        fields
            .any(|(name, key)| *name == IDEMPOTENCY_KEY && !key.as_bytes().trim_ascii().is_empty())
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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::verdict::{Exhausted, Throttle, ThrottleKind};

    fn at_ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn throttled(retry: RetryAdvice) -> Ruling {
        Ruling::Throttled(Throttle::new(ThrottleKind::RateLimited).retry(retry))
    }

    /// A `GET` sent once, of four times allowed.
    const CALL: Call = Call {
        attempts: 1,
        max_attempts: 4,
        idempotent: true,
        retry: true,
        deadline: Instant::NEVER,
    };

    const POST: Call = Call {
        idempotent: false,
        ..CALL
    };

    #[test]
    fn methods_marks_and_keys_decide_what_is_idempotent() {
        let none = HeaderMap::new();
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert!(
                is_idempotent(&method.parse().unwrap(), &none, false),
                "{method}"
            );
        }
        for method in ["POST", "PATCH", "CONNECT", "PURGE", "get"] {
            let method = method.parse().unwrap();
            assert!(!is_idempotent(&method, &none, false), "{method}");
            assert!(is_idempotent(&method, &none, true), "{method}, marked");
        }
        for (key, expected) in [
            ("\"8e03978e\"", true),
            ("bare", true),
            ("", false),
            (" ", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("Idempotency-Key", HeaderValue::from_static(key));
            assert_eq!(
                is_idempotent(&Method::POST, &headers, false),
                expected,
                "{key:?}"
            );
        }
    }

    #[test]
    fn only_a_throttle_is_sent_again() {
        let now = Ok(at_ms(1_000));
        assert_eq!(CALL.decide(&Ruling::Accepted, now), Decision::Done);
        assert_eq!(CALL.decide(&Ruling::Neutral, now), Decision::Done);
        assert_eq!(
            CALL.decide(&throttled(RetryAdvice::Default), now),
            Decision::Again
        );
        let exhausted = Ruling::Exhausted(Exhausted::default());
        assert_eq!(
            CALL.decide(&exhausted, now),
            Decision::GiveUp(Reason::Exhausted)
        );
    }

    #[test]
    fn each_refusal_to_retry_has_its_reason() {
        use RetryAdvice::{AtMost, Default, Never, Unprocessed};
        let soon = Ok(at_ms(2_000));
        let late = Err(Reason::PauseTooLong);
        let sent = |attempts| Call { attempts, ..CALL };
        let by = |millis| Call {
            deadline: at_ms(millis),
            ..CALL
        };
        let cases = [
            (CALL, Never, soon, Err(Reason::Advice)),
            (
                Call {
                    retry: false,
                    ..CALL
                },
                Unprocessed,
                soon,
                Err(Reason::Disabled),
            ),
            (POST, Default, soon, Err(Reason::NotRepeatable)),
            (POST, AtMost(3), soon, Err(Reason::NotRepeatable)),
            (POST, Unprocessed, soon, Ok(())),
            (sent(3), Default, soon, Ok(())),
            (sent(4), Default, soon, Err(Reason::Attempts)),
            (sent(1), AtMost(2), soon, Ok(())),
            (sent(2), AtMost(2), soon, Err(Reason::Attempts)),
            (sent(1), AtMost(0), soon, Err(Reason::Attempts)),
            (sent(4), AtMost(9), soon, Err(Reason::Attempts)),
            (CALL, Default, late, Err(Reason::PauseTooLong)),
            // What would be no better later is said first.
            (POST, Default, late, Err(Reason::NotRepeatable)),
            (by(2_001), Default, soon, Ok(())),
            (by(2_000), Default, soon, Err(Reason::Deadline)),
            (by(500), Default, soon, Err(Reason::Deadline)),
            (by(500), Default, Ok(Instant::ZERO), Ok(())),
        ];
        for (call, advice, opens, expected) in cases {
            let expected = expected.map_or_else(Decision::GiveUp, |()| Decision::Again);
            let decided = call.decide(&throttled(advice), opens);
            assert_eq!(decided, expected, "{call:?}, {advice:?}, {opens:?}");
        }
    }
}
