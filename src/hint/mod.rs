//! Hints: reading the wait that a server asks for.
//!
//! Pure and total: no input panics, overflows or is silently misread.

mod retry_after;

pub use self::retry_after::{retry_after, RetryAfter};
