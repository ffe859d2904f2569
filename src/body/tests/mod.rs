//! Bodies by script: what goes in must come out.

mod replay;
mod response;
mod spool;

use std::{
    collections::VecDeque,
    marker::PhantomPinned,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use proptest::{prelude::*, test_runner::RngSeed};

/// The same cases in every run.
fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(429),
        ..ProptestConfig::default()
    }
}

/// One answer of a [`Script`] to being polled.
#[derive(Clone, Debug)]
enum Step {
    Pending,
    Data(Bytes),
    Trailers(HeaderMap),
    /// The body breaks off. The number tells errors apart.
    Error(u8),
}

#[derive(Clone, Copy, Debug)]
enum Hints {
    Exact,
    /// At least half of it, at most twice as much.
    Loose,
    None,
}

pin_project! {
    /// A body that does what it is told, and that must not be moved.
    #[derive(Clone, Debug)]
    struct Script {
        steps: VecDeque<Step>,
        hints: Hints,
        // Whether it tells its end before being asked for another frame.
        tells_end: bool,
        ended: bool,
        #[pin]
        pinned: PhantomPinned,
    }
}

impl Script {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            hints: Hints::Exact,
            tells_end: true,
            ended: false,
            pinned: PhantomPinned,
        }
    }

    fn of(chunks: &[&'static [u8]]) -> Self {
        let chunks = chunks.iter().copied();
        Self::new(chunks.map(|chunk| Step::Data(Bytes::from_static(chunk))))
    }

    fn left(&self) -> u64 {
        let lengths = self.steps.iter().map(|step| match step {
            Step::Data(data) => data.len() as u64,
            _ => 0,
        });
        lengths.sum()
    }

    fn breaks_off(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Error(_)))
    }

    /// What a reader gets of it, in all.
    fn told(&self) -> Told {
        let mut told = Told::default();
        for step in &self.steps {
            match step {
                Step::Pending => {}
                Step::Data(data) => told.data.extend_from_slice(data),
                Step::Trailers(trailers) => told.trailers = Some(trailers.clone()),
                Step::Error(error) => told.error = Some(*error),
            }
        }
        told
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = u8;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
        let this = self.project();
        Poll::Ready(match this.steps.pop_front() {
            Some(Step::Pending) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Step::Data(data)) => Some(Ok(Frame::data(data))),
            Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Step::Error(error)) => {
                this.steps.clear();
                Some(Err(error))
            }
            None => {
                assert!(!*this.ended, "polled again after its end");
                *this.ended = true;
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.tells_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.left();
        match self.hints {
            Hints::Exact => SizeHint::with_exact(left),
            Hints::None => SizeHint::new(),
            Hints::Loose => {
                let mut hint = SizeHint::new();
                hint.set_lower(left / 2);
                hint.set_upper(left * 2);
                hint
            }
        }
    }
}

/// What a body told its reader.
#[derive(Clone, Debug, Default, PartialEq)]
struct Told<E = u8> {
    data: Vec<u8>,
    trailers: Option<HeaderMap>,
    error: Option<E>,
}

impl Told {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads `body` to its end. A `hasty` reader believes `is_end_stream`.
fn read<B>(body: B, hasty: bool) -> Told<B::Error>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut told = Told {
        data: Vec::new(),
        trailers: None,
        error: None,
    };
    while !(hasty && body.is_end_stream()) {
        match poll(body.as_mut()) {
            Poll::Pending => {}
            Poll::Ready(None) => break,
            Poll::Ready(Some(Err(error))) => {
                told.error = Some(error);
                break;
            }
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => told.data.extend_from_slice(&data),
                Err(frame) => {
                    told.trailers = frame.into_trailers().ok();
                    break;
                }
            },
        }
    }
    told
}

type Polled<B> = Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>;

fn poll<B: Body>(body: Pin<&mut B>) -> Polled<B> {
    body.poll_frame(&mut Context::from_waker(Waker::noop()))
}

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("8"));
    trailers.append("x-many", HeaderValue::from_static("a"));
    trailers.append("x-many", HeaderValue::from_static("b"));
    trailers
}

/// Bodies of up to a dozen frames, with pauses, and any kind of end.
fn scripts() -> impl Strategy<Value = Script> {
    // Short chunks, empty ones, and some that are shared and pass the limits.
    let length = prop_oneof![
        3 => 0..20_usize,
        2 => 4_000..4_200_usize,
        1 => 20_000..70_000_usize,
    ];
    let data = (length, any::<u8>()).prop_map(|(length, first)| {
        let bytes = (0..length).map(|at| first.wrapping_add(at as u8));
        Step::Data(bytes.collect())
    });
    let step = prop_oneof![3 => data, 1 => Just(Step::Pending)];
    let end = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Step::Trailers(trailers()))),
        1 => any::<u8>().prop_map(|error| Some(Step::Error(error))),
    ];
    let hints = prop_oneof![Just(Hints::Exact), Just(Hints::Loose), Just(Hints::None)];
    let steps = prop::collection::vec(step, 0..12);
    (steps, end, hints, any::<bool>()).prop_map(|(steps, end, hints, tells_end)| {
        let mut script = Script {
            hints,
            tells_end,
            ..Script::new(steps.into_iter().chain(end))
        };
        // A body that tells its end does so with its last frame.
        while tells_end && matches!(script.steps.back(), Some(Step::Pending)) {
            script.steps.pop_back();
        }
        script
    })
}
