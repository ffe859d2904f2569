//! What is sent again, when, how often, and what the caller is told.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod attempts;
mod bodies;
mod budget;
mod handles;
mod poison;
mod rates;
