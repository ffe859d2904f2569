//! The chain that asks one classifier after another.

use std::error::Error as StdError;

use http::{HeaderMap, Uri, response::Parts};

use super::{Classifier, Phase, Receipt};
use crate::verdict::Verdict;

/// Asks one classifier, and another where the first has nothing to say.
///
/// Made by [`Classifier::or`].
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B> {
    first: A,
    next: B,
}

impl<A, B> Or<A, B> {
    pub(super) const fn new(first: A, next: B) -> Self {
        Self { first, next }
    }
}

impl<A: Classifier, B: Classifier> Classifier for Or<A, B> {
    fn head(&self, head: &Parts, at: &Receipt<'_>) -> Option<Phase> {
        let phase = self.first.head(head, at);
        phase.or_else(|| self.next.head(head, at))
    }

    fn body(&self, head: &Parts, body: &[u8], at: &Receipt<'_>) -> Option<Verdict> {
        // Whoever asked for the body judges it. The other one has said nothing
        // yet if that is the first, and then is asked from the start.
        if self.first.head(head, at).is_some() {
            let verdict = self.first.body(head, body, at);
            verdict.or_else(|| self.next.judge(head, body, &HeaderMap::new(), at))
        } else {
            self.next.body(head, body, at)
        }
    }

    fn trailers(&self, head: &Parts, trailers: &HeaderMap, at: &Receipt<'_>) -> Option<Verdict> {
        if self.first.head(head, at).is_some() {
            let verdict = self.first.trailers(head, trailers, at);
            verdict.or_else(|| self.next.judge(head, b"", trailers, at))
        } else {
            self.next.trailers(head, trailers, at)
        }
    }

    fn error(&self, error: &(dyn StdError + 'static)) -> Option<Verdict> {
        let verdict = self.first.error(error);
        verdict.or_else(|| self.next.error(error))
    }

    fn needs_uri(&self) -> bool {
        self.first.needs_uri() || self.next.needs_uri()
    }

    fn may_be_unprocessed(&self, requested: &Uri) -> bool {
        self.first.may_be_unprocessed(requested) || self.next.may_be_unprocessed(requested)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{Response, StatusCode};

    use super::*;
    use crate::{
        classifier::{HttpClassifier, classify_body_fn, classify_fn},
        verdict::ThrottleKind::{self, ConcurrencyLimited, Overloaded, Unknown},
    };

    fn on(status: u16, kind: ThrottleKind) -> impl Classifier {
        classify_fn(move |head| (head.status == status).then(|| Verdict::throttled(kind)))
    }

    fn in_body(status: u16, word: &'static str, kind: ThrottleKind) -> impl Classifier {
        classify_body_fn(
            move |head| head.status == status,
            move |_, body| (body == word.as_bytes()).then(|| Verdict::throttled(kind)),
        )
    }

    fn judge(classifier: &impl Classifier, status: u16, body: &str) -> Verdict {
        let (head, ()) = Response::builder()
            .status(status)
            .body(())
            .unwrap()
            .into_parts();
        let at = Receipt::at(UNIX_EPOCH);
        classifier
            .judge(&head, body.as_bytes(), &HeaderMap::new(), &at)
            .unwrap()
    }

    #[test]
    fn the_first_with_something_to_say_decides() {
        let chain = on(418, ConcurrencyLimited)
            .or(on(418, Overloaded))
            .or(on(503, Overloaded))
            .or(HttpClassifier::new());
        let throttled = Verdict::throttled;
        assert_eq!(judge(&chain, 418, ""), throttled(ConcurrencyLimited));
        assert_eq!(judge(&chain, 503, ""), throttled(Overloaded));
        assert_eq!(judge(&chain, 429, ""), throttled(Unknown));
        assert_eq!(judge(&chain, 200, ""), Verdict::ACCEPTED);
    }

    #[test]
    fn a_body_that_says_nothing_leaves_the_answer_to_the_next() {
        let chain = in_body(400, "busy", Overloaded)
            .or(in_body(400, "many", ConcurrencyLimited))
            .or(HttpClassifier::new());
        let throttled = Verdict::throttled;
        assert_eq!(judge(&chain, 400, "busy"), throttled(Overloaded));
        assert_eq!(judge(&chain, 400, "many"), throttled(ConcurrencyLimited));
        assert_eq!(judge(&chain, 400, "what"), Verdict::NEUTRAL);
        assert_eq!(judge(&chain, 404, "busy"), Verdict::ACCEPTED);
    }

    #[test]
    fn a_body_is_judged_by_the_one_who_asked_for_it() {
        let chain = on(429, Overloaded).or(in_body(400, "many", ConcurrencyLimited));
        let many = Verdict::throttled(ConcurrencyLimited);
        assert_eq!(judge(&chain, 400, "many"), many);
        assert_eq!(judge(&chain, 429, "many"), Verdict::throttled(Overloaded));
    }

    /// Asks for the trailers of every answer, and knows one of them.
    struct InTrailers;

    impl Classifier for InTrailers {
        fn head(&self, _: &Parts, _: &Receipt<'_>) -> Option<Phase> {
            let meanwhile = Verdict::ACCEPTED;
            Some(Phase::NeedTrailers { meanwhile })
        }

        fn trailers(&self, _: &Parts, trailers: &HeaderMap, _: &Receipt<'_>) -> Option<Verdict> {
            let busy = trailers.contains_key("x-busy");
            busy.then(|| Verdict::throttled(Overloaded))
        }
    }

    #[test]
    fn trailers_that_say_nothing_leave_the_answer_to_the_next() {
        let chain = InTrailers
            .or(on(418, ConcurrencyLimited))
            .or(on(418, Unknown));
        let (head, ()) = Response::builder()
            .status(418)
            .body(())
            .unwrap()
            .into_parts();
        let judge = |trailers: &HeaderMap| {
            let at = Receipt::at(UNIX_EPOCH);
            chain.judge(&head, b"", trailers, &at)
        };
        let mut trailers = HeaderMap::new();
        let next = Some(Verdict::throttled(ConcurrencyLimited));
        assert_eq!(judge(&trailers), next);
        trailers.insert("x-busy", "1".parse().unwrap());
        assert_eq!(judge(&trailers), Some(Verdict::throttled(Overloaded)));
    }

    #[test]
    fn until_the_body_is_read_the_general_rules_hold() {
        let (head, ()) = Response::builder()
            .status(StatusCode::TOO_MANY_REQUESTS)
            .body(())
            .unwrap()
            .into_parts();
        let classifier = in_body(429, "busy", Overloaded);
        let phase = classifier.head(&head, &Receipt::at(UNIX_EPOCH)).unwrap();
        assert_eq!(phase.into_verdict(), Verdict::throttled(Unknown));
    }
}
