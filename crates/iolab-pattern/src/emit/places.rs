//! Places of a file's parts in the file of a workload.

use super::bound::LengthBound;
use super::parts::Part;
use crate::report::FilePattern;
use crate::sentence::exact;
use crate::stream::class::AccessPattern;

/// Bytes of which the beginning of a workload's file is a multiple in the traced one.
const BASE: u64 = 1 << 20;
/// Share of the file from which on places are drawn from all of it: accesses at random places
/// seldom touch its first and last bytes.
const ALL_OF_IT: f64 = 0.9;

/// Beginning and length of the range of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub offset: u64,
    pub size: u64,
}

/// Ranges of the parts of a file.
pub struct Places {
    /// First byte of the traced file that the workload's file has.
    base: u64,
    /// The byte behind the last.
    end: u64,
    is_cut: bool,
    is_one: bool,
}

impl Places {
    /// Places of a file in so many jobs.
    pub fn of(file: &FilePattern, parts: &[Part], bound: LengthBound) -> Self {
        let (first, end) = file.span.unwrap_or_default();
        let is_cut = parts.iter().any(|part| bound.whole(file, part.size_range().1).1.is_some());
        Self { base: first / BASE * BASE, end, is_cut, is_one: parts.len() == 1 }
    }

    /// Range of a part, of a file with so many bytes, in whole accesses.
    pub fn range(&self, part: &Part, whole: u64) -> Range {
        let all = Range { offset: 0, size: whole };
        let most = part.size_range().1;
        let (is_whole, is_same) = (self.is_one || self.is_cut, part.pattern == AccessPattern::Same);
        let Some((first, end)) = part.span.filter(|_| !is_whole) else {
            return if is_same { Range { size: most, ..all } } else { all };
        };
        let share = (end - first) as f64 / (self.end - self.base).max(1) as f64;
        if part.is_random() && !is_same && share >= ALL_OF_IT {
            return all;
        }
        let size = if is_same { most } else { (end - first).div_ceil(most).max(1) * most };
        Range { offset: first - self.base, size }
    }

    /// Losses of places.
    pub fn losses(&self, parts: &[Part]) -> Vec<String> {
        let mut losses = Vec::new();
        if self.base > 0 {
            losses.push(format!(
                "its place: the file here begins at {} of the traced one",
                exact(self.base)
            ));
        }
        if !self.is_one && self.is_cut {
            losses.push("the places of its parts: here each has the whole file".to_owned());
        } else if !self.is_one && parts.iter().any(|part| part.span.is_none()) {
            losses.push("the places of parts that the trace does not tell".to_owned());
        }
        losses
    }

    /// True if something is read that no part before has written one after the other: the file
    /// needs its content before the jobs begin.
    pub fn need_content(&self, parts: &[Part]) -> bool {
        let mut written = self.base;
        for part in parts {
            let Some((first, end)) = part.span else { return true };
            if !part.is_writing() && end > written {
                return true;
            }
            let is_filling = part.pattern == AccessPattern::Sequential && part.is_writing();
            if is_filling && first <= written {
                written = written.max(end);
            }
        }
        false
    }
}
