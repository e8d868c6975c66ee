//! `PieceDirectory`: names in pieces of 512 bytes, searched from the beginning.

use std::collections::BTreeMap;

/// A piece, which no entry crosses (`DIRBLKSIZ`).
pub const PIECE: u64 = 512;

/// Entries of a directory.
#[derive(Clone, Debug, Default)]
pub struct PieceDirectory {
    /// Bytes in use of each piece.
    used: Vec<u16>,
    names: BTreeMap<Box<str>, u32>,
    /// No piece before this one has room for the shortest entry.
    full_until: usize,
}

/// Bytes of an entry: 8, the name and its end, rounded up to multiples of 4.
const fn bytes_of(name: &str) -> u16 {
    (8 + name.len() as u16 + 1).next_multiple_of(4)
}

/// Bytes of the shortest entry.
const SHORTEST: u16 = 12;

impl PieceDirectory {
    /// A directory with nothing but itself and its parent.
    pub fn made() -> Self {
        Self { used: vec![24], names: BTreeMap::new(), full_until: 0 }
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.used.len() as u64 * PIECE
    }

    /// Piece of a name.
    pub fn piece_of(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Adds a name; answers its piece.
    pub fn add(&mut self, name: &str) -> u32 {
        let need = bytes_of(name);
        let is_full = |used: u16| u64::from(used) + u64::from(SHORTEST) > PIECE;
        while self.used.get(self.full_until).is_some_and(|&used| is_full(used)) {
            self.full_until += 1;
        }
        let found = self.used[self.full_until.min(self.used.len())..]
            .iter()
            .position(|&used| u64::from(used) + u64::from(need) <= PIECE);
        let piece = found.map_or(self.used.len(), |at| self.full_until + at);
        if piece == self.used.len() {
            self.used.push(0);
        }
        self.put(name, Some(piece as u32));
        piece as u32
    }

    /// Removes a name; answers its piece.
    pub fn remove(&mut self, name: &str) -> Option<u32> {
        let piece = self.piece_of(name)?;
        self.put(name, None);
        Some(piece)
    }

    /// Lets a name lie in a piece, or nowhere.
    pub fn put(&mut self, name: &str, piece: Option<u32>) {
        let bytes = bytes_of(name);
        if let Some(old) = self.names.remove(name) {
            self.used[old as usize] -= bytes;
            self.full_until = self.full_until.min(old as usize);
        }
        if let Some(piece) = piece {
            let piece_index = piece as usize;
            if self.used.len() <= piece_index {
                self.used.resize(piece_index + 1, 0);
            }
            self.used[piece_index] += bytes;
            self.names.insert(name.into(), piece);
        }
    }

    /// Makes it as long as the device says, after a crash.
    pub fn cut(&mut self, bytes: u64) {
        let pieces = (bytes / PIECE).max(1) as usize;
        let last = self.names.values().max().map_or(0, |&piece| piece as usize + 1);
        self.used.resize(pieces.max(last).max(1), 0);
        self.full_until = 0;
    }
}
