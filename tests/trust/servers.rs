//! What is learned of servers that are truthful, and of the others.

use tower_retry_after::{
    trust::{Category, LongPause, Sent},
    verdict::Hint,
};

use crate::client::{Client, seconds};

/// Pseudo-random within `0.0..1.0`: a sequence without a seed to tune.
fn golden(n: u32) -> f64 {
    (f64::from(n) * 0.618_033_988_749_895).fract()
}

fn truthful(left: f64) -> Option<f64> {
    Some(left.ceil())
}

#[test]
fn a_truthful_server_is_obeyed_to_the_letter() {
    let mut client = Client::new();
    for n in 0..200 {
        client.episode(1.0 + golden(n) * 119.0, truthful);
    }
    assert_eq!(client.category(), Category::Truthful);
    assert_eq!(client.snapshot().median_ratio, Some(1.0));
    client.settled();
    for n in 0..200 {
        client.episode(1.0 + golden(n) * 119.0, truthful);
    }
    // Half of its waits are over a minute; few of those are probed.
    assert!(client.refused <= 210, "{}", client.refused);
    // Whole seconds waste half of one on average.
    assert!(client.wasted < 120.0, "{}", client.wasted);
}

#[test]
fn a_zero_is_known_for_what_it_is_and_the_true_time_is_learned() {
    let mut client = Client::new();
    for _ in 0..3 {
        assert_eq!(client.category(), Category::Unknown);
        client.episode(20.0, |_| Some(0.0));
    }
    assert_eq!(client.category(), Category::AlwaysZero);
    for _ in 0..10 {
        client.episode(20.0, |_| Some(0.0));
    }
    client.settled();
    for _ in 0..100 {
        client.episode(20.0, |_| Some(0.0));
    }
    assert!(client.refused <= 120, "{}", client.refused);
    assert!(client.wasted / 100.0 < 1.5, "{}", client.wasted);
}

#[test]
fn a_server_without_hints_is_met_by_what_was_learned() {
    let mut client = Client::new();
    for _ in 0..13 {
        client.episode(20.0, |_| None);
    }
    assert_eq!(client.category(), Category::Absent);
    let learned = client.snapshot().learned_recovery.unwrap().as_secs_f64();
    assert!((20.0..22.0).contains(&learned), "{learned}");
    client.settled();
    for _ in 0..100 {
        client.episode(20.0, |_| None);
    }
    assert!(client.refused <= 120, "{}", client.refused);
}

#[test]
fn one_overstated_value_gets_a_ceiling() {
    for asked in [300.0, 3600.0, 1e12] {
        let mut client = Client::new();
        for n in 0..3 {
            assert_eq!(client.category(), Category::Unknown, "{n}");
            client.episode(20.0, |_| Some(asked));
        }
        assert_eq!(client.category(), Category::ConstantOverstated);
        assert!(client.wasted <= 60.0, "never the hour: {}", client.wasted);
        for _ in 0..9 {
            client.episode(20.0, |_| Some(asked));
        }
        client.settled();
        for _ in 0..100 {
            client.episode(20.0, |_| Some(asked));
        }
        assert!(client.refused <= 120, "{}", client.refused);
        assert!(client.wasted / 100.0 < 1.5, "{}", client.wasted);
    }
}

#[test]
fn what_is_overstated_but_short_is_obeyed_knowingly() {
    let mut client = Client::new();
    for _ in 0..20 {
        client.episode(20.0, |_| Some(60.0));
    }
    assert_eq!(client.category(), Category::Truthful);
    assert!(
        (client.wasted - 20.0 * 40.0).abs() < 0.01,
        "{}",
        client.wasted
    );
    assert_eq!(client.refused, 20);
}

#[test]
fn random_hints_are_unreliable_and_the_true_time_is_learned() {
    let mut client = Client::new();
    let mut n = 0;
    let mut random = |_| {
        n += 1;
        Some((golden(n) * 600.0).floor())
    };
    for _ in 0..20 {
        client.episode(30.0, &mut random);
    }
    assert_eq!(client.category(), Category::Unreliable);
    client.settled();
    for _ in 0..100 {
        client.episode(30.0, &mut random);
    }
    assert!(client.refused <= 140, "{}", client.refused);
    assert!(client.wasted / 100.0 < 5.0, "{}", client.wasted);
}

#[test]
fn a_truthful_server_that_turns_into_a_liar_is_found_out() {
    let mut client = Client::new();
    for n in 0..30 {
        client.episode(1.0 + golden(n) * 119.0, truthful);
    }
    client.settled();
    for n in 0..4 {
        assert_eq!(client.category(), Category::Truthful, "{n}");
        client.episode(20.0, |_| Some(3600.0));
    }
    assert_eq!(client.category(), Category::ConstantOverstated);
    assert!(client.wasted < 100.0, "{}", client.wasted);
}

#[test]
fn a_liar_that_becomes_truthful_is_believed_again() {
    let mut client = Client::new();
    for _ in 0..30 {
        client.episode(20.0, |_| Some(3600.0));
    }
    client.settled();
    for n in 0..4 {
        assert_eq!(client.category(), Category::ConstantOverstated, "{n}");
        client.episode(1.0 + golden(n) * 50.0, truthful);
        // Another value than the proven one is obeyed from the first on.
        assert_eq!(client.refused, n + 1);
    }
    assert_eq!(client.category(), Category::Truthful);
}

#[test]
fn a_liar_whose_very_value_becomes_true_is_believed_again() {
    let mut client = Client::new();
    for _ in 0..30 {
        client.episode(20.0, |_| Some(3600.0));
    }
    for _ in 0..4 {
        client.settled().episode(3600.0, truthful);
        assert!(client.refused <= 9, "{}", client.refused);
    }
    assert_eq!(client.category(), Category::Truthful);
    client.settled().episode(3600.0, truthful);
    assert_eq!((client.refused, client.wasted), (1, 0.0));
}

#[test]
fn one_outlier_in_ten_changes_no_mind() {
    let mut client = Client::new();
    for n in 0..200 {
        let truth = 1.0 + golden(n) * 30.0;
        if n % 10 == 9 {
            client.episode(truth, |_| Some(3600.0));
            assert!(client.last.as_ref().unwrap().was.is_none(), "{n}");
        } else {
            client.episode(truth, truthful);
        }
        assert!(n < 4 || client.category() == Category::Truthful, "{n}");
    }
}

#[test]
fn a_ban_that_is_lengthened_is_not_probed_again() {
    let mut client = Client::new();
    let mut ban = 120.0;
    let mut probed = 0;
    for n in 0..10 {
        let (mut until, mut sent) = (client.now + ban, client.now);
        let refused = client.refused;
        // A send within a ban doubles it.
        while sent < until {
            client.refused += 1;
            let left = Hint::new(seconds(until - sent), "retry-after");
            let now = client.at(sent);
            client.trust.on_throttle(
                now,
                Sent {
                    at: now.now,
                    waited: true,
                },
                Some(&left),
                Some(429),
            );
            let pause = LongPause {
                began: client.at(client.now).now,
                until: client.at(until).now,
                backoff: seconds(1.0),
            };
            match client.trust.early_probe(&pause, now.now, &client.bounds) {
                Some(at) => {
                    sent = at.as_nanos() as f64 / 1e9;
                    ban *= 2.0;
                    until = sent + ban;
                    probed += 1;
                }
                None => sent = until,
            }
        }
        let end = client.at(sent);
        client.trust.on_accepted(
            end,
            Sent {
                at: end.now,
                waited: true,
            },
        );
        assert!(n == 0 || client.refused == refused + 1, "{n}");
        client.now = sent + 1.0;
        // Every offence lengthens the next.
        ban = f64::min(ban * 2.0, 5_000.0);
    }
    assert_eq!(probed, 2, "both within its first episode");
}
