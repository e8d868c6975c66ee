//! Buffers of a lane: with the simulator while a transfer uses them.

use iolab_model::op::Token;
use iolab_model::seed::Stream;
use iolab_model::target::Content;
use iolab_model::{Bytes, LaneRequest, Op};

/// Buffers by slot; none if no data are kept.
pub(super) struct Buffers {
    slots: Vec<Vec<u8>>,
    content: Content,
    stamps: Stream,
}

impl Buffers {
    /// Buffers of a lane, where data are kept.
    pub fn new(request: &LaneRequest, are_kept: bool) -> Self {
        let worker = u64::from(request.worker);
        let mut random = request.seed.stream("buffer", worker);
        let buffer = |_| {
            let mut bytes = vec![0; request.buffer_bytes.0 as usize];
            if request.content == Content::Incompressible {
                random.fill(&mut bytes);
            }
            bytes
        };
        let slots = if are_kept { (0..request.depth).map(buffer).collect() } else { Vec::new() };
        let (content, stamps) = (request.content, request.seed.stream("stamp", worker));
        Self { slots, content, stamps }
    }

    /// The buffer of a slot.
    pub fn slot(&mut self, token: Token) -> Option<&mut [u8]> {
        self.slots.get_mut(token.0 as usize).map(Vec::as_mut_slice)
    }

    /// The buffer of an op that moves data, with what it sends; absent: of others.
    pub fn lend(&mut self, token: Token, op: &Op) -> Option<Vec<u8>> {
        let is_write = match op {
            Op::Write(_) | Op::StreamWrite { .. } | Op::Touch { is_write: true, .. } => true,
            Op::Read(_) | Op::StreamRead { .. } | Op::Touch { is_write: false, .. } => false,
            _ => return None,
        };
        let mut buffer = core::mem::take(self.slots.get_mut(token.0 as usize)?);
        match &self.content {
            Content::Incompressible if is_write => {
                for page in buffer.chunks_mut(Bytes::PAGE.0 as usize) {
                    let stamp = self.stamps.next_u64().to_le_bytes();
                    let size = page.len().min(stamp.len());
                    page[..size].copy_from_slice(&stamp[..size]);
                }
            }
            Content::Pattern(pattern) if is_write => pattern.fill(&mut buffer),
            _ => {}
        }
        Some(buffer)
    }

    /// Takes a buffer back.
    pub fn put_back(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        if let (Some(slot), Some(buffer)) = (self.slots.get_mut(token.0 as usize), buffer) {
            *slot = buffer;
        }
    }

    /// Tell whether the buffer of a slot is on its way.
    pub fn is_lent(&self, token: Token) -> bool {
        self.slots.get(token.0 as usize).is_some_and(Vec::is_empty)
    }
}
