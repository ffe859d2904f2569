//! How many bytes recordings of request bodies may keep.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Bytes that all recordings together may still keep. A clone shares them.
#[derive(Clone, Debug)]
pub(crate) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    /// The most bytes kept by all recordings together.
    pub(crate) const MOST: usize = 64 * 1024 * 1024;

    /// Takes `bytes`, or nothing if fewer are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        // Relaxed: the count guards no other memory.
        let take = |left: usize| left.checked_sub(bytes);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Gives back `bytes` that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(Self::MOST)))
    }
}
