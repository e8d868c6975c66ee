//! Last write of each block of a file that lanes write, and what is in
//! flight. Eight bytes for each block.
//!
//! A lane of a stream has a book of its own for its file. Lanes of programs share one for each
//! file, through all phases of a trial: a block that one worker wrote is known to the next.
//! Left out: what other processes write ([`super::Trust`]).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use iolab_model::{Bytes, Seed};

use super::{Trust, VerifiedBlocks, file_identity};

/// Nothing is known of a block.
const UNKNOWN: u64 = 0;
/// Writes overlapped or failed here: parts of several may be there.
const CONTESTED: u64 = u64::MAX;

/// Certainty about a block's last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// This write, whole: its generation.
    Write(u64),
    /// Some write, or parts of several.
    Contested,
}

/// Use that an operation makes of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeUse {
    /// Leaves it alone.
    Reads,
    /// Puts data there.
    Writes,
    /// May leave it empty.
    Erases,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    owner: u64,
    at: u64,
    end: u64,
    usage: RangeUse,
    meanwhile: Meanwhile,
}

/// Circumstances in which an operation ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meanwhile {
    /// Another one that changes the same pages was in flight.
    pub has_raced: bool,
    /// A part of its range was perhaps empty at its beginning, or was emptied meanwhile.
    pub was_empty: bool,
}

/// Bytes that are not independent of each other: of one page of memory the part that is changed
/// past the cache and the part that is changed in it overwrite each other (open(2), `O_DIRECT`).
const PAGE: u64 = 4096;

impl Flight {
    fn meets(&mut self, other: RangeUse) {
        self.meanwhile.has_raced |= other != RangeUse::Reads;
        self.meanwhile.was_empty |= other == RangeUse::Erases;
    }
}

/// Blocks of one file.
#[derive(Debug, Default)]
pub struct Book {
    last: Vec<u64>,
    flights: Vec<Flight>,
}

impl Book {
    /// An operation begins: whose it is, its range, its use, and the blocks of its range.
    pub fn begin(
        &mut self,
        owner: u64,
        (at, length): (u64, u64),
        usage: RangeUse,
        mut blocks: Range<u64>,
    ) {
        let end = at.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let is_unknown = |block: u64| !matches!(self.known(block as usize), Known::Write(_));
        let was_empty = usage == RangeUse::Reads && blocks.any(is_unknown);
        let meanwhile = Meanwhile { has_raced: false, was_empty };
        let mut own = Flight { owner, at: at / PAGE * PAGE, end, usage, meanwhile };
        for other in &mut self.flights {
            if own.at < other.end && other.at < own.end {
                other.meets(own.usage);
                own.meets(other.usage);
            }
        }
        self.flights.push(own);
    }

    /// An operation has ended; answers what happened to its range meanwhile.
    pub fn end(&mut self, owner: u64) -> Meanwhile {
        let found = self.flights.iter().position(|flight| flight.owner == owner);
        found.map_or_else(Meanwhile::default, |place| self.flights.swap_remove(place).meanwhile)
    }

    /// Block number `block` was written by the write of this generation.
    #[inline]
    pub fn wrote(&mut self, block: usize, generation: u64) {
        *self.entry(block) = if generation == UNKNOWN { CONTESTED } else { generation };
    }

    /// Contents of block number `block` are unknown from now on.
    pub fn contest(&mut self, block: usize) {
        *self.entry(block) = CONTESTED;
    }

    /// Nothing is known of the blocks `from..to` any more: they may be empty.
    pub fn forget(&mut self, from: u64, to: u64) {
        let count = self.last.len() as u64;
        self.last[from.min(count) as usize..to.min(count) as usize].fill(UNKNOWN);
    }

    #[inline]
    fn entry(&mut self, block: usize) -> &mut u64 {
        if self.last.len() <= block {
            self.last.resize(block + 1, UNKNOWN);
        }
        &mut self.last[block]
    }

    /// Last write of block number `block`.
    #[inline]
    pub fn known(&self, block: usize) -> Known {
        match self.last.get(block).copied().unwrap_or(UNKNOWN) {
            UNKNOWN => Known::Nothing,
            CONTESTED => Known::Contested,
            generation => Known::Write(generation),
        }
    }
}

/// A book that lanes share.
pub type SharedBook = Arc<Mutex<Book>>;

/// A file as a lane that verifies sees it.
#[derive(Clone, Debug)]
pub struct FilePlan {
    /// Its name.
    pub name: String,
    /// Its identity in headers.
    pub identity: u64,
    /// Bytes of its blocks.
    pub unit: Bytes,
    /// Place of the header in each, and whether wrong ones are kept.
    pub blocks: VerifiedBlocks,
    /// Certainty about the file beside its book.
    pub trust: Trust,
    /// Last writes of its blocks.
    pub book: SharedBook,
}

/// Books of all files that the programs of a trial work on, from phase to phase.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<BTreeMap<PathBuf, SharedBook>>>);

impl Books {
    /// Files of a stage as lanes see them, in the order of their paths, and `certainty` about each.
    pub fn files(
        &self,
        (paths, directory): (&[PathBuf], &Path),
        (seed, unit): (Seed, Bytes),
        certainty: impl Fn(usize) -> (VerifiedBlocks, Trust),
    ) -> Arc<[FilePlan]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = |(index, path): (usize, &PathBuf)| {
            let (blocks, trust) = certainty(index);
            let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
            FilePlan {
                identity: file_identity(seed, &name),
                name,
                unit,
                blocks,
                trust,
                book: Arc::clone(known.entry(path.clone()).or_default()),
            }
        };
        paths.iter().enumerate().map(file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_bytes_makes_a_race() {
        let mut book = Book::default();
        book.begin(1, (0, 4096), RangeUse::Reads, 0..1);
        book.begin(2, (0, 4096), RangeUse::Reads, 0..1);
        book.begin(3, (2048, 4096), RangeUse::Writes, 0..2);
        book.begin(4, (4096, 4096), RangeUse::Reads, 1..2);
        assert!(!book.end(3).has_raced, "readers do not change what is written");
        assert!([1, 2, 4].iter().all(|owner| book.end(*owner).has_raced), "a write came between");
        book.begin(5, (0, 8), RangeUse::Writes, 0..1);
        book.begin(6, (512, 8), RangeUse::Writes, 0..1);
        book.begin(8, (4096, 8), RangeUse::Writes, 1..2);
        assert!(book.end(5).has_raced && book.end(6).has_raced, "in one page");
        assert!(!book.end(8).has_raced, "another page");
        assert!(!book.end(7).has_raced, "who is not in flight has not raced");
    }

    #[test]
    fn what_was_empty_when_a_read_began_may_be_so() {
        let mut book = Book::default();
        book.wrote(0, 7);
        book.begin(1, (0, 4096), RangeUse::Reads, 0..1);
        book.begin(2, (0, 8192), RangeUse::Reads, 0..2);
        book.begin(3, (0, 8192), RangeUse::Writes, 0..2);
        book.wrote(1, 8);
        assert_eq!(book.end(1), Meanwhile { has_raced: true, was_empty: false });
        assert_eq!(book.end(2), Meanwhile { has_raced: true, was_empty: true });
        book.begin(4, (0, 4096), RangeUse::Reads, 0..1);
        book.begin(5, (0, 512), RangeUse::Erases, 0..1);
        assert!(book.end(4).was_empty, "emptied meanwhile");
    }

    #[test]
    fn blocks_are_known_until_they_are_forgotten() {
        let mut book = Book::default();
        (0..4).for_each(|block| book.wrote(block, 7));
        book.contest(1);
        book.forget(2, u64::MAX);
        let known: Vec<Known> = (0..5).map(|block| book.known(block)).collect();
        let nothing = Known::Nothing;
        assert_eq!(known, [Known::Write(7), Known::Contested, nothing, nothing, nothing]);
    }
}
