//! The index at the end of a file: where each block is, and from when to when it goes.

use std::io::{Read, Seek, SeekFrom};

use super::layout::{
    BlockHead, FRAME_BYTES, INDEX_FRAME, INDEX_NAME, SEEK_FRAME, SEEK_MAGIC, long, push_frame_head,
    word,
};

const ENTRY_BYTES: usize = 32;
const SEEK_ENTRY_BYTES: u64 = 8;
const FOOTER_BYTES: u64 = 9;
const BLOCKS_MAX: u64 = 1 << 24;

/// A block's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Offset of its head in the file.
    pub offset: u64,
    /// Earliest time in it.
    pub first_ns: u64,
    /// Latest time in it.
    pub last_ns: u64,
    /// Events in it.
    pub events: u32,
}

/// All blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// In the order of the file.
    pub blocks: Vec<Entry>,
}

impl Index {
    /// Adds a block.
    pub fn push(&mut self, offset: u64, head: &BlockHead) {
        let BlockHead { first_ns, last_ns, events, .. } = *head;
        self.blocks.push(Entry { offset, first_ns, last_ns, events });
    }

    /// Events of all blocks.
    pub fn events(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.events)).sum()
    }

    /// Offset of the first block in which something happens at a time or later.
    pub fn offset_of(&self, time_ns: u64) -> Option<u64> {
        self.blocks.iter().find(|block| block.last_ns >= time_ns).map(|block| block.offset)
    }

    /// Appends the frame of the index; `offset` is its place in the file.
    pub fn push_frame(&self, offset: u64, bytes: &mut Vec<u8>) {
        push_frame_head(INDEX_FRAME, self.blocks.len() * ENTRY_BYTES + 16, bytes);
        for block in &self.blocks {
            for value in [block.offset, block.first_ns, block.last_ns, u64::from(block.events)] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(INDEX_NAME);
    }

    /// Reads the index of a file; `None` if it has none that is whole, as after a crash.
    pub fn read(file: &mut (impl Read + Seek)) -> std::io::Result<Option<Self>> {
        let length = file.seek(SeekFrom::End(0))?;
        let Some(footer) = piece(file, length.checked_sub(FOOTER_BYTES), FOOTER_BYTES)? else {
            return Ok(None);
        };
        let frames = u64::from(word(&footer, 0).unwrap_or(0));
        let table = FRAME_BYTES as u64 + frames * SEEK_ENTRY_BYTES + FOOTER_BYTES;
        let end = length.checked_sub(table);
        if word(&footer, 5) != Some(SEEK_MAGIC) || frames > 2 * BLOCKS_MAX {
            return Ok(None);
        }
        let Some(tail) = piece(file, end.and_then(|end| end.checked_sub(16)), 16)? else {
            return Ok(None);
        };
        let (Some(offset), Some(end)) = (long(&tail, 0), end) else { return Ok(None) };
        let content = end.checked_sub(offset.saturating_add(FRAME_BYTES as u64));
        if tail[8..] != *INDEX_NAME || content.is_none_or(|content| content > BLOCKS_MAX * 32) {
            return Ok(None);
        }
        let Some(frame) = piece(file, Some(offset), end - offset)? else { return Ok(None) };
        Ok(Self::parse(&frame))
    }

    fn parse(frame: &[u8]) -> Option<Self> {
        let content = frame.get(FRAME_BYTES..frame.len().checked_sub(16)?)?;
        if word(frame, 0) != Some(INDEX_FRAME) || !content.len().is_multiple_of(ENTRY_BYTES) {
            return None;
        }
        let entry = |bytes: &[u8]| {
            Some(Entry {
                offset: long(bytes, 0)?,
                first_ns: long(bytes, 8)?,
                last_ns: long(bytes, 16)?,
                events: u32::try_from(long(bytes, 24)?).ok()?,
            })
        };
        let blocks: Option<Vec<Entry>> = content.chunks_exact(ENTRY_BYTES).map(entry).collect();
        Some(Self { blocks: blocks? })
    }
}

fn piece(
    file: &mut (impl Read + Seek),
    offset: Option<u64>,
    length: u64,
) -> std::io::Result<Option<Vec<u8>>> {
    let Some(offset) = offset else { return Ok(None) };
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == length).then_some(bytes))
}

/// Appends the seek table of zstd's seekable format: packed and plain bytes of every frame.
pub fn push_seek_table(frames: &[(u32, u32)], bytes: &mut Vec<u8>) {
    push_frame_head(SEEK_FRAME, frames.len() * SEEK_ENTRY_BYTES as usize + 9, bytes);
    for (packed, plain) in frames {
        bytes.extend_from_slice(&packed.to_le_bytes());
        bytes.extend_from_slice(&plain.to_le_bytes());
    }
    bytes.extend_from_slice(&u32::try_from(frames.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&SEEK_MAGIC.to_le_bytes());
}
