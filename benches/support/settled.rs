//! The services in the middle over one that is not HTTP: it settles at once.

use std::{
    convert::Infallible,
    future::{Ready, ready},
};

use tower::{BoxError, Service, ServiceBuilder, service_fn};
use tower_retry_after::{Scoped, gate::GateLayer, rate::RateLayer, verdict::Verdict};

/// [`Gate`](tower_retry_after::Gate) and [`Rate`](tower_retry_after::Rate)
/// over a service to which every call is accepted at once.
pub(crate) fn admitted()
-> impl Service<Scoped<()>, Response = (), Error = BoxError, Future: Send> + Clone + Send + 'static
{
    ServiceBuilder::new()
        .layer(GateLayer::new())
        .layer(RateLayer::new())
        .service(service_fn(accept))
}

fn accept(scoped: Scoped<()>) -> Ready<Result<(), Infallible>> {
    let mut ticket = scoped.ticket;
    ticket.settle(&Verdict::ACCEPTED);
    ready(Ok(()))
}
