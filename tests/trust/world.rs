//! A server that lies, eight callers who always want something, paused time.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use http::{Request, Response};
use http_body_util::Empty;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tower::Service;

pub(crate) type Body = Empty<bytes::Bytes>;

/// From a send to its answer.
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// How many are served between two exhaustions.
const QUOTA: u32 = 16;

/// How many callers there are, each with one request at a time.
pub(crate) const CALLERS: usize = 8;

/// One exhaustion, as a row of the table makes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exhaustion {
    /// Its number, from zero.
    pub(crate) nth: u32,
    /// Seconds since the beginning.
    pub(crate) at: f64,
    /// Seconds until the server serves again.
    pub(crate) left: f64,
}

/// How a server lies.
pub(crate) trait Row: Send + Sync + 'static {
    /// How long the exhaustion `nth`, which begins at second `at`, lasts.
    fn takes(&self, nth: u32, at: f64, rng: &mut StdRng) -> f64;

    /// The fields of a refusal; `wall` is the true time.
    fn fields(
        &self,
        now: Exhaustion,
        wall: SystemTime,
        rng: &mut StdRng,
    ) -> Vec<(&'static str, String)>;

    /// By what factor a send in vain lengthens what is left.
    fn lengthens(&self) -> f64 {
        1.0
    }
}

/// What a way has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) episodes: u32,
    pub(crate) refused: u32,
    /// Seconds for which nobody was served although the server would have.
    total_wasted: f64,
    /// The longest such time.
    pub(crate) longest: f64,
    /// The most refusals within one second.
    pub(crate) busiest: u32,
}

impl Cost {
    /// Wasted seconds, for each exhaustion.
    pub(crate) fn wasted(&self) -> f64 {
        self.total_wasted / f64::from(self.episodes)
    }

    /// Refused sends, for each exhaustion.
    pub(crate) fn refusals(&self) -> f64 {
        f64::from(self.refused) / f64::from(self.episodes)
    }
}

/// A server that serves its quota and then nothing for a while.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    row: Arc<dyn Row>,
    began: tokio::time::Instant,
    wall: SystemTime,
    state: Mutex<State>,
}

struct State {
    rng: StdRng,
    left: u32,
    /// When it began to refuse, and until when it does.
    closed: Option<(f64, f64)>,
    cost: Cost,
    /// The second that is being counted, and its refusals.
    second: (u64, u32),
}

impl Server {
    #[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
    pub(crate) fn new(row: Arc<dyn Row>, seed: u64) -> Self {
        Self(Arc::new(Shared {
            row,
            began: tokio::time::Instant::now(),
            wall: SystemTime::now(),
            state: Mutex::new(State {
                rng: StdRng::seed_from_u64(seed),
                left: QUOTA,
                closed: None,
                cost: Cost::default(),
                second: (0, 0),
            }),
        }))
    }

    pub(crate) fn cost(&self) -> Cost {
        self.0.state.lock().unwrap().cost
    }

    #[allow(clippy::disallowed_methods, reason = "a test has no other clock")]
    pub(crate) fn elapsed(&self) -> Duration {
        tokio::time::Instant::now() - self.0.began
    }

    /// The true wall time.
    pub(crate) fn wall(&self) -> SystemTime {
        self.0.wall + self.elapsed()
    }

    /// Sends one request, without any layer.
    pub(crate) async fn send(&self) -> Response<Body> {
        tokio::time::sleep(ROUND_TRIP / 2).await;
        let answer = self.judge(self.elapsed().as_secs_f64());
        tokio::time::sleep(ROUND_TRIP / 2).await;
        answer
    }

    fn judge(&self, at: f64) -> Response<Body> {
        let state = &mut *self.0.state.lock().unwrap();
        let row = &self.0.row;
        if let Some((since, until)) = state.closed {
            if at < until {
                return self.refuse(state, at, since, until);
            }
            state.cost.total_wasted += at - until;
            state.cost.longest = state.cost.longest.max(at - until);
            state.cost.episodes += 1;
            (state.closed, state.left) = (None, QUOTA);
        }
        state.left -= 1;
        if state.left == 0 {
            let takes = row.takes(state.cost.episodes, at, &mut state.rng);
            state.closed = Some((at, at + takes));
        }
        Response::new(Body::new())
    }

    fn refuse(&self, state: &mut State, at: f64, since: f64, mut until: f64) -> Response<Body> {
        // What was on its way as the quota ran out is not held against anyone.
        if at > since + 2.0 * ROUND_TRIP.as_secs_f64() {
            until = at + (until - at) * self.0.row.lengthens();
            state.closed = Some((since, until));
        }
        state.cost.refused += 1;
        let second = at as u64;
        state.second = match state.second {
            (same, count) if same == second => (same, count + 1),
            _ => (second, 1),
        };
        state.cost.busiest = state.cost.busiest.max(state.second.1);
        let now = Exhaustion {
            nth: state.cost.episodes,
            at,
            left: until - at,
        };
        let mut refusal = Response::builder().status(429);
        for (name, value) in self.0.row.fields(now, self.wall(), &mut state.rng) {
            refusal = refusal.header(name, value);
        }
        refusal.body(Body::new()).unwrap()
    }
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.send().await) })
    }
}

/// Uniform within `lo..hi`.
pub(crate) fn between(rng: &mut StdRng, lo: f64, hi: f64) -> f64 {
    lo + rng.random::<f64>() * (hi - lo)
}
