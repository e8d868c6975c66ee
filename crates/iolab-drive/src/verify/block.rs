//! A block that says what it is: composed before it is written, examined after it was read.
//!
//! A block begins with a header (magic, file, offset, generation, length, kind, checksum); each of
//! its further sectors begins with a stamp (where it belongs, generation, check), so that a block
//! of which only some sectors were written shows where the new part ends. The rest is left as it
//! is (kind headers), or is pseudo-random, made of file, offset and generation, so that every byte
//! is known (kind full). The checksum is XXH64: of the header, or of the whole block if full.
//!
//! | bytes of the header | |
//! | --- | --- |
//! | 0 | magic `iolabVB1` |
//! | 8 | identity of the file |
//! | 16 | offset of the block in its file |
//! | 24 | generation: step, worker, ordinal of the write |
//! | 32 | length of the block; 36: kind, 1 headers, 2 full |
//! | 40 | checksum of everything else |
//!
//! All numbers are little endian. Left out: what a reader may expect ([`super::ledger`]).

use iolab_model::Seed;
use iolab_workload::verify::{HEADER_BYTES, Verify};

use super::hash::xxh64;

/// The device's unit: what a torn write is torn at.
pub const SECTOR: usize = 512;
const MAGIC: u64 = u64::from_le_bytes(*b"iolabVB1");
/// Magic, file, offset, generation, length and kind, checksum.
const HEADER: usize = HEADER_BYTES as usize;
const CHECKSUM: core::ops::Range<usize> = 40..48;
/// Place, generation, check.
const STAMP: usize = 24;
/// Number of wrong bytes up to which a block is damaged; the checks of a torn one differ in more.
const FEW: usize = 4;

/// Write that put a block where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// Write number `sequence` of a worker in a step of the workload.
    pub fn new(step: u16, worker: u16, sequence: u32) -> Self {
        Self(u64::from(step) << 48 | u64::from(worker) << 32 | u64::from(sequence))
    }

    /// See [`iolab_workload::verify::worker_step`].
    pub fn step(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Ordinal of the worker in its phase.
    pub fn worker(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Ordinal among its writes.
    pub fn sequence(self) -> u32 {
        self.0 as u32
    }
}

/// Place of a block, and how it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Identity of its file.
    pub file: u64,
    /// Offset in its file.
    pub offset: u64,
    /// Headers or full.
    pub kind: Verify,
}

/// Fault of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Bytes differ from what a write of this generation put there.
    Flipped {
        /// The write that the rest is of.
        generation: Generation,
        /// First wrong byte, from the block's beginning.
        at: usize,
        /// Expected byte.
        expected: u8,
        /// Byte that was read.
        got: u8,
        /// Wrong bytes in the block.
        count: usize,
    },
    /// Sectors of several writes; `None` where a sector is of none.
    Torn {
        /// Write of each sector.
        sectors: Vec<Option<Generation>>,
        /// First sector that is not of the same write as the first one.
        at: usize,
    },
    /// An intact block of another place.
    Misplaced {
        /// File that it says it is of.
        file: u64,
        /// Offset that it says it has.
        offset: u64,
        /// The write that it says it is of.
        generation: Generation,
    },
    /// Nothing but zeros.
    Zeros,
    /// No block of ours.
    Foreign {
        /// First bytes.
        start: [u8; 16],
    },
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes were cut"))
}

#[inline]
fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Two words into one; the finalizer of `SplitMix64` (Steele, Lea, Flood 2014).
#[inline]
fn mixed(a: u64, b: u64) -> u64 {
    let mut z = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Place {
    /// Tag that stands in every generation: the tag of a sector.
    #[inline]
    fn tag(&self, sector: usize) -> u64 {
        mixed(self.file, self.offset + (sector * SECTOR) as u64)
    }

    /// Length and kind, as one word of the header.
    #[inline]
    fn shape(&self, block: &[u8]) -> u64 {
        let kind: u64 = if self.kind == Verify::Full { 2 } else { 1 };
        block.len() as u64 | kind << 32
    }

    /// Makes `block` one of `generation` at this place.
    #[inline]
    pub fn compose(&self, block: &mut [u8], generation: Generation) {
        if self.kind == Verify::Full {
            let seed = mixed(mixed(self.file, self.offset), generation.0);
            Seed(seed).stream("payload", 0).fill(block);
        }
        let sectors = block.len() / SECTOR;
        for sector in 1..sectors {
            let (at, tag) = (sector * SECTOR, self.tag(sector));
            put(block, at, tag);
            put(block, at + 8, generation.0);
            put(block, at + 16, mixed(tag, generation.0));
        }
        let shape = self.shape(block);
        let words = [MAGIC, self.file, self.offset, generation.0, shape];
        for (index, value) in words.into_iter().enumerate() {
            put(block, index * 8, value);
        }
        let checksum = checksum(block, self.kind);
        put(block, CHECKSUM.start, checksum);
    }

    /// The bytes of a block that are known.
    fn known(&self, length: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
        let is_full = self.kind == Verify::Full;
        let whole = is_full.then_some(0..length);
        let header = (!is_full).then_some(0..HEADER);
        let stamps = (1..length / SECTOR).map(|sector| sector * SECTOR..sector * SECTOR + STAMP);
        let stamps = stamps.take_while(move |_| !is_full);
        whole.into_iter().chain(header).chain(stamps)
    }

    /// Tell whether the part of a header that all generations share is in place.
    fn is_header_ours(&self, block: &[u8]) -> bool {
        let shared = [(0, MAGIC), (8, self.file), (16, self.offset), (32, self.shape(block))];
        shared.into_iter().all(|(at, value)| word(block, at) == value)
    }

    /// Tell whether anything in a block says that it is one of ours, be it damaged: a part of the
    /// header that all generations share, or the place of a sector.
    pub fn is_alike(&self, block: &[u8]) -> bool {
        let claims = [(0, MAGIC), (8, self.file)].into_iter();
        claims.clone().any(|(at, value)| word(block, at) == value)
            || (1..block.len() / SECTOR)
                .any(|sector| word(block, sector * SECTOR) == self.tag(sector))
    }

    /// Write of a sector, as far as it says so itself.
    fn sector_generation(&self, block: &[u8], sector: usize) -> Option<Generation> {
        if sector == 0 {
            return self.is_header_ours(block).then(|| Generation(word(block, 24)));
        }
        let at = sector * SECTOR;
        let (tag, generation) = (word(block, at), word(block, at + 8));
        let is_ours = tag == self.tag(sector) && word(block, at + 16) == mixed(tag, generation);
        is_ours.then_some(Generation(generation))
    }

    /// Write of a block, or its fault.
    ///
    /// `scratch` is of the block's length; `likely` is tried for a block that does not say.
    #[inline]
    pub fn examine(
        &self,
        block: &[u8],
        scratch: &mut [u8],
        likely: Option<Generation>,
    ) -> Result<Generation, Fault> {
        let claimed = Generation(word(block, 24));
        self.expect(block, scratch, claimed);
        if self.known(block.len()).all(|range| block[range.clone()] == scratch[range]) {
            return Ok(claimed);
        }
        Err(self.diagnose(block, scratch, likely))
    }

    /// Puts into `scratch` what `generation` wrote; where nothing is known, what `block` holds.
    #[inline]
    pub fn expect(&self, block: &[u8], scratch: &mut [u8], generation: Generation) {
        if self.kind != Verify::Full {
            scratch.copy_from_slice(block);
        }
        self.compose(scratch, generation);
    }

    /// Like [`Self::examine`], where each sector may be of another write: who is not alone in a
    /// file, or was not when it was written, can ask for no more than that.
    pub fn examine_sectors(&self, block: &[u8], scratch: &mut [u8]) -> Result<(), Fault> {
        let sectors = self.sectors(block);
        let mut known: Vec<Generation> = sectors.iter().flatten().copied().collect();
        known.dedup();
        if known.is_empty() || sectors.contains(&None) {
            return Err(self.diagnose(block, scratch, None));
        }
        // The checksum of a mixed block is that of the write which its header is of.
        for generation in known {
            self.expect(block, scratch, generation);
            for (index, owner) in sectors.iter().enumerate() {
                let sector = index * SECTOR..(index + 1) * SECTOR;
                let own = self.known(block.len()).filter_map(|range| cut(&range, &sector));
                let is_right = || own.into_iter().all(|r| block[r.clone()] == scratch[r]);
                if *owner == Some(generation) && !is_right() {
                    return Err(self.difference(block, scratch, generation));
                }
            }
        }
        Ok(())
    }

    /// Only what holds for any write at any time: that each sector belongs here.
    pub fn examine_belonging(&self, block: &[u8], scratch: &mut [u8]) -> Result<(), Fault> {
        let is_here = (1..block.len() / SECTOR)
            .all(|sector| word(block, sector * SECTOR) == self.tag(sector));
        if self.is_header_ours(block) && is_here {
            return Ok(());
        }
        Err(self.diagnose(block, scratch, None))
    }

    fn sectors(&self, block: &[u8]) -> Vec<Option<Generation>> {
        (0..block.len() / SECTOR).map(|sector| self.sector_generation(block, sector)).collect()
    }

    #[cold]
    fn diagnose(&self, block: &[u8], scratch: &mut [u8], likely: Option<Generation>) -> Fault {
        if block.iter().all(|byte| *byte == 0) {
            return Fault::Zeros;
        }
        if let Some(fault) = self.misplaced(block) {
            return fault;
        }
        let sectors = self.sectors(block);
        let claimed = Generation(word(block, 24));
        let said = sectors.iter().flatten().copied();
        let candidates: Vec<Generation> = said.chain([claimed]).chain(likely).collect();
        let best = self.closest(block, scratch, candidates);
        if wrong_bytes(&best) <= FEW {
            return best;
        }
        if let Some(fault) = torn(block, &sectors) {
            return fault;
        }
        // The generation itself may have a flipped bit.
        let neighbours = (0..64).map(|bit| Generation(claimed.0 ^ 1 << bit)).collect();
        let near = self.closest(block, scratch, neighbours);
        if wrong_bytes(&near) <= FEW {
            return near;
        }
        // Chance alone gives a foreign block one right byte in 256.
        let known: usize = self.known(block.len()).map(|range| range.len()).sum();
        if sectors.iter().any(Option::is_some) || wrong_bytes(&best) < known / 2 {
            return best;
        }
        Fault::Foreign { start: block[..16].try_into().expect("a block has a sector") }
    }

    /// The generation of `candidates` from which the block differs least.
    fn closest(&self, block: &[u8], scratch: &mut [u8], mut candidates: Vec<Generation>) -> Fault {
        candidates.dedup();
        let difference = |generation| {
            self.expect(block, scratch, generation);
            self.difference(block, scratch, generation)
        };
        let faults = candidates.into_iter().map(difference);
        faults.min_by_key(wrong_bytes).expect("there is a candidate at least")
    }

    /// An intact block that says it belongs elsewhere.
    fn misplaced(&self, block: &[u8]) -> Option<Fault> {
        let (file, offset) = (word(block, 8), word(block, 16));
        let is_intact = word(block, 0) == MAGIC
            && word(block, CHECKSUM.start) == checksum(block, self.kind)
            && (file, offset) != (self.file, self.offset);
        let generation = Generation(word(block, 24));
        is_intact.then_some(Fault::Misplaced { file, offset, generation })
    }

    /// Difference between `block` and `scratch`, which holds what it should be.
    fn difference(&self, block: &[u8], scratch: &[u8], generation: Generation) -> Fault {
        let is_wrong = |at: &usize| block[*at] != scratch[*at];
        let wrong: Vec<usize> = self.known(block.len()).flatten().filter(is_wrong).collect();
        let at = wrong.first().copied().unwrap_or(CHECKSUM.start);
        let (expected, got) = (scratch[at], block[at]);
        Fault::Flipped { generation, at, expected, got, count: wrong.len() }
    }
}

/// Exchanges the header of a block with the bytes at `at`, or puts both back; the two do not
/// overlap.
#[inline]
pub fn swap_header(block: &mut [u8], at: usize) {
    let (before, rest) = block.split_at_mut(at);
    before[..HEADER].swap_with_slice(&mut rest[..HEADER]);
}

/// Place of byte `byte` of a block on the storage, where the header is at `at`.
pub fn stored_at(byte: usize, at: usize) -> usize {
    match byte {
        _ if at == 0 => byte,
        0..HEADER => byte + at,
        _ if (at..at + HEADER).contains(&byte) => byte - at,
        _ => byte,
    }
}

fn wrong_bytes(fault: &Fault) -> usize {
    match fault {
        Fault::Flipped { count, .. } => *count,
        _ => usize::MAX,
    }
}

/// The common part of two ranges.
fn cut(
    a: &core::ops::Range<usize>,
    b: &core::ops::Range<usize>,
) -> Option<core::ops::Range<usize>> {
    let range = a.start.max(b.start)..a.end.min(b.end);
    (!range.is_empty()).then_some(range)
}

#[inline]
fn checksum(block: &[u8], kind: Verify) -> u64 {
    let head = xxh64(&block[..CHECKSUM.start]);
    if kind == Verify::Full { mixed(head, xxh64(&block[CHECKSUM.end..])) } else { head }
}

/// Sectors of several writes, or some of this write and others empty.
fn torn(block: &[u8], sectors: &[Option<Generation>]) -> Option<Fault> {
    let is_empty =
        |index: usize| block[index * SECTOR..(index + 1) * SECTOR].iter().all(|byte| *byte == 0);
    let first = sectors.iter().flatten().next()?;
    let is_other = |(index, sector): (usize, &Option<Generation>)| match sector {
        Some(generation) => generation != first,
        None => is_empty(index),
    };
    let at = sectors.iter().enumerate().position(is_other)?;
    Some(Fault::Torn { sectors: sectors.to_vec(), at })
}

#[cfg(test)]
mod tests;
