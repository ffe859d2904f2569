//! Judging an answer by trailers that come after its body.

use std::{fmt, sync::Arc};

use http::{HeaderMap, response::Parts};

use crate::{
    classifier::{Classifier, Receipt},
    scope::Late,
};

/// Settles an attempt once more when its trailers say something else than its
/// head did: a stream that was refused after its first message, say.
pub(crate) struct Watch {
    late: Late,
    classifier: Arc<dyn Classifier>,
    head: Parts,
}

impl Watch {
    pub(crate) const fn new(late: Late, classifier: Arc<dyn Classifier>, head: Parts) -> Self {
        Self {
            late,
            classifier,
            head,
        }
    }

    /// Settles by `trailers`, if they say that the attempt was refused.
    pub(super) fn see(self, trailers: &HeaderMap) {
        let receipt = Receipt::now(self.late.clock());
        let verdict = self.classifier.trailers(&self.head, trailers, &receipt);
        if let Some(verdict) = verdict
            && verdict.is_refusal()
        {
            let status = self.head.status.as_u16();
            self.late.settle(&verdict.with_status(status));
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
