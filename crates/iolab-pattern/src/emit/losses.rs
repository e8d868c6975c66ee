//! Properties of a file that no workload keeps.

use iolab_trace::stages::text::{bytes, duration};

use super::parts::Part;
use crate::report::{FilePattern, PatternReport};
use crate::sentence::times;
use crate::stream::class::{AccessClass, AccessPattern, LABEL_SHARE};
use crate::stream::reuse::BLOCK_BYTES;

/// Share of repeated touches from which on they are told.
const REUSED: f64 = 0.1;
/// Factor by which they are more than those of places that are drawn, where hot spots are.
const MORE_REUSED: f64 = 2.0;
/// Part of the blocks that hot spots have at most.
const HOT_PART: u64 = 8;
/// Part of the file that a cache for half of the repeated touches has at most.
const CACHED_PART: u64 = 4;
/// Share of accesses of several buffers from which on they are told.
const VECTORED: f64 = 0.5;
/// Time without accesses from which on it is told, and its share of all time.
const IDLE_NS: u64 = 10_000_000;
const IDLE: f64 = 0.1;
/// Share of accesses in steps from which on they are told.
const STEPS: f64 = 0.2;
/// Share of the accesses of one direction that came before the first of the other.
const BEFORE: f64 = 0.1;
/// Number of them from which on that is told.
const BEFORE_MIN: u64 = 8;
/// Number of times that a stride goes through a file from which on it does so more than once.
const PASSES: f64 = 1.5;
/// Share of writes to what was just read from which on it is told.
const WRITTEN_BACK: f64 = 0.1;

/// Losses of a job of several streams or directions.
pub fn of_turns(file: &FilePattern, part: &Part, jobs: u64) -> Vec<String> {
    let mut losses = Vec::new();
    let is_interleaved = part.pattern == AccessPattern::Interleaved;
    // Without times nobody knows; in the trace they follow each other.
    let are_streams = is_interleaved || part.pattern.class_of_steps().is_some();
    if file.depth <= 1 && file.queue_depth <= 1 && (part.is_half || are_streams && jobs > 1) {
        losses.push("its streams take turns: here they run at once".to_owned());
    }
    let is_both = !part.is_reading() && !part.is_writing();
    if is_interleaved && is_both && file.streams > 1 {
        losses.push("which of its streams read and which write: here each does both".to_owned());
    }
    let share = file.written_back as f64 / file.writes.count.max(1) as f64;
    if is_both && share >= WRITTEN_BACK {
        losses.push(format!(
            "{:.0} % of its writes go to the place of the read just before: here reads and writes \
             have places of their own",
            share * 100.0
        ));
    } else if part.is_random() && part.pattern != AccessPattern::Same {
        losses.extend(hot_spots(file));
    }
    losses
}

/// Places that a job has no words for, whose range has so many bytes for so many processes.
pub fn of_places(file: &FilePattern, part: &Part, (whole, jobs): (u64, u64)) -> Option<String> {
    let spanned = part.span.map_or(0, |(first, end)| end - first);
    if part.pattern == AccessPattern::Sequential && spanned / 2 > part.bytes() {
        return Some(format!(
            "jumps between its stretches, which span {}: here they follow each other",
            bytes(spanned)
        ));
    }
    let stride = part.stride.filter(|_| part.pattern == AccessPattern::Strided)?.unsigned_abs();
    let passes = part.accesses.saturating_mul(stride) as f64 / (whole.max(1) * jobs) as f64;
    let is_once = file.reused_share.is_none_or(|share| share < REUSED);
    (is_once && passes >= PASSES).then(|| {
        format!(
            "it goes through the file {passes:.0} times, each time at other places: here at the \
             same ones"
        )
    })
}

/// Pauses that a job does not have: those that may be of a busy machine, if they make much of the
/// time.
pub fn of_idle_time(file: &FilePattern) -> Option<String> {
    let (lasted, idle) = (file.lasted_ns?, file.pauses.idle_ns);
    let is_much = file.phases.is_empty() && idle >= IDLE_NS && idle as f64 >= IDLE * lasted as f64;
    is_much.then(|| {
        let [idle, lasted] = [idle, lasted].map(|ns| duration(ns as f64));
        format!(
            "{idle} of its {lasted}, in which nothing was asked for: such short and seldom \
                 pauses may be those of a busy machine"
        )
    })
}

/// Orders of a file that a job does not have.
pub fn of_orders(file: &FilePattern, part: &Part) -> Vec<String> {
    let mut losses = Vec::new();
    let in_steps = [AccessClass::Strided, AccessClass::Backward];
    let share = |class: AccessClass| {
        file.classes.iter().find(|row| row.class == class).map_or(0.0, |row| row.share)
    };
    let steps: f64 = in_steps.into_iter().map(share).sum();
    if part.pattern == AccessPattern::Mixed && file.phases.is_empty() && steps >= STEPS {
        losses.push(format!(
            "the steps of {:.0} % of its accesses: here they are at drawn places, or one after \
             the other",
            steps * 100.0
        ));
    }
    let is_several = file.stride_share.is_some_and(|share| share < LABEL_SHARE);
    if part.pattern == AccessPattern::Strided && is_several {
        losses.push("steps of several lengths: here all are of the most frequent one".to_owned());
    }
    let (before_read, before_write) = file.before_first;
    for (first, count, other, others) in [
        ("reads", before_read, "writes", file.writes.count),
        ("writes", before_write, "reads", file.reads.count),
    ] {
        let is_told = count >= BEFORE_MIN && count as f64 >= BEFORE * others as f64;
        if part.is_half && is_told {
            losses.push(format!("its {first} began after {count} {other}: here at once"));
        }
    }
    if part.is_half && part.span.is_none() {
        losses.push("appended writes: here they begin where the file does".to_owned());
    }
    losses
}

/// Blocks that are touched again and again, of a job that draws places evenly.
fn hot_spots(file: &FilePattern) -> Option<String> {
    let (share, cache) = file.reused_share.zip(file.reuse_bytes)?;
    let (first, end) = file.span?;
    let accesses = (file.reads.count + file.writes.count).max(1);
    let each = (file.reads.bytes + file.writes.bytes) / accesses / BLOCK_BYTES;
    let touches = accesses as f64 * each.max(1) as f64;
    let blocks = (end - first).div_ceil(BLOCK_BYTES).max(1) as f64;
    // Of places that are drawn evenly, so many had been touched before.
    let drawn = 1.0 - blocks / touches * (1.0 - (-touches / blocks).exp());
    let different = (touches * (1.0 - share)) as u64 * BLOCK_BYTES;
    let is_hot = share >= MORE_REUSED.mul_add(drawn, REUSED)
        || share >= REUSED && cache.saturating_mul(HOT_PART) <= different;
    (is_hot && cache.saturating_mul(CACHED_PART) <= end - first).then(|| {
        format!(
            "{:.0} % of the blocks that it touches had been touched before, half of them within \
             {}: here all places are alike",
            share * 100.0,
            bytes(cache)
        )
    })
}

/// Ways of calling that a job has no words for.
pub fn of_calls(file: &FilePattern) -> Vec<String> {
    let mut losses = Vec::new();
    let accesses = file.reads.count + file.writes.count;
    if file.direct > 0 && !file.is_direct {
        let direct = file.direct;
        losses.push(format!("direct I/O of {direct} of its {accesses} accesses: here of none"));
    }
    if let steps @ 2.. = file.allocations.of_room() {
        losses.push(format!("its room was allocated in {steps} steps: here before all of it"));
    }
    losses.extend(of_cleared(file));
    if file.emptied > 0 {
        let times = times(file.emptied);
        losses.push(format!("its content was thrown away {times}: here it stays"));
    }
    if file.vectored as f64 >= VECTORED * accesses as f64 {
        losses.push("several buffers in each call (readv and its like): here one".to_owned());
    }
    if file.waits.ranges > 0 {
        losses.push(format!("sync_file_range, which it calls {}", times(file.waits.ranges)));
    }
    losses
}

/// Ranges that are cleared, which no workload does.
pub fn of_cleared(file: &FilePattern) -> Option<String> {
    let count = file.allocations.clearing;
    (count > 0).then(|| format!("a range of it was cleared {} (fallocate)", times(count)))
}

/// Files that are not in a workload.
pub fn of_files(report: &PatternReport) -> Option<String> {
    let (count, moved) = (report.files_left_out, bytes(report.bytes_left_out));
    match count {
        0 => None,
        1 => Some(format!("1 more file with {moved}; --all takes it")),
        _ => Some(format!("{count} more files with {moved}; --all takes them")),
    }
}
