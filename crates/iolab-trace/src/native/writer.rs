//! Writes a file block by block.

use super::codec::Encoder;
use super::index::{Index, push_seek_table};
use super::layout::{
    BLOCK_BYTES, BLOCK_EVENTS, BLOCK_HEAD_BYTES, BlockHead, FACTS_FRAME, FILE_FRAME, FRAME_BYTES,
    NAME, VERSION, push_frame_head,
};
use crate::error::Error;
use crate::event::Event;
use crate::source::Facts;

/// Level of zstd: the fastest of the usual ones; columns pack well at any.
const LEVEL: i32 = 1;

/// Writer of one file; everything that it has for the file is appended to a buffer of the caller.
pub struct Writer {
    encoder: Encoder,
    packer: zstd::bulk::Compressor<'static>,
    plain: Vec<u8>,
    packed: Vec<u8>,
    index: Index,
    frames: Vec<(u32, u32)>,
    written: u64,
    events: u64,
}

impl Writer {
    /// Writer at the beginning of a file; `facts` are kept in its head.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn new(facts: &Facts, file: &mut Vec<u8>) -> Result<Self, Error> {
        let mut packer = zstd::bulk::Compressor::new(LEVEL).map_err(Error::Write)?;
        packer.include_checksum(true).map_err(Error::Write)?;
        let text = serde_json::to_vec(facts).map_err(|error| Error::Write(error.into()))?;
        let begin = file.len();
        push_frame_head(FILE_FRAME, NAME.len() + 4 + text.len(), file);
        file.extend_from_slice(NAME);
        file.extend_from_slice(&VERSION.to_le_bytes());
        file.extend_from_slice(&text);
        let written = (file.len() - begin) as u64;
        Ok(Self {
            encoder: Encoder::default(),
            packer,
            plain: Vec::new(),
            packed: Vec::new(),
            index: Index::default(),
            frames: vec![(written as u32, 0)],
            written,
            events: 0,
        })
    }

    /// Adds an event; now and then a block is appended.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn push(&mut self, event: &Event, file: &mut Vec<u8>) -> Result<(), Error> {
        self.encoder.push(event);
        let count = self.encoder.len();
        let is_long = count.is_multiple_of(256) && self.encoder.bytes() >= BLOCK_BYTES;
        if count == BLOCK_EVENTS || is_long || event.payload.len() >= 4096 {
            self.end_block(file)?;
        }
        Ok(())
    }

    /// Ends the block, so that what has been added so far can be read after a crash.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn end_block(&mut self, file: &mut Vec<u8>) -> Result<(), Error> {
        let events = self.encoder.len();
        if events == 0 {
            return Ok(());
        }
        let (first_ns, last_ns) = self.encoder.span_ns;
        self.encoder.take(&mut self.plain);
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.plain.len()));
        self.packer.compress_to_buffer(&self.plain, &mut self.packed).map_err(Error::Write)?;
        let head = BlockHead {
            packed_bytes: self.packed.len() as u32,
            plain_bytes: self.plain.len() as u32,
            events: events as u32,
            events_before: self.events,
            first_ns,
            last_ns,
        };
        self.index.push(self.written, &head);
        head.push(file);
        file.extend_from_slice(&self.packed);
        let head_bytes = (FRAME_BYTES + BLOCK_HEAD_BYTES) as u32;
        self.frames.push((head_bytes, 0));
        self.frames.push((head.packed_bytes, head.plain_bytes));
        self.written += u64::from(head_bytes) + u64::from(head.packed_bytes);
        self.events += events as u64;
        Ok(())
    }

    /// Ends the block and adds facts that were not known at the beginning; they count instead of
    /// earlier ones of the same names.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn add_facts(&mut self, facts: &Facts, file: &mut Vec<u8>) -> Result<(), Error> {
        self.end_block(file)?;
        let text = serde_json::to_vec(facts).map_err(|error| Error::Write(error.into()))?;
        push_frame_head(FACTS_FRAME, text.len(), file);
        file.extend_from_slice(&text);
        let length = FRAME_BYTES + text.len();
        self.frames.push((length as u32, 0));
        self.written += length as u64;
        Ok(())
    }

    /// Ends the file: last block, index, seek table.
    ///
    /// # Errors
    /// [`Error::Write`] if zstd refuses.
    pub fn finish(mut self, file: &mut Vec<u8>) -> Result<(), Error> {
        self.end_block(file)?;
        let begin = file.len();
        self.index.push_frame(self.written, file);
        self.frames.push(((file.len() - begin) as u32, 0));
        push_seek_table(&self.frames, file);
        Ok(())
    }
}
