//! Phases of a file, as plain data.

use serde::Serialize;

use crate::access::StableWaits;
use crate::stream::class::{AccessPattern, LABEL_SHARE, Span, directions_of, is_stream_each};
use crate::stream::pauses::AccessPauses;
use crate::stream::phases::{StreamPhase, phases};
use crate::stream::sizes::DirectionSizes;
use crate::stream::tally::FileTally;

/// A part of a file's accesses that is alike.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PatternPhase {
    /// Its pattern.
    pub pattern: AccessPattern,
    /// Patterns of the reads and of the writes, where these differ and each has an order.
    pub directions: Option<(AccessPattern, AccessPattern)>,
    /// Shares of the reads and of the writes that have no order.
    pub random_shares: (f64, f64),
    /// Distance between the beginnings of strided accesses in bytes.
    pub stride: Option<i64>,
    /// Number of the first access, from 1 on.
    pub first: u64,
    /// Number of accesses.
    pub accesses: u64,
    /// Share of reads.
    pub read_share: f64,
    /// Mean bytes of an access.
    pub mean_bytes: u64,
    /// Bytes of every access, if all have one size.
    pub size: Option<u64>,
    /// Sizes of the reads alone.
    pub read_sizes: DirectionSizes,
    /// Sizes of the writes alone.
    pub write_sizes: DirectionSizes,
    /// First byte that was accessed, and the one behind the last; None if the place of an access is
    /// not known.
    pub span: Option<(u64, u64)>,
    /// The same of the reads and of the writes.
    pub direction_spans: (Span, Span),
    /// True if the reads are one sequential stream and the writes another one.
    pub is_stream_each: bool,
    /// Numbers of times that stable storage was waited for.
    pub waits: StableWaits,
    /// Pauses between its accesses.
    pub pauses: AccessPauses,
    /// Pause before the first of them.
    pub before_ns: u64,
}

/// Phases that are listed; more of them are no phases.
const PHASES_LISTED: usize = 32;

/// Phases of a file; none if it has one only, or if they are a matter of chance.
pub fn phases_of(
    tally: &FileTally,
    pattern: AccessPattern,
    stride: Option<i64>,
) -> Vec<PatternPhase> {
    let runs = &tally.joint.runs;
    // Streams that go on in steps have them each for itself, and phases of one direction.
    let steps = pattern.class_of_steps().filter(|_| tally.streams > 1);
    let own = steps.map(|class| runs.with_class(class, stride));
    let runs = own.as_ref().unwrap_or(runs).all();
    let Some(runs) = runs.filter(|_| tally.readers_and_writers().is_none()) else {
        return Vec::new();
    };
    let found = phases(runs);
    let is_mixture = |phase: &StreamPhase| {
        let share = phase.reads as f64 / (phase.reads + phase.writes).max(1) as f64;
        (1.0 - LABEL_SHARE..=LABEL_SHARE).contains(&share)
    };
    if found.len() < 2 || found.len() > PHASES_LISTED {
        return Vec::new();
    }
    // Streams that take turns are no phases of each other.
    if pattern == AccessPattern::Interleaved && found.iter().all(is_mixture) {
        return Vec::new();
    }
    found.iter().filter_map(|phase| phase_row(tally, phase)).collect()
}

/// A phase as data; None if the trace has too many accesses to tell its sizes.
fn phase_row(tally: &FileTally, phase: &StreamPhase) -> Option<PatternPhase> {
    let accesses = phase.counts.total();
    let part = tally.joint.order.part(phase.first, accesses)?;
    let [reads, writes] = part.sizes;
    let pattern = phase.label();
    Some(PatternPhase {
        pattern,
        directions: directions_of(pattern, &phase.directions),
        random_shares: phase.directions.map(|counts| counts.random_share()).into(),
        stride: phase.stride.map(|(stride, _)| stride),
        first: phase.first + 1,
        accesses,
        read_share: phase.reads as f64 / accesses.max(1) as f64,
        mean_bytes: phase.mean_bytes(),
        size: phase.size,
        read_sizes: DirectionSizes::of(&reads),
        write_sizes: DirectionSizes::of(&writes),
        span: phase.span(),
        direction_spans: phase.spans.into(),
        is_stream_each: is_stream_each(&phase.directions),
        waits: part.waits,
        pauses: part.pauses.usual(),
        before_ns: part.before_ns,
    })
}
