//! Events, written down.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{DefaultGuard, set_default},
};

/// Writes all events of a thread down, one a line, as `name=value` in their
/// order, and texts as they are.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    /// Listens until the guard is dropped.
    pub(crate) fn listen(&self) -> DefaultGuard {
        set_default(self.clone())
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// The events whose message is `message`.
    pub(crate) fn lines(&self, message: &str) -> Vec<String> {
        let is_one = |line: &&str| line.contains(&format!("message={message} "));
        let text = self.text();
        text.lines().filter(is_one).map(str::to_owned).collect()
    }
}

impl Visit for Log {
    fn record_str(&mut self, field: &Field, value: &str) {
        *self.0.lock().unwrap() += &format!("{field}=\"{value}\" ");
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        *self.0.lock().unwrap() += &format!("{field}={value:?} ");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
        self.0.lock().unwrap().push('\n');
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
