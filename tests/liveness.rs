//! Nobody waits for ever: not for a future that nobody polls, not for a runtime
//! that is gone, not for a place that a service of somebody else's holds.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

mod support;

use support::*;
use tower::Layer as _;
use tower_retry_after::{
    CallOptions, RetryAfterLayer, classify_fn,
    verdict::{Level, Throttle, ThrottleKind},
};

#[tokio::test(start_paused = true)]
async fn two_levels_that_want_different_probes_come_to_terms() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        1 => never(),
        _ => ok(),
    });
    let judge = classify_fn(|head| {
        let throttle = Throttle::new(ThrottleKind::RateLimited).level(Level::ROOT);
        (head.status == 429).then(|| throttle.into())
    });
    let layer = RetryAfterLayer::new().policy(policy().max_in_flight(1));
    let layer = by_path(layer.classifier(judge));
    let client = layer.layer(server.clone());
    let root = layer.scopes().get("root");
    // It stands first at the root, which would rather probe with another.
    let refused = send(&client, get("/root/b"));
    sleep(ms(20)).await;
    let hangs = send(&client, get("/root/a"));
    // The root wants it, but its own scope is full, and there it stands behind
    // the one that the root does not want.
    let mut request = get("/root/a");
    let options = CallOptions::new().deadline(secs(60));
    request.extensions_mut().insert(options);
    let wanted = send(&client, request);
    sleep(secs(20)).await;
    assert_eq!((server.count(), root.snapshot().waiting), (2, 2));
    hangs.abort();
    for call in [refused, wanted] {
        assert_eq!(status_of(&reply(call).await), 200);
    }
}
