//! Every answer of a real service reaches its caller byte for byte, however it
//! is framed.

#![cfg(all(feature = "grpc", feature = "providers"))]

#[path = "../examples/explain/answer.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod answer;
#[path = "../examples/explain/cases.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod cases;
#[path = "support/real.rs"]
mod real;

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, Version,
    header::{CONTENT_LENGTH, DATE, TE, TRAILER, TRANSFER_ENCODING},
};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tower::ServiceExt as _;
use tower_retry_after::{
    Classifier as _, HttpClassifier, RetryAfterLayer, classifier::GrpcClassifier,
};

use self::{
    answer::Answer as Received,
    cases::Case,
    real::{Act, Answer, Server, client, full},
};

/// How the server frames a body.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Framing {
    Length,
    Chunked,
    Trailers,
}

/// The trailers of an answer: its own, or some.
fn trailers(answer: &Received) -> HeaderMap {
    if answer.trailers.is_empty() {
        let sum = HeaderValue::from_static("1234");
        return HeaderMap::from_iter([(HeaderName::from_static("x-sum"), sum)]);
    }
    answer.trailers.clone()
}

/// `answer` as the server gives it: in pieces of odd lengths, but for a body
/// that is framed by its length.
fn framed(answer: &Received, framing: Framing) -> Response<Answer> {
    let data = Bytes::from(answer.body.clone());
    let body = match framing {
        Framing::Length => full(data),
        _ => {
            let pieces = data
                .chunks(7)
                .map(|piece| Frame::data(data.slice_ref(piece)));
            let end = (framing == Framing::Trailers).then(|| Frame::trailers(trailers(answer)));
            let frames: Vec<_> = pieces.chain(end).map(Ok).collect();
            Answer::new(StreamBody::new(stream::iter(frames)))
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.head.status;
    *response.headers_mut() = answer.head.headers.clone();
    for name in [CONTENT_LENGTH, TRANSFER_ENCODING] {
        response.headers_mut().remove(name);
    }
    // HTTP/1 carries the trailers that are announced.
    for name in trailers(answer)
        .keys()
        .filter(|_| framing == Framing::Trailers)
    {
        response.headers_mut().append(TRAILER, name.clone().into());
    }
    response
}

/// Sends one call for `case` through the layer, with the profile of its
/// service, and compares what arrives.
async fn arrives(case: &Case, version: Version, framing: Framing) {
    let about = format!("{} over {version:?}, {framing:?}", case.id);
    let sent = framed(&case.answer, framing);
    let expected = sent.headers().clone();
    let sent = std::sync::Mutex::new(Some(sent));
    let script = move |_| Act::Give(sent.lock().unwrap().take().expect("it is asked once"));
    let server = Server::start(version, script).await;
    let general = HttpClassifier::new().providers();
    let layer = RetryAfterLayer::new().without_retry();
    let layer = match case.answer.profile(Some(&case.provider)) {
        Some(known) => layer.classifier(GrpcClassifier::new().or(known.anywhere()).or(general)),
        None => layer.classifier(GrpcClassifier::new().or(general)),
    };
    let path = case.answer.url.as_ref().map_or("/", |url| url.path());
    let request = Request::post(server.uri() + path.trim_start_matches('/'));
    let request = request
        .header(TE, "trailers")
        .body(Full::<Bytes>::default());
    let response = client(version, layer)
        .oneshot(request.unwrap())
        .await
        .unwrap();
    let (head, body) = response.into_parts();
    let length = case.answer.body.len() as u64;
    if framing == Framing::Length {
        assert_eq!(
            http_body::Body::size_hint(&body).exact(),
            Some(length),
            "{about}"
        );
    }
    assert_eq!(head.status, case.answer.head.status, "{about}");
    let told = |headers: &HeaderMap| {
        let framing = [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER, DATE];
        let of_service = headers.iter().filter(|(name, _)| !framing.contains(name));
        // The blanks around a value are not part of it (RFC 9110, section 5.5).
        let fields = of_service.map(|(name, value)| {
            let value = value.as_bytes().trim_ascii().to_vec();
            (name.clone(), value)
        });
        fields.collect::<Vec<_>>()
    };
    assert_eq!(told(&head.headers), told(&expected), "{about}");
    let body = body.collect().await.unwrap();
    let expected = (framing == Framing::Trailers).then(|| trailers(&case.answer));
    assert_eq!(body.trailers(), expected.as_ref(), "{about}");
    assert_eq!(body.to_bytes(), case.answer.body, "{about}");
}

async fn all_arrive(version: Version, framings: &[Framing]) {
    for case in cases::read(include_str!("cases/responses.jsonl")).unwrap() {
        for framing in framings {
            arrives(&case, version, *framing).await;
        }
    }
}

#[tokio::test]
async fn over_http_1_with_a_length() {
    all_arrive(Version::HTTP_11, &[Framing::Length]).await;
}

#[tokio::test]
async fn over_http_1_in_chunks_with_and_without_trailers() {
    all_arrive(Version::HTTP_11, &[Framing::Chunked, Framing::Trailers]).await;
}

#[tokio::test]
async fn over_http_2_in_frames_with_and_without_trailers() {
    let framings = [Framing::Length, Framing::Chunked, Framing::Trailers];
    all_arrive(Version::HTTP_2, &framings).await;
}
