//! The stack under a generated gRPC client.

use std::{borrow::Cow, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::RetryAfterLayer;
use crate::{
    classifier::GrpcClassifier,
    error::{Error, ErrorKind},
    hint::{grpc_timeout, shorten_grpc_timeout},
    resolve::Protocol,
    scope_key::ScopeKey,
};

impl RetryAfterLayer {
    /// A layer for the gRPC service `name`, which is its scope: generated
    /// clients send URIs that name no host.
    ///
    /// It judges by [`GrpcClassifier`]. A `grpc-timeout` is the call's
    /// deadline, and is rewritten to the time left. What is refused here is
    /// handed to callers as a [`Status`]: `DEADLINE_EXCEEDED`, or
    /// `RESOURCE_EXHAUSTED` with a `RetryInfo` where it is known when to come
    /// back.
    pub fn grpc(name: impl Into<Cow<'static, str>>) -> Self {
        let protocol = Protocol {
            timeout: Some(grpc_timeout),
            error: Some(with_status),
        };
        let scope = ScopeKey::new(name);
        Self::new().classifier(GrpcClassifier::new()).speaking(
            scope,
            protocol,
            shorten_grpc_timeout,
        )
    }
}

/// Gives an error of ours the status that tonic looks for among its sources.
fn with_status(error: Error) -> Error {
    let code = match error.kind() {
        ErrorKind::Inner => return error,
        ErrorKind::Deadline => Code::DeadlineExceeded,
        ErrorKind::NoRuntime => Code::Unavailable,
        _ => Code::ResourceExhausted,
    };
    let again = error.retry_after().filter(|wait| *wait < Duration::MAX);
    let mut details = ErrorDetails::new();
    if let Some(wait) = again.filter(|_| code == Code::ResourceExhausted) {
        details.set_retry_info(Some(wait));
    }
    let status = Status::with_error_details(code, error.to_string(), details);
    error.with_source(Box::new(status))
}
