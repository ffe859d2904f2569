//! What is refused here and never sent: one concrete [`Error`].

use std::{error::Error as StdError, fmt, time::Duration};

use crate::scope_key::ScopeKey;

/// A boxed error, as tower's services pass them on.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a call ended without an answer of the server.
///
/// Either it was refused here and never sent ([`is_refusal`](Self::is_refusal)),
/// or its deadline passed, or the inner service failed. One pointer wide.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    scope: Option<ScopeKey<'static>>,
    retry_after: Option<Duration>,
    sent: bool,
    source: Option<BoxError>,
}

/// What stopped a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The scope is paused for longer than calls may wait.
    Paused,
    /// The call's turn, or its answer, would come after its deadline.
    Deadline,
    /// Too many callers wait already, or they would for too long.
    QueueFull,
    /// A hard quota or the money of the scope is spent.
    Exhausted,
    /// The retry budget of the scope is spent.
    Budget,
    /// The call has to wait, and no tokio runtime is there to drive the wait.
    NoRuntime,
    /// The inner service failed; see [`source`](StdError::source).
    Inner,
}

impl ErrorKind {
    /// A static name for events and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Deadline => "deadline",
            Self::QueueFull => "queue_full",
            Self::Exhausted => "exhausted",
            Self::Budget => "budget",
            Self::NoRuntime => "no_runtime",
            Self::Inner => "inner",
        }
    }
}

impl Error {
    /// A call of `scope` that is refused and was not sent.
    pub(crate) fn refused(
        kind: ErrorKind,
        scope: ScopeKey<'static>,
        retry_after: Option<Duration>,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            scope: Some(scope),
            retry_after,
            sent: false,
            source: None,
        }))
    }

    /// A call of `scope` whose attempt did not end before its deadline.
    pub(crate) fn timed_out(scope: ScopeKey<'static>) -> Self {
        let mut error = Self::refused(ErrorKind::Deadline, scope, None);
        error.0.sent = true;
        error
    }

    /// The error of an inner service, kept as it is if it is ours already.
    pub(crate) fn inner(source: BoxError) -> Self {
        match source.downcast::<Self>() {
            Ok(ours) => *ours,
            Err(source) => Self(Box::new(Inner {
                kind: ErrorKind::Inner,
                scope: None,
                retry_after: None,
                sent: true,
                source: Some(source),
            })),
        }
    }

    /// Gives a refusal the source that an integration wants to see there.
    #[cfg(feature = "grpc")]
    pub(crate) fn with_source(mut self, source: BoxError) -> Self {
        self.0.source = Some(source);
        self
    }

    /// What stopped the call.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the call was refused here: this attempt was never sent.
    pub fn is_refusal(&self) -> bool {
        !self.0.sent
    }

    /// When it is worth calling again, from now on; `None` if that is unknown.
    ///
    /// Never less than the server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The scope that stopped the call, unless the inner service did.
    pub fn scope(&self) -> Option<&ScopeKey<'static>> {
        self.0.scope.as_ref()
    }

    /// Gives up the inner service's error, if that is what it is.
    ///
    /// # Errors
    ///
    /// Gives `self` back if it has no source.
    pub fn into_source(mut self) -> Result<BoxError, Self> {
        self.0.source.take().ok_or(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0.kind {
            ErrorKind::Paused => "scope is paused",
            ErrorKind::Deadline if self.0.sent => "deadline passed before the answer came",
            ErrorKind::Deadline => "deadline would pass before the call's turn",
            ErrorKind::QueueFull => "too many calls are waiting",
            ErrorKind::Exhausted => "quota is exhausted",
            ErrorKind::Budget => "retry budget is spent",
            ErrorKind::NoRuntime => "waiting needs a tokio runtime",
            // The source says what failed, and is printed by whoever walks it.
            ErrorKind::Inner => return f.write_str("inner service failed"),
        };
        f.write_str(words)?;
        if let Some(scope) = &self.0.scope {
            write!(f, ": {scope}")?;
        }
        match self.0.retry_after {
            Some(wait) if wait < Duration::MAX => write!(f, ", again in {wait:?}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("scope", &self.0.scope)
            .field("retry_after", &self.0.retry_after)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}
