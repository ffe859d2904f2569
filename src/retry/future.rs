//! One call, from its first attempt to the answer that is given back.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::CONTENT_TYPE};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    between::{Between, Drain, Fallback},
    head::HeadCopy,
};
use crate::{
    body::{Kept, ResponseBody},
    error::{BoxError, Error, ErrorKind},
    observe::{self, Refused},
    outcome::{Outcome, OutcomeHandle, Progress, Reason},
    retry_policy::{Call, Decision},
    scope::{Classified, Scoped, Ticket},
    time::Instant,
    verdict::Verdict,
};

/// How long a refused answer's body is drained at most.
const DRAIN: Duration = Duration::from_secs(5);

pub(super) type Answer<RB> = Classified<Response<ResponseBody<RB>>>;

pin_project! {
    /// The response future of [`Retry`](super::Retry).
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the call: place, token and slot are given back, and an
    /// [`OutcomeHandle`] is told of the attempts until then.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, F, B, RB: Body> {
        #[pin]
        state: State<F, B, RB>,
        call: Call,
        // What another attempt needs; boxed, for few calls need it.
        again: Option<Box<Again<S, B>>>,
        fallback: Option<Box<Fallback<RB>>>,
        told: Option<Box<Told>>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, B, RB: Body> {
        // An attempt is on its way, or waits for its turn below.
        Sent { #[pin] response: F },
        // Between two attempts.
        Between { between: Option<Box<Between<B, RB>>> },
        // Done.
        Done,
    }
}

/// What another attempt needs.
pub(super) struct Again<S, B> {
    service: S,
    head: HeadCopy,
    body: Kept<B>,
}

impl<S, B> Again<S, B> {
    pub(super) const fn new(service: S, head: HeadCopy, body: Kept<B>) -> Self {
        Self {
            service,
            head,
            body,
        }
    }
}

/// What an [`OutcomeHandle`] is told when the call ends, or is dropped.
pub(super) struct Told {
    handle: OutcomeHandle,
    outcome: Outcome,
    /// How far the call has come, while the outcome is not the last word.
    progress: Option<Arc<Progress>>,
}

impl Told {
    pub(super) fn new(handle: OutcomeHandle, progress: Arc<Progress>) -> Self {
        Self {
            handle,
            outcome: Outcome::default(),
            progress: Some(progress),
        }
    }

    /// The call has ended with `outcome`.
    fn end(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.progress = None;
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(progress) = &self.progress {
            progress.tell(&mut self.outcome);
        }
        self.handle.set(std::mem::take(&mut self.outcome));
    }
}

impl<S, F, B, RB: Body> ResponseFuture<S, F, B, RB> {
    pub(super) const fn new(
        response: F,
        call: Call,
        again: Option<Box<Again<S, B>>>,
        told: Option<Box<Told>>,
    ) -> Self {
        Self {
            state: State::Sent { response },
            call,
            again,
            fallback: None,
            told,
        }
    }
}

/// What an answer leads to.
enum Next<B, RB: Body> {
    GiveBack(Answer<RB>),
    Wait(Box<Between<B, RB>>),
}

/// Decides on an answer, and tells what was decided.
fn judge<S, B, RB: Body>(
    answer: Answer<RB>,
    call: &Call,
    again: Option<&Again<S, B>>,
    told: &mut Option<Box<Told>>,
) -> Next<B, RB> {
    let Classified {
        mut response,
        verdict,
        ticket,
    } = answer;
    // What a layer below has done for the call is a part of what became of it.
    let below = response.extensions().get::<Outcome>();
    let Some(mut ticket) = ticket else {
        if let Some(told) = told {
            let once = || Outcome {
                attempts: 1,
                ..Outcome::default()
            };
            told.end(below.cloned().unwrap_or_else(once));
        }
        return Next::GiveBack(Classified {
            response,
            verdict,
            ticket,
        });
    };
    let opens = forecast(&verdict, &ticket);
    let decision = decide(&response, &verdict, call, &ticket, opens);
    let again = match (decision, again) {
        (Decision::Again, Some(again)) => again
            .body
            .again()
            .and_then(|body| Some((again.head.rebuild()?, body))),
        _ => None,
    };
    let gave_up = match (decision, &again) {
        (Decision::Done, _) | (Decision::Again, Some(_)) => None,
        (Decision::Again, None) => Some(Reason::BodyNotReplayable),
        (Decision::GiveUp(reason), _) => Some(reason),
    };
    let more = below.map_or(0, |below| below.attempts.saturating_sub(1));
    let waited = below.map_or(Duration::ZERO, |below| below.waited);
    let outcome = Outcome {
        attempts: ticket.attempt().saturating_add(more),
        waited: ticket.waited().saturating_add(waited),
        gave_up,
        hint: verdict.hint().cloned(),
        code: verdict.code().map(Into::into),
        request_id: verdict.request_id().map(Into::into),
        scope: Some(ticket.scope()),
    };
    let now = ticket.clock().now();
    if verdict.is_refusal() {
        let left = ticket.deadline();
        observe::refused(&Refused {
            scope: &ticket.scope(),
            call: ticket.call(),
            attempt: ticket.attempt(),
            status: Some(response.status().as_u16()),
            content_type: response.headers().get(CONTENT_TYPE),
            verdict: &verdict,
            queued: ticket.waited(),
            deadline_left: (left < Instant::NEVER).then(|| left - now),
            delay: again.as_ref().and(opens.ok()).map(|opens| opens - now),
            why: ticket.why(),
            gave_up,
            delivered: false,
        });
    }
    let Some((head, body)) = again else {
        if let Some(told) = told {
            told.end(outcome.clone());
        }
        if outcome.is_worth_telling() {
            response.extensions_mut().insert(outcome);
        }
        return Next::GiveBack(Classified {
            response,
            verdict,
            ticket: Some(ticket),
        });
    };
    if let Some(told) = told {
        told.outcome = outcome.clone();
    }
    // Put there now, for when the call has to fall back on this answer.
    response.extensions_mut().insert(outcome);
    let sleep = |at: Instant| Box::pin(ticket.clock().sleep_until(at));
    let limit = sleep(now + DRAIN);
    let alone = (ticket.not_before() > now).then(|| sleep(ticket.not_before()));
    let deadline = ticket.deadline();
    let timer = (deadline < Instant::NEVER).then(|| sleep(deadline));
    let (head_of_answer, refused) = response.into_parts();
    let drain = Drain {
        peek: refused.peek(),
        head: head_of_answer,
        verdict,
        progress: ticket.progress(ticket.attempt()),
    };
    let mut ticket = ticket.next_attempt();
    ticket.pause_alone();
    Next::Wait(Box::new(Between {
        drain: Some((drain, limit)),
        pause: alone,
        timer,
        next: Some((head.map(|()| body), ticket)),
    }))
}

/// When a call that was throttled would be sent again at the earliest, or why it
/// would not.
fn forecast(verdict: &Verdict, ticket: &Ticket) -> Result<Instant, Reason> {
    match verdict.throttle() {
        Some(_) => ticket.forecast().map_err(|refusal| reason(&refusal)),
        None => Ok(Instant::ZERO),
    }
}

fn decide<RB: Body>(
    response: &Response<ResponseBody<RB>>,
    verdict: &Verdict,
    call: &Call,
    ticket: &Ticket,
    opens: Result<Instant, Reason>,
) -> Decision {
    if verdict.is_refusal() && response.extensions().get::<Outcome>().is_some() {
        // A layer below has done what can be done: no retries of retries.
        return Decision::GiveUp(Reason::Nested);
    }
    let call = Call {
        attempts: ticket.attempt(),
        ..*call
    };
    call.decide(verdict.ruling(), opens)
}

/// Why a call that would be refused is not sent again.
fn reason(refusal: &Error) -> Reason {
    match refusal.kind() {
        ErrorKind::Paused => Reason::PauseTooLong,
        ErrorKind::Deadline => Reason::Deadline,
        ErrorKind::Exhausted => Reason::Exhausted,
        ErrorKind::Budget => Reason::Budget,
        _ => Reason::Refused,
    }
}

/// The answer that a refused call falls back on, with the reason.
fn fall_back<RB: Body>(
    fallback: &mut Option<Box<Fallback<RB>>>,
    error: BoxError,
    told: &mut Option<Box<Told>>,
) -> Result<Answer<RB>, BoxError> {
    let refused = error
        .downcast_ref::<Error>()
        .filter(|error| error.is_refusal());
    let (Some(refused), true) = (refused, fallback.is_some()) else {
        return Err(error);
    };
    let reason = reason(refused);
    let Some(fallback) = fallback.take() else {
        return Err(error);
    };
    let Fallback {
        mut answer,
        progress,
    } = *fallback;
    if let Some(outcome) = answer.response.extensions_mut().get_mut::<Outcome>() {
        progress.tell(outcome);
        outcome.gave_up = Some(reason);
    }
    if let Some(told) = told {
        told.outcome.gave_up = Some(reason);
    }
    Ok(answer)
}

impl<S, B, RB> Future for ResponseFuture<S, S::Future, B, RB>
where
    S: Service<Scoped<Request<B>>, Response = Answer<RB>> + Clone,
    S::Error: Into<BoxError>,
    RB: Body<Data = Bytes>,
{
    type Output = Result<Answer<RB>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let done = loop {
            let next = match this.state.as_mut().project() {
                StateProj::Sent { response } => match ready!(response.poll(cx)) {
                    // As most end: apart, for an answer is long and is moved.
                    Ok(answer) if answer.ticket.is_none() && this.told.is_none() => {
                        this.state.set(State::Done);
                        *this.again = None;
                        return Poll::Ready(Ok(answer));
                    }
                    Ok(answer) => {
                        *this.fallback = None;
                        match judge(answer, this.call, this.again.as_deref(), this.told) {
                            Next::GiveBack(answer) => break Ok(answer),
                            Next::Wait(between) => State::Between {
                                between: Some(between),
                            },
                        }
                    }
                    Err(error) => break fall_back(this.fallback, error.into(), this.told),
                },
                StateProj::Between { between } => {
                    let (Some(waiting), Some(again)) = (between.as_mut(), this.again.as_mut())
                    else {
                        return Poll::Pending;
                    };
                    if let Err(error) = ready!(waiting.poll_wait(cx, this.fallback)) {
                        break fall_back(this.fallback, error.into(), this.told);
                    }
                    let readied = match again.service.poll_ready(cx) {
                        Poll::Ready(readied) => readied,
                        Poll::Pending if waiting.is_late(cx) => {
                            let error = match &waiting.next {
                                Some((_, ticket)) => ticket.refuse(ErrorKind::Deadline, None),
                                None => return Poll::Pending,
                            };
                            break fall_back(this.fallback, error.into(), this.told);
                        }
                        Poll::Pending => return Poll::Pending,
                    };
                    if let Err(error) = readied {
                        break Err(error.into());
                    }
                    let Some((request, ticket)) = waiting.next.take() else {
                        return Poll::Pending;
                    };
                    // The readied one is called; its clone stays for the next.
                    let clone = again.service.clone();
                    let mut service = std::mem::replace(&mut again.service, clone);
                    State::Sent {
                        response: service.call(Scoped::new(request, ticket)),
                    }
                }
                StateProj::Done => return Poll::Pending,
            };
            this.state.set(next);
        };
        this.state.set(State::Done);
        // A handle knows by now, and a recording is not needed any more.
        *this.told = None;
        *this.again = None;
        Poll::Ready(done)
    }
}

impl<S, F, B, RB: Body> fmt::Debug for ResponseFuture<S, F, B, RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
