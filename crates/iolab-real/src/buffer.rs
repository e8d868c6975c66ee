//! Page-aligned buffers, one per queue slot, with content that storage cannot shrink.
//!
//! Random bytes fill each buffer once; before every write the first 8 bytes of each 4 KiB page are
//! stamped with fresh random bits, so that no two pages ever sent are equal: compression gains
//! nothing and de-duplication finds nothing. Stamping touches 8 bytes per page.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use iolab_model::op::Token;
use iolab_model::seed::Stream;
use iolab_model::target::{Content, LaneRequest};
use iolab_model::{Bytes, Error};

/// Direct I/O never needs more than a page (statx reports up to 4096 today).
const ALIGNMENT: usize = 4096;

/// Memory that begins at a page, fetched.
pub struct PageMemory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is owned by this value alone and has no thread affinity.
unsafe impl Send for PageMemory {}

impl PageMemory {
    /// So many bytes, more than 0; `None` if no address space has them.
    pub fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes, ALIGNMENT).ok().filter(|_| bytes > 0)?;
        // SAFETY: the layout's size is not 0.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let mut memory = Self { start, layout };
        // Touches every page: otherwise the first op that uses it would pay for it.
        for byte in memory.bytes().iter_mut().step_by(ALIGNMENT) {
            *byte = std::hint::black_box(0);
        }
        Some(memory)
    }

    /// All of it.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation has this size, is initialised and borrowed through self.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The buffers of a lane.
pub struct Buffers {
    memory: PageMemory,
    size: usize,
    count: u32,
    content: Content,
    stamps: Stream,
}

impl Buffers {
    /// `request.depth` buffers of `request.buffer_bytes`, rounded up to whole pages.
    pub fn new(request: &LaneRequest) -> Result<Self, Error> {
        let size = request.buffer_bytes.round_up(Bytes::PAGE).0.max(Bytes::PAGE.0) as usize;
        let too_large = || Error::Unsupported {
            target: "memory",
            what: format!("hold {} buffers of {} bytes", request.depth, size),
        };
        let total = size.checked_mul(request.depth.max(1) as usize).ok_or_else(too_large)?;
        let memory = PageMemory::new(total).ok_or_else(too_large)?;
        let mut buffers = Self {
            memory,
            size,
            count: request.depth.max(1),
            content: request.content,
            stamps: request.seed.stream("stamp", u64::from(request.worker)),
        };
        if request.content == Content::Incompressible {
            let mut random = request.seed.stream("buffer", u64::from(request.worker));
            for slot in 0..buffers.count {
                random.fill(buffers.slot(Token(slot)));
            }
        }
        Ok(buffers)
    }

    /// Size of each buffer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The buffer of a slot.
    ///
    /// # Panics
    ///
    /// If the slot is beyond the lane's depth.
    #[inline]
    pub fn slot(&mut self, token: Token) -> &mut [u8] {
        assert!(token.0 < self.count, "slot {} of {}", token.0, self.count);
        let start = self.size * token.0 as usize;
        &mut self.memory.bytes()[start..start + self.size]
    }

    /// The buffer of a slot, stamped and ready to be written; `None` if it is too small.
    #[inline]
    pub fn outgoing(&mut self, token: Token, length: usize) -> Option<&mut [u8]> {
        if self.content == Content::Incompressible {
            let mut stamps = self.stamps.clone();
            for page in self.slot(token).get_mut(..length)?.chunks_mut(Bytes::PAGE.0 as usize) {
                let stamp = stamps.next_u64().to_le_bytes();
                let size = page.len().min(stamp.len());
                page[..size].copy_from_slice(&stamp[..size]);
            }
            self.stamps = stamps;
        } else if let Content::Pattern(pattern) = self.content {
            // Each time: a read may have used the buffer.
            pattern.fill(self.slot(token).get_mut(..length)?);
        }
        self.slot(token).get_mut(..length)
    }
}
