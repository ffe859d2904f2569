//! The three-line use: a hyper client that lives with a quota.
//!
//! So that there is something to see, a server on a loopback port refuses the
//! first request it gets and asks for a second of patience. Five callers come
//! one after the other; the first meets the refusal, and all of them wait.
//!
//! ```text
//! cargo run --example hyper_client
//! ```

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::{Request, Response, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use tokio::{net::TcpListener, task::JoinSet, time::sleep};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tower_retry_after::{Outcome, RetryAfterLayer};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let address = start_server().await?;

    let hyper_client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let client = ServiceBuilder::new()
        .layer(RetryAfterLayer::new())
        .service(hyper_client);

    let mut callers = JoinSet::new();
    for caller in 1..=5 {
        let mut client = client.clone();
        callers.spawn(async move {
            sleep(caller * Duration::from_millis(100)).await;
            let request = Request::get(format!("http://{address}/")).body(Empty::new())?;
            let response = client.ready().await?.call(request).await?;
            let status = response.status();
            let outcome = response.extensions().get::<Outcome>().cloned();
            response.into_body().collect().await?;
            match outcome {
                Some(Outcome {
                    attempts, waited, ..
                }) => {
                    println!("caller {caller}: {status}, attempt {attempts}, waited {waited:.1?}");
                }
                // One attempt and no wait: there is nothing to tell.
                None => println!("caller {caller}: {status} at once"),
            }
            Ok::<_, BoxError>(())
        });
    }
    callers.join_all().await.into_iter().collect()
}

/// Starts a server that refuses its first request, and no other.
async fn start_server() -> Result<SocketAddr, BoxError> {
    static SEEN: AtomicUsize = AtomicUsize::new(0);

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let answer = service_fn(async |_| {
        let answer = match SEEN.fetch_add(1, Ordering::Relaxed) {
            0 => Response::builder().status(429).header("retry-after", 1),
            _ => Response::builder(),
        };
        answer.body(Full::new(Bytes::from("hello\n")))
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    Ok(address)
}
