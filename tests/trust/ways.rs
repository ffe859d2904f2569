//! Three ways of waiting: to the letter, by a plain rule, by trust.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response};
use httpdate::parse_http_date;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::task::JoinSet;
use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{Policy, RetryAfterLayer, ScopeSnapshot, trust::Category};

use crate::{
    client::seconds,
    world::{Body, CALLERS, Cost, Server},
};

/// After what time somebody who was not served comes again.
const AGAIN: Duration = Duration::from_secs(1);

/// After what time another call comes in the place of one that was turned away
/// without being sent.
const NEXT: Duration = Duration::from_millis(100);

/// What a run has cost, and how the scope was seen meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) cost: Cost,
    /// The episodes at which the category changed.
    pub(crate) categories: Vec<(u32, Category)>,
    pub(crate) snapshot: Option<ScopeSnapshot>,
}

/// Does literally what the header says; by its own clock, where that is a date.
pub(crate) async fn to_the_letter(server: Server, lasts: Duration) -> Run {
    with_one_gate(server, lasts, |asked, _, _| asked.unwrap_or(AGAIN)).await
}

/// Clamps the header to 1–300 s; without one, backs off with full jitter.
pub(crate) async fn by_a_plain_rule(server: Server, lasts: Duration) -> Run {
    with_one_gate(server, lasts, |asked, refused, rng| match asked {
        Some(asked) => asked.clamp(seconds(1.0), seconds(300.0)),
        None => seconds(f64::from(1 << u32::min(refused, 6)) * rng.random::<f64>()),
    })
    .await
}

/// A gate for all callers, so that the rule is all that differs.
struct Gate {
    opens: Duration,
    /// Rounds in vain since somebody was served.
    rounds: u32,
    rng: StdRng,
}

/// All callers wait for what `wait` makes of the header and of the rounds that
/// were in vain.
async fn with_one_gate(
    server: Server,
    lasts: Duration,
    wait: impl Fn(Option<Duration>, u32, &mut StdRng) -> Duration + Clone + Send + Sync + 'static,
) -> Run {
    let gate = Arc::new(Mutex::new(Gate {
        opens: Duration::ZERO,
        rounds: 0,
        rng: StdRng::seed_from_u64(1),
    }));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (server, wait, gate) = (server.clone(), wait.clone(), Arc::clone(&gate));
        callers.spawn(async move {
            loop {
                let opens = gate.lock().unwrap().opens;
                tokio::time::sleep(opens.saturating_sub(server.elapsed())).await;
                let sent = server.elapsed();
                let answer = server.send().await;
                let gate = &mut *gate.lock().unwrap();
                if answer.status() == 200 {
                    gate.rounds = 0;
                    continue;
                }
                let wait = wait(literally(&answer, &server), gate.rounds, &mut gate.rng);
                gate.rounds += u32::from(sent >= gate.opens);
                gate.opens = gate.opens.max(server.elapsed().saturating_add(wait));
            }
        });
    }
    tokio::time::sleep(lasts).await;
    Run {
        cost: server.cost(),
        ..Run::default()
    }
}

fn literally(answer: &Response<Body>, server: &Server) -> Option<Duration> {
    let value = answer.headers().get("retry-after")?.to_str().ok()?;
    match value.parse::<f64>() {
        Ok(secs) => Some(seconds(secs)),
        Err(_) => {
            let date = parse_http_date(value).ok()?;
            Some(date.duration_since(server.wall()).unwrap_or_default())
        }
    }
}

/// The layer.
pub(crate) async fn by_trust(server: Server, lasts: Duration) -> Run {
    let layer = RetryAfterLayer::new().policy(Policy::new().seed(1));
    let scopes = layer.scopes();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let client = layer.layer(server.clone());
        callers.spawn(async move {
            loop {
                let request = Request::get("http://a.test/").body(Body::new()).unwrap();
                let answer = client.clone().oneshot(request).await;
                match answer {
                    Ok(answer) if answer.status() == 200 => {}
                    Ok(_) => tokio::time::sleep(AGAIN).await,
                    Err(_) => tokio::time::sleep(NEXT).await,
                }
            }
        });
    }
    let mut run = Run::default();
    let mut known = Category::Unknown;
    while server.elapsed() < lasts {
        tokio::time::sleep(seconds(0.5)).await;
        for snapshot in scopes.snapshot() {
            if snapshot.trust.category != known {
                known = snapshot.trust.category;
                run.categories.push((server.cost().episodes, known));
            }
        }
    }
    run.cost = server.cost();
    run.snapshot = scopes.snapshot().pop();
    run
}
