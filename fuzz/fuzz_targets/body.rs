//! The reader of bodies, by every service's profile.
//!
//! The input is the number of a profile, a status, and a body.

#![no_main]

use std::{sync::LazyLock, time::UNIX_EPOCH};

use http::{Response, header::CONTENT_TYPE};
use libfuzzer_sys::fuzz_target;
use tower_retry_after::{
    Classifier,
    classifier::{
        Receipt,
        providers::{Profile, catalog},
    },
};

static PROFILES: LazyLock<Vec<Profile>> =
    LazyLock::new(|| catalog::all().into_iter().map(Profile::anywhere).collect());

fuzz_target!(|input: &[u8]| {
    let [number, status, body @ ..] = input else {
        return;
    };
    let profile = &PROFILES[usize::from(*number) % PROFILES.len()];
    let statuses = [200, 400, 401, 403, 418, 429, 503, 529];
    let response = Response::builder()
        .status(statuses[usize::from(*status) % statuses.len()])
        .header(CONTENT_TYPE, "application/json")
        .body(());
    let (head, ()) = response.expect("a head").into_parts();
    let at = Receipt::at(UNIX_EPOCH);
    let verdict = profile
        .body(&head, body, &at)
        .expect("a profile judges every body");
    let texts = [verdict.code(), verdict.request_id(), verdict.sample()];
    assert!(
        texts
            .into_iter()
            .flatten()
            .all(|text| text.len() <= 64 && text.is_ascii())
    );
});
