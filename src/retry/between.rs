//! A call between two attempts: the refused answer is drained, and kept.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Sleep;

use super::future::Answer;
use crate::{
    body::Peek,
    error::{Error, ErrorKind},
    outcome::Progress,
    scope::{Classified, Ticket},
    verdict::Verdict,
};

/// A call between two attempts.
pub(super) struct Between<B, RB: Body> {
    /// The refused answer, while it is drained.
    pub(super) drain: Option<(Drain<RB>, Pin<Box<Sleep>>)>,
    /// The wait of a call that is paused alone.
    pub(super) pause: Option<Pin<Box<Sleep>>>,
    /// Ends the call at its deadline.
    pub(super) timer: Option<Pin<Box<Sleep>>>,
    pub(super) next: Option<(Request<B>, Ticket)>,
}

pub(super) struct Drain<RB: Body> {
    pub(super) peek: Peek<RB>,
    pub(super) head: http::response::Parts,
    pub(super) verdict: Verdict,
    pub(super) progress: Arc<Progress>,
}

/// The answer that a call falls back on which is refused while it waits.
pub(super) struct Fallback<RB: Body> {
    pub(super) answer: Answer<RB>,
    pub(super) progress: Arc<Progress>,
}

impl<B, RB> Between<B, RB>
where
    RB: Body<Data = Bytes>,
{
    /// Drains the refused answer, and waits alone if the call has to.
    ///
    /// An error says that the deadline has passed.
    pub(super) fn poll_wait(
        &mut self,
        cx: &mut Context<'_>,
        fallback: &mut Option<Box<Fallback<RB>>>,
    ) -> Poll<Result<(), Error>> {
        if let Some((drain, limit)) = &mut self.drain {
            let drained = Pin::new(&mut drain.peek).poll(cx).is_ready();
            if !drained && limit.as_mut().poll(cx).is_pending() && !self.is_late(cx) {
                return Poll::Pending;
            }
            if let Some((drain, _)) = self.drain.take()
                && drain.peek.is_whole()
            {
                let Drain {
                    peek,
                    head,
                    verdict,
                    progress,
                } = drain;
                let answer = Classified {
                    response: Response::from_parts(head, peek.into_body()),
                    verdict,
                    ticket: None,
                };
                *fallback = Some(Box::new(Fallback { answer, progress }));
            }
        }
        if self.is_late(cx) {
            let refused = |(_, ticket): &(_, Ticket)| ticket.refuse(ErrorKind::Deadline, None);
            if let Some(error) = self.next.as_ref().map(refused) {
                return Poll::Ready(Err(error));
            }
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        if let Some((_, ticket)) = &mut self.next {
            ticket.resume_alone();
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let timer = self.timer.as_mut();
        timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
    }
}
