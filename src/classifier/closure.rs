//! Classifiers made of closures.

use std::fmt;

use ::http::{Uri, response::Parts};

use super::{Classifier, Phase, Receipt, http};
use crate::verdict::Verdict;

/// Makes a classifier of a closure that judges the head of an answer.
///
/// Where the closure returns `None`, it has nothing to say: the next
/// classifier given to [`or`](Classifier::or) is asked, and in the end the
/// general rules of [`HttpClassifier`](super::HttpClassifier) hold.
///
/// # Example
///
/// A service that says how many seconds it is busy for:
///
/// ```
/// use std::time::Duration;
/// use http::response::Parts;
/// use tower_retry_after::classifier::classify_fn;
/// use tower_retry_after::verdict::{Hint, Throttle, ThrottleKind};
///
/// let classifier = classify_fn(|head: &Parts| {
///     let secs = head.headers.get("x-busy")?.to_str().ok()?.parse().ok()?;
///     let hint = Hint::new(Duration::from_secs(secs), "x-busy");
///     Some(Throttle::new(ThrottleKind::Overloaded).hint(hint).into())
/// });
/// # let _ = classifier;
/// ```
pub fn classify_fn<F>(f: F) -> ClassifyFn<F>
where
    F: Fn(&Parts) -> Option<Verdict> + Send + Sync + 'static,
{
    ClassifyFn {
        f,
        unprocessed: false,
    }
}

/// Makes a classifier of a closure that judges the beginning of a body.
///
/// The body, at most its first 64 KiB, is read only where `when` says so.
/// Until then the general rules hold, and also if it can't be read. Where `f`
/// returns `None`, the next classifier is asked as by [`classify_fn`].
///
/// Ask for the body of a success only where it is known to be small and whole:
/// a stream would be held back.
///
/// # Example
///
/// A service that refuses with `400` and a word:
///
/// ```
/// use http::{StatusCode, response::Parts};
/// use tower_retry_after::classifier::classify_body_fn;
/// use tower_retry_after::verdict::{ThrottleKind, Verdict};
///
/// let classifier = classify_body_fn(
///     |head: &Parts| head.status == StatusCode::BAD_REQUEST,
///     |_, body| body.starts_with(b"BUSY").then(|| Verdict::throttled(ThrottleKind::Overloaded)),
/// );
/// # let _ = classifier;
/// ```
pub fn classify_body_fn<W, F>(when: W, f: F) -> ClassifyBodyFn<W, F>
where
    W: Fn(&Parts) -> bool + Send + Sync + 'static,
    F: Fn(&Parts, &[u8]) -> Option<Verdict> + Send + Sync + 'static,
{
    ClassifyBodyFn {
        when,
        f,
        unprocessed: false,
    }
}

/// A classifier made by [`classify_fn`].
#[derive(Clone, Copy)]
pub struct ClassifyFn<F> {
    f: F,
    unprocessed: bool,
}

/// A classifier made by [`classify_body_fn`].
#[derive(Clone, Copy)]
pub struct ClassifyBodyFn<W, F> {
    when: W,
    f: F,
    unprocessed: bool,
}

// ===== impl ClassifyFn =====

impl<F> ClassifyFn<F> {
    /// Lets the closure give [`RetryAdvice::Unprocessed`], at the cost of
    /// keeping every request to send it again.
    ///
    /// [`RetryAdvice::Unprocessed`]: crate::verdict::RetryAdvice::Unprocessed
    #[must_use]
    pub fn unprocessed(mut self) -> Self {
        self.unprocessed = true;
        self
    }
}

impl<F> Classifier for ClassifyFn<F>
where
    F: Fn(&Parts) -> Option<Verdict> + Send + Sync + 'static,
{
    fn head(&self, head: &Parts, _: &Receipt<'_>) -> Option<Phase> {
        (self.f)(head).map(Phase::Decided)
    }

    fn may_be_unprocessed(&self, _: &Uri) -> bool {
        self.unprocessed
    }
}

impl<F> fmt::Debug for ClassifyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassifyFn").finish_non_exhaustive()
    }
}

// ===== impl ClassifyBodyFn =====

impl<W, F> ClassifyBodyFn<W, F> {
    /// Lets the closure give [`RetryAdvice::Unprocessed`], at the cost of
    /// keeping every request to send it again.
    ///
    /// [`RetryAdvice::Unprocessed`]: crate::verdict::RetryAdvice::Unprocessed
    #[must_use]
    pub fn unprocessed(mut self) -> Self {
        self.unprocessed = true;
        self
    }
}

impl<W, F> Classifier for ClassifyBodyFn<W, F>
where
    W: Fn(&Parts) -> bool + Send + Sync + 'static,
    F: Fn(&Parts, &[u8]) -> Option<Verdict> + Send + Sync + 'static,
{
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        (self.when)(head).then(|| Phase::NeedBody {
            meanwhile: http::judge(head, at),
        })
    }

    fn body(&self, head: &Parts, body: &[u8], _: &Receipt<'_>) -> Option<Verdict> {
        (self.f)(head, body)
    }

    fn may_be_unprocessed(&self, _: &Uri) -> bool {
        self.unprocessed
    }
}

impl<W, F> fmt::Debug for ClassifyBodyFn<W, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassifyBodyFn").finish_non_exhaustive()
    }
}
