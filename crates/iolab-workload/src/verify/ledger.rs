//! Last write of each block of a file that lanes write, and what is in
//! flight. Eight bytes for each block.
//!
//! A lane of a stream has a book of its own for its file. Lanes of programs share one for each
//! file, through all phases of a trial: a block that one worker wrote is known to the next.
//! Left out: what other processes write ([`super::Trust`]).

use std::collections::BTreeMap;
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

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    owner: u64,
    at: u64,
    end: u64,
    changes: bool,
    /// Another one that changes the same bytes was in flight meanwhile.
    has_raced: bool,
}

/// Blocks of one file.
#[derive(Debug, Default)]
pub struct Book {
    last: Vec<u64>,
    flights: Vec<Flight>,
}

impl Book {
    /// An operation begins: whose it is, its range, and whether it changes what is there.
    pub fn begin(&mut self, owner: u64, (at, length): (u64, u64), changes: bool) {
        let mut own =
            Flight { owner, at, end: at.saturating_add(length), changes, has_raced: false };
        for other in &mut self.flights {
            if own.at < other.end && other.at < own.end {
                other.has_raced |= own.changes;
                own.has_raced |= other.changes;
            }
        }
        self.flights.push(own);
    }

    /// An operation has ended; answers whether another one changed its bytes meanwhile.
    pub fn end(&mut self, owner: u64) -> bool {
        let found = self.flights.iter().position(|flight| flight.owner == owner);
        found.is_some_and(|place| self.flights.swap_remove(place).has_raced)
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
    /// Files of a stage as lanes see them, in the order of their paths.
    pub fn files(
        &self,
        (paths, directory): (&[PathBuf], &Path),
        seed: Seed,
        unit: Bytes,
    ) -> Arc<[FilePlan]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = |path: &PathBuf| {
            let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
            FilePlan {
                identity: file_identity(seed, &name),
                name,
                unit,
                blocks: VerifiedBlocks::default(),
                trust: Trust::default(),
                book: Arc::clone(known.entry(path.clone()).or_default()),
            }
        };
        paths.iter().map(file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_bytes_makes_a_race() {
        let mut book = Book::default();
        book.begin(1, (0, 4096), false);
        book.begin(2, (0, 4096), false);
        book.begin(3, (2048, 4096), true);
        book.begin(4, (4096, 4096), false);
        assert!(!book.end(3), "readers do not change what is written");
        assert!(book.end(1) && book.end(2) && book.end(4), "a write came in between");
        book.begin(5, (0, 8), true);
        book.begin(6, (4, 8), true);
        assert!(book.end(5) && book.end(6));
        assert!(!book.end(7), "who is not in flight has not raced");
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
