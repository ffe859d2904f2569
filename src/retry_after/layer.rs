//! The layer and its settings.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;
use tower_layer::Layer;

use super::RetryAfter;
#[cfg(feature = "grpc")]
use crate::resolve::Protocol;
use crate::{
    body::{RecordBody, ReplayBody},
    classifier::{Classifier, HttpClassifier},
    classify::{ClassifyLayer, TellTimeout},
    cost::Cost,
    gate::Gate,
    law::LawConfig,
    rate::Rate,
    resolve::{How, ResolveLayer},
    retry::RetryLayer,
    scope::{Policy, Scopes},
    scope_key::{Head, ScopeKey},
};

/// Makes all callers of a rate-limited service behave as one client.
///
/// State is born in the layer: every service made from it, every clone of it
/// and of them, and every layer given the same [`Scopes`], share it. A setter
/// keeps the scopes, unless it is one of what scopes obey ([`law`](Self::law),
/// [`max_pause`](Self::max_pause), …): that one gives the layer scopes of its
/// own.
///
/// # Defaults
///
/// Scopes by host; four attempts a call; pauses of up to 60 s are waited out;
/// no deadline; the general rules of [`HttpClassifier`]; and the defaults of
/// [`Policy`].
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use tower::{Layer as _, ServiceBuilder};
/// use tower_retry_after::{RetryAfterLayer, ScopeKey};
///
/// let layer = RetryAfterLayer::new()
///     .scope_fn(|head| ScopeKey::host(head)?.and_secret(head.headers().get("x-api-key")?))
///     .max_in_flight(32)
///     .deadline(Duration::from_secs(120));
/// let scopes = layer.scopes();
/// # async fn send(_: http::Request<String>) -> Result<http::Response<String>, std::io::Error> {
/// #     Ok(http::Response::default())
/// # }
/// let client = ServiceBuilder::new().layer(layer).service_fn(send);
/// # let _ = (client, scopes);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is applied"]
pub struct RetryAfterLayer {
    settings: Arc<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    policy: Policy,
    /// Made when first asked for: until then the policy may change. Shared by
    /// all layers that differ only in what a call may do.
    scopes: Arc<OnceLock<Scopes>>,
    how: How,
    retry: RetryLayer,
    classifier: Arc<dyn Classifier>,
    tell_timeout: Option<TellTimeout>,
}

impl Default for RetryAfterLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl RetryAfterLayer {
    /// A layer with all defaults.
    pub fn new() -> Self {
        Self {
            settings: Arc::new(Settings {
                policy: Policy::default(),
                scopes: Arc::default(),
                how: How::DEFAULT,
                retry: RetryLayer::new(),
                classifier: Arc::new(HttpClassifier::new()),
                tell_timeout: None,
            }),
        }
    }

    /// A layer that shares `scopes`, and obeys their policy, with others.
    pub fn with_scopes(scopes: Scopes) -> Self {
        Self::new().with(|settings| {
            settings.policy = scopes.policy().clone();
            settings.scopes = Arc::new(scopes.into());
        })
    }

    /// The scopes of this layer: for snapshots, manual control and sharing.
    pub fn scopes(&self) -> Scopes {
        let settings = &self.settings;
        let scopes = settings
            .scopes
            .get_or_init(|| Scopes::new(settings.policy.clone()));
        scopes.clone()
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Puts all calls into `scope`, and speaks `protocol` there.
    #[cfg(feature = "grpc")]
    pub(super) fn speaking(
        self,
        scope: ScopeKey<'static>,
        protocol: Protocol,
        tell_timeout: TellTimeout,
    ) -> Self {
        self.with(|settings| {
            settings.how.name_scope(scope);
            settings.how.speak(protocol);
            settings.tell_timeout = Some(tell_timeout);
        })
    }

    /// Changes the policy: from here on the layer has scopes of its own.
    fn with_policy(self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.with(|settings| {
            settings.policy = change(settings.policy.clone());
            settings.scopes = Arc::default();
        })
    }
}

/// What a call may do. These keep the layer's scopes.
impl RetryAfterLayer {
    /// Sets how a request's scope is found. Defaults to [`ScopeKey::host`],
    /// which also stands in where the function gives `None`.
    ///
    /// A closure that is first kept in a `let` does not infer; hand it over at
    /// once.
    pub fn scope_fn<F>(self, f: F) -> Self
    where
        F: for<'a> Fn(&Head<'a>) -> Option<ScopeKey<'a>> + Send + Sync + 'static,
    {
        self.with(|settings| settings.how.scope_by(f))
    }

    /// Puts all calls into one scope, whatever their requests say.
    pub fn scope(self, scope: ScopeKey<'static>) -> Self {
        self.with(|settings| settings.how.name_scope(scope))
    }

    /// Sets what each attempt of a request takes of its scope's buckets.
    /// Defaults to one request.
    pub fn cost_fn<F>(self, f: F) -> Self
    where
        F: Fn(&Head<'_>) -> Cost + Send + Sync + 'static,
    {
        self.with(|settings| settings.how.cost_by(f))
    }

    /// Sets who judges the answers. Defaults to [`HttpClassifier`], which also
    /// stands in where `classifier` has nothing to say.
    pub fn classifier(self, classifier: impl Classifier) -> Self {
        self.with(|settings| {
            let classifier: Arc<dyn Classifier> = Arc::new(classifier.or(HttpClassifier::new()));
            settings.retry = settings.retry.clone().judged_by(Arc::clone(&classifier));
            settings.classifier = classifier;
        })
    }

    /// Sets how many attempts are made in all, at least one. Defaults to 4.
    pub fn max_attempts(self, most: u32) -> Self {
        self.with(|settings| settings.retry = settings.retry.clone().max_attempts(most))
    }

    /// Sends nothing again; pauses are waited out and the rate is held all the
    /// same. Off by default.
    pub fn without_retry(self) -> Self {
        self.max_attempts(1)
    }

    /// Sets the time from a call's arrival to the head of its answer. Defaults
    /// to none.
    ///
    /// It covers waits, the reading of an answer's body in order to judge it,
    /// and the attempts. A wait that would end later ends the call at once.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|settings| settings.how.set_deadline(deadline))
    }

    /// Counts, judges and learns, but holds nothing back and sends nothing
    /// again. Off by default.
    pub fn observe_only(self) -> Self {
        self.with(|settings| settings.how.observe_only())
    }

    /// Says how bodies of type `B` are copied, if one can be.
    ///
    /// Known already: `Full` and `Empty` of `http-body-util`, and `String`.
    pub fn replay_body<B, F>(self, copy: F) -> Self
    where
        B: 'static,
        F: Fn(&B) -> Option<B> + Send + Sync + 'static,
    {
        self.with(|settings| settings.retry = settings.retry.clone().replay_body(copy))
    }

    /// Says how bodies of type `B` are recorded: `wrap` makes a `B` of one
    /// that is recorded while it streams, `replay` of a recording.
    ///
    /// Known already: `BoxBody` and `UnsyncBoxBody` of `http-body-util`.
    pub fn record_body<B, W, R>(self, wrap: W, replay: R) -> Self
    where
        B: Body<Data = Bytes> + 'static,
        W: Fn(RecordBody<B>) -> B + Send + Sync + 'static,
        R: Fn(ReplayBody<B::Error>) -> B + Send + Sync + 'static,
    {
        self.with(|settings| settings.retry = settings.retry.clone().record_body(wrap, replay))
    }
}

/// What scopes obey. Each gives the layer scopes of its own.
impl RetryAfterLayer {
    /// Sets all of it at once.
    pub fn policy(self, policy: Policy) -> Self {
        self.with_policy(|_| policy)
    }

    /// Sets the control law. See [`Policy::law`].
    pub fn law(self, law: impl LawConfig) -> Self {
        self.with_policy(|policy| policy.law(law))
    }

    /// Sets the shortest pause. See [`Policy::min_pause`].
    pub fn min_pause(self, pause: Duration) -> Self {
        self.with_policy(|policy| policy.min_pause(pause))
    }

    /// Sets the longest pause that is waited out. See [`Policy::max_pause`].
    pub fn max_pause(self, pause: Duration) -> Self {
        self.with_policy(|policy| policy.max_pause(pause))
    }

    /// Sets how many attempts of one scope may be in flight. See
    /// [`Policy::max_in_flight`].
    pub fn max_in_flight(self, most: u32) -> Self {
        self.with_policy(|policy| policy.max_in_flight(most))
    }

    /// Adds a bucket for another unit than requests. See [`Policy::bucket`].
    pub fn bucket(self, name: impl Into<Cow<'static, str>>, per_second: f64) -> Self {
        self.with_policy(|policy| policy.bucket(name, per_second))
    }

    /// Sets how many calls may wait in one scope. See [`Policy::max_waiters`].
    pub fn max_waiters(self, most: usize) -> Self {
        self.with_policy(|policy| policy.max_waiters(most))
    }
}

impl<S> Layer<S> for RetryAfterLayer {
    type Service = RetryAfter<S>;

    fn layer(&self, inner: S) -> RetryAfter<S> {
        let settings = &*self.settings;
        let classify =
            ClassifyLayer::shared(Arc::clone(&settings.classifier)).telling(settings.tell_timeout);
        let resolve = ResolveLayer::of(self.scopes(), settings.how.clone());
        let inner = Gate::new(Rate::new(classify.layer(inner)));
        resolve.layer(settings.retry.layer(inner))
    }
}
