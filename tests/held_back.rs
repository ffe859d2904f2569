//! No success is held back in order to be judged by its body.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};
use tower_retry_after::{RetryAfterLayer, classify_body_fn};

/// A body that gives its first frames at once and then nothing for an hour.
struct Slow {
    frames: Vec<Bytes>,
    size: SizeHint,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(frame) = self.frames.pop() {
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        let hour = Duration::from_secs(3600);
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(hour)));
        sleep.as_mut().poll(cx).map(|()| None)
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

/// How long the head of an answer takes whose body is asked for.
async fn head_takes(status: u16, size: SizeHint) -> Duration {
    let layer = RetryAfterLayer::new().classifier(classify_body_fn(|_| true, |_, _| None));
    let answer = move |_: Request<String>| {
        let frames = vec![Bytes::from_static(b"{")];
        async move {
            let body = Slow {
                frames,
                size,
                sleep: None,
            };
            Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
        }
    };
    let service = layer.layer(service_fn(answer));
    let request = Request::get("http://a.test/").body(String::new()).unwrap();
    let since = Instant::now();
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.status(), status);
    since.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_success_that_may_be_a_stream_waits_for_nothing_but_its_first_frames() {
    let undeclared = SizeHint::default();
    assert!(head_takes(200, undeclared).await <= Duration::from_millis(60));
    // An error is worth waiting for, but not for ever.
    let error = head_takes(400, undeclared).await;
    assert!(
        (Duration::from_secs(5)..Duration::from_secs(6)).contains(&error),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_success_that_is_large_is_not_read_ahead() {
    let large = SizeHint::with_exact(64 * 1024 + 1);
    assert_eq!(head_takes(200, large).await, Duration::ZERO);
    let small = head_takes(200, SizeHint::with_exact(100)).await;
    assert!(small <= Duration::from_secs(6), "{small:?}");
}
