mod fooled;
mod parts;
mod world;

use std::time::Duration;

use proptest::prelude::*;

use self::world::{Server, World};
use super::*;
use crate::{
    law::{Attempt, Ended},
    time::seconds,
    verdict::ThrottleKind,
};

fn at(secs: f64) -> Instant {
    Instant::ZERO + seconds(secs)
}

fn refused(asked: Option<f64>) -> Ended {
    Ended::Throttled {
        kind: ThrottleKind::RateLimited,
        asked: asked.map(seconds),
    }
}

fn attempt(now: Instant, ended: Ended) -> Attempt {
    Attempt::new(now, now, ended).waiting(true)
}

#[test]
fn it_sleeps_until_the_first_throttle_unless_told_a_rate() {
    assert_eq!(Learned::default().start(), None);
    assert_eq!(Learned::slow_start().start(), Some(Rate::per_second(1.0)));
    let told = Learned::new().start_rate(7.0);
    assert_eq!(told.start(), Some(Rate::per_second(7.0)));
}

#[test]
fn a_scope_that_has_measured_nothing_does_not_begin_at_nothing() {
    for (measured, begins) in [(0.0, 10.0), (3.0, 10.0), (100.0, 50.0)] {
        let mut law = Learned::new().build(at(1.0), Rate::per_second(measured));
        law.on_attempt(&attempt(at(1.0), refused(Some(2.0))));
        assert_eq!(law.rate(at(1.0)).get(), begins);
    }
    // Who was told to begin slowly does.
    let mut told = Learned::slow_start().build(at(1.0), Rate::per_second(1.0));
    told.on_attempt(&attempt(at(1.0), refused(Some(2.0))));
    assert_eq!(told.rate(at(1.0)).get(), 1.0);
}

/// Plays a server that serves `serves` and then nothing for `closed` seconds, for
/// that many cycles; gives the law and the time at the end.
fn counted(serves: u32, closed: f64, cycles: u32) -> (Box<dyn Law>, f64) {
    let mut law = Learned::new().build(at(0.0), Rate::per_second(10.0));
    let mut now = 0.0;
    for _ in 0..cycles {
        law.on_attempt(&attempt(at(now), refused(Some(closed))));
        law.on_pause(at(now), at(now + closed));
        now += closed;
        law.on_resume(at(now));
        for _ in 0..serves {
            law.on_attempt(&attempt(at(now), Ended::Accepted));
            now += 1.0 / law.rate(at(now)).get();
        }
    }
    (law, now)
}

#[test]
fn who_counts_and_then_closes_is_not_served_longer_by_going_slower() {
    for serves in [1, 2, 16, 300] {
        for closed in [1.0, 20.0, 50.0] {
            let (mut law, now) = counted(serves, closed, 40);
            let rate = law.rate(at(now)).get();
            assert!(rate >= 9.9, "{serves}, {closed}: {rate}");
        }
    }
    // Nothing but many of them tells that.
    let (mut law, now) = counted(16, 20.0, 5);
    assert!(law.rate(at(now)).get() < 1.0);
}

#[test]
fn a_slow_bucket_is_not_taken_for_one_who_counts() {
    for per_second in [0.05, 0.2, 1.0] {
        for depth in [1.0, 3.0, 100.0] {
            let mut world = World::new(Server::bucket(per_second, depth), 10.0);
            world.run(20_000.0 / per_second);
            world.run(20_000.0 / per_second);
            let refused = world.refused / world.sent;
            assert!(refused < 0.0015, "{per_second}, {depth}: {refused}");
        }
    }
}

#[test]
fn a_burst_refused_as_one_cuts_once() {
    let mut law = Learned::new().build(at(1.0), Rate::per_second(100.0));
    law.on_attempt(&attempt(at(1.0), refused(None)));
    for _ in 0..63 {
        law.on_attempt(&attempt(at(1.0), refused(None)).stale(true));
    }
    assert_eq!(law.rate(at(1.0)).get(), 50.0);
}

#[test]
fn a_limit_on_concurrency_leaves_the_rate_alone() {
    let mut law = Learned::new().build(at(1.0), Rate::per_second(100.0));
    let kind = ThrottleKind::ConcurrencyLimited;
    law.on_attempt(&attempt(at(1.0), Ended::Throttled { kind, asked: None }));
    assert_eq!(law.rate(at(1.0)).get(), 100.0);
}

#[test]
fn a_slow_start_grows_only_while_callers_wait() {
    let mut law = Learned::slow_start().build(at(0.0), Rate::per_second(1.0));
    for secs in 0..60 {
        law.on_attempt(&attempt(at(f64::from(secs)), Ended::Accepted).waiting(false));
    }
    assert_eq!(law.rate(at(60.0)).get(), 1.0);
    for secs in 60..=90 {
        law.on_attempt(&attempt(at(f64::from(secs)), Ended::Accepted));
    }
    let rate = law.rate(at(90.0)).get();
    assert!((15.0..25.0).contains(&rate), "{rate}");
}

#[test]
fn an_idle_hour_is_no_evidence_of_capacity() {
    let mut world = World::new(Server::bucket(50.0, 50.0), 200.0);
    world.run(1800.0);
    let rate = world.rate();
    for secs in 0..3600 {
        let now = at(world.now + f64::from(secs));
        let idle = attempt(now, Ended::Accepted).waiting(false);
        world.law.on_attempt(&idle);
        assert!(world.law.rate(now).get() <= rate * 1.02);
    }
}

#[test]
fn a_quota_that_has_doubled_is_found_again() {
    let mut world = World::new(Server::bucket(25.0, 25.0), 200.0);
    world.run(3600.0);
    assert!((24.0..25.5).contains(&world.rate()), "{}", world.rate());
    world.server.kind = Server::bucket(50.0, 50.0).kind;
    world.run(600.0);
    world.run(600.0);
    assert!(world.accepted >= 0.96 * 600.0 * 50.0, "{}", world.accepted);
}

#[test]
fn a_window_that_has_doubled_is_found_within_half_an_hour() {
    let mut world = World::new(Server::window(1500.0, 60.0), 200.0);
    world.run(7200.0);
    world.server.kind = Server::window(3000.0, 60.0).kind;
    world.run(1800.0);
    world.run(1200.0);
    assert!(world.accepted >= 0.96 * 1200.0 * 50.0, "{}", world.accepted);
}

#[test]
fn a_quota_that_has_halved_is_found_within_a_minute() {
    let mut world = World::new(Server::bucket(50.0, 50.0), 200.0);
    world.run(3600.0);
    world.server.kind = Server::bucket(25.0, 50.0).kind;
    world.run(60.0);
    world.run(600.0);
    assert!(world.accepted >= 0.96 * 600.0 * 25.0, "{}", world.accepted);
    assert!(world.refused <= 12.0, "{}", world.refused);
}

#[test]
fn after_a_long_silence_it_begins_below_what_it_knew() {
    let mut world = World::new(Server::bucket(50.0, 50.0), 200.0);
    world.run(3600.0);
    let knew = world.rate();
    world.now += 4.0 * 3600.0;
    world
        .law
        .on_attempt(&attempt(at(world.now), Ended::Accepted));
    assert!(world.rate() < 0.5 * knew, "{}", world.rate());
    world.run(300.0);
    world.run(600.0);
    assert!(world.accepted >= 0.96 * 600.0 * 50.0, "{}", world.accepted);
}

#[test]
fn a_rate_set_by_hand_is_where_it_begins_anew() {
    let mut world = World::new(Server::bucket(50.0, 50.0), 200.0);
    world.run(600.0);
    world.law.set_rate(at(world.now), Rate::per_second(2.0));
    assert_eq!(world.rate(), 2.0);
    world.run(120.0);
    world.run(600.0);
    assert!(world.accepted >= 0.96 * 600.0 * 50.0, "{}", world.accepted);
}

#[test]
fn an_announced_quota_is_held_until_it_is_disproved() {
    let mut world = World::new(Server::bucket(10.0, 10.0), 200.0);
    world.law.on_quota(at(0.0), Rate::per_second(10.0));
    world.run(600.0);
    assert_eq!(world.refused, 0.0);
    assert!(world.accepted >= 0.98 * 600.0 * 10.0, "{}", world.accepted);
    // The server is slower than it says.
    world.server.kind = Server::bucket(5.0, 10.0).kind;
    for _ in 0..60 {
        world.law.on_quota(at(world.now), Rate::per_second(10.0));
        world.run(60.0);
    }
    assert!(world.refused <= 1.0, "{}", world.refused);
    assert!(world.rate() < 5.2, "{}", world.rate());
}

#[test]
fn the_herd_before_it_disproves_no_announced_quota() {
    let mut law = Learned::new().build(at(1.0), Rate::per_second(100.0));
    law.on_quota(at(1.0), Rate::per_second(10.0));
    law.on_attempt(&attempt(at(1.0), refused(Some(1.0))));
    let rate = law.rate(at(1.0)).get();
    assert!((9.8..10.0).contains(&rate), "{rate}");
}

/// Answers to what was under way as the machine was suspended all come in the
/// moment that it wakes up.
#[test]
fn what_came_in_a_night_that_no_clock_saw_disproves_no_quota() {
    let raised = |told: bool| {
        let mut world = World::new(Server::window(200.0, 20.0), 50.0);
        world.run(3600.0);
        let before = world.rate();
        if told {
            world.law.on_suspended(at(world.now));
        }
        for (answers, every) in [(5_000, 0.0), (100, 0.1)] {
            for _ in 0..answers {
                world.now += every;
                let served = attempt(at(world.now), Ended::Accepted);
                world.law.on_attempt(&served);
            }
        }
        world.rate() / before
    };
    assert!(raised(true) < 1.01, "{}", raised(true));
    assert!(raised(false) > 1.1, "{}", raised(false));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Attempt(Ended, bool, bool),
    Pause,
    Resume,
    Set(f64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let asked = prop_oneof![Just(None), (0.0..1e5f64).prop_map(Some)];
    let ended = prop_oneof![6 => Just(Ended::Accepted), 1 => asked.prop_map(refused)];
    prop_oneof![
        12 => (ended, any::<bool>(), any::<bool>()).prop_map(|(e, s, w)| Step::Attempt(e, s, w)),
        1 => Just(Step::Pause),
        1 => Just(Step::Resume),
        1 => any::<f64>().prop_map(Step::Set),
    ]
}

fn feed(law: &mut dyn Law, now: Instant, step: Step) {
    match step {
        Step::Attempt(ended, stale, waiting) => {
            law.on_attempt(&Attempt::new(now, now, ended).stale(stale).waiting(waiting));
        }
        Step::Pause => law.on_pause(now, now),
        Step::Resume => law.on_resume(now),
        Step::Set(rate) => law.set_rate(now, Rate::per_second(rate)),
    }
}

proptest! {
    /// The rate stays a number within its bounds, a throttle never raises it,
    /// and two laws that saw the same give the same.
    #[test]
    fn whatever_happens_the_rate_keeps_within_its_bounds(
        start in any::<f64>(),
        floor in any::<f64>(),
        ceiling in any::<f64>(),
        steps in prop::collection::vec((any::<u64>(), 0..14u32, any_step()), 0..300),
    ) {
        let config = Learned::new().start_rate(start).floor(floor).ceiling(ceiling);
        let build = || config.build(Instant::ZERO, Rate::per_second(start));
        let (mut law, mut twin) = (build(), build());
        let floor = Rate::per_second(floor);
        let ceiling = Rate::per_second(ceiling).at_least(floor);
        let mut now = Instant::ZERO;
        for (nanos, digits, step) in steps {
            now += Duration::from_nanos(nanos % 10u64.pow(digits));
            let before = law.rate(now);
            feed(&mut *law, now, step);
            feed(&mut *twin, now, step);
            let rate = law.rate(now);
            prop_assert_eq!(rate, twin.rate(now));
            prop_assert!(rate >= floor && rate <= ceiling, "{:?}", rate);
            if let Step::Attempt(Ended::Throttled { .. }, ..) = step {
                prop_assert!(rate <= before, "{:?} after {:?}", rate, before);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the quota and the depth, it comes to rest just below.
    #[test]
    fn it_rests_just_below_the_quota_of_any_bucket(
        exponent in 0.0..2.3f64,
        depth in 0.2..10.0f64,
        measured in 0.0..500.0f64,
    ) {
        let quota = 10f64.powf(exponent);
        let mut world = World::new(Server::bucket(quota, (quota * depth).max(2.0)), measured);
        world.run(3600.0);
        world.run(7200.0);
        prop_assert!(world.accepted >= 0.97 * 7200.0 * quota, "{}", world.accepted / 7200.0);
        prop_assert!(world.refused <= 0.001 * world.sent + 2.0, "{} of {}", world.refused, world.sent);
    }

    /// The same of a window, of a second or of five minutes.
    #[test]
    fn it_rests_just_below_the_quota_of_any_window(
        limit in 50.0..5000.0f64,
        secs in 1.0..300.0f64,
        measured in 0.0..500.0f64,
    ) {
        let (limit, secs) = (limit.round(), secs.round());
        let quota = limit / secs;
        prop_assume!(quota > 1.0 && quota < 200.0);
        let mut world = World::new(Server::window(limit, secs), measured);
        world.run(3600.0);
        world.run(7200.0);
        prop_assert!(world.accepted >= 0.97 * 7200.0 * quota, "{}", world.accepted / 7200.0);
        prop_assert!(world.refused <= 0.001 * world.sent + 2.0, "{} of {}", world.refused, world.sent);
    }
}
