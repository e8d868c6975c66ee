//! Sizes that a workload may have: a trace of a sparse file must not fill a disk.

use iolab_trace::stages::text::bytes;

use crate::report::{FilePattern, PatternReport};
use crate::stream::class::AccessPattern;

/// Bytes of all files of a workload together, at most: before it reads, a program may lay them out
/// whole.
const FILES_MAX: u64 = 16 << 30;
/// Share of repeated touches from which on a file is gone through more than once.
const REUSED: f64 = 0.1;

/// Lengths of the files of a workload.
#[derive(Clone, Copy, Debug)]
pub struct LengthBound {
    /// Bytes of each file, at most.
    max: u64,
}

impl LengthBound {
    /// The bound for all files of a report: equal parts of what those share that are too long.
    pub fn of(report: &PatternReport) -> Self {
        let mut lengths: Vec<u64> = report.files.iter().map(length).collect();
        lengths.sort_unstable();
        let (mut left, mut count) = (FILES_MAX, lengths.len() as u64);
        for length in lengths {
            if length > left / count {
                return Self { max: left / count };
            }
            (left, count) = (left - length, count - 1);
        }
        Self { max: FILES_MAX }
    }

    /// Bytes of a file in whole accesses, and the loss if that is less than was spanned.
    pub fn whole(self, file: &FilePattern, access: u64) -> (u64, Option<String>) {
        let (access, length) = (access.max(1), length(file));
        let cut = length.min(self.max).max(access).div_ceil(access) * access;
        let loss = (length > self.max).then(|| {
            format!(
                "its length: the accesses span {}, the workload's file has {}, as it may be laid \
                 out whole; change the size if the disk has room",
                bytes(length),
                bytes(cut)
            )
        });
        (cut, loss)
    }
}

/// Bytes of the part of a file that was accessed; of appended ones all that was written.
fn length(file: &FilePattern) -> u64 {
    let spanned = file.span.map_or(0, |(first, end)| end - first);
    let is_once = file.emptied == 0 && file.reused_share.is_none_or(|share| share < REUSED);
    let moved = file.reads.bytes.saturating_add(file.writes.bytes);
    if file.pattern == AccessPattern::Sequential && is_once { spanned.max(moved) } else { spanned }
}
