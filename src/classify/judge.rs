//! The judge of one attempt: settles it by what its answer means.

use std::{pin::Pin, sync::Arc, task::Context, time::Duration};

use http::{Response, StatusCode, Uri, response::Parts};
use http_body::Body;
use tokio::time::Sleep;

use super::future::Peeking;
use crate::{
    body::{Peek, ResponseBody, Watch},
    classifier::{Classifier, Phase, Receipt},
    scope::{Classified, Ticket},
    verdict::Verdict,
};

/// Who judges one attempt, and what it takes.
pub(super) struct Judge {
    pub(super) ticket: Ticket,
    pub(super) classifier: Arc<dyn Classifier>,
    /// Boxed, for few classifiers ask for it.
    pub(super) uri: Option<Box<Uri>>,
    /// Ends the attempt at the call's deadline.
    pub(super) timer: Option<Pin<Box<Sleep>>>,
    /// A `CONNECT`: what follows its head is no body.
    pub(super) tunnel: bool,
}

impl Judge {
    /// Whether the deadline has passed.
    pub(super) fn poll_deadline(&mut self, cx: &mut Context<'_>) -> bool {
        let timer = self.timer.as_mut();
        timer.is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
    }

    pub(super) fn receipt(&self) -> Receipt<'_> {
        Receipt::now(self.ticket.clock()).uri(self.uri.as_deref())
    }

    /// What the head says.
    pub(super) fn head(&self, head: &Parts) -> Phase {
        let phase = self.classifier.head(head, &self.receipt());
        phase.unwrap_or(Phase::Decided(Verdict::NEUTRAL))
    }

    /// Begins to read `body` ahead, for `most` or until the deadline.
    pub(super) fn peeking<RB: Body>(
        &self,
        head: Parts,
        peek: Peek<RB>,
        meanwhile: Verdict,
        most: Duration,
    ) -> Peeking<RB> {
        let clock = self.ticket.clock();
        let ends = (clock.now() + most).min(self.ticket.deadline());
        Peeking {
            head,
            peek: Some(peek),
            trailers: false,
            meanwhile,
            timer: Box::pin(clock.sleep_until(ends)),
        }
    }

    /// What was read says of the answer, if more than its head did.
    pub(super) fn peeked<RB: Body>(
        &self,
        peeking: &Peeking<RB>,
        peek: &Peek<RB>,
    ) -> Option<Verdict> {
        if !peeking.trailers {
            return self.body(&peeking.head, peek);
        }
        let trailers = peek.trailers()?;
        self.classifier
            .trailers(&peeking.head, trailers, &self.receipt())
    }

    /// What the body says, if it says more than the head did.
    pub(super) fn body<RB: Body>(&self, head: &Parts, peek: &Peek<RB>) -> Option<Verdict> {
        // What broke off or never ended is no answer to judge by.
        if !peek.is_readable() {
            return None;
        }
        self.classifier.body(head, &peek.bytes(), &self.receipt())
    }

    /// Settles by `verdict`, and again by the trailers when they come.
    pub(super) fn close_watched<RB: Body>(
        mut self,
        verdict: Verdict,
        head: Parts,
        body: ResponseBody<RB>,
    ) -> Classified<Response<ResponseBody<RB>>> {
        self.ticket.settle(&verdict);
        let body = match self.ticket.late() {
            Some(late) => {
                let mut seen = Response::new(()).into_parts().0;
                seen.status = head.status;
                seen.headers = head.headers.clone();
                body.watched(Watch::new(late, Arc::clone(&self.classifier), seen))
            }
            None => body,
        };
        self.close(verdict, head, body)
    }

    /// Settles by `verdict`, and gives the answer to the services above.
    pub(super) fn close<RB: Body>(
        mut self,
        mut verdict: Verdict,
        head: Parts,
        body: ResponseBody<RB>,
    ) -> Classified<Response<ResponseBody<RB>>> {
        if verdict.is_refusal() || verdict.ignored().is_some() {
            verdict = verdict.with_status(head.status.as_u16());
        }
        self.ticket.settle(&verdict);
        // These have no body that would show the end of the attempt.
        let bodiless = self.tunnel || head.status == StatusCode::SWITCHING_PROTOCOLS;
        let slot = self.ticket.take_slot().filter(|_| !bodiless);
        let body = body.holding(slot);
        // Of a call to which nothing has happened there is nothing to tell.
        let uneventful = matches!(self.ticket.attempt(), 1)
            && self.ticket.waited().is_zero()
            && !verdict.is_refusal();
        Classified {
            response: Response::from_parts(head, body),
            verdict,
            ticket: (!uneventful).then(|| Box::new(self.ticket)),
        }
    }
}
