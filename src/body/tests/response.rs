use std::{future::Future, rc::Rc};

use http_body_util::{Empty, Full};

use super::*;
use crate::{
    body::{Peek, ResponseBody},
    scope::{ScopeHandle, Scopes, Slot},
    verdict::Verdict,
};

/// A slot, and the scope that tells whether it is still held.
fn slot() -> (Option<Slot>, ScopeHandle) {
    let scopes = Scopes::default();
    let mut ticket = scopes.get("a").ticket();
    ticket.settle(&Verdict::ACCEPTED);
    (ticket.take_slot(), scopes.get("a"))
}

fn is_held(scope: &ScopeHandle) -> bool {
    scope.snapshot().in_flight > 0
}

fn untouched(script: Script) -> ResponseBody<Script> {
    ResponseBody::new(script, None)
}

/// Polls `peek` until it is ready, but at most `polls` times.
fn run<B: Body<Data = Bytes>>(peek: &mut Peek<B>, polls: usize) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    (0..polls).any(|_| pin!(&mut *peek).poll(&mut cx).is_ready())
}

const ENOUGH: usize = 1_000;

/// How a body is treated before its reader gets it.
#[derive(Clone, Debug)]
enum Treatment {
    None,
    Peeked {
        polls: usize,
        one_frame: bool,
    },
    /// Judged by its first frame, then drained for a retry that isn't made.
    PeekedTwice {
        polls: usize,
    },
}

fn treatments() -> impl Strategy<Value = Treatment> {
    prop_oneof![
        Just(Treatment::None),
        (0..6_usize, any::<bool>())
            .prop_map(|(polls, one_frame)| Treatment::Peeked { polls, one_frame }),
        Just(Treatment::Peeked {
            polls: ENOUGH,
            one_frame: false
        }),
        (0..6_usize).prop_map(|polls| Treatment::PeekedTwice { polls }),
    ]
}

fn treated(script: Script, treatment: &Treatment, slot: Option<Slot>) -> ResponseBody<Script> {
    let body = ResponseBody::new(script, slot);
    match *treatment {
        Treatment::None => body,
        Treatment::Peeked { polls, one_frame } => {
            let mut peek = body.peek();
            if one_frame {
                peek = peek.one_frame();
            }
            run(&mut peek, polls);
            peek.into_body()
        }
        Treatment::PeekedTwice { polls } => {
            let mut peek = body.peek().one_frame();
            run(&mut peek, polls);
            let mut peek = peek.into_body().peek();
            run(&mut peek, polls);
            peek.into_body()
        }
    }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn what_comes_out_is_what_went_in(
        script in scripts(),
        treatment in treatments(),
        hasty in any::<bool>(),
    ) {
        let body = treated(script.clone(), &treatment, None);
        prop_assert_eq!(read(body, hasty), script.told());
    }

    #[test]
    fn hints_are_those_of_an_untouched_body(
        script in scripts(),
        treatment in treatments(),
    ) {
        let all = script.told();
        let exact = matches!(script.hints, Hints::Exact);
        let breaks_off = script.breaks_off();
        let mut read = 0;
        let mut body = pin!(treated(script, &treatment, None));
        loop {
            let left = (all.data.len() - read) as u64;
            let hint = body.size_hint();
            prop_assert!(hint.lower() <= left, "{hint:?} with {left} left");
            prop_assert!(hint.upper().is_none_or(|upper| left <= upper), "{hint:?} with {left} left");
            if exact {
                prop_assert_eq!(hint.exact(), Some(left));
            }
            let ended = body.is_end_stream();
            match poll(body.as_mut()) {
                Poll::Pending => prop_assert!(!ended),
                Poll::Ready(None) => break,
                Poll::Ready(Some(Err(_))) => {
                    prop_assert!(!ended && breaks_off);
                    break;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    prop_assert!(!ended);
                    if let Some(data) = frame.data_ref() {
                        read += data.len();
                    }
                }
            }
        }
        prop_assert_eq!(read, all.data.len());
    }

    #[test]
    fn a_peek_is_bounded_and_tells_what_it_read(script in scripts(), polls in 0..20_usize) {
        const LIMIT: usize = 64 * 1024;
        let all = script.told();
        let hints = script.hints;
        let largest = script.steps.iter().map(|step| match step {
            Step::Data(data) => data.len() as u64,
            _ => 0,
        });
        let largest = largest.max().unwrap_or(0);
        let mut peek = untouched(script).peek();
        let ready = run(&mut peek, polls);
        let bytes = peek.bytes().into_owned();
        prop_assert!(bytes.len() <= LIMIT);
        prop_assert_eq!(&bytes[..], &all.data[..bytes.len()]);
        if peek.is_whole() {
            prop_assert!(ready);
            prop_assert_eq!(all.error, None);
            prop_assert_eq!(bytes.len(), all.data.len().min(LIMIT));
            prop_assert_eq!(peek.trailers(), all.trailers.as_ref());
        }
        let body = peek.into_body();
        if matches!(hints, Hints::None) {
            // Nothing is known of the rest, so that this is what is kept.
            let kept = body.size_hint().lower();
            prop_assert!(kept < LIMIT as u64 + largest.max(1));
        }
        prop_assert_eq!(read(body, false), all);
    }

    #[test]
    fn the_slot_is_given_back_when_the_body_has_ended_and_not_before(
        script in scripts(),
        treatment in treatments(),
    ) {
        let (slot, watch) = slot();
        let tells_end = script.tells_end;
        let all = script.told();
        let mut read = 0;
        let mut body = pin!(treated(script, &treatment, slot));
        // Given back before it is read only if all of it has been received.
        let received = !is_held(&watch);
        prop_assert!(!received || !matches!(treatment, Treatment::None) || all.is_nothing());
        loop {
            let polled = poll(body.as_mut());
            match &polled {
                Poll::Pending => prop_assert!(!received && is_held(&watch)),
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    read += frame.data_ref().map_or(0, Bytes::len);
                    // A reader that knows the length stops here.
                    let ended = tells_end && body.is_end_stream();
                    prop_assert_eq!(is_held(&watch), !received && !ended);
                }
                Poll::Ready(_) => {
                    prop_assert!(!is_held(&watch));
                    break;
                }
            }
        }
        prop_assert_eq!(read, all.data.len());
    }
}

#[test]
fn a_frame_beyond_the_limit_is_kept_whole() {
    let large = Bytes::from(vec![1; 1_000_000]);
    let script = Script::new([
        Step::Data(Bytes::from_static(b"ab")),
        Step::Data(large),
        Step::Data(Bytes::from_static(b"yz")),
    ]);
    let all = script.told();
    let mut peek = untouched(script).peek();
    assert!(run(&mut peek, 1));
    assert!(!peek.is_whole());
    assert_eq!(peek.bytes().len(), 64 * 1024);
    assert_eq!(read(peek.into_body(), true), all);
}

#[test]
fn one_frame_is_one_frame_whatever_it_is() {
    let message = Step::Data(Bytes::from_static(b"message"));
    for (first, last, whole) in [
        (message.clone(), Some(message.clone()), false),
        (Step::Data(Bytes::new()), Some(message.clone()), false),
        (Step::Trailers(trailers()), None, true),
        (message, None, true),
    ] {
        let script = Script::new([first.clone()].into_iter().chain(last));
        let all = script.told();
        let mut peek = untouched(script).peek().one_frame();
        assert!(run(&mut peek, 1));
        assert_eq!(peek.is_whole(), whole, "{first:?}");
        assert_eq!(peek.trailers(), all.trailers.as_ref(), "{first:?}");
        assert_eq!(read(peek.into_body(), false), all, "{first:?}");
    }
}

#[test]
fn an_endless_stream_of_empty_frames_is_left_at_last() {
    struct Hollow;

    impl Body for Hollow {
        type Data = Bytes;
        type Error = u8;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
        }
    }

    let mut peek = ResponseBody::new(Hollow, None).peek();
    assert!(run(&mut peek, 1));
    assert!(!peek.is_whole());
    assert_eq!(peek.into_body().size_hint().lower(), 0);
}

#[test]
fn a_broken_body_gives_its_frames_and_then_the_same_error() {
    let script = Script::new([
        Step::Data(Bytes::from_static(b"{\"err")),
        Step::Pending,
        Step::Error(7),
    ]);
    let mut peek = untouched(script).peek();
    assert!(run(&mut peek, 2));
    assert!(!peek.is_whole(), "an error is not an end");
    let mut body = pin!(peek.into_body());
    assert!(!body.is_end_stream());
    let Poll::Ready(Some(Ok(frame))) = poll(body.as_mut()) else {
        panic!("the frame before the error");
    };
    assert_eq!(frame.into_data().unwrap(), "{\"err");
    assert!(!body.is_end_stream(), "the error is still to come");
    assert!(matches!(poll(body.as_mut()), Poll::Ready(Some(Err(7)))));
    assert!(matches!(poll(body.as_mut()), Poll::Ready(None)));
    assert!(body.is_end_stream());
}

#[test]
fn a_body_broken_off_does_not_look_complete_by_its_length() {
    // Ten bytes were announced, four came.
    #[derive(Debug)]
    struct Cut(u64);

    impl Body for Cut {
        type Data = Bytes;
        type Error = u8;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
            if self.0 < 10 {
                return Poll::Ready(Some(Err(1)));
            }
            self.0 -= 4;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"four")))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    let mut peek = ResponseBody::new(Cut(10), None).peek();
    assert!(run(&mut peek, 1));
    assert_eq!(peek.into_body().size_hint().exact(), Some(10));
}

#[test]
fn hints_at_the_end_of_the_numbers_do_not_overflow() {
    #[derive(Debug)]
    struct Vast(u64);

    impl Body for Vast {
        type Data = Bytes;
        type Error = u8;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"some")))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    let mut peek = ResponseBody::new(Vast(u64::MAX), None).peek().one_frame();
    assert!(run(&mut peek, 1));
    let hint = peek.into_body().size_hint();
    assert_eq!((hint.lower(), hint.upper()), (u64::MAX, None));
}

#[test]
fn a_bodiless_answer_holds_no_slot() {
    let (slot, watch) = slot();
    let _body = ResponseBody::new(Empty::<Bytes>::new(), slot);
    assert!(!is_held(&watch));
}

#[test]
fn a_dropped_body_gives_its_slot_back() {
    for polls in [0, 1, ENOUGH] {
        let (slot, watch) = slot();
        let script = Script::new([Step::Pending, Step::Pending, Step::Error(1)]);
        let mut peek = ResponseBody::new(script, slot).peek();
        run(&mut peek, polls);
        drop(peek.into_body());
        assert!(!is_held(&watch), "{polls}");
    }
}

#[test]
fn a_body_read_ahead_to_its_end_gives_its_slot_back_before_it_is_read() {
    let (slot, watch) = slot();
    let mut peek = ResponseBody::new(Script::of(&[b"a", b"b"]), slot).peek();
    assert!(run(&mut peek, 1));
    assert!(!is_held(&watch));
    assert_eq!(read(peek.into_body(), false).data, b"ab");
}

#[test]
fn an_untouched_body_is_as_large_as_its_parts() {
    let own = size_of::<ResponseBody<Full<Bytes>>>();
    // The body, the slot, what watches the trailers, and which state it is in.
    let parts = size_of::<Full<Bytes>>() + size_of::<Option<Slot>>() + 2 * size_of::<usize>();
    assert!(own <= parts, "{own} > {parts}");
}

#[test]
fn it_is_send_when_the_body_is_and_works_when_it_is_not() {
    fn assert_send<T: Send>(_: &T) {}
    assert_send(&ResponseBody::new(Full::new(Bytes::new()), None));
    assert_send(&ResponseBody::new(Full::new(Bytes::new()), None).peek());

    struct Local(Rc<Bytes>);

    impl Body for Local {
        type Data = Bytes;
        type Error = Rc<u8>;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Rc<u8>>>> {
            Poll::Ready(Some(Ok(Frame::data((*self.0).clone()))))
        }
    }

    let peek = ResponseBody::new(Local(Rc::new(Bytes::from_static(b"x"))), None).peek();
    assert!(run(&mut peek.one_frame(), 1));
}

#[test]
fn debug_and_default_ask_nothing_of_a_body_that_it_has_not() {
    struct Silent;

    impl Body for Silent {
        type Data = Bytes;
        type Error = u8;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
            Poll::Ready(None)
        }
    }

    let body = ResponseBody::new(Silent, None);
    assert_eq!(format!("{body:?}"), "ResponseBody { ahead: false, .. }");
    let body = ResponseBody::<Full<Bytes>>::default();
    assert!(body.is_end_stream());
}
