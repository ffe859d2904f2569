//! An answer, and the judgement on it.

use std::time::SystemTime;

use http::{HeaderMap, Uri, header::CONTENT_TYPE, response::Parts};
use tower_retry_after::{
    Classifier, HttpClassifier,
    classifier::{GrpcClassifier, Receipt, providers, providers::Profile},
    verdict::Verdict,
};

/// An answer and what is known about it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: Parts,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: HeaderMap,
    pub(crate) url: Option<Uri>,
    /// When it was received.
    pub(crate) at: SystemTime,
}

impl Answer {
    /// Judges the answer, as a layer with all classifiers of this crate would,
    /// or one without any profile.
    pub(crate) fn judge(&self, profile: Option<&Profile>, general: bool) -> Verdict {
        let grpc = GrpcClassifier::new();
        match profile {
            _ if general => self.judge_by(&grpc.or(HttpClassifier::new())),
            // A named one is for whatever host it was named for.
            Some(profile) => {
                let named = profile.clone().anywhere();
                self.judge_by(&grpc.or(named).or(HttpClassifier::new()))
            }
            None => self.judge_by(&grpc.or(HttpClassifier::new().providers())),
        }
    }

    fn judge_by(&self, classifier: &dyn Classifier) -> Verdict {
        let at = Receipt::at(self.at).uri(self.url.as_ref());
        // The layer never holds a stream back to look into it. Whoever reads it
        // asks the classifier about an event, and reports what that says.
        let mut events = self.events().into_iter();
        let in_stream = events.find_map(|event| {
            let verdict = classifier.body(&self.head, event.as_bytes(), &at);
            verdict.filter(Verdict::is_refusal)
        });
        in_stream
            .or_else(|| classifier.judge(&self.head, &self.body, &self.trailers, &at))
            .unwrap_or(Verdict::NEUTRAL)
    }

    /// The data of the events, if the answer is a stream of them.
    pub(crate) fn events(&self) -> Vec<String> {
        let media = self.head.headers.get(CONTENT_TYPE);
        if media.is_none_or(|media| !media.as_bytes().starts_with(b"text/event-stream")) {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&self.body).replace("\r\n", "\n");
        let data = |event: &str| {
            let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
            lines.collect::<Vec<_>>().join("\n")
        };
        text.split("\n\n").map(data).collect()
    }

    /// The profile of the host that was asked, else the one called `name`.
    pub(crate) fn profile(&self, name: Option<&str>) -> Option<Profile> {
        let of_host = self.url.as_ref().and_then(providers::of);
        of_host.or_else(|| providers::named(name?))
    }
}
