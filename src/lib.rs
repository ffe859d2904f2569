#![cfg_attr(docsrs, feature(doc_cfg))]
//! One tower layer that makes any number of concurrent callers behave,
//! together, as one well-mannered client of a rate-limited service.

// vocabulary
pub mod call_options;
pub mod error;
pub mod outcome;
pub mod scope_key;
pub mod time;
pub mod verdict;
// pure
pub mod hint;
pub mod law;
mod retry_policy;
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
    error::{BoxError, Error, ErrorKind},
    gate::{Gate, GateLayer},
    law::{Aimd, Fixed},
    outcome::{Outcome, OutcomeHandle, Reason},
    rate::{Rate, RateLayer},
    resolve::{Resolve, ResolveLayer},
    retry::{Retry, RetryLayer},
    retry_after::{RetryAfter, RetryAfterLayer},
    scope::{Classified, Policy, ScopeHandle, ScopeSnapshot, Scoped, Scopes, Ticket},
    scope_key::{Head, ScopeKey},
    verdict::Verdict,
};
