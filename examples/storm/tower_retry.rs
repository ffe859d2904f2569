//! `tower::retry` with its exponential backoff: each call for itself.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{Request, Response, StatusCode};
use tokio::time::Sleep;
use tower::{
    retry::{
        Policy, Retry,
        backoff::{Backoff as _, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff as _},
    },
    util::rng::HasherRng,
};

use crate::{ATTEMPTS, callers::HyperClient};

pub(crate) fn service(client: HyperClient) -> Retry<TooManyRequests, HyperClient> {
    Retry::new(TooManyRequests::default(), client)
}

/// Sends again on 429, after 100 ms, 200 ms, 400 ms … 5 s and up to as much
/// again.
#[derive(Clone, Default)]
pub(crate) struct TooManyRequests {
    retries: u32,
    // Made at a call's first retry: a clone of a backoff would draw the same
    // jitter as its original, and so every call the same.
    backoff: Option<ExponentialBackoff>,
}

impl<B, E> Policy<Request<Empty<Bytes>>, Response<B>, E> for TooManyRequests {
    type Future = Sleep;

    fn retry(
        &mut self,
        _: &mut Request<Empty<Bytes>>,
        result: &mut Result<Response<B>, E>,
    ) -> Option<Sleep> {
        let refused = matches!(result, Ok(r) if r.status() == StatusCode::TOO_MANY_REQUESTS);
        if !refused || self.retries + 1 == ATTEMPTS {
            return None;
        }
        self.retries += 1;
        Some(self.backoff.get_or_insert_with(backoff).next_backoff())
    }

    fn clone_request(&mut self, request: &Request<Empty<Bytes>>) -> Option<Request<Empty<Bytes>>> {
        Some(request.clone())
    }
}

fn backoff() -> ExponentialBackoff {
    let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(5));
    ExponentialBackoffMaker::new(shortest, longest, 1.0, HasherRng::new())
        .expect("the bounds are in order")
        .make_backoff()
}
