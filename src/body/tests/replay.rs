use std::{convert::Infallible, error::Error as StdError};

use http_body_util::{
    BodyExt, Empty, Full,
    combinators::{BoxBody, UnsyncBoxBody},
};

use super::*;
use crate::{
    body::{Bodies, Kept, RecordBody, ReplayBody},
    retry_policy::Allowance,
};

const CAP: usize = 64 * 1024;

/// A boxed body whose errors are the script's.
type Boxed = UnsyncBoxBody<Bytes, u8>;

fn bodies() -> Bodies {
    Bodies::default().recorded(Boxed::new, Boxed::new)
}

/// What a call does with its body before it is sent.
fn prepare_by<B: 'static>(bodies: &Bodies, body: B) -> (B, Option<Kept<B>>) {
    match bodies.copy(&body) {
        None => bodies.record(body, &Allowance::default()),
        kept => (body, kept),
    }
}

fn prepare(script: Script) -> (Boxed, Option<Kept<Boxed>>) {
    prepare_by(&bodies(), Boxed::new(script))
}

fn again<B>(kept: &Option<Kept<B>>) -> Option<B> {
    kept.as_ref().and_then(Kept::again)
}

/// Polls `body` this often, and tells whether there may be more.
fn pull(body: &mut Boxed, polls: usize) -> bool {
    (0..polls).all(|_| {
        matches!(
            poll(Pin::new(&mut *body)),
            Poll::Pending | Poll::Ready(Some(Ok(_)))
        )
    })
}

/// Polls `body` for `frames` frames, pauses not counted.
fn read_some(body: &mut Boxed, frames: usize) {
    for _ in 0..frames {
        while poll(Pin::new(&mut *body)).is_pending() {}
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn a_recorded_body_passes_unchanged_and_is_repeated_only_if_whole(
        script in scripts(),
        hasty in any::<bool>(),
    ) {
        let all = script.told();
        let weight = all.data.len() + all.trailers.as_ref().map_or(0, |_| 39);
        let (body, kept) = prepare(script.clone());
        prop_assert_eq!(read(body, hasty), all.clone());
        let whole = weight <= CAP && all.error.is_none();
        for _ in 0..3 {
            let body = again(&kept);
            prop_assert_eq!(body.is_some(), whole);
            let Some(body) = body else { break };
            prop_assert_eq!(body.size_hint().exact(), Some(all.data.len() as u64));
            prop_assert_eq!(read(body, hasty), all.clone());
        }
    }

    #[test]
    fn half_an_upload_is_never_made_whole(
        script in scripts(),
        frames in 0..12_usize,
        later in 0..12_usize,
    ) {
        let all = script.told();
        let (mut body, kept) = prepare(script);
        // The server answers early, the client asks, and the old attempt is
        // pulled on.
        let more = pull(&mut body, frames);
        let first = again(&kept);
        if more {
            pull(&mut body, later);
        }
        let second = again(&kept);
        prop_assert_eq!(first.is_some(), second.is_some());
        drop(body);
        for body in [first, second, again(&kept)].into_iter().flatten() {
            prop_assert_eq!(read(body, false), all.clone());
        }
    }
}

#[test]
fn bodies_in_memory_are_copied_as_often_as_wanted() {
    fn check<B>(body: B, expected: &[u8])
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let (body, kept) = prepare_by(&Bodies::default(), body);
        for body in [Some(body), again(&kept), again(&kept)] {
            assert_eq!(read(body.expect("known"), false).data, expected);
        }
    }
    check(Full::new(Bytes::from_static(b"full")), b"full");
    check(Empty::new(), b"");
    check(String::from("string"), b"string");
}

#[test]
fn boxed_bodies_are_known_by_default() {
    fn check<B>(body: B)
    where
        B: Body<Data = Bytes> + 'static,
        B::Error: std::fmt::Debug,
    {
        let (body, kept) = prepare_by(&Bodies::default(), body);
        assert_eq!(read(body, false).data, b"boxed");
        assert_eq!(read(again(&kept).expect("known"), false).data, b"boxed");
    }
    type BoxError = Box<dyn StdError + Send + Sync>;
    let full = || Full::new(Bytes::from_static(b"boxed"));
    check(full().boxed());
    check(full().boxed_unsync());
    check(BoxBody::new(full().map_err(BoxError::from)));
    check(UnsyncBoxBody::new(full().map_err(BoxError::from)));
}

#[test]
fn an_unknown_body_is_sent_once() {
    let (body, kept) = prepare_by(&Bodies::default(), Script::of(&[b"x"]));
    assert!(kept.is_none());
    assert_eq!(read(body, false).data, b"x");
}

#[test]
fn the_latest_registration_wins_and_may_refuse() {
    let bodies = Bodies::default().copied(|body: &String| {
        let small = body.len() < 3;
        small.then(|| body.to_uppercase())
    });
    let (_, kept) = prepare_by(&bodies, String::from("ab"));
    assert_eq!(again(&kept), Some(String::from("AB")));
    let (body, kept) = prepare_by(&bodies, String::from("abc"));
    assert!(kept.is_none());
    assert_eq!(body, "abc");
}

#[test]
fn a_clone_with_another_body_leaves_the_original_alone() {
    let original = Bodies::default();
    let _more = original
        .clone()
        .copied(|script: &Script| Some(script.clone()));
    let (_, kept) = prepare_by(&original, Script::of(&[]));
    assert!(kept.is_none());
}

#[test]
fn exactly_the_cap_is_kept_and_a_byte_more_is_not() {
    for (length, kept_whole) in [(0, true), (CAP, true), (CAP + 1, false)] {
        for odd in [1_000, 4_099, 65_536, 70_000] {
            for hints in [Hints::Exact, Hints::None] {
                let all = Bytes::from_iter((0..length).map(|at| at as u8));
                let chunks = all
                    .chunks(odd)
                    .map(|chunk| Step::Data(all.slice_ref(chunk)));
                let script = Script {
                    hints,
                    ..Script::new(chunks)
                };
                let (body, kept) = prepare(script);
                assert_eq!(read(body, true).data, all, "{length} by {odd}");
                let again = again(&kept).map(|body| read(body, true).data);
                assert_eq!(again, kept_whole.then(|| all.to_vec()), "{length} by {odd}");
            }
        }
    }
}

#[test]
fn a_body_known_to_be_too_long_is_not_even_wrapped() {
    let (_, kept) = prepare(Script::new([Step::Data(Bytes::from(vec![0; CAP + 1]))]));
    assert!(kept.is_none());
}

#[test]
fn an_empty_body_is_kept_without_recording() {
    let wrapped = |_: RecordBody<Boxed>| -> Boxed { panic!("an empty body was wrapped") };
    let bodies = Bodies::default().recorded(wrapped, Boxed::new);
    let (body, kept) = prepare_by(&bodies, Boxed::new(Script::of(&[])));
    assert!(body.is_end_stream());
    assert!(again(&kept).expect("empty").is_end_stream());
}

#[test]
fn a_retry_before_the_body_was_read_at_all_is_none() {
    let (body, kept) = prepare(Script::of(&[b"first", b"second"]));
    assert!(again(&kept).is_none());
    assert_eq!(
        read(body, false).data,
        b"firstsecond",
        "the old attempt goes on"
    );
    assert!(
        again(&kept).is_none(),
        "what it read since then does not count"
    );
}

#[test]
fn a_replay_is_not_cut_short_by_one_that_was_not_read() {
    let (body, kept) = prepare(Script::of(&[b"first", b"second"]));
    read(body, false);
    let mut early = again(&kept).expect("whole");
    read_some(&mut early, 1);
    let next = again(&kept).expect("whole");
    drop(early);
    assert_eq!(read(next, false).data, b"firstsecond");
}

#[test]
fn replays_share_what_was_recorded() {
    let (body, kept) = prepare(Script::of(&[b"first", b"second"]));
    read(body, false);
    let second = || {
        let mut body = again(&kept).expect("whole");
        read_some(&mut body, 1);
        match poll(Pin::new(&mut body)) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap(),
            _ => panic!("the second chunk"),
        }
    };
    assert_eq!(second().as_ptr(), second().as_ptr());
}

#[test]
fn a_reader_that_knows_the_length_need_not_ask_for_the_end() {
    let (mut body, kept) = prepare(Script::of(&[b"all of it"]));
    read_some(&mut body, 1);
    drop(body);
    assert_eq!(read(again(&kept).expect("whole"), false).data, b"all of it");
}

#[test]
fn the_last_byte_is_not_the_end_unless_the_body_says_so() {
    let script = Script {
        tells_end: false,
        ..Script::of(&[b"all of it"])
    };
    let (mut body, kept) = prepare(script);
    read_some(&mut body, 1);
    drop(body);
    assert!(again(&kept).is_none(), "trailers might have followed");
}

#[test]
fn an_error_is_not_an_end() {
    let script = Script::new([Step::Data(Bytes::from_static(b"half")), Step::Error(1)]);
    let (body, kept) = prepare(script);
    assert_eq!(read(body, false).error, Some(1));
    assert!(again(&kept).is_none());
}

#[test]
fn recordings_together_keep_no_more_than_the_allowance() {
    let allowance = Allowance::default();
    let bodies = bodies();
    let script = Script::new([Step::Data(Bytes::from(vec![0; CAP]))]);
    let mut kept = Vec::new();
    let most = Allowance::MOST / CAP;
    for _ in 0..most {
        let (body, more) = bodies.record(Boxed::new(script.clone()), &allowance);
        read(body, false);
        kept.push(more.expect("recorded"));
    }
    assert_eq!(allowance.left(), 0);
    let (body, one_more) = bodies.record(Boxed::new(script.clone()), &allowance);
    assert_eq!(read(body, false).data.len(), CAP, "sent all the same");
    assert!(again(&one_more).is_none());

    // A replay keeps its bytes accounted for when the recording is gone.
    let replay = kept.pop().and_then(|kept| kept.again());
    assert_eq!(allowance.left(), 0);
    drop(replay);
    assert_eq!(allowance.left(), CAP);
    kept.clear();
    assert_eq!(allowance.left(), Allowance::MOST);
}

#[test]
fn a_recording_that_nobody_can_use_any_more_is_given_up() {
    for keeper_goes_first in [true, false] {
        let allowance = Allowance::default();
        let script = Script::of(&[b"first", b"second", b"third"]);
        let (mut body, kept) = bodies().record(Boxed::new(script), &allowance);
        read_some(&mut body, 1);
        assert_eq!(allowance.left(), Allowance::MOST - 5);
        if keeper_goes_first {
            drop(kept);
            assert_eq!(allowance.left(), Allowance::MOST);
            read_some(&mut body, 1);
        } else {
            drop(body);
        }
        assert_eq!(allowance.left(), Allowance::MOST);
    }
}

#[test]
fn trailers_are_repeated_and_count() {
    let mut long = HeaderMap::new();
    long.insert("x", HeaderValue::from_bytes(&[b'a'; CAP]).unwrap());
    for (trailers, kept_whole) in [(trailers(), true), (long, false)] {
        let script = Script::new([
            Step::Data(Bytes::from_static(b"data")),
            Step::Trailers(trailers.clone()),
        ]);
        let (body, kept) = prepare(script);
        assert_eq!(read(body, false).trailers, Some(trailers.clone()));
        let again = again(&kept).map(|body| read(body, false));
        assert_eq!(again.is_some(), kept_whole);
        if let Some(again) = again {
            assert_eq!(again.trailers, Some(trailers));
        }
    }
}

#[test]
fn wrapped_bodies_are_as_send_and_sync_as_what_they_wrap() {
    fn assert_send<T: Send>() {}
    fn assert_sync<T: Sync>() {}
    assert_send::<RecordBody<Boxed>>();
    assert_sync::<RecordBody<BoxBody<Bytes, Infallible>>>();
    // The error type of the original does not matter: it is never made.
    assert_send::<ReplayBody<std::rc::Rc<u8>>>();
    assert_sync::<ReplayBody<std::rc::Rc<u8>>>();
    assert_send::<Kept<Boxed>>();
    assert_sync::<Bodies>();
}
