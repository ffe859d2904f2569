//! Bodies of refusals that are too large, too slow, broken or no text at all.

use std::time::Duration;

use http::Version;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{CallOptions, Head, ScopeKey, classify_body_fn, verdict::Verdict};

use super::{
    call, held, layer, outcome,
    raw::{Raw, Step},
    read,
    real::{client, socket},
};

const REFUSED: &str =
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-type: application/json";
const CHUNKED: &str = "transfer-encoding: chunked\r\nconnection: close\r\n\r\n";

/// What is read ahead at most, and what hyper hands over at once.
const MOST_HELD: u64 = 64 * 1024 + 512 * 1024;

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_is_passed_on_and_not_kept() {
    const MEGABYTES: usize = 100;
    let piece = vec![b'x'; 1 << 20];
    let chunk = [b"100000\r\n", &piece[..], b"\r\n"].concat();
    let length = format!(
        "content-length: {}\r\nconnection: close\r\n\r\n",
        MEGABYTES << 20
    );
    for (framing, piece, end) in [(CHUNKED, chunk, "0\r\n\r\n"), (&*length, piece, "")] {
        let steps = [
            Step::text(format!("{REFUSED}\r\n{framing}")),
            Step::Repeat(piece, MEGABYTES),
            Step::text(end),
        ];
        let server = Raw::start(steps).await;
        let reply = call(&client(Version::HTTP_11, layer()), &server.uri()).await;
        assert_eq!(reply.status(), 429);
        let exact = reply.body().size_hint().exact();
        match framing {
            CHUNKED => assert!(held(&reply) <= MOST_HELD, "{} bytes are kept", held(&reply)),
            _ => assert_eq!(exact, Some((MEGABYTES as u64) << 20)),
        }
        let mut body = reply.into_body();
        let mut count = 0;
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.iter().all(|byte| *byte == b'x'));
            count += data.len();
        }
        assert_eq!(count, MEGABYTES << 20);
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn a_refused_body_that_is_too_large_to_keep_does_not_stop_the_retry() {
    let length = format!("content-length: {}\r\n\r\n", 100 << 20);
    let steps = [
        Step::text(format!("HTTP/1.1 429 Too Many Requests\r\n{length}")),
        Step::Repeat(vec![b'x'; 1 << 20], 100),
    ];
    let server = Raw::start(steps).await;
    let request = http::Request::get(server.uri())
        .body(Full::default())
        .unwrap();
    let reply = client(Version::HTTP_11, layer())
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!((server.requests(), outcome(&reply).attempts), (4, 4));
    assert_eq!(read(reply).await.0.len(), 100 << 20);
}

#[tokio::test]
async fn a_body_that_drips_is_judged_by_its_head_and_goes_on_dripping() {
    let steps = [Step::text(format!("{REFUSED}\r\n{CHUNKED}")), Step::Drip];
    let server = Raw::start(steps).await;
    let mut request = http::Request::post(server.uri())
        .body(Full::default())
        .unwrap();
    let soon = CallOptions::new().deadline(Duration::from_secs(2));
    request.extensions_mut().insert(soon);
    let reply = client(Version::HTTP_11, layer())
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(reply.status(), 429);
    assert_eq!(outcome(&reply).hint.unwrap().wait(), Duration::from_secs(1));
    assert!(held(&reply) < 1024);
    let mut body = reply.into_body();
    let mut data = Vec::new();
    while data.len() < 40 {
        let frame = body.frame().await.unwrap().unwrap();
        data.extend_from_slice(&frame.into_data().unwrap());
    }
    assert!(
        data.iter().copied().eq((0..=u8::MAX).take(data.len())),
        "{data:?}"
    );
}

#[tokio::test]
async fn a_body_that_is_no_text_or_no_json_is_passed_on() {
    let nested = "{\"a\":".repeat(200) + "1" + &"}".repeat(200);
    for body in [
        Vec::new(),
        b"\xff\xfe\xfd\x80\x00\xc0".repeat(1000),
        nested.into_bytes(),
        "[".repeat(60_000).into_bytes(),
        b"{\"error\":{\"code\":".to_vec(),
    ] {
        let server = Raw::answer(REFUSED, body.clone()).await;
        let reply = call(&client(Version::HTTP_11, layer()), &server.uri()).await;
        assert_eq!(outcome(&reply).hint.unwrap().wait(), Duration::from_secs(1));
        assert_eq!(read(reply).await, (body, false));
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn an_encoded_body_is_neither_decoded_nor_judged() {
    let bomb = [
        &b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"[..],
        &[0xff; 10_000],
    ]
    .concat();
    let head = format!("{REFUSED}\r\ncontent-encoding: gzip");
    let server = Raw::answer(&head, bomb.clone()).await;
    let judged = classify_body_fn(
        |_| true,
        |_, _| -> Option<Verdict> { panic!("it is judged") },
    );
    let client = client(Version::HTTP_11, layer().classifier(judged));
    let reply = call(&client, &server.uri()).await;
    assert_eq!(outcome(&reply).hint.unwrap().wait(), Duration::from_secs(1));
    assert_eq!(read(reply).await, (bomb, false));
}

#[tokio::test]
async fn a_body_that_breaks_off_breaks_off_for_its_caller() {
    let truncated = |end: Step| {
        [
            Step::text(format!("{REFUSED}\r\n{CHUNKED}20\r\nonly this")),
            end,
        ]
    };
    let short = format!("{REFUSED}\r\ncontent-length: 20\r\n\r\nonly this");
    for steps in [
        truncated(Step::text("")).to_vec(),
        truncated(Step::Reset).to_vec(),
        vec![Step::text(short)],
    ] {
        let server = Raw::start(steps).await;
        let reply = call(&client(Version::HTTP_11, layer()), &server.uri()).await;
        assert_eq!(outcome(&reply).hint.unwrap().wait(), Duration::from_secs(1));
        assert_eq!(read(reply).await, (b"only this".to_vec(), true));
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn a_reset_before_the_head_is_an_error_and_no_refusal() {
    for status in ["", "HTTP/1.1 429 Too Ma"] {
        let server = Raw::start([Step::text(status), Step::Reset]).await;
        let layer = layer();
        let request = http::Request::get(server.uri())
            .body(Full::default())
            .unwrap();
        let key = ScopeKey::host(&Head::of(&request)).unwrap().into_owned();
        let reply = layer.layer(socket(Version::HTTP_11)).oneshot(request);
        assert!(!reply.await.unwrap_err().is_refusal());
        let snapshot = layer.scopes().get(key).snapshot();
        assert_eq!((snapshot.sent, snapshot.throttled), (1, 0));
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn trailers_without_a_body_are_passed_on() {
    let steps = [Step::text(format!(
        "{REFUSED}\r\ntrailer: x-sum\r\n{CHUNKED}0\r\nx-sum: 1234\r\n\r\n"
    ))];
    let server = Raw::start(steps).await;
    let reply = call(&client(Version::HTTP_11, layer()), &server.uri()).await;
    let body = reply.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-sum"], "1234");
    assert!(body.to_bytes().is_empty());
}
