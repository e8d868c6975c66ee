//! `Fork`: the map of a file as it is in memory, with space that is promised and not chosen.

use std::collections::BTreeMap;

/// Longest extent: 2^21 - 1 blocks (Linux fs/xfs/libxfs/xfs_format.h).
pub const EXTENT_BLOCKS_MAX: u64 = (1 << 21) - 1;

/// BlockState of neighbouring blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
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
    /// BlockState.
    pub state: BlockState,
}

impl Piece {
    /// The block of the file after the last one.
    pub const fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Tell whether it has blocks.
    pub fn is_real(&self) -> bool {
        self.state != BlockState::Delayed
    }

    /// The part in a range, if there is one.
    pub fn part(&self, from: u64, to: u64) -> Option<Self> {
        let (first, end) = (self.first.max(from), self.end().min(to));
        let skipped = if self.is_real() { first.saturating_sub(self.first) } else { 0 };
        (first < end).then(|| Self { first, count: end - first, at: self.at + skipped, ..*self })
    }

    fn continues(&self, next: &Self) -> bool {
        self.end() == next.first
            && self.state == next.state
            && (!self.is_real() || self.at + self.count == next.at)
            && self.count + next.count <= EXTENT_BLOCKS_MAX
    }
}

/// The map of a file.
#[derive(Clone, Debug, Default)]
pub struct Fork {
    pieces: BTreeMap<u64, (u64, u64, BlockState)>,
    real: u32,
    delayed: u64,
}

impl Fork {
    fn piece((first, (count, at, state)): (&u64, &(u64, u64, BlockState))) -> Piece {
        Piece { first: *first, count: *count, at: *at, state: *state }
    }

    /// All pieces in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Piece> + '_ {
        self.pieces.iter().map(Self::piece)
    }

    /// Number of pieces with blocks: the records on disk.
    pub const fn records(&self) -> u32 {
        self.real
    }

    /// Blocks that are promised.
    pub const fn delayed(&self) -> u64 {
        self.delayed
    }

    /// The piece that holds a block, else the first one after it.
    pub fn at_or_after(&self, block: u64) -> Option<Piece> {
        let before = self.pieces.range(..=block).next_back().map(Self::piece);
        before
            .filter(|piece| piece.end() > block)
            .or_else(|| self.pieces.range(block..).next().map(Self::piece))
    }

    /// The piece that holds a block.
    pub fn holding(&self, block: u64) -> Option<Piece> {
        self.at_or_after(block).filter(|piece| piece.first <= block)
    }

    /// The last piece that begins before a block.
    pub fn before(&self, block: u64) -> Option<Piece> {
        self.pieces.range(..block).next_back().map(Self::piece)
    }

    /// The last piece.
    pub fn last(&self) -> Option<Piece> {
        self.pieces.iter().next_back().map(Self::piece)
    }

    fn put(&mut self, piece: Piece) {
        self.real += u32::from(piece.is_real());
        if !piece.is_real() {
            self.delayed += piece.count;
        }
        self.pieces.insert(piece.first, (piece.count, piece.at, piece.state));
    }

    fn drop_piece(&mut self, piece: Piece) {
        self.real -= u32::from(piece.is_real());
        if !piece.is_real() {
            self.delayed -= piece.count;
        }
        self.pieces.remove(&piece.first);
    }

    /// Adds a piece where there is none, and joins it with its neighbours where that is possible.
    pub fn insert(&mut self, piece: Piece) {
        let mut piece = piece;
        if let Some(left) = self.before(piece.first)
            && left.continues(&piece)
        {
            self.drop_piece(left);
            piece = Piece { count: left.count + piece.count, ..left };
        }
        if let Some((_, &(count, at, state))) = self.pieces.get_key_value(&piece.end()) {
            let right = Piece { first: piece.end(), count, at, state };
            if piece.continues(&right) {
                self.drop_piece(right);
                piece.count += right.count;
            }
        }
        self.put(piece);
    }

    /// Takes a range out and answers what was there.
    pub fn remove(&mut self, from: u64, to: u64) -> Vec<Piece> {
        let mut removed = Vec::new();
        while let Some(piece) = self.at_or_after(from).filter(|piece| piece.first < to) {
            self.drop_piece(piece);
            for rest in [piece.part(0, from), piece.part(to, u64::MAX)].into_iter().flatten() {
                self.put(rest);
            }
            removed.extend(piece.part(from, to));
        }
        removed
    }

    /// Gives the blocks of a range that have a place the state "written"; answers what changed.
    pub fn set_written(&mut self, from: u64, to: u64) -> Vec<Piece> {
        let mut changed = Vec::new();
        let mut at = from;
        while let Some(piece) = self.at_or_after(at).filter(|piece| piece.first < to) {
            at = piece.end();
            if piece.state != BlockState::Unwritten {
                continue;
            }
            let Some(part) = piece.part(from, to) else { continue };
            self.remove(part.first, part.end());
            let part = Piece { state: BlockState::Written, ..part };
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
        let mut plain: Vec<Option<(u64, BlockState)>> = vec![None; BLOCKS as usize];
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
                        if *state == BlockState::Unwritten {
                            *state = BlockState::Written;
                        }
                    }
                }
                kind if plain[range.clone()].iter().all(Option::is_none) => {
                    let state = if kind == 2 { BlockState::Delayed } else { BlockState::Unwritten };
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
                let pieces: Vec<Piece> = fork.iter().collect();
                assert!(pieces.windows(2).all(|pair| !pair[0].continues(&pair[1])));
            }
        }
    }
}
