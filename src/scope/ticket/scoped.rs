//! What passes between the services.

use std::fmt;

use super::Ticket;
use crate::verdict::Verdict;

/// A request and its ticket, as they pass through the services.
///
/// Not `Clone`: a ticket is one attempt's. `Debug` hides the request.
pub struct Scoped<Req> {
    /// The request.
    pub request: Req,
    /// Its place, token and slot.
    pub ticket: Ticket,
}

impl<Req> Scoped<Req> {
    /// Puts `request` under `ticket`.
    pub const fn new(request: Req, ticket: Ticket) -> Self {
        Self { request, ticket }
    }
}

impl<Req> fmt::Debug for Scoped<Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticket = &self.ticket;
        f.debug_struct("Scoped")
            .field("ticket", ticket)
            .finish_non_exhaustive()
    }
}

/// A response, what it means, and the ticket of a call to which more happened.
#[derive(Debug)]
pub struct Classified<Res> {
    /// The response.
    pub response: Res,
    /// What it means.
    pub verdict: Verdict,
    /// Its ticket, settled; the next attempt can be made of it.
    ///
    /// `None` where nothing happened: a first attempt that did not wait and
    /// was not refused. Boxed, for few answers have one and all are moved.
    pub ticket: Option<Box<Ticket>>,
}
