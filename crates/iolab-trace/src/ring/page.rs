//! A page of the kernel's ring buffer: time stamps and records.
//!
//! Source: Linux `kernel/trace/ring_buffer.c`, `include/linux/ring_buffer.h`. A page says itself
//! whether records were lost before it, and, where there is room, how many.

use super::description::fields_of;
use crate::error::{Error, Place};

/// Of `commit`: records were lost before this page (`RB_MISSED_EVENTS`).
const MISSED: u64 = 1 << 31;
/// Of `commit`: how many stands behind the records (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;
/// Of `commit`: bytes of records.
const LENGTH: u64 = (1 << 20) - 1;
/// Kinds of records (`enum ring_buffer_type`).
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time difference.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time that a record does not have (`TS_MSB`).
const TOP_BITS: u64 = 0x1f << 59;
/// Begin and end of the message that events are missing.
const MESSAGE_BEGIN: &str = "iolab: ";
const MESSAGE_END: &str = " were lost before this";
/// Sizes that a page may have.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Offsets of the fields of a page: `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    timestamp: usize,
    commit: usize,
    data: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
}

impl PageLayout {
    /// Reads `events/header_page`.
    ///
    /// # Errors
    /// [`Error::Damaged`] if something is missing or impossible.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let name = "events/header_page";
        let fields = fields_of(name, text)?;
        let wrong = || Error::Damaged {
            name: name.to_owned(),
            place: Place::Line(1),
            what: "pages of this kernel are not known".to_owned(),
        };
        let of = |field: &str| fields.get(field).copied().ok_or_else(wrong);
        let (timestamp, commit, data) = (of("timestamp")?, of("commit")?, of("data")?);
        let page_bytes = data.offset.checked_add(data.size).ok_or_else(wrong)?;
        let is_known = timestamp.size == 8
            && matches!(commit.size, 4 | 8)
            && timestamp.offset + 8 <= data.offset
            && commit.offset + commit.size <= data.offset
            && (512..=PAGE_BYTES_MAX).contains(&page_bytes);
        if !is_known {
            return Err(wrong());
        }
        let (timestamp, commit, data) = (timestamp.offset, commit.offset, data.offset);
        Ok(Self { timestamp, commit, data, page_bytes })
    }
}

/// Loss of records before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostBefore {
    /// No loss.
    None,
    /// Number.
    Count(u64),
    /// Some; the page was too full to say how many.
    Some,
}

impl LostBefore {
    /// The recorder's message where events of a CPU are missing; [`tells_loss`] knows it again.
    pub fn message(self, cpu: u32) -> String {
        match self {
            Self::Count(count) => {
                format!("{MESSAGE_BEGIN}{count} events of CPU {cpu}{MESSAGE_END}")
            }
            Self::None | Self::Some => format!("{MESSAGE_BEGIN}events of CPU {cpu}{MESSAGE_END}"),
        }
    }
}

/// Tell whether a message is the recorder's that events are missing before it.
pub fn tells_loss(message: &[u8]) -> bool {
    message.starts_with(MESSAGE_BEGIN.as_bytes()) && message.ends_with(MESSAGE_END.as_bytes())
}

/// A record of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRecord<'a> {
    /// Time on the clock of the trace.
    pub time_ns: u64,
    /// Content, from the number of the event on.
    pub content: &'a [u8],
}

/// The records of a page, one after the other.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    rest: &'a [u8],
    time_ns: u64,
    lost: LostBefore,
    is_damaged: bool,
}

impl<'a> Page<'a> {
    /// Page of bytes as they were read; one that is shorter than it says is cut off.
    pub fn new(bytes: &'a [u8], layout: &PageLayout) -> Self {
        let time_ns = long(bytes, layout.timestamp).unwrap_or(0);
        let commit = long(bytes, layout.commit).unwrap_or(0);
        let length = (commit & LENGTH) as usize;
        let end = layout.data.saturating_add(length);
        let lost = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => LostBefore::None,
            (true, false) => LostBefore::Some,
            (true, true) => long(bytes, end).map_or(LostBefore::Some, LostBefore::Count),
        };
        let rest = bytes.get(layout.data..end.min(bytes.len())).unwrap_or_default();
        Self { rest, time_ns, lost, is_damaged: end > bytes.len() }
    }

    /// Tell whether records were lost before it.
    pub const fn lost(&self) -> LostBefore {
        self.lost
    }

    /// Time of its beginning.
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Tell whether its records do not fit into it; known when all were read.
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    fn damaged(&mut self) -> Option<RingRecord<'a>> {
        self.rest = &[];
        self.is_damaged = true;
        None
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = RingRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<RingRecord<'a>> {
        loop {
            let head = word(self.rest, 0)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let array = word(self.rest, 4).unwrap_or(0);
            let (begin, end) = match kind {
                0 => (8, 4 + array as usize),
                PADDING if delta == 0 => {
                    self.rest = &[];
                    return None;
                }
                PADDING => (4, 4 + array as usize),
                TIME_EXTEND | TIME_STAMP => (8, 8),
                words => (4, 4 + 4 * words as usize),
            };
            let end = end.next_multiple_of(4);
            let (Some(content), true) = (self.rest.get(begin..end), end >= 8) else {
                return self.damaged();
            };
            self.rest = &self.rest[end..];
            match kind {
                TIME_EXTEND => {
                    let more = u64::from(array) << DELTA_BITS;
                    self.time_ns = self.time_ns.wrapping_add(more).wrapping_add(delta);
                }
                TIME_STAMP => {
                    let below = (u64::from(array) << DELTA_BITS | delta) & !TOP_BITS;
                    self.time_ns = self.time_ns & TOP_BITS | below;
                }
                PADDING => self.time_ns = self.time_ns.wrapping_add(delta),
                _ => {
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    return Some(RingRecord { time_ns: self.time_ns, content });
                }
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(commit: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = 1_000_u64.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&commit.to_ne_bytes());
        for word in words {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.resize(4096, 0);
        bytes
    }

    fn head(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    #[test]
    fn records_have_the_sum_of_the_differences() {
        let layout = PageLayout::parse(HEADER).unwrap();
        let words = [
            head(1, 5),
            7,
            head(TIME_EXTEND, 3),
            1,
            head(0, 1),
            8,
            9,
            head(PADDING, 2),
            8,
            0,
            head(TIME_STAMP, 4),
            2,
            head(2, 1),
            10,
            11,
            head(PADDING, 0),
            77,
        ];
        let bytes = page(words.len() as u64 * 4, &words);
        let mut records = Page::new(&bytes, &layout);
        let found: Vec<(u64, u32, usize)> = records
            .by_ref()
            .map(|it| (it.time_ns, word(it.content, 0).unwrap(), it.content.len()))
            .collect();
        let extended = 1_005 + (1 << 27) + 3 + 1;
        assert_eq!(found, [(1_005, 7, 4), (extended, 9, 4), ((2 << 27) + 4 + 1, 10, 8)]);
        assert!(!records.is_damaged());
    }

    #[test]
    fn lost_records_are_counted_where_the_page_says_how_many() {
        let layout = PageLayout::parse(HEADER).unwrap();
        let lost =
            |flags: u64| Page::new(&page(8 | flags, &[head(1, 0), 7, 60, 0]), &layout).lost();
        assert_eq!(lost(0), LostBefore::None);
        assert_eq!(lost(MISSED), LostBefore::Some);
        assert_eq!(lost(MISSED | MISSED_STORED), LostBefore::Count(60));
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic_or_hang(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let layout = PageLayout::parse(HEADER).unwrap();
            let mut page = Page::new(&bytes, &layout);
            prop_assert!(page.by_ref().count() <= bytes.len());
        }
    }
}
