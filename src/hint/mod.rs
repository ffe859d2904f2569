//! Hints: reading the wait that a server asks for.
//!
//! Pure and total: no input panics, overflows or is silently misread. What
//! cannot be read is absent with a reason, neither zero nor an error.

mod clock;
mod number;
mod retry_after;

pub(crate) use self::clock::ServerClock;
pub use self::retry_after::retry_after;
