//! Data frames kept in memory, in order, at a bounded price.

use std::{borrow::Cow, collections::VecDeque};

use bytes::{Bytes, BytesMut};

/// Chunks at least this long are shared, shorter ones are copied together.
///
/// A chunk is a handle on a buffer that may be much larger than itself, and
/// the handle alone is 32 bytes: a peer that sends single bytes must not make
/// us hold a handle and a buffer for each of them.
const SHARED: usize = 4 * 1024;

/// A queue of data frames: what goes in comes out, but for empty frames and
/// for the borders between short ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Spool {
    chunks: VecDeque<Bytes>,
    tail: BytesMut,
    len: usize,
}

impl Spool {
    /// Appends `data`.
    pub(super) fn push(&mut self, data: &Bytes) {
        if data.is_empty() {
            return;
        }
        // What comes first is shared whatever its length: mostly it is all
        // there is, and can then be looked at without having been copied.
        if self.len == 0 || data.len() >= SHARED {
            self.seal();
            self.chunks.push_back(data.clone());
        } else {
            self.tail.extend_from_slice(data);
        }
        self.len = self.len.saturating_add(data.len());
    }

    /// Takes the first chunk.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        if self.chunks.is_empty() {
            self.seal();
        }
        let chunk = self.chunks.pop_front()?;
        self.len = self.len.saturating_sub(chunk.len());
        Some(chunk)
    }

    /// Closes the tail, after which a clone shares all data.
    pub(super) fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.chunks.push_back(self.tail.split().freeze());
        }
    }

    /// Bytes in the queue.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first bytes, at most `most`; copied only if they are not in one
    /// chunk.
    pub(super) fn first(&self, most: usize) -> Cow<'_, [u8]> {
        let most = most.min(self.len);
        let mut chunks = self.chunks.iter().map(Bytes::as_ref).chain([&*self.tail]);
        let first = chunks.next().unwrap_or_default();
        if let Some(first) = first.get(..most) {
            return Cow::Borrowed(first);
        }
        let mut bytes = Vec::with_capacity(most);
        bytes.extend_from_slice(first);
        for chunk in chunks {
            let left = most - bytes.len();
            bytes.extend_from_slice(chunk.get(..left).unwrap_or(chunk));
        }
        Cow::Owned(bytes)
    }
}
