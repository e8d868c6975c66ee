//! Memory of a lane of its own writes, block by block: four bytes each.
//!
//! Left out: writes of others and of earlier phases ([`iolab_workload::verify::Trust`]).

/// Nothing was written here by this lane.
const UNKNOWN: u32 = 0;
/// Writes overlapped or failed here: parts of several may be there.
const CONTESTED: u32 = u32::MAX;

/// Knowledge about a block's last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing from this lane.
    Nothing,
    /// This write of this lane, whole.
    Write(u32),
    /// Some write, or parts of several.
    Contested,
}

/// The last write of each block of a file.
#[derive(Debug, Default)]
pub struct Ledger {
    last: Vec<u32>,
}

impl Ledger {
    /// Block number `block` was written by write `sequence`.
    #[inline]
    pub fn wrote(&mut self, block: usize, sequence: u32) {
        *self.entry(block) = if sequence == UNKNOWN { CONTESTED } else { sequence };
    }

    /// Note that the content of block number `block` is unknown.
    pub fn contest(&mut self, block: usize) {
        *self.entry(block) = CONTESTED;
    }

    #[inline]
    fn entry(&mut self, block: usize) -> &mut u32 {
        if self.last.len() <= block {
            self.last.resize(block + 1, UNKNOWN);
        }
        &mut self.last[block]
    }

    /// Knowledge about block number `block`.
    #[inline]
    pub fn known(&self, block: usize) -> Known {
        match self.last.get(block).copied().unwrap_or(UNKNOWN) {
            UNKNOWN => Known::Nothing,
            CONTESTED => Known::Contested,
            sequence => Known::Write(sequence),
        }
    }
}
