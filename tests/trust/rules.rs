//! What counts as an observation, what is probed, and what never breaks.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tower_retry_after::{
    time::Instant,
    trust::{Bounds, Category, LongPause, Reading, Reason, Sent, Trust, TrustSnapshot},
    verdict::Hint,
};

use crate::client::{Client, seconds};

/// A server that says how long it takes, in whole seconds.
fn truthful(left: f64) -> Option<f64> {
    Some(left.ceil())
}

#[test]
fn a_pause_that_nothing_is_known_of_is_probed_after_doubling_times() {
    let pause = LongPause {
        began: Instant::ZERO,
        until: Instant::ZERO + seconds(3600.0),
        backoff: seconds(1.0),
    };
    let probe = |now: f64| {
        let now = Instant::ZERO + seconds(now);
        let at = Trust::new().early_probe(&pause, now, &Bounds::default());
        at.map(|at| at.secs_since(Instant::ZERO))
    };
    assert_eq!(probe(0.0), Some(60.0));
    assert_eq!(probe(60.2), Some(120.0));
    assert_eq!(probe(121.0), Some(240.0));
    assert_eq!(probe(1921.0), None, "3840 is after its end");
    assert_eq!(probe(3550.0), None, "the rest is waited out");
}

#[test]
fn a_broken_promise_is_not_believed_until_its_episode_ends() {
    let mut client = Client::new();
    for _ in 0..5 {
        client.episode(3.0, truthful);
    }
    assert_eq!(client.category(), Category::Truthful);
    // It says 3 and takes 40: obeyed once, and then no more often than the own
    // backoff has it.
    client.settled().episode(40.0, |_| Some(3.0));
    assert!(client.refused <= 6, "{}", client.refused);
}

#[test]
fn a_hint_below_the_floor_is_obeyed_only_while_such_hints_are_kept() {
    let mut client = Client::new();
    for _ in 0..5 {
        client.episode(0.25, Some);
    }
    assert_eq!(client.category(), Category::Truthful);
    client.settled().episode(0.25, Some);
    assert!(client.wasted < 1e-6, "{}", client.wasted);

    let quick = Hint::new(Duration::from_millis(1), "retry-after");
    let wait = |client: &mut Client| {
        client.episode(1.5, |_| Some(0.001));
        let now = client.at(client.now).now;
        let sent = Sent {
            at: now,
            waited: true,
        };
        client
            .trust
            .on_throttle(client.at(client.now), sent, Some(&quick), Some(429));
        let decision = client
            .trust
            .sanitise(now, Some(&quick), seconds(1.0), &client.bounds);
        (decision.wait, decision.probe)
    };
    assert_eq!(wait(&mut client), (seconds(1.0), true));
}

#[test]
fn each_source_of_hints_has_its_own_category() {
    let mut trust = Trust::new();
    let client = Client::new();
    for n in 0..10 {
        let began = f64::from(n) * 100.0;
        let (source, asked) = if n % 2 == 0 {
            ("retry-after", 20.0)
        } else {
            ("reset", 2.0)
        };
        let hint = Hint::new(seconds(asked), source);
        let sent = |secs| Sent {
            at: client.at(secs).now,
            waited: true,
        };
        trust.on_throttle(client.at(began), sent(began), Some(&hint), Some(429));
        trust.on_throttle(
            client.at(began + 15.0),
            sent(began + 15.0),
            Some(&hint),
            Some(429),
        );
        let seen = trust
            .on_accepted(client.at(began + 20.0), sent(began + 20.0))
            .unwrap();
        assert_eq!(seen.truthful, n % 2 == 0);
        let settled = if n % 2 == 0 {
            Category::Truthful
        } else {
            Category::Unreliable
        };
        assert!(n < 4 || seen.category == settled, "{seen:?}");
    }
}

#[test]
fn what_proves_nothing_is_dropped() {
    let client = Client::new();
    let at = |secs| client.at(secs);
    let sent = |secs, waited| Sent {
        at: client.at(secs).now,
        waited,
    };
    let hint = Hint::new(seconds(60.0), "retry-after");
    let mut trust = Trust::new();

    // A night passes, and nobody was waiting.
    trust.on_throttle(at(10.0), sent(9.0, false), Some(&hint), Some(429));
    assert_eq!(trust.on_accepted(at(30_001.0), sent(30_000.0, false)), None);
    // A night passes, and the morning's first attempt is refused again.
    trust.on_throttle(at(40_000.0), sent(39_999.0, false), Some(&hint), Some(429));
    trust.on_throttle(at(70_000.0), sent(69_999.0, false), Some(&hint), Some(429));
    let seen = trust
        .on_accepted(at(70_060.0), sent(70_060.0, true))
        .unwrap();
    assert_eq!((seen.refused, seen.served), (Duration::ZERO, seconds(60.0)));
    // The machine is suspended.
    trust.on_throttle(at(71_000.0), sent(71_000.0, false), Some(&hint), Some(429));
    let late = Reading {
        wall: at(99_000.0).wall,
        ..at(71_060.0)
    };
    assert_eq!(trust.on_accepted(late, sent(71_060.0, true)), None);
    // A success that was sent before the refusal ends nothing.
    trust.on_throttle(at(72_000.0), sent(71_999.0, false), Some(&hint), Some(429));
    assert_eq!(trust.on_accepted(at(72_001.0), sent(71_998.0, false)), None);
    assert!(trust.is_observing());
    assert_eq!(trust.snapshot(at(72_002.0).now).observations, 1);
}

#[test]
fn observations_fade_after_a_day() {
    let mut client = Client::new();
    for _ in 0..5 {
        client.episode(20.0, |_| Some(3600.0));
    }
    assert_eq!(client.category(), Category::ConstantOverstated);
    client.now += 86_402.0;
    assert_eq!(client.snapshot(), TrustSnapshot::default());
}

#[test]
fn a_median_that_moves_by_more_than_a_factor_of_two_is_told() {
    let mut client = Client::new();
    let mut told = Vec::new();
    for n in 0..40 {
        match n {
            0..20 => client.episode(50.0, truthful),
            _ => client.episode(10.0, |_| Some(300.0)),
        };
        told.extend(client.last.take().and_then(|seen| seen.ratio));
    }
    let first = told.first().map(|ratio: &(f64, f64)| ratio.0);
    assert_eq!(first, Some(1.0));
    assert!(
        told.len() <= 2 && told.iter().all(|(was, is)| is * 2.0 < *was),
        "{told:?}"
    );
}

#[test]
fn the_clock_skew_is_kept() {
    let client = Client::new();
    let mut trust = Trust::new();
    let sent = Sent {
        at: client.at(1.0).now,
        waited: false,
    };
    let hint = Hint::new(seconds(9.0), "retry-after");
    trust.on_throttle(
        client.at(1.0),
        sent,
        Some(&hint.clone().skew(-300)),
        Some(429),
    );
    trust.on_throttle(client.at(1.0), sent, Some(&hint), Some(429));
    assert_eq!(trust.snapshot(client.at(1.0).now).clock_skew, Some(-300));
}

#[derive(Clone, Debug)]
enum Event {
    Throttle {
        after: u64,
        sent: u64,
        waited: bool,
        hint: Option<u64>,
        source: u8,
    },
    Accepted {
        after: u64,
        sent: u64,
        waited: bool,
    },
}

fn any_event() -> impl Strategy<Value = Event> {
    let nanos = || prop_oneof![0..100_u64, 0..400_000_000_000_u64, any::<u64>()];
    let throttle = (
        nanos(),
        nanos(),
        any::<bool>(),
        prop::option::of(nanos()),
        0..9_u8,
    );
    let accepted = (nanos(), nanos(), any::<bool>());
    prop_oneof![
        throttle.prop_map(|(after, sent, waited, hint, source)| Event::Throttle {
            after,
            sent,
            waited,
            hint,
            source,
        }),
        accepted.prop_map(|(after, sent, waited)| Event::Accepted {
            after,
            sent,
            waited
        }),
    ]
}

proptest! {
    #[test]
    fn no_sequence_of_events_breaks_it(
        events in prop::collection::vec(any_event(), 0..200),
        backoff in any::<u32>().prop_map(|ms| Duration::from_millis(ms.into())),
    ) {
        let bounds = Bounds::default();
        let mut trust = Trust::new();
        let mut now = Instant::ZERO;
        for event in events {
            let (after, sent, waited) = match event {
                Event::Throttle { after, sent, waited, .. }
                | Event::Accepted { after, sent, waited } => (after, sent, waited),
            };
            now += Duration::from_nanos(after);
            let at = Reading { now, wall: SystemTime::UNIX_EPOCH };
            let sent = Sent { at: Instant::from_nanos(now.as_nanos().saturating_sub(sent)), waited };
            if let Event::Throttle { hint, source, .. } = event {
                let hint = hint.map(|hint| Hint::new(Duration::from_nanos(hint), source.to_string()));
                trust.on_throttle(at, sent, hint.as_ref(), Some(429));
                let decision = trust.sanitise(now, hint.as_ref(), backoff, &bounds);
                let asked = hint.map_or(Duration::ZERO, |hint| hint.wait());
                prop_assert!(decision.wait >= bounds.min_pause || decision.wait == asked);
                prop_assert!(decision.wait >= asked || decision.reason == Reason::CutToCeiling);
                let until = now + decision.wait;
                let pause = LongPause { began: now, until, backoff };
                if let Some(at) = trust.early_probe(&pause, now, &bounds) {
                    prop_assert!(at >= now + backoff.max(bounds.min_pause) && at < until);
                }
            } else if let Some(seen) = trust.on_accepted(at, sent) {
                prop_assert!(seen.refused <= seen.served);
                prop_assert!(seen.was != Some(seen.category));
            }
            let snapshot = trust.snapshot(now);
            prop_assert!(snapshot.observations <= 20);
            prop_assert!(snapshot.observations >= 3 || snapshot.category == Category::Unknown);
            prop_assert!(snapshot.median_ratio.is_none_or(|ratio| ratio >= 0.0));
        }
    }
}
