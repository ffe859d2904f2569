//! One run: the real layer between simulated callers and a simulated server,
//! in paused time.

use std::{
    cell::RefCell,
    convert::Infallible,
    rc::Rc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tokio::{
    task::{LocalSet, spawn_local},
    time::{Instant, sleep, sleep_until},
};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_retry_after::{Policy, RetryAfterLayer, ScopeHandle, ScopeKey, body::ResponseBody};

use crate::{
    demand::{Arrivals, Path},
    laws::Rival,
    scenario::{Demand, Fields, Hint, Scenario},
    server::{Answer, Server},
    tally::Tally,
};

type Answered = Response<Empty<Bytes>>;

const SCOPE: &str = "lab";

/// How long a caller stays away when the layer has refused it.
const AWAY: Duration = Duration::from_secs(1);

/// Lets the callers of `scenario` go, led by `law`.
pub(crate) fn run(scenario: &Scenario, law: Rival, seed: u64) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| panic!("no runtime: {error}"));
    let tasks = LocalSet::new();
    let lab = runtime.block_on(tasks.run_until(async {
        let lab = Rc::new(Lab::new(scenario.clone(), seed));
        for replica in 0..scenario.replicas {
            start(&lab, replica, law, seed);
        }
        sleep(Duration::from_secs_f64(scenario.duration_s)).await;
        lab
    }));
    // Whoever still waits or is on the way is forgotten here.
    drop(tasks);
    Rc::into_inner(lab).map_or_else(Tally::default, |lab| lab.state.into_inner().tally)
}

/// What all replicas share.
struct Lab {
    scenario: Scenario,
    began: Instant,
    /// What the server's clock shows when the run begins.
    wall: SystemTime,
    state: RefCell<State>,
}

struct State {
    server: Server,
    path: Path,
    tally: Tally,
    /// What each replica was told.
    told: Vec<Told>,
}

/// What one replica was told of the wait.
#[derive(Clone, Debug, Default)]
struct Told {
    /// When each refused request was sent, and the instant it was asked to wait
    /// for.
    asked: Vec<(f64, f64)>,
    /// When the latest of the accepted requests was sent.
    accepted: f64,
}

impl Told {
    /// A request that was sent at `sent` was accepted: whatever was refused
    /// before it is outdated.
    fn accepted(&mut self, sent: f64) {
        self.accepted = self.accepted.max(sent);
        self.asked.retain(|(refused, _)| *refused >= self.accepted);
    }

    /// A request that was sent at `sent` was refused, at `now`.
    fn refused(&mut self, sent: f64, until: f64, now: f64) {
        self.asked.retain(|(_, until)| *until > now);
        if sent >= self.accepted {
            self.asked.push((sent, until));
        }
    }

    /// Whether a send at `now` comes before an instant that was asked for.
    fn is_early(&self, now: f64) -> bool {
        self.asked.iter().any(|(_, until)| now < *until)
    }
}

impl Lab {
    #[allow(clippy::disallowed_methods, reason = "the clock that is paused")]
    fn new(scenario: Scenario, seed: u64) -> Self {
        let skew = match scenario.hint {
            Hint::DateSkewed(secs) => secs,
            _ => 0.0,
        };
        let today = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let state = State {
            server: Server::new(&scenario, seed),
            path: Path::new(&scenario, seed),
            tally: Tally::new(&scenario),
            told: vec![Told::default(); scenario.replicas],
        };
        Self {
            began: Instant::now(),
            // Whole seconds, so that every run rounds its dates alike.
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs_f64(today as f64 + skew),
            state: RefCell::new(state),
            scenario,
        }
    }

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Sends one request of `caller` and brings its answer back.
    async fn send(&self, gate: &ScopeHandle, replica: usize, caller: usize) -> Answered {
        let sent = self.now();
        let there = {
            let mut state = self.state.borrow_mut();
            // What passes a closed gate is a probe.
            if state.told[replica].is_early(sent) && gate.snapshot().paused_for.is_none() {
                state.tally.early += 1;
            }
            state.path.one_way()
        };
        sleep(Duration::from_secs_f64(there)).await;
        let (answer, asked, back) = {
            let now = self.now();
            let mut state = self.state.borrow_mut();
            let answer = state.server.arrive(now);
            state.tally.answered(now, answer.accepted, replica, caller);
            let occupied = if answer.accepted {
                state.server.service()
            } else {
                0.0
            };
            let back = occupied + state.path.one_way();
            // A wait counts from its receipt; a date is an instant.
            let from = match self.scenario.hint {
                Hint::Date | Hint::DateSkewed(_) => now.floor(),
                _ => now + back,
            };
            (answer, answer.hint.map(|wait| from + wait), back)
        };
        let response = self.response(&answer);
        sleep(Duration::from_secs_f64(back)).await;
        let told = &mut self.state.borrow_mut().told[replica];
        match asked {
            _ if answer.accepted => told.accepted(sent),
            Some(until) => told.refused(sent, until, self.now()),
            None => {}
        }
        response
    }

    fn response(&self, answer: &Answer) -> Answered {
        let mut response = Response::new(Empty::new());
        let mut put = |name: &'static str, value: String| {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        };
        let now = (self.wall + self.began.elapsed())
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let date = |secs: f64| {
            let at = Duration::from_secs(now) + Duration::from_secs_f64(secs);
            httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + at)
        };
        if let Some(wait) = answer.hint {
            match self.scenario.hint {
                Hint::Date | Hint::DateSkewed(_) => {
                    put("date", date(0.0));
                    put("retry-after", date(wait));
                }
                Hint::Exact => put("retry-after", format!("{wait:.3}")),
                _ => put("retry-after", format!("{wait}")),
            }
        }
        if self.scenario.fields == Fields::Draft {
            let Scenario {
                limit, window_s, ..
            } = self.scenario;
            let (left, reset) = (answer.remaining, answer.reset);
            put("ratelimit", format!(r#""default";r={left};t={reset}"#));
            put(
                "ratelimit-policy",
                format!(r#""default";q={limit};w={window_s}"#),
            );
        }
        if !answer.accepted {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        }
        response
    }
}

/// Which caller a request is of, as an extension.
#[derive(Clone, Copy)]
struct Caller(usize);

/// Starts one replica: a registry of its own, and its callers.
fn start(lab: &Rc<Lab>, replica: usize, law: Rival, seed: u64) {
    let policy = Policy::new().seed(seed ^ ((replica as u64 + 1) << 8));
    let layer = RetryAfterLayer::new()
        .policy(law.choose(policy, lab.scenario.quota(0.0)))
        .scope_fn(|_| Some(ScopeKey::new(SCOPE)));
    let gate = layer.scopes().get(ScopeKey::new(SCOPE));
    spawn_local(watch(Rc::clone(lab), gate.clone()));

    let server = Rc::clone(lab);
    let client = layer.layer(service_fn(move |request: Request<Empty<Bytes>>| {
        let (lab, gate) = (Rc::clone(&server), gate.clone());
        let caller = request.extensions().get().map_or(0, |Caller(nth)| *nth);
        async move { Ok::<_, Infallible>(lab.send(&gate, replica, caller).await) }
    }));
    let lab = Rc::clone(lab);
    spawn_local(async move {
        let saturating = lab.scenario.demand == Demand::Saturating;
        for (caller, at) in Arrivals::new(&lab.scenario, seed, replica).enumerate() {
            sleep_until(lab.began + Duration::from_secs_f64(at)).await;
            let (lab, mut client) = (Rc::clone(&lab), client.clone());
            spawn_local(async move {
                loop {
                    call(&lab, &mut client, caller).await;
                    if !saturating {
                        break;
                    }
                }
            });
        }
    });
}

/// Makes one call, and stays away for a while if the layer refuses it.
async fn call<S>(lab: &Lab, client: &mut S, caller: usize)
where
    S: Service<Request<Empty<Bytes>>, Response = Response<ResponseBody<Empty<Bytes>>>>,
{
    let arrived = lab.now();
    let mut request = Request::new(Empty::new());
    request.extensions_mut().insert(Caller(caller));
    let answer = match client.ready().await {
        Ok(ready) => ready.call(request).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(response) if response.status().is_success() => {
            let now = lab.now();
            lab.state.borrow_mut().tally.waited(arrived, now);
        }
        Ok(_) => {}
        Err(_) => sleep(AWAY).await,
    }
}

/// Notes the rate of one replica every second.
async fn watch(lab: Rc<Lab>, gate: ScopeHandle) {
    for second in 0.. {
        sleep_until(lab.began + Duration::from_secs(second + 1)).await;
        let rate = gate.snapshot().rate;
        lab.state.borrow_mut().tally.paced(second, rate);
    }
}
