#![cfg_attr(docsrs, feature(doc_cfg))]
//! One tower layer that makes any number of concurrent callers behave,
//! together, as one well-mannered client of a rate-limited service.
//!
//! When one caller learns that a quota is spent, all of them pause. They resume
//! as a ramp and not as a herd, and the rate is then held just under the real
//! quota, so that the next refusal hardly ever comes.
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_retry_after::RetryAfterLayer;
//!
//! # type Http = http::Request<String>;
//! # let http_client = tower::service_fn(|_: Http| async {
//! #     Ok::<_, std::io::Error>(http::Response::new(String::new()))
//! # });
//! let client = ServiceBuilder::new()
//!     .layer(RetryAfterLayer::new())
//!     .service(http_client);
//! # let _ = client;
//! ```
//!
//! # How it works
//!
//! [`RetryAfterLayer`] stacks five small services ([`retry_after`] draws
//! them). Every attempt belongs to a [*scope*](scope): what a quota applies to,
//! by default a host. The [`Gate`] holds calls back while their scope is
//! paused, the [`Rate`] gives them a token and a slot, and [`Classify`] judges
//! the answer and settles it with the scope. [`Retry`] sends refused calls
//! again, where that is safe; [`Resolve`] finds the scope.
//!
//! What an answer means is said by a [`Classifier`] as a [`Verdict`]; how fast
//! a scope may be called is decided by a control [`law`]; how long a refusal
//! closes the gate depends on the hint that came with it ([`hint`]) and on how
//! far the scope's hints can be believed ([`trust`]).
//!
//! | to | see |
//! | --- | --- |
//! | set limits, a law, a deadline | [`RetryAfterLayer`], [`Policy`] |
//! | count quotas by API key, tenant or bucket | [`ScopeKey`] |
//! | say something of one call | [`CallOptions`] |
//! | know what became of one call | [`Outcome`], [`OutcomeHandle`], [`Error`] |
//! | judge a private API's answers | [`classifier`] |
//! | pause, watch or steer a scope by hand | [`ScopeHandle`] |
//! | stack fewer services, or other ones between | [`retry_after`] |
//!
//! # Words
//!
//! A *call* is one logical request, an *attempt* one physical send of it. A
//! *throttle* is an answer by which a server refuses for reasons of rate,
//! concurrency, load or quota. An *episode* is one exhaustion of a quota: from
//! its first throttle to the first accepted attempt that was sent after it.
//!
//! # Runtime
//!
//! Waiting needs a tokio runtime with time enabled. A call that does not have
//! to wait needs none.
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `tracing` (default) | events of pauses, resumes and refused attempts |
//! | `http2` | HTTP/2's `ENHANCE_YOUR_CALM` is a throttle |
//! | `grpc` | [`GrpcClassifier`](classifier) and the layer under a generated client |
//! | `providers` | profiles of well-known services, and the builder for one's own |

// vocabulary
pub mod call_options;
pub mod cost;
pub mod error;
pub mod outcome;
pub mod scope_key;
pub mod time;
pub mod verdict;
// pure
pub mod hint;
pub mod law;
mod retry_policy;
pub mod trust;
// shared state
mod observe;
pub mod scope;
// judging
pub mod body;
pub mod classifier;
// services
pub mod classify;
pub mod gate;
pub mod rate;
pub mod resolve;
pub mod retry;
// composition
pub mod retry_after;

pub use self::{
    call_options::CallOptions,
    classifier::{Classifier, HttpClassifier, classify_body_fn, classify_fn},
    classify::{Classify, ClassifyLayer},
    cost::Cost,
    error::{BoxError, Error, ErrorKind},
    gate::{Gate, GateLayer},
    law::{Aimd, Fixed, Learned},
    outcome::{Outcome, OutcomeHandle, Reason},
    rate::{Rate, RateLayer},
    resolve::{Resolve, ResolveLayer},
    retry::{Retry, RetryLayer},
    retry_after::{RetryAfter, RetryAfterLayer},
    scope::{Classified, Policy, ScopeHandle, ScopeSnapshot, Scoped, Scopes, Ticket},
    scope_key::{Head, ScopeKey},
    verdict::Verdict,
};
