//! The body of a success is passed on without any allocation of the layer's.

#![cfg(feature = "providers")]

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use allocation_counter::measure;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use tokio::runtime::Builder;
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_retry_after::{HttpClassifier, RetryAfterLayer};

/// Frames that are there already.
struct Ready(VecDeque<Bytes>);

impl Body for Ready {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
    }
}

/// How many bytes a body gives, and how often reading it allocates.
fn read(body: impl Body<Data = Bytes>) -> (usize, u64) {
    let mut body = pin!(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut bytes = 0;
    let counted = measure(|| {
        while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    });
    (bytes, counted.count_total)
}

#[test]
fn a_success_is_passed_on_without_an_allocation_for_its_body() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let known = || HttpClassifier::new().providers();
    for (layer, url) in [
        (RetryAfterLayer::new(), "http://api.acme.test/"),
        (
            RetryAfterLayer::new().classifier(known()),
            "http://api.acme.test/",
        ),
        (
            RetryAfterLayer::new().classifier(known()),
            "https://api.openai.com/v1/models",
        ),
    ] {
        let service = layer.layer(service_fn(|request: Request<Full<Bytes>>| async move {
            let frames = request.headers().len();
            let frames = VecDeque::from(vec![Bytes::from_static(&[0; 4096]); frames]);
            Ok::<_, Infallible>(Response::new(Ready(frames)))
        }));
        // As many frames as the request has fields.
        let call = |frames: usize| {
            let request =
                (0..frames).fold(Request::get(url), |request, _| request.header("a", "b"));
            let request = request.body(Full::default()).unwrap();
            let call = service.clone().oneshot(request);
            let mut response = None;
            let counted = measure(|| response = runtime.block_on(call).ok());
            (counted.count_total, response.unwrap().into_body())
        };
        // The first call makes the scope.
        call(0);
        let (for_one, one) = call(1);
        let (for_many, many) = call(100);
        // Neither boxed nor looked into.
        assert_eq!(format!("{many:?}"), "ResponseBody { ahead: false, .. }");
        assert_eq!(read(one), (4096, 0), "{url}");
        assert_eq!(read(many), (409_600, 0), "{url}");
        assert_eq!(for_many, for_one, "{url}");
    }
}
