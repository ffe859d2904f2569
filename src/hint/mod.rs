//! Hints: reading the wait that a server asks for.
//!
//! Pure and total: no input panics, overflows or is silently misread. What
//! cannot be read is absent with a reason, neither zero nor an error.

mod clock;
mod dimension;
#[cfg(feature = "grpc")]
mod grpc_timeout;
mod number;
mod rate_limit;
mod retry_after;
#[cfg(feature = "providers")]
mod unit;

#[cfg(feature = "grpc")]
pub(crate) use self::grpc_timeout::{grpc_timeout, shorten_grpc_timeout};
#[cfg(feature = "providers")]
pub(crate) use self::number::units;
pub use self::retry_after::retry_after;
#[cfg(feature = "providers")]
pub use self::unit::Unit;
pub(crate) use self::{
    clock::ServerClock,
    dimension::{Dimension, Remaining, spent, told},
    rate_limit::RateLimitFields,
};
