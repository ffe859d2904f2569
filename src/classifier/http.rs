//! The general rules, which hold for every HTTP service.

use std::error::Error as StdError;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER, response::Parts};

use super::{Classifier, Phase, Receipt, findings::Findings};
use crate::{
    hint::{self, Dimension, RateLimitFields, ServerClock},
    verdict::{Ruling, Throttle, ThrottleKind, Verdict},
};

/// Judges answers by what the standards say of them.
///
/// | answer | verdict |
/// | --- | --- |
/// | 429 | a throttle: [`RateLimited`] if it names a wait or a quota, else [`Unknown`] |
/// | 503 that names a wait | a throttle: [`Overloaded`] |
/// | below 400; 404, 409, 410, 412, 422 | accepted: the server did its work |
/// | any other | neutral |
/// | HTTP/2 `ENHANCE_YOUR_CALM` (feature `http2`) | a throttle: [`Unknown`] |
///
/// A wait is named by `Retry-After` (RFC 9110, section 10.2.3), else by the
/// reset of the quota that the `RateLimit` fields say has run out
/// (draft-ietf-httpapi-ratelimit-headers). If that quota is one by the day or
/// longer, the verdict is [`Exhausted`]. From any answer those fields are kept
/// as its [`Quota`].
///
/// `Retry-After` counts on 429 and 503 and nowhere else: on a 202 or a 301 it
/// is about something other than quotas. There it is ignored, and counted. One
/// that can't be read gives no wait, but still says that the refusal is
/// temporary.
///
/// [`RateLimited`]: ThrottleKind::RateLimited
/// [`Overloaded`]: ThrottleKind::Overloaded
/// [`Unknown`]: ThrottleKind::Unknown
/// [`Exhausted`]: crate::verdict::Ruling::Exhausted
/// [`Quota`]: crate::verdict::Quota
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpClassifier(());

impl HttpClassifier {
    /// The general rules and nothing else.
    pub const fn new() -> Self {
        Self(())
    }
}

impl Classifier for HttpClassifier {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        Some(judge(head, at).into())
    }

    fn error(&self, error: &(dyn StdError + 'static)) -> Option<Verdict> {
        asks_for_calm(error).then(|| Verdict::throttled(ThrottleKind::Unknown))
    }
}

/// What the general rules say; they have something to say of every head.
pub(super) fn judge(head: &Parts, at: &Receipt<'_>) -> Verdict {
    if is_silent(&head.headers) {
        return Verdict::new(ruling(head, &[]));
    }
    let wall = || at.wall();
    let clock = ServerClock::new(&head.headers, &wall);
    let dimensions = RateLimitFields::DRAFT.read(&head.headers, &clock);
    let ruling = ruling(head, &dimensions);
    let mut findings = Findings {
        dimensions,
        ..Findings::new(ruling)
    };
    findings.read_retry_after(head, at);
    findings.verdict()
}

/// Whether an answer has none of the fields that are read here, as most have:
/// one pass over the names costs less than to look up each field.
pub(super) fn is_silent(headers: &HeaderMap) -> bool {
    !headers
        .keys()
        .any(|name| name == RETRY_AFTER || name.as_str().starts_with("ratelimit"))
}

/// How the server ruled, by the general rules.
pub(super) fn ruling(head: &Parts, dimensions: &[Dimension]) -> Ruling {
    let throttled = |kind| Ruling::Throttled(Throttle::new(kind));
    let names_wait = || head.headers.contains_key(RETRY_AFTER) || hint::spent(dimensions).is_some();
    match head.status {
        StatusCode::TOO_MANY_REQUESTS => {
            let is_told = names_wait() || !dimensions.is_empty();
            throttled(if is_told {
                ThrottleKind::RateLimited
            } else {
                ThrottleKind::Unknown
            })
        }
        StatusCode::SERVICE_UNAVAILABLE if names_wait() => throttled(ThrottleKind::Overloaded),
        status => unthrottled(status),
    }
}

/// What a status says if it is no throttle.
pub(super) fn unthrottled(status: StatusCode) -> Ruling {
    match status.as_u16() {
        // The client's mistake or a state of the resource: the server looked.
        ..400 | 404 | 409 | 410 | 412 | 422 => Ruling::Accepted,
        _ => Ruling::Neutral,
    }
}

/// Whether a peer ended the stream or connection with `ENHANCE_YOUR_CALM`
/// (RFC 9113, section 7). hyper keeps h2's error as a source.
#[cfg(feature = "http2")]
fn asks_for_calm(error: &(dyn StdError + 'static)) -> bool {
    // A chain of sources is short; the bound is against one that is a circle.
    std::iter::successors(Some(error), |&error| error.source())
        .take(16)
        .filter_map(|error| error.downcast_ref::<h2::Error>())
        // h2 itself gives up with this reason on a peer that resets too much.
        .any(|error| error.is_remote() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM))
}

#[cfg(not(feature = "http2"))]
fn asks_for_calm(_: &(dyn StdError + 'static)) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::Response;

    use super::*;
    use crate::verdict::IgnoredReason;

    fn judge(status: u16, retry_after: Option<&str>) -> Verdict {
        let field = retry_after.map(|value| ("retry-after", value));
        judge_all(status, field.as_slice())
    }

    fn judge_all(status: u16, fields: &[(&str, &str)]) -> Verdict {
        let response = Response::builder().status(status);
        let response = fields.iter().fold(response, |response, (name, value)| {
            response.header(*name, *value)
        });
        let (head, ()) = response.body(()).unwrap().into_parts();
        let phase = HttpClassifier::new().head(&head, &Receipt::at(UNIX_EPOCH));
        phase.unwrap().into_verdict()
    }

    fn kind(verdict: &Verdict) -> Option<ThrottleKind> {
        verdict.throttle().map(|throttle| throttle.kind)
    }

    #[test]
    fn too_many_requests_is_a_throttle_and_its_kind_is_known_by_the_field() {
        let named = judge(429, Some("7"));
        assert_eq!(kind(&named), Some(ThrottleKind::RateLimited));
        assert_eq!(named.hint().unwrap().wait(), Duration::from_secs(7));
        assert_eq!(kind(&judge(429, None)), Some(ThrottleKind::Unknown));
    }

    #[test]
    fn an_unreadable_hint_is_absent_with_a_reason() {
        for (status, is) in [
            (429, ThrottleKind::RateLimited),
            (503, ThrottleKind::Overloaded),
        ] {
            let verdict = judge(status, Some("-1"));
            assert_eq!(kind(&verdict), Some(is));
            assert!(verdict.hint().is_none());
            let ignored = verdict.ignored().unwrap();
            assert_eq!(ignored.reason, IgnoredReason::Unreadable);
        }
    }

    #[test]
    fn service_unavailable_is_a_throttle_only_if_it_says_until_when() {
        let verdict = judge(503, Some("120"));
        assert_eq!(kind(&verdict), Some(ThrottleKind::Overloaded));
        assert_eq!(verdict.hint().unwrap().wait(), Duration::from_secs(120));
        assert_eq!(judge(503, None), Verdict::NEUTRAL);
    }

    #[test]
    fn only_what_shows_that_the_server_worked_counts_as_accepted() {
        for status in [200, 204, 301, 304, 404, 409, 410, 412, 422] {
            assert_eq!(judge(status, None), Verdict::ACCEPTED, "{status}");
        }
        for status in [
            400, 401, 402, 403, 405, 408, 413, 421, 425, 500, 502, 504, 529,
        ] {
            assert_eq!(judge(status, None), Verdict::NEUTRAL, "{status}");
        }
    }

    #[test]
    fn retry_after_elsewhere_is_ignored_and_counted() {
        for status in [200, 202, 301, 413, 500] {
            let verdict = judge(status, Some("17"));
            assert!(matches!(
                verdict.ruling(),
                Ruling::Accepted | Ruling::Neutral
            ));
            assert!(verdict.hint().is_none());
            let ignored = verdict.ignored().unwrap();
            assert_eq!(ignored.reason, IgnoredReason::NotAThrottle);
            assert_eq!(&*ignored.raw, "17");
        }
    }

    #[test]
    fn a_quota_that_ran_out_gives_the_wait_that_is_not_named() {
        let spent = ("ratelimit", "\"default\";r=0;t=30");
        let verdict = judge_all(429, &[spent]);
        assert_eq!(kind(&verdict), Some(ThrottleKind::RateLimited));
        assert_eq!(verdict.hint().unwrap().wait(), Duration::from_secs(30));
        assert_eq!(verdict.quota().unwrap().remaining, Some(0));
        let verdict = judge_all(503, &[spent]);
        assert_eq!(kind(&verdict), Some(ThrottleKind::Overloaded));
        // Section 5 of the draft: `Retry-After` takes precedence.
        let verdict = judge_all(503, &[spent, ("retry-after", "60")]);
        assert_eq!(verdict.hint().unwrap().wait(), Duration::from_secs(60));
    }

    #[test]
    fn a_quota_that_is_not_spent_gives_no_wait() {
        let left = ("ratelimit", "\"default\";r=9;t=30");
        let verdict = judge_all(429, &[left]);
        assert_eq!(kind(&verdict), Some(ThrottleKind::RateLimited));
        assert!(verdict.hint().is_none());
        assert_eq!(judge_all(503, &[left]).ruling(), &Ruling::Neutral);
        let verdict = judge_all(200, &[left]);
        assert_eq!(verdict.ruling(), &Ruling::Accepted);
        assert_eq!(verdict.quota().unwrap().remaining, Some(9));
    }

    #[test]
    fn a_quota_tells_what_kind_it_is() {
        let judge = |policy| {
            let spent = ("ratelimit", "\"a\";r=0;t=30");
            judge_all(429, &[spent, ("ratelimit-policy", policy)])
        };
        let daily = judge("\"a\";q=9;w=86400");
        assert!(matches!(daily.ruling(), Ruling::Exhausted(_)));
        assert_eq!(daily.hint().unwrap().wait(), Duration::from_secs(30));
        let at_once = judge("\"a\";q=9;qu=\"concurrent-requests\"");
        assert_eq!(kind(&at_once), Some(ThrottleKind::ConcurrencyLimited));
        let hourly = judge("\"a\";q=9;w=3600");
        assert_eq!(kind(&hourly), Some(ThrottleKind::RateLimited));
    }

    /// A server resets the only stream of a connection for `reason`.
    #[cfg(feature = "http2")]
    async fn reset_for(reason: h2::Reason) -> h2::Error {
        let (near, far) = tokio::io::duplex(1024);
        let server = async {
            let mut connection = h2::server::handshake(far).await.unwrap();
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            respond.send_reset(reason);
            connection.accept().await.map(drop)
        };
        let client = async {
            let (mut sender, connection) = h2::client::handshake(near).await.unwrap();
            let request = http::Request::get("http://a.test/").body(()).unwrap();
            let (response, _) = sender.send_request(request, true).unwrap();
            tokio::select! {
                response = response => response.unwrap_err(),
                _ = connection => unreachable!("the connection outlives its stream"),
            }
        };
        tokio::select! {
            error = client => error,
            _ = server => unreachable!("the server waits for another request"),
        }
    }

    #[cfg(feature = "http2")]
    #[tokio::test]
    async fn enhance_your_calm_is_a_throttle_wherever_it_stands_in_the_chain() {
        /// As hyper's errors wrap h2's, and a client's wrap hyper's.
        #[derive(Debug)]
        struct Wrapped(Box<dyn StdError>);
        impl std::fmt::Display for Wrapped {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("wrapped")
            }
        }
        impl StdError for Wrapped {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&*self.0)
            }
        }
        let calm = reset_for(h2::Reason::ENHANCE_YOUR_CALM).await;
        let wrapped = Wrapped(Box::new(Wrapped(Box::new(calm))));
        let verdict = HttpClassifier::new().error(&wrapped).unwrap();
        assert_eq!(kind(&verdict), Some(ThrottleKind::Unknown));

        let refused = reset_for(h2::Reason::REFUSED_STREAM).await;
        assert_eq!(HttpClassifier::new().error(&refused), None);
        // Nobody at the other end has said this.
        let local = h2::Error::from(h2::Reason::ENHANCE_YOUR_CALM);
        assert_eq!(HttpClassifier::new().error(&local), None);
    }
}
