//! Numbers and heads of the file format.

/// Magic numbers of the skippable frames: head of the file, head of a block, index.
pub const FILE_FRAME: u32 = 0x184d_2a50;
/// See [`FILE_FRAME`].
pub const BLOCK_FRAME: u32 = 0x184d_2a51;
/// See [`FILE_FRAME`].
pub const INDEX_FRAME: u32 = 0x184d_2a52;
/// Facts that became known after the head was written, see [`FILE_FRAME`].
pub const FACTS_FRAME: u32 = 0x184d_2a53;
/// Seek table of zstd's seekable format (`contrib/seekable_format`, version 0.1.0).
pub const SEEK_FRAME: u32 = 0x184d_2a5e;
/// Last four bytes of such a table.
pub const SEEK_MAGIC: u32 = 0x8f92_eab1;
/// Name of the fact that says how many events the recorder lost.
pub const LOST_FACT: &str = "lost events";
/// Name of the fact that lists the layers beside block events, with commas and blanks between them.
pub const LAYERS_FACT: &str = "layers";
/// Word in it for calls by which files are opened, moved in and closed.
pub const FILE_CALLS: &str = "file-calls";
/// First bytes of the head's content.
pub const NAME: &[u8; 8] = b"IOLTRACE";
/// Last bytes of the index's content.
pub const INDEX_NAME: &[u8; 8] = b"IOLINDEX";
/// Version of the format.
pub const VERSION: u32 = 1;
/// Events of a block at most.
pub const BLOCK_EVENTS: usize = 1 << 15;
/// Bytes of a block at which it is ended early.
pub const BLOCK_BYTES: usize = 1 << 20;
/// Bytes that a block may have when it is read, packed or not, and a head.
pub const READ_MAX: usize = 4 << 20;
/// Bytes of a block's head without its frame.
pub const BLOCK_HEAD_BYTES: usize = 40;
/// Bytes before the content of a skippable frame.
pub const FRAME_BYTES: usize = 8;

/// Head of each block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHead {
    /// Bytes of the zstd frame that follows.
    pub packed_bytes: u32,
    /// Bytes of its content.
    pub plain_bytes: u32,
    /// Events in it.
    pub events: u32,
    /// Events before it.
    pub events_before: u64,
    /// Earliest and latest time in it.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
}

impl BlockHead {
    /// Appends the whole frame.
    pub fn push(&self, bytes: &mut Vec<u8>) {
        push_frame_head(BLOCK_FRAME, BLOCK_HEAD_BYTES, bytes);
        bytes.extend_from_slice(&self.packed_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.plain_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.events.to_le_bytes());
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&self.events_before.to_le_bytes());
        bytes.extend_from_slice(&self.first_ns.to_le_bytes());
        bytes.extend_from_slice(&self.last_ns.to_le_bytes());
    }

    /// Reads the content of the frame.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            packed_bytes: word(bytes, 0)?,
            plain_bytes: word(bytes, 4)?,
            events: word(bytes, 8)?,
            events_before: long(bytes, 16)?,
            first_ns: long(bytes, 24)?,
            last_ns: long(bytes, 32)?,
        })
    }
}

/// Appends magic number and length of a skippable frame.
pub fn push_frame_head(magic: u32, length: usize, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&magic.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

/// 32 bits at a place.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// 64 bits at a place.
pub fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Tell whether a file begins as one of ours.
pub fn is_file(head: &[u8]) -> bool {
    word(head, 0) == Some(FILE_FRAME) && head.get(FRAME_BYTES..FRAME_BYTES + 8) == Some(NAME)
}
