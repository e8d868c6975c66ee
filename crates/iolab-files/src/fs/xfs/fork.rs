//! `Fork`: the map of a file as it is in memory, with space that is promised and not chosen.

use crate::api::block::{DeviceId, Place};
use crate::fs::extent_map::{ExtentMap, FileExtent};

use super::leaves::{Key, LeafKeys, Leaves};

/// Longest extent: 2^21 - 1 blocks (Linux `fs/xfs/libxfs/xfs_format.h`).
pub const EXTENT_BLOCKS_MAX: u64 = (1 << 21) - 1;

/// State of neighbouring blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceState {
    /// Promised; no place yet.
    Delayed,
    /// Blocks that were never written.
    Unwritten,
    /// Blocks with data.
    Written,
}

/// Neighbouring blocks of a file with one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First block of the file.
    pub first: u64,
    /// Number of blocks.
    pub count: u64,
    /// First block of the device; 0 while delayed.
    pub at: u64,
    /// State.
    pub state: PieceState,
}

impl Piece {
    /// The block of the file after the last one.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Tell whether it has blocks.
    pub fn is_real(&self) -> bool {
        self.state != PieceState::Delayed
    }

    /// The part in a range, if there is one.
    pub fn part(&self, from: u64, to: u64) -> Option<Self> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        let skipped = if self.is_real() { first.saturating_sub(self.first) } else { 0 };
        (first < end).then(|| Self { first, count: end - first, at: self.at + skipped, ..*self })
    }

    const fn place(&self) -> Place {
        match self.state {
            PieceState::Delayed => Place::Delayed,
            PieceState::Unwritten => Place::Unwritten(DeviceId::MAIN, self.at),
            PieceState::Written => Place::Written(DeviceId::MAIN, self.at),
        }
    }
}

impl From<FileExtent> for Piece {
    fn from(extent: FileExtent) -> Self {
        let (at, state) = match extent.place {
            Place::Hole | Place::Delayed => (0, PieceState::Delayed),
            Place::Unwritten(_, at) => (at, PieceState::Unwritten),
            Place::Written(_, at) => (at, PieceState::Written),
        };
        Self { first: extent.first, count: extent.count, at, state }
    }
}

/// Records of a leaf of a file's map: (4096 - 72) / 16, Linux `fs/xfs/libxfs/xfs_format.h`.
const LEAF_RECORDS: u32 = 251;

/// The map of a file.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    map: ExtentMap,
    records: u32,
    delayed: u64,
    /// Leaves of the map, if the inode cannot hold it.
    leaves: Option<Leaves>,
}

const fn key(first: u64) -> Key {
    ((first >> 32) as u32, first as u32)
}

/// Records with blocks, without some that are about to be added.
struct Visible<'a> {
    map: &'a ExtentMap,
    hidden: &'a [u64],
}

impl LeafKeys for Visible<'_> {
    fn before(&self, (high, low): Key) -> Option<Key> {
        let mut at = u64::from(high) << 32 | u64::from(low);
        loop {
            let piece = Piece::from(self.map.at_or_before(at.checked_sub(1)?)?);
            if piece.is_real() && !self.hidden.contains(&piece.first) {
                return Some(key(piece.first));
            }
            at = piece.first;
        }
    }

    fn after(&self, (high, low): Key) -> Option<Key> {
        let mut at = u64::from(high) << 32 | u64::from(low);
        loop {
            let piece = Piece::from(self.map.after(at)?);
            if piece.is_real() && !self.hidden.contains(&piece.first) {
                return Some(key(piece.first));
            }
            at = piece.first;
        }
    }
}

impl Fork {
    /// All pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = Piece> + '_ {
        self.map.iter().map(Piece::from)
    }

    /// Number of pieces with blocks: the records on disk.
    pub const fn records(&self) -> u32 {
        self.records
    }

    /// Leaves that hold the records outside the inode.
    pub fn leaves(&self) -> u32 {
        self.leaves.as_ref().map_or(0, Leaves::leaves)
    }

    /// Moves the records out of the inode, or back into it.
    pub fn hold_outside(&mut self, is_outside: bool) {
        match (is_outside, self.leaves.is_some()) {
            (true, false) => {
                let first = self.iter().find(Piece::is_real).map_or(0, |piece| piece.first);
                self.leaves = Some(Leaves::of(LEAF_RECORDS, key(first), self.records));
            }
            (false, true) => self.leaves = None,
            _ => {}
        }
    }

    /// Blocks that are promised.
    pub const fn delayed(&self) -> u64 {
        self.delayed
    }

    /// The piece that holds a block, else the first one after it.
    pub fn at_or_after(&self, block: u64) -> Option<Piece> {
        self.map.get(block).or_else(|| self.map.after(block)).map(Piece::from)
    }

    /// The piece that holds a block.
    pub fn holding(&self, block: u64) -> Option<Piece> {
        self.map.get(block).map(Piece::from)
    }

    /// The last piece that begins before a block.
    pub fn before(&self, block: u64) -> Option<Piece> {
        self.map.at_or_before(block.checked_sub(1)?).map(Piece::from)
    }

    /// The last piece.
    pub fn last(&self) -> Option<Piece> {
        self.map.last().map(Piece::from)
    }

    /// Pieces that lie in a range or touch it.
    fn around(&self, from: u64, to: u64) -> Vec<Piece> {
        let mut found = Vec::new();
        let mut next = self.before(from).filter(|piece| piece.end() >= from);
        next = next.or_else(|| self.at_or_after(from));
        while let Some(piece) = next.filter(|piece| piece.first <= to) {
            found.push(piece);
            next = self.map.after(piece.first).map(Piece::from);
        }
        found
    }

    /// Changes the map in a range and keeps what is counted true.
    fn change(&mut self, from: u64, to: u64, change: impl FnOnce(&mut ExtentMap)) {
        let before = self.around(from, to);
        change(&mut self.map);
        let after = self.around(from, to);
        for (pieces, sign) in [(&before, -1i64), (&after, 1)] {
            for piece in pieces {
                if piece.is_real() {
                    self.records = (i64::from(self.records) + sign) as u32;
                } else {
                    self.delayed = (self.delayed as i64 + sign * piece.count as i64) as u64;
                }
            }
        }
        let Some(leaves) = &mut self.leaves else { return };
        let has = |pieces: &[Piece], first| pieces.iter().any(|p| p.first == first && p.is_real());
        let firsts = |these: &[Piece], others: &[Piece]| -> Vec<u64> {
            let real = these.iter().filter(|piece| piece.is_real());
            real.map(|piece| piece.first).filter(|first| !has(others, *first)).collect()
        };
        let (gone, new) = (firsts(&before, &after), firsts(&after, &before));
        for first in gone {
            leaves.remove(key(first), &Visible { map: &self.map, hidden: &new });
        }
        for (index, first) in new.iter().enumerate() {
            leaves.insert(key(*first), &Visible { map: &self.map, hidden: &new[index..] });
        }
    }

    /// Adds a piece where there is none, and joins it with its neighbours where that is possible.
    pub fn insert(&mut self, piece: Piece) {
        let (first, count, place) = (piece.first, piece.count, piece.place());
        self.change(first, piece.end(), |map| map.set(first, count, place));
    }

    /// Takes a range out and answers what was there.
    pub fn remove(&mut self, from: u64, to: u64) -> Vec<Piece> {
        let mut taken = Vec::new();
        if from < to {
            self.change(from, to, |map| taken = map.take(from, to - from));
        }
        taken.into_iter().map(Piece::from).collect()
    }

    /// Gives the blocks of a range that have a place the state "written"; answers what changed.
    pub fn set_written(&mut self, from: u64, to: u64) -> Vec<Piece> {
        let mut changed = Vec::new();
        let mut at = from;
        while let Some(piece) = self.at_or_after(at).filter(|piece| piece.first < to) {
            at = piece.end();
            if piece.state != PieceState::Unwritten {
                continue;
            }
            let Some(part) = piece.part(from, to) else { continue };
            let part = Piece { state: PieceState::Written, ..part };
            self.insert(part);
            changed.push(part);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::seed::Seed;

    #[test]
    fn agrees_with_one_state_per_block() {
        const BLOCKS: u64 = 500;
        let mut plain: Vec<Option<(u64, PieceState)>> = vec![None; BLOCKS as usize];
        let mut fork = Fork::default();
        let mut random = Seed(3).stream("fork", 0);
        for step in 0..200_000 {
            let from = random.below(BLOCKS);
            let to = (from + 1 + random.below(9)).min(BLOCKS);
            let range = from as usize..to as usize;
            match random.below(4) {
                0 => {
                    fork.remove(from, to);
                    plain[range].fill(None);
                }
                1 => {
                    fork.set_written(from, to);
                    for (_, state) in plain[range].iter_mut().flatten() {
                        if *state == PieceState::Unwritten {
                            *state = PieceState::Written;
                        }
                    }
                }
                kind if plain[range.clone()].iter().all(Option::is_none) => {
                    let state = if kind == 2 { PieceState::Delayed } else { PieceState::Unwritten };
                    let at = if kind == 2 { 0 } else { 1_000 + from };
                    fork.insert(Piece { first: from, count: to - from, at, state });
                    for (i, block) in range.enumerate() {
                        let at = if kind == 2 { 0 } else { at + i as u64 };
                        plain[block] = Some((at, state));
                    }
                }
                _ => {}
            }
            if step % 1_000 == 0 {
                let mut seen = vec![None; BLOCKS as usize];
                for piece in fork.iter() {
                    for i in 0..piece.count {
                        let at = if piece.is_real() { piece.at + i } else { 0 };
                        seen[(piece.first + i) as usize] = Some((at, piece.state));
                    }
                }
                assert_eq!(seen, plain);
                let real = fork.iter().filter(Piece::is_real).count();
                assert_eq!(fork.records() as usize, real);
                let delayed: u64 =
                    fork.iter().filter(|piece| !piece.is_real()).map(|piece| piece.count).sum();
                assert_eq!(fork.delayed(), delayed);
                if step == 100_000 {
                    fork.hold_outside(true);
                }
                if step > 100_000 {
                    let real = real as u32;
                    let (least, most) = (real.div_ceil(251).max(1), real / 125 + 1);
                    assert!((least..=most).contains(&fork.leaves()), "{real} records");
                }
            }
        }
    }
}
