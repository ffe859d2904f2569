//! What an outcome handle is told, however its call ends.

use std::time::Duration;

use http::Request;
use tower::ServiceExt as _;
use tower_retry_after::{CallOptions, Outcome, OutcomeHandle, Reason};

use crate::support::*;

const A: &str = "http://a.test/";

fn watched(uri: &str, handle: &OutcomeHandle) -> Request<Body> {
    let mut request = get(uri);
    request.extensions_mut().insert(handle.clone());
    request
}

/// What is told of a call that is dropped at `at`; it waits behind a pause of
/// three seconds if it is `paused`.
async fn dropped(server: &Server, paused: bool, at: Duration) -> Outcome {
    let (client, layer) = client_of(server, fast());
    if paused {
        layer.scopes().get(scope_of(A)).pause_for(secs(3));
    }
    let handle = OutcomeHandle::new();
    let call = send(&client, watched(A, &handle));
    sleep(at).await;
    assert_eq!(handle.get(), None, "it has not ended");
    call.abort();
    assert!(call.await.is_err());
    handle.get().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_flight_was_sent() {
    let server = Server::new(ms(10), |_| never());
    let told = dropped(&server, false, ms(5)).await;
    assert_eq!((told.attempts, told.waited), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_between_attempts_tells_of_its_last_answer() {
    let server = Server::new(ms(10), |_| refusal(2));
    let told = dropped(&server, false, ms(1_010)).await;
    assert_eq!((told.attempts, told.waited), (1, secs(1)));
    assert_eq!(told.hint.unwrap().wait(), secs(2));
    assert_eq!(told.scope, Some(scope_of(A)));
    assert_eq!(told.gave_up, None);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_its_second_flight_was_sent_twice() {
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        _ => never(),
    });
    let told = dropped(&server, false, secs(10)).await;
    assert_eq!(told.attempts, 2);
    assert_eq!(told.waited, server.times()[1] - ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_the_queue_was_never_sent() {
    let server = Server::new(ms(10), |_| ok());
    let told = dropped(&server, true, secs(1)).await;
    assert_eq!((told.attempts, told.waited), (0, secs(1)));
    assert_eq!(server.count(), 0);
}

/// What is told of a call that ends by itself; the same as its answer tells.
async fn ended(client: &Client, mut request: Request<Body>) -> Outcome {
    let handle = OutcomeHandle::new();
    request.extensions_mut().insert(handle.clone());
    let reply = client.clone().oneshot(request).await;
    let told = handle.get().unwrap();
    if let Ok(answer) = &reply
        && let Some(outcome) = answer.extensions().get::<Outcome>()
    {
        assert_eq!(*outcome, told);
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_by_itself_is_told_of_too() {
    let server = Server::new(ms(10), |send| match &*send.path {
        "/refused" => refusal(3600),
        "/failed" => failed(),
        _ => ok(),
    });
    let (client, _) = client_of(&server, fast());
    let mut past = get(A);
    past.extensions_mut().insert(CallOptions::new().bypass());
    for (request, attempts, gave_up) in [
        (get(A), 1, None),
        (get("http://a.test/failed"), 1, None),
        (past, 1, None),
        (get("http://a.test/refused"), 1, Some(Reason::PauseTooLong)),
        // It is refused, and never sent.
        (get(A), 0, None),
    ] {
        let what = request.uri().to_string();
        let told = ended(&client, request).await;
        assert_eq!((told.attempts, told.gave_up), (attempts, gave_up), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_falls_back_on_its_last_answer_tells_all_that_it_waited() {
    let server = Server::new(ms(10), |_| refusal(2));
    let (client, layer) = client_of(&server, fast());
    let call = tokio::spawn(async move { ended(&client, get(A)).await });
    sleep(ms(1_010)).await;
    layer.scopes().get(scope_of(A)).pause_for(secs(1000));
    let told = call.await.unwrap();
    assert_eq!((told.attempts, told.waited), (1, secs(1)));
    assert_eq!(told.gave_up, Some(Reason::PauseTooLong));
}
