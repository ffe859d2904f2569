//! Trust: hints that lie are measured and sanitised, and true ones obeyed.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

#[path = "../support/mod.rs"]
mod support;

mod client;
#[cfg(feature = "tracing")]
mod events;
mod layer;
mod rules;
mod servers;
mod simulated;
mod ways;
mod world;
