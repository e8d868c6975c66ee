//! Parts of a file's accesses, each of which one job does.

use super::ONE_DIRECTION;
use crate::access::StableWaits;
use crate::report::{FilePattern, PatternPhase};
use crate::stream::class::AccessPattern;
use crate::stream::sizes::DirectionSizes;

/// A part of a file's accesses that one job does.
pub struct Part {
    pub pattern: AccessPattern,
    pub random_shares: (f64, f64),
    /// Patterns of reads and writes, where these differ.
    pub orders: Option<(AccessPattern, AccessPattern)>,
    pub stride: Option<i64>,
    pub read_share: f64,
    pub accesses: u64,
    pub bytes: u64,
    pub reads: DirectionSizes,
    pub writes: DirectionSizes,
    pub waits: StableWaits,
}

impl Part {
    /// Parts of a file in their order: its phases, or all of it.
    pub fn all(file: &FilePattern) -> Vec<Self> {
        if !file.phases.is_empty() {
            return file.phases.iter().map(Self::of_phase).collect();
        }
        let accesses = file.reads.count + file.writes.count;
        vec![Self {
            pattern: file.pattern,
            random_shares: file.random_shares,
            orders: file.directions,
            stride: file.stride,
            read_share: file.reads.count as f64 / accesses.max(1) as f64,
            accesses,
            bytes: file.reads.bytes.saturating_add(file.writes.bytes),
            reads: file.read_sizes.without_rest(),
            writes: file.write_sizes.without_rest(),
            waits: file.waits,
        }]
    }

    fn of_phase(phase: &PatternPhase) -> Self {
        Self {
            pattern: phase.pattern,
            random_shares: phase.random_shares,
            orders: phase.directions,
            stride: phase.stride,
            read_share: phase.read_share,
            accesses: phase.accesses,
            bytes: phase.mean_bytes.saturating_mul(phase.accesses),
            reads: phase.read_sizes.without_rest(),
            writes: phase.write_sizes.without_rest(),
            waits: phase.waits,
        }
    }

    /// True if it reads so much that its writes are left out.
    pub fn is_reading(&self) -> bool {
        self.read_share >= ONE_DIRECTION
    }

    /// True if it writes so much that its reads are left out.
    pub fn is_writing(&self) -> bool {
        self.read_share <= 1.0 - ONE_DIRECTION
    }

    /// Sizes of each direction that it has.
    pub fn directions(&self) -> Vec<&DirectionSizes> {
        match () {
            () if self.is_reading() => vec![&self.reads],
            () if self.is_writing() => vec![&self.writes],
            () => vec![&self.reads, &self.writes],
        }
    }

    /// Smallest and largest size of its accesses.
    pub fn size_range(&self) -> (u64, u64) {
        let sizes = || self.directions().into_iter().flat_map(|sizes| &sizes.drawn);
        let least = sizes().map(|size| size.bytes).min().unwrap_or(4096);
        (least.max(1), sizes().map(|size| size.bytes).max().unwrap_or(4096).max(1))
    }

    /// Number of writes.
    pub fn write_count(&self) -> u64 {
        self.accesses - (self.read_share * self.accesses as f64).round() as u64
    }

    /// True if places are drawn.
    pub const fn is_random(&self) -> bool {
        matches!(
            self.pattern,
            AccessPattern::Random
                | AccessPattern::Near
                | AccessPattern::Mixed
                | AccessPattern::Same
        )
    }
}
