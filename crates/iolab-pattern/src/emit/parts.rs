//! Parts of a file's accesses, each of which one job does.

use super::ONE_DIRECTION;
use crate::access::StableWaits;
use crate::report::{FilePattern, PatternPhase};
use crate::stream::class::{AccessPattern, Span};
use crate::stream::pauses::FilePauses;
use crate::stream::sizes::DirectionSizes;

/// Bytes of the smallest sector, of which direct I/O moves whole ones.
pub const SECTOR: u64 = 512;

/// Sizes that are drawn. A read past the cache asks for whole sectors: what is shorter at the end
/// of the file is its answer.
fn sizes_of(sizes: &DirectionSizes, is_direct: bool) -> DirectionSizes {
    if is_direct { sizes.without_parts_of(SECTOR) } else { sizes.clone() }.without_rest()
}

/// A part of a file's accesses that one job does.
pub struct Part {
    pub pattern: AccessPattern,
    pub random_shares: (f64, f64),
    /// Patterns of reads and writes, where these differ.
    pub orders: Option<(AccessPattern, AccessPattern)>,
    pub stride: Option<i64>,
    pub read_share: f64,
    pub accesses: u64,
    pub reads: DirectionSizes,
    pub writes: DirectionSizes,
    pub waits: StableWaits,
    /// First byte and the one behind the last, if they are known.
    pub span: Option<(u64, u64)>,
    pub direction_spans: (Span, Span),
    /// True if the reads are one sequential stream and the writes another one.
    pub is_stream_each: bool,
    /// Pauses between all accesses, and those between its reads and between its writes.
    pub pauses: FilePauses,
    /// Pause before the first access.
    pub before_ns: u64,
    /// Numbers of tasks that only read and that only write, if no task does both.
    pub tasks: Option<(u64, u64)>,
    /// True if another job does the other direction at the same time.
    pub is_half: bool,
}

impl Part {
    /// Parts of a file in their order: its phases, or all of it.
    pub fn all(file: &FilePattern) -> Vec<Self> {
        if !file.phases.is_empty() {
            return file.phases.iter().map(|one| Self::of_phase(one, file.is_direct)).collect();
        }
        let accesses = file.reads.count + file.writes.count;
        vec![Self {
            pattern: file.pattern,
            random_shares: file.random_shares,
            orders: file.directions,
            stride: file.stride,
            read_share: file.reads.count as f64 / accesses.max(1) as f64,
            accesses,
            reads: sizes_of(&file.read_sizes, file.is_direct),
            writes: sizes_of(&file.write_sizes, file.is_direct),
            waits: file.waits.without(&file.idle_waits),
            span: file.span,
            direction_spans: file.direction_spans,
            is_stream_each: file.is_stream_each,
            pauses: file.pauses,
            before_ns: 0,
            tasks: file.readers_and_writers,
            is_half: false,
        }]
    }

    fn of_phase(phase: &PatternPhase, is_direct: bool) -> Self {
        Self {
            pattern: phase.pattern,
            random_shares: phase.random_shares,
            orders: phase.directions,
            stride: phase.stride,
            read_share: phase.read_share,
            accesses: phase.accesses,
            reads: sizes_of(&phase.read_sizes, is_direct),
            writes: sizes_of(&phase.write_sizes, is_direct),
            waits: phase.waits,
            span: phase.span,
            direction_spans: phase.direction_spans,
            is_stream_each: phase.is_stream_each,
            pauses: FilePauses {
                all: phase.pauses,
                reads: phase.pauses,
                writes: phase.pauses,
                idle_ns: 0,
            },
            before_ns: phase.before_ns,
            tasks: None,
            is_half: false,
        }
    }

    /// The part itself, or its reads and its writes if tasks of their own make them, or each of
    /// them is a stream of its own.
    pub fn streams(self) -> Vec<Self> {
        let (of_reads, of_writes) = self.direction_spans;
        let are_streams = self.pattern == AccessPattern::Interleaved
            && self.is_stream_each
            && of_reads.is_some()
            && of_writes.is_some()
            && of_reads != of_writes;
        let is_divided = are_streams || self.tasks.is_some();
        if !is_divided || self.is_reading() || self.is_writing() {
            return vec![self];
        }
        let sequential = (AccessPattern::Sequential, AccessPattern::Sequential);
        let orders = self.orders.unwrap_or((self.pattern, self.pattern));
        let orders = if self.is_stream_each { sequential } else { orders };
        let half = |sizes: &DirectionSizes, span, pattern| Self {
            pattern,
            orders: None,
            stride: self.stride.filter(|_| pattern == AccessPattern::Strided),
            reads: DirectionSizes::default(),
            writes: DirectionSizes::default(),
            waits: StableWaits::default(),
            accesses: sizes.accesses(),
            span,
            is_half: true,
            ..self
        };
        let reads = half(&self.reads, of_reads, orders.0);
        let writes = half(&self.writes, of_writes, orders.1);
        let of = |all| FilePauses { all, ..self.pauses };
        vec![
            Self { read_share: 1.0, reads: self.reads, pauses: of(self.pauses.reads), ..reads },
            Self {
                read_share: 0.0,
                writes: self.writes,
                waits: self.waits,
                pauses: of(self.pauses.writes),
                ..writes
            },
        ]
    }

    /// Number of tasks that make it, if it is all that they do.
    pub fn own_tasks(&self) -> Option<u64> {
        let (reading, writing) = self.tasks.filter(|_| self.is_half)?;
        Some(if self.is_reading() { reading } else { writing })
    }

    /// True if it reads so much that its writes are left out: of accesses and of bytes.
    pub fn is_reading(&self) -> bool {
        let (reads, writes) = (self.reads.bytes() as f64, self.writes.bytes() as f64);
        self.read_share >= ONE_DIRECTION && reads >= ONE_DIRECTION * (reads + writes)
    }

    /// True if it writes so much that its reads are left out.
    pub fn is_writing(&self) -> bool {
        let (reads, writes) = (self.reads.bytes() as f64, self.writes.bytes() as f64);
        self.read_share <= 1.0 - ONE_DIRECTION && writes >= ONE_DIRECTION * (reads + writes)
    }

    /// Bytes of the directions that it has.
    pub fn bytes(&self) -> u64 {
        self.directions().into_iter().map(DirectionSizes::bytes).fold(0, u64::saturating_add)
    }

    /// Number of accesses of the direction that is left out.
    pub fn left_out(&self) -> (&'static str, u64) {
        match () {
            () if self.is_reading() => ("writes", self.writes.accesses()),
            () if self.is_writing() => ("reads", self.reads.accesses()),
            () => ("", 0),
        }
    }

    /// True if no access needs the page cache: direct I/O moves whole sectors.
    pub fn is_of_sectors(&self) -> bool {
        self.directions().iter().all(|sizes| sizes.are_whole(SECTOR))
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
