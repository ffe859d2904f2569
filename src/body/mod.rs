//! Bodies: requests that can be sent again, responses that were read ahead.
//!
//! # Requests
//!
//! A request body is sent again in one of two ways, known by its type. One
//! that is whole in memory is copied (`Full`, `String`, …). One that streams is
//! recorded while it streams: [`RecordBody`] goes out in its place, and once
//! the recording has reached the end of the stream any number of
//! [`ReplayBody`] can be made of it. Any other body is sent once.
//!
//! # Responses
//!
//! A [`ResponseBody`] is the server's body as it came, or one of which the
//! beginning was read in order to judge it or to reuse its connection: what was
//! read comes first, then the rest.

mod peek;
mod record;
mod replay;
mod response;
mod spool;
mod watch;

pub(crate) use self::{
    peek::Peek,
    replay::{Bodies, Kept},
    watch::Watch,
};
pub use self::{
    record::{RecordBody, ReplayBody},
    response::ResponseBody,
};

#[cfg(test)]
mod tests;
