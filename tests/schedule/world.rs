//! The server, and the book of all that was sent and answered.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::Sleep;
use tower_retry_after::{BoxError, ScopeHandle};

use crate::{
    model::{Asked, Level, PATHS},
    ms, now, secs,
};

/// What a request asks the server: its call, and its scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) call: usize,
    pub(crate) scope: usize,
}

/// What a server answers, decided when it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    Accept,
    Neutral,
    Break,
    /// A refusal that names its scope, or the root above it.
    Refuse {
        root: bool,
        asked: Asked,
    },
}

/// One attempt as the server saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub(crate) call: usize,
    pub(crate) attempt: u32,
    pub(crate) scope: usize,
    pub(crate) at: Duration,
    /// It was sent into a pause.
    pub(crate) probe: bool,
}

/// One call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call {
    pub(crate) arrived: Duration,
    pub(crate) attempts: u32,
    /// It was left alone once, and so may have lost its turn.
    pub(crate) left: bool,
    /// When the first answer was read to its end, or given up on.
    pub(crate) ended: Option<Duration>,
}

pub(crate) struct World {
    pub(crate) rng: StdRng,
    pub(crate) levels: [Level; PATHS.len()],
    pub(crate) calls: Vec<Call>,
    pub(crate) sends: Vec<Send>,
    /// Out of ten, how many are refused; with none the server is well.
    pub(crate) refused: u32,
    seq: u64,
    handles: Vec<ScopeHandle>,
    limit: Option<u32>,
}

/// The world, shared by the server, the callers and the schedule.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(crate) fn new(seed: u64, handles: Vec<ScopeHandle>, limit: Option<u32>) -> Self {
        Self(Arc::new(Mutex::new(World {
            rng: StdRng::seed_from_u64(seed),
            levels: Default::default(),
            calls: Vec::new(),
            sends: Vec::new(),
            refused: 1,
            seq: 0,
            handles,
            limit,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one attempt.
    pub(crate) async fn serve(
        self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Trickle>, BoxError> {
        let question = *request.extensions().get().unwrap();
        let (flight, latency, plan) = Flight::begin(&self, question);
        tokio::time::sleep(latency).await;
        let answer = flight.end(plan);
        match plan {
            Plan::Break => Err("broken".into()),
            _ => Ok(answer),
        }
    }
}

impl World {
    /// Numbers the next event.
    pub(crate) fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Numbers a call that arrives now.
    pub(crate) fn arrives(&mut self) -> usize {
        self.calls.push(Call {
            arrived: now(),
            ..Call::default()
        });
        self.calls.len() - 1
    }

    /// Decides on the next answer, and how long it takes.
    fn plan(&mut self) -> (Duration, Plan) {
        let ill = self.refused > 0;
        let latency = match ill && self.rng.random_ratio(1, 20) {
            true => ms(self.rng.random_range(1_000..90_000)),
            false => ms(self.rng.random_range(1..300)),
        };
        let plan = match self.rng.random_range(0..10) {
            n if n < self.refused => self.refusal(),
            8 if ill => Plan::Neutral,
            9 if ill => Plan::Break,
            _ => Plan::Accept,
        };
        (latency, plan)
    }

    fn refusal(&mut self) -> Plan {
        const WAITS: [u64; 9] = [0, 0, 1, 2, 3, 5, 10, 30, 600];
        let exhausted = self.rng.random_ratio(1, 20);
        Plan::Refuse {
            root: self.rng.random_ratio(1, 5),
            asked: Asked {
                wait: secs(WAITS[self.rng.random_range(0..WAITS.len())]),
                ban: !exhausted && self.rng.random_ratio(1, 10),
                exhausted,
                by_hand: false,
            },
        }
    }

    /// Compares what is certain with what the scopes say.
    pub(crate) fn check(&self) {
        for (level, handle) in self.levels.iter().zip(&self.handles) {
            if let Some(closed) = level.closed_for(now()) {
                let paused = handle.snapshot().paused_for;
                assert!(
                    paused >= Some(closed),
                    "{paused:?} of {closed:?}: {level:?}"
                );
            }
        }
    }
}

/// An attempt at the server, until it is answered or dropped.
struct Flight {
    world: Shared,
    send: Send,
    seq: u64,
}

impl Flight {
    /// Checks that the attempt may be sent, and decides on its answer.
    fn begin(shared: &Shared, question: Question) -> (Self, Duration, Plan) {
        let Question { call, scope } = question;
        let mut guard = shared.lock();
        let world = &mut *guard;
        let now = now();
        let mut probe = false;
        for &at in PATHS[scope] {
            let snapshot = world.handles[at].snapshot();
            let level = &mut world.levels[at];
            assert!(level.may_send(now), "call {call} at {now:?}: {level:?}");
            if let Some(left) = snapshot.paused_for {
                probe = true;
                let told = format!("call {call} at {now:?}, {left:?} left: {level:?}");
                assert!(level.probe(now, call), "a second probe: {told}");
            }
            if let Some(limit) = world.limit {
                assert!(snapshot.in_flight <= u64::from(limit), "{snapshot:?}");
            }
        }
        world.calls[call].attempts += 1;
        let send = Send {
            call,
            attempt: world.calls[call].attempts,
            scope,
            at: now,
            probe,
        };
        world.sends.push(send);
        let (seq, (latency, plan)) = (world.next(), world.plan());
        drop(guard);
        let world = shared.clone();
        (Self { world, send, seq }, latency, plan)
    }

    /// Answers, and writes down what that changes for certain.
    fn end(self, plan: Plan) -> Response<Trickle> {
        let mut guard = self.world.lock();
        let world = &mut *guard;
        let path = PATHS[self.send.scope];
        match plan {
            Plan::Accept => path
                .iter()
                .for_each(|&at| world.levels[at].accepted(self.seq)),
            Plan::Refuse { root, asked } => {
                let at = if root { path[path.len() - 1] } else { path[0] };
                let seq = world.next();
                match self.send.attempt {
                    1 => world.levels[at].pause(self.seq, seq, now(), asked),
                    _ => world.levels[at].perhaps(seq),
                }
            }
            Plan::Neutral | Plan::Break => {}
        }
        let status = match plan {
            Plan::Accept => 200,
            Plan::Refuse { .. } => 429,
            _ => 500,
        };
        let body = Trickle {
            frames: world.rng.random_range(0..4),
            pause: match world.rng.random_ratio(1, 20) {
                true => secs(10),
                false => ms(world.rng.random_range(0..50)),
            },
            sleep: None,
            of: self.send,
            world: self.world.clone(),
        };
        let answer = Response::builder().status(status).extension(plan);
        answer.body(body).unwrap()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut world = self.world.lock();
        for &at in PATHS[self.send.scope] {
            world.levels[at].probe_ended(self.send.call);
        }
    }
}

/// A body that comes in a few frames with pauses between them.
pub(crate) struct Trickle {
    frames: u32,
    pause: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    of: Send,
    world: Shared,
}

impl Drop for Trickle {
    fn drop(&mut self) {
        let call = &mut self.world.lock().calls[self.of.call];
        call.ended = Some(now()).filter(|_| self.of.attempt == 1).or(call.ended);
    }
}

impl Body for Trickle {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.frames == 0 {
            return Poll::Ready(None);
        }
        let pause = self.pause;
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        std::task::ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        self.frames -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"drop")))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames == 0
    }
}
