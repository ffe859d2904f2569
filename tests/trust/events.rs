//! What is told of hints, to show to whoever runs the service.

use std::sync::Mutex;

use tower::{Layer as _, ServiceExt as _};
use tower_retry_after::{
    RetryAfterLayer, classify_body_fn,
    trust::{Category, Reason},
};

use crate::support::*;

const URI: &str = "http://a.test/";

/// Plays exhaustions, each of `(asked, takes)` seconds, and gives the events and
/// how they left the scope.
///
/// Somebody calls every second, and the next exhaustion comes a second after the
/// end of the last.
async fn play(exhaustions: &[(&'static str, u64)]) -> (Log, tower_retry_after::ScopeSnapshot) {
    let log = Log::default();
    let _guard = log.listen();
    let layer = RetryAfterLayer::new().policy(fast());
    for (asked, takes) in exhaustions.iter().copied() {
        let ended = std::sync::Arc::new(Mutex::new(false));
        let end = ended.clone();
        let server = Server::new(ms(10), move |send| match send.at < secs(takes) {
            true => refusal(asked),
            false => {
                *end.lock().unwrap() = true;
                ok()
            }
        });
        while !*ended.lock().unwrap() {
            tokio::spawn(layer.layer(server.clone()).oneshot(get(URI)));
            sleep(secs(1)).await;
        }
        sleep(secs(1)).await;
    }
    (log, layer.scopes().snapshot().pop().unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_episode_is_told_with_what_was_asked_and_what_was_measured() {
    let (log, scope) = play(&[("5", 5), ("7", 7)]).await;
    let measured = log.lines("hint measured");
    assert_eq!(measured.len(), scope.trust.observations);
    assert_eq!(measured.len(), 2, "{measured:?}");
    for told in [
        "scope=http://a.test:80 ",
        "status=429 ",
        "hint.ms=5000 ",
        "hint.source=\"retry-after\" ",
        "hint.raw=\"5\" ",
        "refused_until.ms=0 ",
        "served_after.ms=5",
        "truthful=true ",
        "trust=\"unknown\" ",
    ] {
        assert!(measured[0].contains(told), "{told} in {}", measured[0]);
    }
    assert!(measured[1].contains("hint.raw=\"7\" "), "{}", measured[1]);
    assert!(log.lines("hint not followed").is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_hint_that_is_not_followed_is_told_with_both_figures_and_the_reason() {
    let (log, scope) = play(&[("0", 3)]).await;
    let told = log.lines("hint not followed");
    let counted = scope.hints.overridden(Reason::ZeroIgnored);
    assert_eq!(told.len(), usize::try_from(counted).unwrap());
    assert!(told.len() >= 2, "{told:?}");
    for line in told {
        let wait = line.split("wait.ms=").nth(1).unwrap();
        let wait: u64 = wait.split(' ').next().unwrap().parse().unwrap();
        assert!(wait >= 1000, "{line}");
        for figure in [
            "scope=http://a.test:80 ",
            "hint.ms=0 ",
            "hint.raw=\"0\" ",
            "reason=\"zero_ignored\" ",
        ] {
            assert!(line.contains(figure), "{figure} in {line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_mind_is_told_once_and_so_is_a_ratio_that_moved() {
    let (log, scope) = play(&[
        ("4", 4),
        ("4", 4),
        ("4", 4),
        ("300", 9),
        ("300", 9),
        ("300", 9),
        ("300", 9),
        // They tell nothing new.
        ("300", 9),
        ("300", 9),
    ])
    .await;
    assert_eq!(scope.trust.category, Category::ConstantOverstated);
    let changes: Vec<_> = log
        .lines("trust changed")
        .into_iter()
        .map(|line| line.split_once("was=").unwrap().1.trim_end().to_owned())
        .collect();
    assert_eq!(
        changes,
        [
            r#""unknown" trust="truthful""#,
            r#""truthful" trust="constant_overstated""#
        ]
    );
    let moved = log.lines("hints are off by another factor");
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert!(moved[0].contains("was=1.0 ratio=0."), "{moved:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_none_is_told_and_counted_as_one() {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal("soon"),
        _ => ok().header("retry-after", "9"),
    });
    let (client, layer) = client_of(&server, policy());
    assert_eq!(client.oneshot(get(URI)).await.unwrap().status(), 200);
    let ignored = log.lines("hint ignored");
    let scope = layer.scopes().snapshot().pop().unwrap();
    assert_eq!(u64::try_from(ignored.len()).unwrap(), scope.hints.total());
    assert_eq!(ignored.len(), 2, "{ignored:?}");
    for (line, status, raw, reason) in [
        (&ignored[0], 429, "soon", "unreadable"),
        (&ignored[1], 200, "9", "not_a_throttle"),
    ] {
        let told = format!(
            "status={status} hint.source=\"retry-after\" hint.raw=\"{raw}\" reason=\"{reason}\""
        );
        assert!(line.contains(&told), "{told} in {line}");
    }
}

/// The log writes texts as they are given to it, and so would pass on whatever
/// controls a terminal.
#[tokio::test(start_paused = true)]
async fn no_raw_byte_of_a_server_reaches_a_log() {
    let long = |bytes: &[u8]| bytes.repeat(10_000 / bytes.len());
    for value in [
        long(b"\x9b31m\t\xff\"\\"),
        long(b"0"),
        [&long(b"0")[..], b"5"].concat(),
        [b"5".to_vec(), long(b"\t")].concat(),
        [b"5, ".to_vec(), long(b"\x9b")].concat(),
    ] {
        let log = Log::default();
        let _guard = log.listen();
        let header = http::HeaderValue::from_bytes(&value).unwrap();
        let server = Server::new(ms(10), move |send| {
            let mut answer = match send.nth {
                0 | 2 => bare_refusal(),
                _ => ok(),
            };
            answer.headers_mut().insert("retry-after", header.clone());
            answer
        });
        let (client, layer) = client_of(&server, policy());
        let once = layer.clone().without_retry().layer(server.clone());
        let mut shown = String::new();
        for client in [client, once] {
            let answer = client.oneshot(get(URI)).await.unwrap();
            shown += &format!("{:?}", answer.extensions());
        }
        shown += &format!("{:?}", layer.scopes().snapshot());
        let text = log.text();
        assert!(text.contains("attempt refused"), "{text}");
        let is_plain = |byte: u8| byte == b'\n' || matches!(byte, b' '..=b'~');
        assert!(text.bytes().all(is_plain), "{text}");
        assert!(text.lines().all(|line| line.len() < 600), "{text}");
        assert!(
            shown.bytes().all(is_plain) && shown.len() < 4_000,
            "{shown}"
        );
    }
}

/// The head of a refusal closes the gate, and its body is judged when it has
/// come.
#[tokio::test(start_paused = true)]
async fn a_pause_is_told_once_and_again_when_it_is_lengthened() {
    let log = Log::default();
    let _guard = log.listen();
    let server = Server::new(ms(10), |send| match send.nth {
        0 => refusal(2),
        // The probe.
        1 => refusal(9),
        _ => ok(),
    });
    let judge = classify_body_fn(|head| head.status == 429, |_, _| None);
    let layer = RetryAfterLayer::new().policy(policy()).classifier(judge);
    let client = layer.layer(server);
    assert_eq!(client.oneshot(get(URI)).await.unwrap().status(), 200);
    let told = log.lines("scope paused");
    assert_eq!(told.len(), 2, "{told:?}");
    for (line, pause) in told.iter().zip([2000, 9000]) {
        assert!(line.contains(&format!("pause.ms={pause} ")), "{line}");
    }
}
