//! The general rules, which hold for every HTTP service.

use std::error::Error as StdError;

use http::{StatusCode, header::RETRY_AFTER, response::Parts};

use super::{Classifier, Phase, Receipt};
use crate::{
    hint,
    verdict::{IgnoredHint, IgnoredReason, Throttle, ThrottleKind, Verdict},
};

/// Judges answers by what RFC 9110 and RFC 6585 say of them.
///
/// | answer | verdict |
/// | --- | --- |
/// | 429 | a throttle: [`RateLimited`] if it carries a `Retry-After`, else [`Unknown`] |
/// | 503 with `Retry-After` | a throttle: [`Overloaded`] |
/// | below 400; 404, 409, 410, 412, 422 | accepted: the server did its work |
/// | any other | neutral |
/// | HTTP/2 `ENHANCE_YOUR_CALM` (feature `http2`) | a throttle: [`Unknown`] |
///
/// `Retry-After` counts on 429 and 503 and nowhere else: on a 202 or a 301 it
/// is about something other than quotas. There it is ignored, and counted. One
/// that can't be read gives no wait, but still says that the refusal is
/// temporary.
///
/// [`RateLimited`]: ThrottleKind::RateLimited
/// [`Overloaded`]: ThrottleKind::Overloaded
/// [`Unknown`]: ThrottleKind::Unknown
#[derive(Clone, Debug, Default)]
pub struct HttpClassifier {}

impl HttpClassifier {
    /// The general rules and nothing else.
    pub const fn new() -> Self {
        Self {}
    }

    /// What the general rules say; they have something to say of every head.
    pub(super) fn general(&self, head: &Parts, at: &Receipt<'_>) -> Phase {
        match (head.status, head.headers.get(RETRY_AFTER)) {
            (StatusCode::TOO_MANY_REQUESTS, Some(_)) => {
                throttled(ThrottleKind::RateLimited, head, at)
            }
            (StatusCode::TOO_MANY_REQUESTS, None) => Verdict::throttled(ThrottleKind::Unknown),
            (StatusCode::SERVICE_UNAVAILABLE, Some(_)) => {
                throttled(ThrottleKind::Overloaded, head, at)
            }
            (status, None) => unthrottled(status),
            (status, Some(value)) => unthrottled(status).with_ignored(IgnoredHint::new(
                RETRY_AFTER.as_str(),
                value.as_bytes(),
                IgnoredReason::NotAThrottle,
            )),
        }
        .into()
    }
}

impl Classifier for HttpClassifier {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        Some(self.general(head, at))
    }

    fn error(&self, error: &(dyn StdError + 'static)) -> Option<Verdict> {
        asks_for_calm(error).then(|| Verdict::throttled(ThrottleKind::Unknown))
    }
}

/// A throttle with the wait that its `Retry-After` asks for.
fn throttled(kind: ThrottleKind, head: &Parts, at: &Receipt<'_>) -> Verdict {
    let throttle = Throttle::new(kind);
    match hint::retry_after(&head.headers, || at.wall()) {
        Some(Err(unreadable)) => Verdict::from(throttle).with_ignored(unreadable),
        Some(Ok(hint)) => throttle.hint(hint).into(),
        None => throttle.into(),
    }
}

/// What a status says if it is no throttle.
fn unthrottled(status: StatusCode) -> Verdict {
    match status.as_u16() {
        // The client's mistake or a state of the resource: the server looked.
        ..400 | 404 | 409 | 410 | 412 | 422 => Verdict::ACCEPTED,
        _ => Verdict::NEUTRAL,
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
    use crate::verdict::Ruling;

    fn judge(status: u16, retry_after: Option<&str>) -> Verdict {
        let mut response = Response::builder().status(status);
        if let Some(value) = retry_after {
            response = response.header(RETRY_AFTER, value);
        }
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
