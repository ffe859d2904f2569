//! What waits, for how long, and how it is let go.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

#[path = "../support/mod.rs"]
mod support;

mod deadlines;
mod hints;
mod long_pauses;
mod opens;
mod pauses;
mod probes;
mod ramps;
