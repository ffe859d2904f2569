//! Trust: hints that lie are measured and sanitised, and true ones obeyed.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod layer;
mod rules;
mod servers;
mod simulated;
mod ways;
mod world;
