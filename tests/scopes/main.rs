//! What a quota applies to: keys, the registry, handles, and what one call may
//! ask for.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

#[path = "../support/mod.rs"]
mod support;

mod costs;
mod handles;
mod keys;
mod options;
mod registry;
mod secrets;
mod slots;
mod snapshots;
