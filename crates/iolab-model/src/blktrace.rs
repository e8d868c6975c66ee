//! Heads of records of blktrace(8), version 7, in either byte order.
//!
//! The one decoder of the layout: traces and recorded streams read it here. Source: Linux
//! `include/uapi/linux/blktrace_api.h`. Left out: payloads, and what actions mean.

/// Upper three bytes of the magic number of every record.
pub const MAGIC: u32 = 0x6561_7400;
/// The version that is read and written.
pub const VERSION: u32 = 7;
/// Length of a record without its payload.
pub const RECORD_BYTES: usize = 48;

/// Byte order of a file, from its first four bytes: true if it is not this machine's; `None` if it
/// is no blktrace file.
pub fn is_swapped(head: &[u8]) -> Option<bool> {
    let magic = u32::from_le_bytes(*head.first_chunk()?);
    match (magic & 0xffff_ff00 == MAGIC, magic.swap_bytes() & 0xffff_ff00 == MAGIC) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// Fields of a record as numbers of this machine.
#[derive(Clone, Copy, Debug)]
pub struct RecordHead<'a> {
    /// The record without its payload.
    pub bytes: &'a [u8; RECORD_BYTES],
    /// True if the byte order is not this machine's.
    pub is_swapped: bool,
}

impl RecordHead<'_> {
    /// A field of 32 bits.
    #[inline]
    pub fn word(&self, at: usize) -> u32 {
        let raw = self.bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if self.is_swapped { raw.swap_bytes() } else { raw }
    }

    /// A field of 16 bits.
    #[inline]
    pub fn half(&self, at: usize) -> u16 {
        let raw = self.bytes[at..].first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes));
        if self.is_swapped { raw.swap_bytes() } else { raw }
    }

    #[inline]
    fn long(&self, at: usize) -> u64 {
        let raw = self.bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if self.is_swapped { raw.swap_bytes() } else { raw }
    }

    /// Magic number and version.
    #[inline]
    pub fn magic(&self) -> u32 {
        self.word(0)
    }

    /// Nanoseconds since tracing began.
    #[inline]
    pub fn time_ns(&self) -> u64 {
        self.long(8)
    }

    /// First sector of 512 bytes.
    #[inline]
    pub fn sector(&self) -> u64 {
        self.long(16)
    }

    /// Bytes that are moved.
    #[inline]
    pub fn length(&self) -> u32 {
        self.word(24)
    }

    /// Action in the lower 16 bits, categories in the upper ones.
    #[inline]
    pub fn action(&self) -> u32 {
        self.word(28)
    }

    /// Number of the device, as the kernel has it.
    #[inline]
    pub fn device(&self) -> u32 {
        self.word(36)
    }

    /// Bytes behind the head.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        usize::from(self.half(46))
    }
}
