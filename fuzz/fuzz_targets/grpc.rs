//! The reader of gRPC's trailers and of the details in them.
//!
//! The input is the value of a pushback, a line end, and a `google.rpc.Status`.

#![no_main]

use std::time::UNIX_EPOCH;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use http::{HeaderMap, HeaderValue, Response};
use libfuzzer_sys::fuzz_target;
use tower_retry_after::{
    Classifier,
    classifier::{GrpcClassifier, Receipt},
};

fuzz_target!(|input: &[u8]| {
    let line = input.iter().position(|b| *b == b'\n').unwrap_or(0);
    let (pushback, details) = input.split_at(line);
    let encoded = STANDARD_NO_PAD.encode(details);
    let (head, ()) = Response::new(()).into_parts();
    let at = Receipt::at(UNIX_EPOCH);
    for status in ["8", "14"] {
        // Once as it should be, once as it is.
        for details in [encoded.as_bytes(), details] {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static(status));
            if let Ok(value) = HeaderValue::from_bytes(details) {
                trailers.insert("grpc-status-details-bin", value);
            }
            if let Ok(value) = HeaderValue::from_bytes(pushback)
                && line > 0
            {
                trailers.insert("grpc-retry-pushback-ms", value);
            }
            let verdict = GrpcClassifier::new().trailers(&head, &trailers, &at);
            assert!(verdict.is_some_and(|verdict| verdict.is_refusal()));
        }
    }
});
