//! What one call asks for, as an extension of its request.

use std::time::Duration;

use crate::{cost::Cost, scope_key::ScopeKey};

/// What one call asks for, put into its request's extensions.
///
/// ```
/// use tower_retry_after::CallOptions;
///
/// let request = http::Request::post("https://api.example.com/orders")
///     .extension(CallOptions::new().idempotent().attempts(2))
///     .body("…")
///     .unwrap();
/// # let _ = request;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options count once they are in a request's extensions"]
pub struct CallOptions {
    pub(crate) bypass: bool,
    pub(crate) no_retry: bool,
    pub(crate) idempotent: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) attempts: Option<u32>,
    pub(crate) scope: Option<ScopeKey<'static>>,
    pub(crate) cost: Option<Cost>,
}

impl CallOptions {
    /// Nothing out of the ordinary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends the call past gate and rate, neither counted nor learned from.
    pub fn bypass(mut self) -> Self {
        self.bypass = true;
        self
    }

    /// Never sends the call again. The gate still closes for everyone.
    pub fn no_retry(mut self) -> Self {
        self.no_retry = true;
        self
    }

    /// Says that the call may be sent again, whatever its method.
    pub fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Sets the time from arrival to the head of the answer. Defaults to the
    /// layer's; the shorter one counts.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets how many attempts are made in all, at least one. Defaults to the
    /// layer's.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts.max(1));
        self
    }

    /// Sets what each attempt takes of the scope's buckets, in place of what the
    /// layer would compute. Defaults to one request.
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Names the scope, in place of what the layer would compute.
    pub fn scope(mut self, scope: ScopeKey<'static>) -> Self {
        self.scope = Some(scope);
        self
    }
}
