//! `RetryAfterLayer`: the callers wait together, and are let go in order.

use tower::Layer as _;
use tower_retry_after::{RetryAfter, RetryAfterLayer};

use crate::{ATTEMPTS, callers::HyperClient};

pub(crate) fn service(client: HyperClient) -> RetryAfter<HyperClient> {
    RetryAfterLayer::new().max_attempts(ATTEMPTS).layer(client)
}
