//! What is sent again, when, how often, and what the caller is told.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod attempts;
mod bodies;
mod budget;
mod handles;
mod poison;
mod rates;
