//! What waits, for how long, and how it is let go.

#[path = "../support/mod.rs"]
mod support;

mod deadlines;
mod hints;
mod long_pauses;
mod pauses;
mod probes;
mod ramps;
