//! The future of a call that passes a gate or a rate: sent at once, or queued.

use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::{Scoped, Want};
use crate::{
    error::{BoxError, Error, ErrorKind},
    time::Instant,
};

pin_project! {
    /// The response future of [`Gate`](crate::Gate) and [`Rate`](crate::Rate).
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the queue without a trace, and gives back the token
    /// and the slot of a call that was granted its turn.
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmitFuture<S, F, Req> {
        #[pin]
        state: State<S, F, Req>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, F, Req> {
        // The inner service has been called; its response is awaited.
        Called { #[pin] response: F },
        // The call waits for its turn, or for the inner service. Boxed, for
        // most calls never wait and are moved often.
        Waiting { waiting: Option<Box<Waiting<S, Req>>> },
        // The call is refused; the error has not been given yet.
        Refused { error: Option<Error> },
    }
}

struct Waiting<S, Req> {
    service: S,
    scoped: Scoped<Req>,
    want: Want,
    /// The turn has come, but the inner service was not ready for it: place
    /// and grant were left to others meanwhile.
    readying: bool,
    /// Ends the call at its deadline while it stands in no queue.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S, Req> AdmitFuture<S, S::Future, Req>
where
    S: Service<Scoped<Req>> + Clone,
{
    /// Calls `inner`, which is ready, if the call may pass at once; else gives
    /// up its readiness and waits.
    #[inline(always)]
    pub(crate) fn call(inner: &mut S, mut scoped: Scoped<Req>, want: Want) -> Self {
        let passed = scoped.ticket.pass(want);
        if !matches!(passed, Ok(true)) {
            return Self::hold(inner, scoped, want, passed.err());
        }
        Self {
            state: State::Called {
                response: inner.call(scoped),
            },
        }
    }

    /// Refuses the call; or gives up the readiness of `inner` and waits.
    ///
    /// Apart, so that the way of those that pass is short enough to be inlined:
    /// a call is hundreds of bytes, and each function on its way moves it.
    #[cold]
    fn hold(inner: &mut S, scoped: Scoped<Req>, want: Want, refused: Option<Error>) -> Self {
        if let Some(error) = refused {
            let state = State::Refused { error: Some(error) };
            return Self { state };
        }
        // The readied service may hold a slot of a buffer or a semaphore,
        // which a pause of a minute would starve.
        let service = inner.clone();
        drop(mem::replace(inner, service.clone()));
        Self {
            state: State::Waiting {
                waiting: Some(Box::new(Waiting {
                    service,
                    scoped,
                    want,
                    readying: false,
                    timer: None,
                })),
            },
        }
    }
}

impl<S, Req> Waiting<S, Req>
where
    S: Service<Scoped<Req>> + Clone,
    S::Error: Into<BoxError>,
{
    /// Ready when the turn has come and the inner service is ready, both in
    /// this poll.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            if !self.readying {
                ready!(self.scoped.ticket.poll_admit(cx, self.want))?;
            }
            let Poll::Ready(readied) = self.service.poll_ready(cx) else {
                return self.poll_readying(cx);
            };
            readied.map_err(Into::into)?;
            let ticket = &mut self.scoped.ticket;
            let admitted = !mem::take(&mut self.readying) || ticket.try_admit(self.want)?;
            if admitted && ticket.confirm(self.want)? {
                return Poll::Ready(Ok(()));
            }
            // Back to its place; the inner service is left to others.
            self.service = self.service.clone();
        }
    }

    /// The inner service is not ready: a head that waits for a permit held by
    /// one behind it would deadlock, so the turn is left to others.
    fn poll_readying(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let ticket = &mut self.scoped.ticket;
        if !mem::replace(&mut self.readying, true) {
            ticket.step_aside();
            let deadline = ticket.deadline();
            if deadline < Instant::NEVER && self.timer.is_none() {
                self.timer = Some(Box::pin(ticket.clock().sleep_until(deadline)));
            }
        }
        match &mut self.timer {
            Some(timer) => ready!(timer.as_mut().poll(cx)),
            None => return Poll::Pending,
        }
        Poll::Ready(Err(ticket.refuse(ErrorKind::Deadline, None).into()))
    }
}

impl<S, Req> Future for AdmitFuture<S, S::Future, Req>
where
    S: Service<Scoped<Req>> + Clone,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let response = match this.state.as_mut().project() {
                StateProj::Called { response } => return response.poll(cx).map_err(Into::into),
                StateProj::Refused { error } => {
                    return match error.take() {
                        Some(error) => Poll::Ready(Err(error.into())),
                        // Polled again after it was done.
                        None => Poll::Pending,
                    };
                }
                StateProj::Waiting { waiting } => {
                    let Some(queued) = waiting else {
                        return Poll::Pending;
                    };
                    let turn = ready!(queued.poll_turn(cx));
                    let Some(queued) = waiting.take() else {
                        return Poll::Pending;
                    };
                    turn?;
                    let Waiting {
                        mut service,
                        scoped,
                        ..
                    } = *queued;
                    service.call(scoped)
                }
            };
            this.state.set(State::Called { response });
        }
    }
}

impl<S, F, Req> fmt::Debug for AdmitFuture<S, F, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Called { .. } => "Called",
            State::Waiting { .. } => "Waiting",
            State::Refused { .. } => "Refused",
        };
        f.debug_tuple("AdmitFuture").field(&state).finish()
    }
}
