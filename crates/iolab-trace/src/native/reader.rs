//! Reads a file block by block, from its beginning or from a block on.

use super::codec::Decoder;
use super::layout::{
    BLOCK_FRAME, BLOCK_HEAD_BYTES, BlockHead, FACTS_FRAME, FILE_FRAME, FRAME_BYTES, INDEX_FRAME,
    LOST_FACT, NAME, READ_MAX, SEEK_FRAME, VERSION, is_file, word,
};
use crate::error::{Caveat, Error, Place};
use crate::event::Event;
use crate::names::cleaned;
use crate::source::{Facts, Source, Window};

/// Events of a file.
pub struct Reader {
    window: Window,
    decoder: Decoder,
    unpacker: zstd::bulk::Decompressor<'static>,
    facts: Facts,
    /// Bytes of the facts behind the head.
    fact_bytes: usize,
    caveats: Vec<Caveat>,
    has_index: bool,
    is_at_end: bool,
}

/// Faults that are told one by one.
const FAULTS_MAX: usize = 16;
/// Bytes of facts behind the head: those of a recording are a few per device and CPU.
const FACT_BYTES_MAX: usize = 16 << 20;

impl Reader {
    /// Reader of a file at its beginning.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it has no head, or is of another version.
    pub fn open(mut window: Window) -> Result<Self, Error> {
        window.ensure(FRAME_BYTES + NAME.len() + 4)?;
        let wrong = |window: &Window, what: String| Error::Damaged {
            name: window.name().to_owned(),
            place: Place::Offset(0),
            what,
        };
        let version = word(window.bytes(), FRAME_BYTES + NAME.len());
        if !is_file(window.bytes()) {
            return Err(wrong(&window, "this is no trace of iolab".into()));
        }
        if version != Some(VERSION) {
            let what =
                format!("version {} of the format, only {VERSION} is known", version.unwrap_or(0));
            return Err(wrong(&window, what));
        }
        let mut reader = Self::at_block(window)?;
        let length = word(reader.window.bytes(), 4).unwrap_or(0) as usize;
        if length > READ_MAX || !reader.window.ensure(FRAME_BYTES + length)? {
            return Err(wrong(&reader.window, "its head is cut off".into()));
        }
        let text = reader.window.bytes().get(FRAME_BYTES + NAME.len() + 4..FRAME_BYTES + length);
        reader.facts = serde_json::from_slice(text.unwrap_or_default())
            .map_err(|error| wrong(&reader.window, format!("its head is damaged: {error}")))?;
        reader.window.take(FRAME_BYTES + length);
        Ok(reader)
    }

    /// Reader of a file from a block on, see [`Index::offset_of`](super::Index::offset_of).
    ///
    /// # Errors
    /// [`Error::Read`] if zstd refuses.
    pub fn at_block(window: Window) -> Result<Self, Error> {
        let unpacker = zstd::bulk::Decompressor::new()
            .map_err(|error| Error::Read { name: window.name().to_owned(), error })?;
        Ok(Self {
            window,
            decoder: Decoder::default(),
            unpacker,
            facts: Facts::new(),
            fact_bytes: 0,
            caveats: Vec::new(),
            has_index: false,
            is_at_end: false,
        })
    }

    /// Tells a fault; of very many the first ones.
    fn tell(&mut self, what: String, is_damage: bool) {
        match self.caveats.len() {
            FAULTS_MAX => self.tell_always("there are more faults behind this".into(), true),
            told if told < FAULTS_MAX => self.tell_always(what, is_damage),
            _ => {}
        }
    }

    fn tell_always(&mut self, what: String, is_damage: bool) {
        let (name, offset) = (self.window.name().to_owned(), self.window.offset());
        self.caveats.push(Caveat { name, place: Place::Offset(offset), what, is_damage });
    }

    fn stop(&mut self, what: String, is_damage: bool) -> Option<BlockHead> {
        self.tell(what, is_damage);
        self.is_at_end = true;
        None
    }

    /// Goes to the next block; false at the end of the file.
    fn next_block(&mut self) -> Result<bool, Error> {
        while !self.is_at_end {
            let Some(head) = self.head()? else { continue };
            let (packed, plain) = (head.packed_bytes as usize, head.plain_bytes as usize);
            if packed > READ_MAX || plain > READ_MAX {
                self.stop("a block of impossible size; the rest is not used".into(), true);
                break;
            }
            if !self.window.ensure(packed)? {
                let what = "the last block is cut off; what is before it is whole".to_owned();
                self.stop(what, false);
                break;
            }
            self.decoder.block.clear();
            self.decoder.block.reserve(plain);
            let frame = &self.window.bytes()[..packed];
            let unpacked = self.unpacker.decompress_to_buffer(frame, &mut self.decoder.block);
            let is_whole = unpacked.is_ok_and(|length| length == plain)
                && self.decoder.begin(head.events).is_some();
            if !is_whole {
                self.tell(
                    format!("a block of {} events is damaged and left out", head.events),
                    true,
                );
                self.decoder.stop();
            }
            self.window.take(packed);
            if is_whole && head.events > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Head of a block; `None` if the next frame was something else.
    fn head(&mut self) -> Result<Option<BlockHead>, Error> {
        if !self.window.ensure(FRAME_BYTES)? {
            self.is_at_end = true;
            let left = self.window.bytes().len();
            if !self.has_index || left > 0 {
                let what =
                    "the index is missing: the file was not closed, or is cut off".to_owned();
                self.tell(what, false);
            }
            return Ok(None);
        }
        let (magic, length) = (word(self.window.bytes(), 0), word(self.window.bytes(), 4));
        let length = length.unwrap_or(0) as usize;
        match magic {
            Some(BLOCK_FRAME) if length == BLOCK_HEAD_BYTES => {
                if !self.window.ensure(FRAME_BYTES + length)? {
                    return Ok(self.stop("the last block is cut off".into(), false));
                }
                let head = BlockHead::parse(&self.window.bytes()[FRAME_BYTES..]);
                self.window.take(FRAME_BYTES + length);
                Ok(head)
            }
            Some(FACTS_FRAME) if length <= READ_MAX => {
                self.add_facts(length)?;
                Ok(None)
            }
            Some(INDEX_FRAME | SEEK_FRAME | FILE_FRAME) => {
                self.has_index |= magic == Some(SEEK_FRAME);
                self.skip(FRAME_BYTES + length)?;
                Ok(None)
            }
            _ => Ok(self.stop("no block begins here; the rest is not used".into(), true)),
        }
    }

    /// Facts that were added after the head.
    fn add_facts(&mut self, length: usize) -> Result<(), Error> {
        if !self.window.ensure(FRAME_BYTES + length)? {
            self.stop("the last facts are cut off".into(), false);
            return Ok(());
        }
        let text = &self.window.bytes()[FRAME_BYTES..FRAME_BYTES + length];
        match serde_json::from_slice::<Facts>(text) {
            Ok(_) if self.fact_bytes + length > FACT_BYTES_MAX => {
                self.tell("more facts than a recording has are left out".into(), true);
            }
            Ok(facts) => {
                self.fact_bytes += length;
                self.facts.extend(facts);
            }
            Err(error) => self.tell(format!("facts that are damaged: {error}"), true),
        }
        self.window.take(FRAME_BYTES + length);
        Ok(())
    }

    /// Says once, at the end, how many events the recorder lost.
    fn tell_lost(&mut self) {
        let Some(lost) = self.facts.get(LOST_FACT).filter(|lost| *lost != "0") else { return };
        let what = format!(
            "{lost} events were lost while recording: calls and stages of requests of that time \
             are missing or belong to others"
        );
        if self.caveats.iter().all(|caveat| caveat.what != what) {
            self.tell_always(what, false);
        }
    }

    fn skip(&mut self, mut length: usize) -> Result<(), Error> {
        while length > 0 {
            if !self.window.ensure(1)? {
                self.has_index = false;
                return Ok(());
            }
            let step = length.min(self.window.bytes().len());
            self.window.take(step);
            length -= step;
        }
        Ok(())
    }
}

impl Source for Reader {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        loop {
            if self.decoder.is_empty() && !self.next_block()? {
                self.tell_lost();
                return Ok(false);
            }
            if self.decoder.next(event).is_some() {
                return Ok(true);
            }
            self.decoder.stop();
            self.tell("the rest of a block is damaged and left out".into(), true);
        }
    }

    fn caveats(&self) -> &[Caveat] {
        &self.caveats
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn devices(&self) -> Vec<(crate::event::Device, String)> {
        let named = self.facts.iter().filter_map(|(key, name)| {
            let (major, minor) = key.strip_prefix("device ")?.split_once(',')?;
            let device = crate::event::Device::new(major.parse().ok()?, minor.parse().ok()?);
            Some((device, cleaned(name.as_bytes())))
        });
        named.collect()
    }
}
