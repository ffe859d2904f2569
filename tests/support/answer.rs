//! Answers that a server gives, and how it gives them.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};

pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;
pub(crate) type Answer = Response<AnswerBody>;

/// How an answer is given, in its extensions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// It takes this much longer than the server's latency.
    pub(super) late: Duration,
    /// The connection fails in its place.
    pub(super) fails: bool,
    /// It is given when this much of the request's body was read.
    pub(super) reads: Option<usize>,
}

/// Changes how an answer is given.
pub(crate) trait After {
    /// It takes `time` longer than the server's latency.
    fn after(self, time: Duration) -> Self;

    /// It is given when `most` bytes of the request's body were read; the rest
    /// is read on, as hyper does.
    fn having_read(self, most: usize) -> Self;

    /// Sets a header.
    fn header(self, name: &'static str, value: &str) -> Self;
}

impl After for Answer {
    fn after(mut self, time: Duration) -> Self {
        manner(&mut self).late = time;
        self
    }

    fn having_read(mut self, most: usize) -> Self {
        manner(&mut self).reads = Some(most);
        self
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers_mut().insert(name, value.parse().unwrap());
        self
    }
}

pub(super) fn manner(answer: &mut Answer) -> &mut Manner {
    answer.extensions_mut().get_or_insert_default()
}

/// An answer of `status` with a body of `text`.
pub(crate) fn status(status: u16, text: &'static str) -> Answer {
    let body = Full::from(text).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = status.try_into().unwrap();
    answer
}

pub(crate) fn ok() -> Answer {
    status(200, "ok")
}

/// A 429 with a `Retry-After`.
pub(crate) fn refusal(retry_after: impl ToString) -> Answer {
    bare_refusal().header("retry-after", &retry_after.to_string())
}

/// A 429 without a hint.
pub(crate) fn bare_refusal() -> Answer {
    status(429, "slow down")
}

/// An answer that never comes.
pub(crate) fn never() -> Answer {
    ok().after(Duration::MAX)
}

/// A connection that breaks in place of an answer.
pub(crate) fn failed() -> Answer {
    let mut answer = ok();
    manner(&mut answer).fails = true;
    answer
}

/// A 200 that sends a byte every second, for ever.
pub(crate) fn endless() -> Answer {
    let bytes = stream::repeat(()).then(|()| async {
        super::sleep(Duration::from_secs(1)).await;
        Ok(Frame::data(Bytes::from_static(b".")))
    });
    Response::new(StreamBody::new(bytes).boxed_unsync())
}

/// An answer of `code` that breaks off after the first bytes of its body.
pub(crate) fn broken_off(code: u16) -> Answer {
    let bytes = stream::iter([
        Ok(Frame::data(Bytes::from_static(b"half"))),
        Err(io::ErrorKind::ConnectionReset.into()),
    ]);
    status(code, "").map(|_| StreamBody::new(bytes).boxed_unsync())
}
