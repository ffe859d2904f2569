//! Random schedules: whatever happens, every call ends, nothing is sent into a
//! pause but a probe, and nothing is left behind.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test has no other clock"
)]

mod model;
mod world;

use std::{
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
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
use tokio::{
    runtime::{Builder, Handle},
    task::JoinHandle,
};
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    CallOptions, Fixed, Policy, RetryAfterLayer, ScopeHandle, ScopeKey, Scopes, Verdict,
    classify_fn,
    verdict::{Exhausted, Hint, Level, Throttle, ThrottleKind},
};

use self::{
    model::{Asked, PATHS},
    world::{Plan, Question, Shared},
};

const SEEDS: u64 = 1_000;
const STEPS: u64 = 100;
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(20);

#[test]
fn whatever_happens_every_call_ends_and_none_is_sent_into_a_pause() {
    // One that failed can be run again alone.
    let only = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in only.map_or(0..SEEDS, |seed: u64| seed..seed + 1) {
        if let Err(found) = catch_unwind(AssertUnwindSafe(|| schedule(seed))) {
            eprintln!("in the schedule of seed {seed}");
            resume_unwind(found);
        }
    }
}

fn schedule(seed: u64) {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        now_is_the_beginning();
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
    /// Waits for its end, and fails if it has found something wrong.
    async fn over(self) {
        if let Err(error) = self.task.await
            && error.is_panic()
        {
            resume_unwind(error.into_panic());
        }
    }
}

impl Schedule {
    fn new(seed: u64) -> Self {
        let mut policy = Policy::new()
            .seed(seed)
            .min_pause(MIN_PAUSE)
            .max_pause(MAX_PAUSE);
        if seed % 3 == 1 {
            let rate = [0.5, 2.0, 50.0][seed as usize / 3 % 3];
            policy = policy.law(Fixed::per_second(rate));
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
        let judge = classify_fn(|head: &Parts| match head.extensions.get()? {
            Plan::Refuse { root, asked } => Some(verdict(*root, *asked)),
            _ => None,
        });
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

    /// One of `choices`.
    fn one<T: Copy, const N: usize>(&self, choices: [T; N]) -> T {
        choices[self.random(N)]
    }

    async fn step(&mut self) {
        let scope = self.random(PATHS.len());
        match self.random(100) {
            0..45 => self.arrive(scope),
            45..52 => self.drop_one(),
            52..56 => self.leave_one(),
            56..59 => self.running.iter().for_each(|call| call.alone.come_back()),
            59..62 => self.pause(scope),
            62..64 => self.resume(scope),
            64..66 => self.handles[scope].set_rate(self.one([0.2, 2.0, 100.0])),
            66..68 => self.report(scope),
            68..72 => {
                let refused = self.one([0, 1, 5, 10]);
                self.world.lock().refused = refused;
            }
            _ => tokio::time::sleep(self.one([ms(1), ms(50), ms(700), secs(2), secs(25)])).await,
        }
        if self.random(3) == 0 {
            tokio::task::yield_now().await;
        }
        self.world.lock().check();
        let over = |running: &mut Running| running.task.is_finished();
        for running in self.running.extract_if(.., over).collect::<Vec<_>>() {
            running.over().await;
        }
    }

    fn arrive(&mut self, scope: usize) {
        let mut options = CallOptions::new().scope(key(scope));
        if self.random(4) == 0 {
            options = options.deadline(ms(1 + self.random(60_000) as u64));
        }
        let call = self.world.lock().arrives();
        let request = Request::builder()
            .method(self.one(["GET", "GET", "POST"]))
            .uri("/")
            .extension(options)
            .extension(Question { call, scope })
            .body(Full::<Bytes>::default());
        let world = self.world.clone();
        let server = tower::service_fn(move |request| world.clone().serve(request));
        let answer = self.layer.layer(server).oneshot(request.unwrap());
        let keep = self.one([None, Some(ms(10)), Some(secs(45))]);
        let work = async move {
            match (answer.await, keep) {
                (Ok(answer), None) => drop(answer.collect().await),
                (Ok(_kept), Some(time)) => tokio::time::sleep(time).await,
                (Err(_), _) => {}
            }
        };
        let alone = Arc::new(Alone::default());
        let task = tokio::spawn(Held {
            alone: Arc::clone(&alone),
            work: Box::pin(work),
        });
        self.running.push(Running { call, task, alone });
    }

    fn drop_one(&mut self) {
        if !self.running.is_empty() {
            let at = self.random(self.running.len());
            self.running.swap_remove(at).task.abort();
        }
    }

    fn leave_one(&mut self) {
        if !self.running.is_empty() {
            let running = &self.running[self.random(self.running.len())];
            running.alone.leave();
            self.world.lock().calls[running.call].left = true;
        }
    }

    fn pause(&mut self, scope: usize) {
        let wait = self.one([ms(0), ms(300), secs(5), secs(19), secs(100)]);
        self.handles[scope].pause_for(wait);
        self.paused(scope, wait, true);
    }

    fn report(&mut self, scope: usize) {
        let wait = self.one([secs(0), secs(1), secs(3)]);
        let asked = self.paused(scope, wait, false);
        self.handles[scope].report(&verdict(false, asked));
    }

    /// Writes down that the scope is paused as by an attempt sent now.
    fn paused(&self, scope: usize, wait: Duration, by_hand: bool) -> Asked {
        let asked = Asked {
            wait,
            by_hand,
            ..Asked::default()
        };
        let mut world = self.world.lock();
        let seq = world.next();
        world.levels[scope].pause(seq, seq, now(), asked);
        asked
    }

    fn resume(&mut self, scope: usize) {
        self.handles[scope].resume();
        self.world.lock().levels[scope].open();
    }

    /// The server recovers, and everybody comes back.
    async fn end(self) {
        self.world.lock().refused = 0;
        self.running.iter().for_each(|call| call.alone.come_back());
        let ends = tokio::time::timeout(secs(3_600), async {
            for running in self.running {
                running.over().await;
            }
        });
        let ends = ends.await;
        assert!(ends.is_ok(), "never ends: {:#?}", self.scopes.snapshot());
        // What was dropped last is gone, and drivers end with their queues.
        tokio::time::sleep(secs(1)).await;
        for handle in &self.handles {
            let snapshot = handle.snapshot();
            let left = (snapshot.waiting, snapshot.in_flight);
            assert_eq!(left, (0, 0), "{snapshot:?}");
        }
        let tasks = Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "tasks are left");
        check_order(&self.world);
    }
}

/// Who came first was sent first, where nothing speaks against it.
fn check_order(world: &Shared) {
    let world = world.lock();
    for scope in 0..PATHS.len() {
        let sends = world.sends.iter().filter(|send| send.scope == scope);
        let sends: Vec<_> = sends
            .map(|send| (send, &world.calls[send.call]))
            .filter(|(_, call)| !call.left)
            .collect();
        // First attempts, in order of arrival.
        let mut latest = (Duration::ZERO, Duration::ZERO);
        for (send, call) in sends.iter().filter(|(send, _)| send.attempt == 1) {
            assert!(
                call.arrived >= latest.0 || send.at <= latest.1,
                "{send:?}, arrived at {:?}, was overtaken by {latest:?}",
                call.arrived
            );
            latest = latest.max((call.arrived, send.at));
        }
        // First retries stand ahead of calls that came later; as probes, those
        // go first that were not refused.
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

/// A refusal by the scope itself, or by the root above it.
fn verdict(root: bool, asked: Asked) -> Verdict {
    let level = if root { Level::ROOT } else { Level::Leaf };
    // Each from a source of its own, of which nothing can be learned.
    let hint = Hint::new(asked.wait, format!("test at {:?}", now()));
    if asked.exhausted {
        let (resets, level) = (Some(hint), Some(level));
        return Exhausted { resets, level }.into();
    }
    let throttle = Throttle::new(ThrottleKind::RateLimited).hint(hint);
    throttle.level(level).ban(asked.ban).into()
}

/// The key of a scope: `PATHS` draws how they lie.
fn key(scope: usize) -> ScopeKey<'static> {
    let root = ScopeKey::new("root");
    let key = match scope {
        0 => Some(root),
        1 => root.and("a"),
        2 => root.and("b"),
        3 => root.and("a").and_then(|a| a.and("x")),
        _ => Some(ScopeKey::new("other")),
    };
    key.unwrap()
}

thread_local! {
    #[allow(clippy::disallowed_types, reason = "a test has no other clock")]
    static BEGAN: Cell<Option<tokio::time::Instant>> = const { Cell::new(None) };
}

#[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
fn now_is_the_beginning() {
    BEGAN.set(Some(tokio::time::Instant::now()));
}

/// The paused time since the beginning of the schedule.
fn now() -> Duration {
    BEGAN.get().unwrap().elapsed()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
