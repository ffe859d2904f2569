//! Random schedules: whatever happens, every call ends, nothing is sent into a
//! pause but a probe, and nothing is left behind.

macro_rules! trace { ($($t:tt)*) => { if std::env::var("TRACE").is_ok() { eprintln!($($t)*) } } }
pub(crate) use trace;
mod model;
mod world;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, response::Parts};
use http_body_util::{BodyExt as _, Full};
use rand::RngExt as _;
use tokio::task::JoinHandle;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    CallOptions, Fixed, Policy, RetryAfter, RetryAfterLayer, ScopeHandle, ScopeKey, Scopes,
    Verdict, classify_fn,
    verdict::{Exhausted, Hint, Level, Throttle, ThrottleKind},
};

use self::{
    model::{Asked, PATHS},
    world::{Call, Shared, Told},
};

const SEEDS: u64 = 1_000;
const STEPS: u64 = 100;
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(20);

#[test]
fn whatever_happens_every_call_ends_and_none_is_sent_into_a_pause() {
    let only = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let run = std::panic::catch_unwind(|| schedule(seed));
        assert!(run.is_ok(), "seed {seed}");
    }
}

fn schedule(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        begin();
        let mut schedule = Schedule::new(seed);
        for _ in 0..STEPS {
            schedule.step().await;
        }
        schedule.end().await;
    });
}

struct Schedule {
    world: Shared,
    scopes: Scopes,
    handles: Vec<ScopeHandle>,
    layer: RetryAfterLayer,
    running: Vec<Running>,
}

/// A call that has not ended, or whose answer is not read yet.
struct Running {
    call: usize,
    task: JoinHandle<()>,
    alone: Arc<Alone>,
}

impl Running {
    /// Waits for its end; what it found wrong is told.
    async fn over(self) {
        if let Err(error) = self.task.await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut policy = Policy::new()
            .seed(seed)
            .max_pause(MAX_PAUSE)
            .min_pause(MIN_PAUSE);
        if seed % 3 == 1 {
            policy = policy.law(Fixed::per_second([0.5, 2.0, 50.0][seed as usize / 3 % 3]));
        }
        if seed % 5 == 1 {
            policy = policy.max_waiters(5);
        }
        let limit = [None, Some(1), None, Some(3)][seed as usize % 4];
        if let Some(limit) = limit {
            policy = policy.max_in_flight(limit);
        }
        let scopes = Scopes::new(policy);
        let handles: Vec<_> = (0..PATHS.len()).map(|at| scopes.get(key(at))).collect();
        let judge = classify_fn(|head: &Parts| Some(verdict((*head.extensions.get::<Told>()?)?)));
        Self {
            world: Shared::new(seed, handles.clone(), limit),
            layer: RetryAfterLayer::with_scopes(scopes.clone()).classifier(judge),
            scopes,
            handles,
            running: Vec::new(),
        }
    }

    fn random(&self, most: usize) -> usize {
        self.world.lock().rng.random_range(0..most)
    }

    async fn step(&mut self) {
        let scope = self.random(PATHS.len());
        match self.random(100) {
            0..45 => self.arrive(scope),
            45..52 => self.drop_one(),
            52..56 => self.leave_one(),
            56..59 => self
                .running
                .iter()
                .for_each(|running| running.alone.come_back()),
            59..62 => self.pause(scope),
            62..64 => self.resume(scope),
            64..66 => self.handles[scope].set_rate([0.2, 2.0, 100.0][self.random(3)]),
            66..68 => self.report(scope),
            68..72 => self.world.lock().refused = [0, 1, 5, 10][self.random(4)],
            _ => {
                let wait = [ms(1), ms(50), ms(700), secs(2), secs(25)][self.random(5)];
                tokio::time::sleep(wait).await;
            }
        }
        if self.random(3) == 0 {
            tokio::task::yield_now().await;
        }
        self.world.lock().check();
        let over = self
            .running
            .extract_if(.., |running| running.task.is_finished());
        for running in over.collect::<Vec<_>>() {
            running.over().await;
        }
    }

    fn arrive(&mut self, scope: usize) {
        let call = self.world.lock().calls.len();
        self.world.lock().calls.push(Call {
            arrived: now(),
            attempts: 0,
            left: false,
            ended: None,
        });
        let mut options = CallOptions::new().scope(key(scope));
        if self.random(4) == 0 {
            options = options.deadline(ms(1 + self.random(60_000) as u64));
        }
        let method = ["GET", "GET", "POST"][self.random(3)];
        let request = Request::builder()
            .method(method)
            .uri("/")
            .extension(options)
            .extension((call as u64, scope))
            .body(Full::<Bytes>::default())
            .unwrap();
        let world = self.world.clone();
        let client: RetryAfter<_> = self.layer.layer(tower::service_fn(move |request| {
            world.clone().serve(request)
        }));
        let keep = ms([0, 10, 45_000][self.random(3)]);
        let alone = Arc::new(Alone::default());
        let work = async move {
            let Ok(answer) = client.oneshot(request).await else {
                return;
            };
            if keep.is_zero() {
                let _ = answer.collect().await;
            } else {
                tokio::time::sleep(keep).await;
            }
        };
        trace!("arrive {:?} call {call} scope {scope} {method}", now());
        let task = tokio::spawn(Held {
            alone: Arc::clone(&alone),
            work: Box::pin(work),
        });
        self.running.push(Running { call, task, alone });
    }

    fn drop_one(&mut self) {
        if !self.running.is_empty() {
            let at = self.random(self.running.len());
            trace!("drop {:?} call {}", now(), self.running[at].call);
            self.running.swap_remove(at).task.abort();
        }
    }

    fn leave_one(&mut self) {
        if !self.running.is_empty() {
            let running = &self.running[self.random(self.running.len())];
            trace!("leave {:?} call {}", now(), running.call);
            running.alone.leave();
            self.world.lock().calls[running.call].left = true;
        }
    }

    fn pause(&mut self, scope: usize) {
        let wait = [ms(0), ms(300), secs(5), secs(19), secs(100)][self.random(5)];
        trace!("pause {:?} scope {scope} {wait:?}", now());
        self.handles[scope].pause_for(wait);
        let mut world = self.world.lock();
        let seq = world.next();
        let asked = Asked {
            wait,
            by_hand: true,
            ..Asked::default()
        };
        world.levels[scope].pause(seq, seq, now(), asked);
    }

    fn resume(&mut self, scope: usize) {
        trace!("resume {:?} scope {scope}", now());
        self.handles[scope].resume();
        self.world.lock().levels[scope].open();
    }

    fn report(&mut self, scope: usize) {
        let asked = Asked {
            wait: secs(self.random(4) as u64),
            ..Asked::default()
        };
        trace!("report {:?} scope {scope} {asked:?}", now());
        self.handles[scope].report(&verdict((false, asked)));
        let mut world = self.world.lock();
        let seq = world.next();
        world.levels[scope].pause(seq, seq, now(), asked);
    }

    /// The server recovers, and everybody comes back.
    async fn end(self) {
        self.world.lock().refused = 0;
        self.running
            .iter()
            .for_each(|running| running.alone.come_back());
        let ends = tokio::time::timeout(secs(3_600), async {
            for running in self.running {
                running.over().await;
            }
        });
        assert!(
            ends.await.is_ok(),
            "a call never ends: {:#?}",
            self.scopes.snapshot()
        );
        // What was dropped last is gone, and drivers end with their queues.
        tokio::time::sleep(secs(1)).await;
        for handle in &self.handles {
            let snapshot = handle.snapshot();
            assert_eq!(
                (snapshot.waiting, snapshot.in_flight),
                (0, 0),
                "{snapshot:?}"
            );
        }
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        assert_eq!(tasks, 0, "tasks left");
        order(&self.world);
    }
}

/// Who came first was sent first, where nothing speaks against it.
fn order(world: &Shared) {
    let world = world.lock();
    for scope in 0..PATHS.len() {
        let sends = world.sends.iter().filter(|send| send.scope == scope);
        let sends: Vec<_> = sends
            .map(|send| (send, &world.calls[send.call as usize]))
            .filter(|(_, call)| !call.left)
            .collect();
        // First attempts, in order of arrival.
        let mut latest = (Duration::ZERO, Duration::ZERO);
        for (send, call) in sends.iter().filter(|(send, _)| send.attempt == 1) {
            assert!(
                call.arrived >= latest.0 || send.at <= latest.1,
                "{send:?} arrived at {:?}, was overtaken by {latest:?}",
                call.arrived
            );
            latest = latest.max((call.arrived, send.at));
        }
        // First retries stand ahead of calls that came later.
        for (retry, call) in sends.iter().filter(|(send, _)| send.attempt == 2) {
            let Some(since) = call.ended else { continue };
            for (other, later) in &sends {
                let between = since < other.at && other.at < retry.at;
                assert!(
                    later.arrived <= call.arrived || !between || other.probe,
                    "{retry:?}, answered until {since:?}, was overtaken by {other:?}"
                );
            }
        }
    }
}

/// A future that is not polled while it is left alone.
struct Held<F> {
    alone: Arc<Alone>,
    work: Pin<Box<F>>,
}

#[derive(Default)]
struct Alone {
    left: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Alone {
    fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    fn come_back(&self) {
        self.left.store(false, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap().take();
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<F: Future<Output = ()>> Future for Held<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.alone.left.load(Ordering::Relaxed) {
            *self.alone.waker.lock().unwrap() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.work.as_mut().poll(cx)
    }
}

fn verdict((root, asked): (bool, Asked)) -> Verdict {
    let level = if root { Level::ROOT } else { Level::Leaf };
    let hint = Hint::new(asked.wait, "test");
    if asked.exhausted {
        let resets = Some(hint);
        let level = Some(level);
        return Exhausted { resets, level }.into();
    }
    Throttle::new(ThrottleKind::RateLimited)
        .hint(hint)
        .level(level)
        .ban(asked.ban)
        .into()
}

/// The key of a scope: `PATHS` draws how they lie.
fn key(scope: usize) -> ScopeKey<'static> {
    let root = ScopeKey::new("root");
    match scope {
        0 => root,
        1 => root.and("a").unwrap(),
        2 => root.and("b").unwrap(),
        3 => root.and("a").unwrap().and("x").unwrap(),
        _ => ScopeKey::new("other"),
    }
}

/// The paused time since this schedule began.
#[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
#[allow(clippy::disallowed_types, reason = "a test has no other clock")]
fn now() -> Duration {
    tokio::time::Instant::now() - BEGAN.get().unwrap()
}

#[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
fn begin() {
    BEGAN.set(Some(tokio::time::Instant::now()));
}

#[allow(clippy::disallowed_types, reason = "a test has no other clock")]
mod began {
    thread_local! {
        pub(crate) static BEGAN: std::cell::Cell<Option<tokio::time::Instant>> = const { std::cell::Cell::new(None) };
    }
}
use began::BEGAN;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
