//! Trust: hints that lie are measured and sanitised, and true ones obeyed.

mod client;
mod rules;
mod servers;
