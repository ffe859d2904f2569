//! The whole stack as one layer.
//!
//! [`RetryAfterLayer`] is these five services, and nothing more:
//!
//! ```text
//! http::Request<B>                                        http::Response<ResponseBody<RB>>
//!   │                                                            ▲
//! Resolve    finds the scope                                     │
//! Retry      keeps what is needed to send again            gives back, or goes round again
//! Gate       waits out the pause                                 │
//! Rate       takes a token and a slot                            │
//! Classify   sends                                         judges, and settles the scope
//!   │                                                            ▲
//!   inner service: a hyper-util client, a tonic channel, reqwest, …
//! ```
//!
//! The classifier stands innermost, next to the answer; the gate above the
//! rate, so that a paused call holds neither token nor slot. Whoever wants
//! fewer of them, or something between them, stacks them by hand, in this
//! order.

#[cfg(feature = "grpc")]
mod grpc;
mod layer;

pub use self::layer::RetryAfterLayer;
use crate::{classify::Classify, gate::Gate, rate::Rate, resolve::Resolve, retry::Retry};

/// The service that [`RetryAfterLayer`] makes of `S`.
pub type RetryAfter<S> = Resolve<Retry<Gate<Rate<Classify<S>>>>>;
