//! What is written first: each task sleeps as told and sends again.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{HeaderMap, Request, Response, StatusCode, body::Incoming, header::RETRY_AFTER};
use hyper_util::client::legacy::Error;
use tower::{Service, service_fn};

use crate::{ATTEMPTS, callers::HyperClient};

pub(crate) fn service(
    client: HyperClient,
) -> impl Service<Request<Empty<Bytes>>, Response = Response<Incoming>, Error = Error, Future: Send>
+ Clone
+ Send
+ 'static {
    service_fn(move |request| send(client.clone(), request))
}

async fn send(
    client: HyperClient,
    request: Request<Empty<Bytes>>,
) -> Result<Response<Incoming>, Error> {
    for _ in 1..ATTEMPTS {
        let response = client.request(request.clone()).await?;
        if response.status() != StatusCode::TOO_MANY_REQUESTS {
            return Ok(response);
        }
        tokio::time::sleep(retry_after(response.headers())).await;
    }
    client.request(request).await
}

/// The seconds that the header asks for, one where there is none.
fn retry_after(headers: &HeaderMap) -> Duration {
    let header = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let seconds = header.and_then(|value| value.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}
