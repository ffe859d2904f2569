//! What one attempt costs, where it costs more than one request.

use std::borrow::Cow;

/// What one attempt takes of its scope's buckets.
///
/// Every attempt takes of the bucket of requests, one unless it says
/// otherwise. Services that count other units too have a named bucket for each
/// ([`Policy::bucket`](crate::Policy::bucket)). An attempt takes of all of them
/// or of none; a cost beyond a bucket's depth is granted when that is full, and
/// delays the next. A call without a deadline that would wait for longer than
/// [`max_pause`](crate::Policy::max_pause) is refused.
///
/// ```
/// use tower_retry_after::{CallOptions, Cost};
///
/// // One request of an estimated 1 500 tokens.
/// let options = CallOptions::new().cost(Cost::ONE.and("tokens", 1_500));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    requests: u32,
    named: Vec<(Cow<'static, str>, u32)>,
}

impl Cost {
    /// One request, and nothing of the named buckets.
    pub const ONE: Self = Self::requests(1);

    /// As much as `n` requests; zero takes no token.
    pub const fn requests(n: u32) -> Self {
        Self {
            requests: n,
            named: Vec::new(),
        }
    }

    /// Adds `n` units of the bucket `name`. One that the policy does not know
    /// costs nothing.
    #[must_use]
    pub fn and(mut self, name: impl Into<Cow<'static, str>>, n: u32) -> Self {
        self.named.push((name.into(), n));
        self
    }

    pub(crate) const fn of_requests(&self) -> u32 {
        self.requests
    }

    /// What it takes of the bucket `name`.
    pub(crate) fn of(&self, name: &str) -> u32 {
        let of_name = self.named.iter().filter(|(named, _)| named == name);
        of_name.fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Whether it says anything of the bucket `name`.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.named.iter().any(|(named, _)| named == name)
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::ONE
    }
}
