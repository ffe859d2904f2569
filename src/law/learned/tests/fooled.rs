//! What must not fool it: silence, a server that changes, a single answer.

use super::{
    world::{Server, World},
    *,
};

/// Goes on until it is refused, and then for as long as `idle` nobody comes to
/// prove the gate open.
fn stay_away(world: &mut World, idle: f64) {
    let wait = loop {
        world.now += 0.7 / world.rate();
        let now = at(world.now);
        match world.server.send(world.now) {
            Ok(()) => world.law.on_attempt(&attempt(now, Ended::Accepted)),
            Err(wait) => break wait.max(1.0),
        }
    };
    let now = at(world.now);
    world.law.on_attempt(&attempt(now, refused(Some(wait))));
    world.law.on_pause(now, at(world.now + wait));
    // The gate knows when it could have been proven.
    world.law.on_resume(at(world.now + wait));
    world.now += wait + idle;
}

#[test]
fn a_night_in_which_nobody_came_is_neither_a_window_nor_a_pause() {
    let servers = [
        (Server::bucket(50.0, 50.0), 50.0),
        (Server::bucket(5.0, 5.0), 5.0),
        (Server::window(3000.0, 60.0), 50.0),
        (Server::window(100.0, 10.0), 10.0),
    ];
    for (server, quota) in servers {
        for warm in [60.0, 600.0, 7200.0] {
            for (idle, closed) in [(300.0, false), (30_000.0, false), (30_000.0, true)] {
                let mut world = World::new(server, 200.0);
                world.run(warm);
                match closed {
                    true => stay_away(&mut world, idle),
                    false => world.now += idle,
                }
                world.run(900.0);
                world.run(900.0);
                let case = format!("{server:?}, {warm}, {idle}, {closed}");
                let share = world.accepted / (900.0 * quota);
                assert!(share >= 0.93, "{case}: {share}");
                let refused = world.refused / world.sent;
                assert!(refused <= 0.0015, "{case}: {refused}");
            }
        }
    }
}

#[test]
fn a_pause_is_no_silence() {
    let mut world = World::new(Server::bucket(50.0, 50.0), 200.0);
    world.run(3600.0);
    world.law.on_pause(at(world.now), at(world.now + 1800.0));
    let mut late = |secs: f64| {
        let now = at(world.now + secs);
        let late = attempt(now, Ended::Accepted).stale(true);
        world.law.on_attempt(&late);
        world.law.rate(now)
    };
    assert_eq!(late(0.1), late(600.0));
}

/// At one rate the cycles of any server are alike.
#[test]
fn a_rate_that_is_held_is_given_up_when_time_refills_again() {
    for quota in [0.2, 1.0, 3.0] {
        let (law, now) = counted(1, 20.0, 40);
        let mut world = World::new(Server::bucket(quota, 1.0), 10.0);
        (world.law, world.now) = (law, now);
        (world.server.at, world.server.left) = (now, 0.0);
        assert!(world.rate() > 9.9);
        world.run(1000.0 / quota);
        world.run(1000.0 / quota);
        let refused = world.refused / world.sent;
        assert!(refused < 0.01, "{quota}: {refused}");
    }
}

#[test]
fn a_rate_that_was_held_before_is_no_reason_to_exceed_an_announced_one() {
    let (mut law, now) = counted(1, 20.0, 40);
    law.on_quota(at(now), Rate::per_second(1.0));
    law.on_attempt(&attempt(at(now + 1.0), refused(Some(20.0))));
    law.on_pause(at(now + 1.0), at(now + 21.0));
    law.on_resume(at(now + 21.0));
    assert!(law.rate(at(now + 21.0)).get() <= 1.0);
}

/// Of the only one that is served between two refusals, nobody knows how much
/// was refilled: half of it, on average.
#[test]
fn one_served_at_a_time_is_no_reason_to_all_but_stop() {
    for (closed, least) in [(0.1, 0.7), (1.0, 0.15)] {
        let (mut law, now) = counted(1, closed, 5);
        let rate = law.rate(at(now)).get();
        assert!(rate >= least, "{closed}: {rate}");
    }
}
