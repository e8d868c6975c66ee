//! `Frames`: page frames of the simulated memory that hold file pages.
//!
//! One flat table, indexed by frame number, with links for one list per frame: 32 bytes for a page
//! of 4 KiB, so that 32 GiB of simulated memory take 256 MiB.

use crate::sector::{SECTOR_BYTES, SectorData};

/// Index of a frame; [`FrameId::NONE`] is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

impl FrameId {
    /// No frame.
    pub const NONE: Self = Self(u32::MAX);
}

/// State of a frame, a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameFlags(pub u16);

impl FrameFlags {
    /// Holds data: not being read.
    pub const UP_TO_DATE: Self = Self(1);
    /// Changed since it was last written.
    pub const DIRTY: Self = Self(2);
    /// Being written.
    pub const WRITE_BACK: Self = Self(4);
    /// Used once since it became inactive or was looked at.
    pub const REFERENCED: Self = Self(8);
    /// In the active list.
    pub const ACTIVE: Self = Self(16);
    /// Marker of asynchronous read-ahead.
    pub const MARKER: Self = Self(32);
    /// Came by read-ahead and was not used yet.
    pub const UNUSED: Self = Self(64);
    /// Mapped into a process.
    pub const MAPPED: Self = Self(128);
    /// Used through a mapping since the last look (bit of the page table).
    pub const YOUNG: Self = Self(256);
    /// Evicted a short time ago and read again: part of the set that is in use.
    pub const WORKING_SET: Self = Self(512);
    /// Mapped writable: the next store makes no fault.
    pub const WRITABLE: Self = Self(1024);
    /// Must leave first when reclaim is done with its write-back.
    pub const RECLAIM: Self = Self(2048);

    /// Tell whether all of `other`'s bits are set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets bits.
    #[inline]
    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears bits.
    #[inline]
    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

/// A frame that holds a page.
#[derive(Clone, Copy, Debug)]
pub struct PageFrame {
    /// Neighbour in its list towards the head; of a free frame, nothing.
    pub newer: FrameId,
    /// Neighbour in its list towards the tail.
    pub older: FrameId,
    /// Owner: index of the mapping (file) in the cache.
    pub owner: u32,
    /// Page of the file.
    pub index: u32,
    /// State.
    pub flags: FrameFlags,
    /// The folio that it belongs to has 2^order pages.
    pub order: u8,
    /// Content: equal values mean equal data.
    pub content: u64,
}

/// Data of a page, sector by sector.
pub type PageData = [SectorData; PAGE_SECTORS];

/// Sectors of a page.
pub const PAGE_SECTORS: usize = 4096 / SECTOR_BYTES;

/// All frames.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    table: Vec<PageFrame>,
    free: Vec<FrameId>,
    /// Data of each frame, if they are kept; absent: zeros.
    data: Option<Vec<Option<Box<PageData>>>>,
}

impl core::ops::Index<FrameId> for Frames {
    type Output = PageFrame;

    #[inline]
    fn index(&self, id: FrameId) -> &PageFrame {
        &self.table[id.0 as usize]
    }
}

impl core::ops::IndexMut<FrameId> for Frames {
    #[inline]
    fn index_mut(&mut self, id: FrameId) -> &mut PageFrame {
        &mut self.table[id.0 as usize]
    }
}

impl Frames {
    /// Frames in use.
    pub fn used(&self) -> usize {
        self.table.len() - self.free.len()
    }

    /// A frame for a page; in no list yet.
    #[inline]
    pub fn take(&mut self, owner: u32, index: u32) -> FrameId {
        let frame = PageFrame {
            newer: FrameId::NONE,
            older: FrameId::NONE,
            owner,
            index,
            flags: FrameFlags::default(),
            order: 0,
            content: 0,
        };
        if let Some(id) = self.free.pop() {
            self[id] = frame;
            return id;
        }
        self.table.push(frame);
        if let Some(data) = &mut self.data {
            data.push(None);
        }
        FrameId(self.table.len() as u32 - 1)
    }

    /// Gives a frame back; it must be in no list. Its data are gone.
    #[inline]
    pub fn release(&mut self, id: FrameId) {
        self.free.push(id);
        if let Some(data) = &mut self.data {
            data[id.0 as usize] = None;
        }
    }

    /// Keeps the data of pages from now on; those that are there hold zeros.
    pub fn keep_data(&mut self) {
        let number = self.table.len();
        self.data.get_or_insert_with(|| vec![None; number]);
    }

    /// Data of a sector of a page; zeros if they are not kept.
    pub fn sector(&self, id: FrameId, sector: usize) -> SectorData {
        let data = self.data.as_ref().and_then(|data| data[id.0 as usize].as_deref());
        data.map(|data| data[sector].clone()).unwrap_or_default()
    }

    /// Data of a sector of a page, to be changed; absent if they are not kept.
    pub fn sector_mut(&mut self, id: FrameId, sector: usize) -> Option<&mut SectorData> {
        let data = self.data.as_mut()?;
        Some(&mut data[id.0 as usize].get_or_insert_default()[sector])
    }
}

/// A list through frames; the head is the newest.
#[derive(Clone, Copy, Debug)]
pub struct FrameList {
    head: FrameId,
    tail: FrameId,
    length: u64,
}

impl Default for FrameList {
    fn default() -> Self {
        Self { head: FrameId::NONE, tail: FrameId::NONE, length: 0 }
    }
}

impl FrameList {
    /// Number of frames.
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Tell whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The oldest frame, or [`FrameId::NONE`].
    pub const fn tail(&self) -> FrameId {
        self.tail
    }

    /// The newest frame, or [`FrameId::NONE`].
    pub const fn head(&self) -> FrameId {
        self.head
    }

    /// Puts a frame to the head.
    #[inline]
    pub fn push(&mut self, frames: &mut Frames, id: FrameId) {
        frames[id].newer = FrameId::NONE;
        frames[id].older = self.head;
        if self.head == FrameId::NONE {
            self.tail = id;
        } else {
            frames[self.head].newer = id;
        }
        self.head = id;
        self.length += 1;
    }

    /// Takes a frame out.
    #[inline]
    pub fn remove(&mut self, frames: &mut Frames, id: FrameId) {
        let PageFrame { newer, older, .. } = frames[id];
        if newer == FrameId::NONE {
            self.head = older;
        } else {
            frames[newer].older = older;
        }
        if older == FrameId::NONE {
            self.tail = newer;
        } else {
            frames[older].newer = newer;
        }
        self.length -= 1;
    }
}

/// Time of an eviction on the clock of a [`Replacement`], kept in place of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadow(pub u32);

/// Fate of a page that reclaim looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// A clean page: evict it, and keep the shadow in its place.
    Evict(FrameId, Shadow),
    /// A dirty page went round again: wake the flusher.
    Dirty(FrameId),
    /// Nothing can be evicted.
    Nothing,
}

/// A decider of replacement: two lists, a two-handed scanner, an adaptive cache.
pub trait Replacement {
    /// A page came into memory; `shadow` stood in its place.
    fn added(&mut self, frames: &mut Frames, id: FrameId, shadow: Option<Shadow>);

    /// A page was used by read(2) or write(2).
    fn used(&mut self, frames: &mut Frames, id: FrameId);

    /// A page leaves for another reason than reclaim.
    fn removed(&mut self, frames: &mut Frames, id: FrameId);

    /// The next page to evict. The machine calls it until it has what it needs; a frame that is
    /// answered with [`Victim::Evict`] is in no list any more.
    fn choose(&mut self, frames: &mut Frames) -> Victim;

    /// Pages of the working set that came back: a sign of thrashing.
    fn refaults(&self) -> u64;

    /// Active and inactive file pages.
    fn sizes(&self) -> (u64, u64);
}

/// Order of the largest folio that a write of so many pages makes at a page: no longer than the
/// write, and as aligned as the page.
///
/// Source: Linux include/linux/pagemap.h (`fgf_set_order`, `MAX_PAGECACHE_ORDER`), mm/filemap.c
/// (`__filemap_get_folio`).
pub fn largest_order(page: u64, pages: u64) -> u32 {
    const ORDER_MAX: u32 = 9;
    let aligned = if page == 0 { ORDER_MAX } else { page.trailing_zeros() };
    pages.max(1).ilog2().min(aligned).min(ORDER_MAX)
}
