//! A pattern in plain words.

use std::fmt::Write as _;

use iolab_trace::stages::text::{bytes, duration};

use crate::access::{Allocations, StableWaits};
use crate::report::{FilePattern, Moved, PatternPhase};
use crate::stream::class::{AccessClass, AccessPattern, ClassShare, LABEL_SHARE};
use crate::stream::pauses::AccessPauses;
use crate::stream::sizes::{DirectionSizes, SizeShare};

/// Share of one direction from which on the other is not worth a word.
const ONE_DIRECTION: f64 = 0.99;
/// Share of one size from which on it is the only one that is named.
const ALL_ONE_SIZE: f64 = 0.995;
/// Share of one size from which on most accesses have it.
const ONE_SIZE: f64 = 0.9;
/// Sizes that are named with their shares, at most.
const SIZES_NAMED: usize = 4;
/// Share that each of them has, and that all of them have together, at least.
const SIZE_NAMED: f64 = 0.005;
const SIZES_SHARE: f64 = 0.98;
/// Share of repeated touches from which on a cache is worth a word.
const REUSED: f64 = 0.1;
/// Share of accesses at random places from which on they are worth a word beside an order.
const ELSEWHERE: f64 = 0.05;
/// Writes to what was just read from which on they are told.
const WRITTEN_BACK_MIN: u64 = 8;
/// Phases that a sentence names.
const PHASES_NAMED: usize = 6;

/// The sentence of a file: what, how much at once, where, how often it waits.
///
/// Requests of a block device have passed the page cache in any case.
pub fn of(found: &FilePattern, is_of_blocks: bool) -> String {
    let mut parts = vec![direction_and_order(found)];
    parts.extend(place(found));
    parts.extend(past_the_cache(found).filter(|_| !is_of_blocks));
    parts.extend(written_back(found));
    parts.extend(stability(found));
    parts.extend(reuse(found));
    parts.extend(pauses(found).filter(|_| found.phases.is_empty()));
    let mut text = parts.join("; ");
    text.push('.');
    if !found.phases.is_empty() {
        let _ = write!(text, " {}", phases(found));
    }
    for remark in remarks(found) {
        let _ = write!(text, " {remark}");
    }
    text
}

fn direction_and_order(found: &FilePattern) -> String {
    let total = found.reads.count + found.writes.count;
    let share = found.reads.count as f64 / total.max(1) as f64;
    let size = size(found);
    let (what, mix) = match share {
        share if share >= ONE_DIRECTION => (counted(found.reads, "read"), String::new()),
        share if share <= 1.0 - ONE_DIRECTION => (counted(found.writes, "write"), String::new()),
        share => {
            let (reads, writes) = (share * 100.0, 100.0 - share * 100.0);
            let of_reads = size_of(&found.read_sizes, found.reads);
            let of_writes = size_of(&found.write_sizes, found.writes);
            let what = format!("{total} accesses");
            if of_reads != of_writes {
                let mix = format!(
                    "{reads:.0} % reads of {of_reads}, {writes:.0} % writes of {of_writes}"
                );
                return format!("{what} ({mix}), {}", order(found));
            }
            (what, format!(" ({reads:.0} % reads, {writes:.0} % writes)"))
        }
    };
    if total == 1 {
        return format!("{what} of {size}");
    }
    format!("{what}{mix} of {size}, {}", order(found))
}

fn order(found: &FilePattern) -> String {
    let (reads_elsewhere, writes_elsewhere) = found.random_shares;
    if let Some((reads, writes)) = found.directions {
        let reads = order_of(found, reads, (reads_elsewhere, found.reads.count));
        let writes = order_of(found, writes, (writes_elsewhere, found.writes.count));
        return format!("reads {reads}, writes {writes}");
    }
    let is_anywhere =
        |row: &&ClassShare| matches!(row.class, AccessClass::Near | AccessClass::Random);
    let elsewhere = found.classes.iter().filter(is_anywhere).map(|row| row.share).sum();
    order_of(found, found.pattern, (elsewhere, found.reads.count + found.writes.count))
}

/// An order in words, with the share of so many accesses that are elsewhere, if these are some.
fn order_of(
    found: &FilePattern,
    pattern: AccessPattern,
    (elsewhere, accesses): (f64, u64),
) -> String {
    let order = match pattern {
        AccessPattern::Sequential => "one after the other".to_owned(),
        AccessPattern::Interleaved => {
            format!("{} sequential streams that take turns", found.streams.max(2))
        }
        AccessPattern::Backward => "from the end towards the beginning".to_owned(),
        AccessPattern::Strided => match found.stride {
            Some(stride) if found.stride_share.is_none_or(|share| share >= LABEL_SHARE) => {
                format!("every {}", signed_bytes(stride))
            }
            Some(stride) => format!("in several steps, most of {}", signed_bytes(stride)),
            None => "at equal distances".to_owned(),
        },
        AccessPattern::Same => {
            let is_one_place = found
                .span
                .zip(found.size_range)
                .is_some_and(|((first, end), (_, most))| end - first <= most);
            let how = if is_one_place { "always" } else { "again and again" };
            format!("{how} at the same place")
        }
        AccessPattern::Near => return "in jumps of at most 128 KiB".to_owned(),
        AccessPattern::Random => return "at random places".to_owned(),
        AccessPattern::Mixed => return "in no single order".to_owned(),
    };
    let order = match found.streams {
        streams @ 2.. if pattern.class_of_steps().is_some() && pattern == found.pattern => {
            format!("{streams} streams, each {order}")
        }
        _ => order,
    };
    // One access is where the others begin.
    if elsewhere < ELSEWHERE || elsewhere * (accesses as f64) < 1.5 {
        return order;
    }
    format!("mostly {order} ({:.0} % at random places)", elsewhere * 100.0)
}

fn counted(moved: Moved, name: &str) -> String {
    format!("{} {name}{}", moved.count, if moved.count == 1 { "" } else { "s" })
}

fn size(found: &FilePattern) -> String {
    let total = found.reads.count + found.writes.count;
    let mean = (found.reads.bytes + found.writes.bytes) / total.max(1);
    named_sizes(&found.sizes).unwrap_or_else(|| {
        let (least, most) = found.size_range.unwrap_or_default();
        let range = format!("from {} to {}", exact(least), exact(most));
        format!("{} on average in {} sizes {range}", bytes(mean), found.size_count)
    })
}

/// Sizes of one direction.
fn size_of(sizes: &DirectionSizes, moved: Moved) -> String {
    // Joined ones are sizes that no access has.
    let is_exact = sizes.different == sizes.drawn.len() as u64;
    named_sizes(&sizes.drawn).filter(|_| is_exact).unwrap_or_else(|| {
        let mean = bytes(moved.bytes / moved.count.max(1));
        format!("{mean} on average in {} sizes", sizes.different)
    })
}

/// The few sizes that nearly all accesses have, with their shares.
fn named_sizes(sizes: &[SizeShare]) -> Option<String> {
    let first = sizes.first()?;
    if first.share >= ALL_ONE_SIZE {
        return Some(exact(first.bytes));
    }
    let one = |size: &SizeShare| format!("{} ({:.0} %)", exact(size.bytes), size.share * 100.0);
    let named: Vec<&SizeShare> =
        sizes.iter().take(SIZES_NAMED).filter(|size| size.share >= SIZE_NAMED).collect();
    let share: f64 = named.iter().map(|size| size.share).sum();
    match named.split_last() {
        Some((last, others)) if share >= SIZES_SHARE && !others.is_empty() => {
            let others: Vec<String> = others.iter().map(|size| one(size)).collect();
            Some(format!("{} or {}", others.join(", "), one(last)))
        }
        _ if first.share >= ONE_SIZE => Some(format!("mostly {}", one(first))),
        _ => None,
    }
}

/// A size as people write it: whole units as such, others in bytes.
pub fn exact(count: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in UNITS {
        let whole = count >> shift;
        if whole > 0 && whole << shift == count {
            return format!("{whole} {unit}");
        }
    }
    format!("{count} B")
}

/// A number of times in words.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn signed_bytes(stride: i64) -> String {
    let size = exact(stride.unsigned_abs());
    if stride < 0 { format!("{size}, backward") } else { size }
}

fn place(found: &FilePattern) -> Option<String> {
    let (first, last) = found.span?;
    let mut text = format!("bytes {first} to {last}");
    match found.alignment {
        Some(alignment) if alignment >= 512 => {
            let _ = write!(text, ", aligned to {}", exact(alignment));
        }
        Some(_) => {
            let share = found.aligned_4k_share.unwrap_or(0.0) * 100.0;
            let _ = match share {
                share if share >= 99.5 => write!(text, ", nearly all aligned to 4 KiB"),
                share => write!(text, ", {share:.0} % aligned to 4 KiB"),
            };
        }
        None => {}
    }
    let moved = found.reads.bytes.saturating_add(found.writes.bytes);
    if found.pattern == AccessPattern::Sequential && (last - first) / 2 > moved {
        let share = moved as f64 / (last - first) as f64 * 100.0;
        let _ = write!(text, ", {share:.0} % of these");
    }
    Some(text)
}

/// Tells of direct I/O.
fn past_the_cache(found: &FilePattern) -> Option<String> {
    let accesses = found.reads.count + found.writes.count;
    match found.direct {
        0 => None,
        all if all == accesses => Some("past the page cache (O_DIRECT)".to_owned()),
        part => Some(format!("{part} of them past the page cache (O_DIRECT)")),
    }
}

/// Tells of a program that changes what it has just read.
fn written_back(found: &FilePattern) -> Option<String> {
    let share = found.written_back as f64 / found.writes.count.max(1) as f64;
    (found.written_back >= WRITTEN_BACK_MIN && share >= LABEL_SHARE).then(|| {
        let which = if share >= ALL_ONE_SIZE { "each write" } else { "nearly each write" };
        format!("{which} goes to the place that was read just before")
    })
}

fn stability(found: &FilePattern) -> Option<String> {
    let idle = found.idle_waits.total();
    let with_idle = |text: String| match idle {
        0 => text,
        _ => format!("{text}, and {} with nothing written before", times(idle)),
    };
    after_writes(found).map(with_idle)
}

fn after_writes(found: &FilePattern) -> Option<String> {
    let each = found.writes_per_sync?;
    let waits = found.waits.without(&found.idle_waits);
    let way = ways(&waits);
    if waits.total() == 1 && found.writes.count > 1 {
        return Some(format!("waits for stable storage once{way}"));
    }
    Some(match each {
        each if each < 1.5 => format!("waits for stable storage after every write{way}"),
        each => format!("waits for stable storage after {each:.0} writes on average{way}"),
    })
}

/// Names of the ways in which a program waits, in brackets.
fn ways(waits: &StableWaits) -> String {
    let rows = [
        (waits.sync_writes, "O_SYNC"),
        (waits.dsync_writes, "O_DSYNC"),
        (waits.fsync, "fsync"),
        (waits.fdatasync, "fdatasync"),
    ];
    let named: Vec<&str> =
        rows.into_iter().filter(|(count, _)| *count > 0).map(|(_, name)| name).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}

fn reuse(found: &FilePattern) -> Option<String> {
    let share = found.reused_share.filter(|share| *share >= REUSED)?;
    let cache = exact(found.reuse_bytes?);
    let part = if found.is_reuse_cut { "in the first part of the trace, " } else { "" };
    Some(format!(
        "{part}{:.0} % of its blocks were touched before, half of them are found in a cache of \
         {cache}",
        share * 100.0
    ))
}

/// Pauses of a file in words, if they make a good part of its time.
pub fn pauses(found: &FilePattern) -> Option<String> {
    let accesses = found.reads.count + found.writes.count;
    let words = pauses_of(found.pauses.all, accesses, found.lasted_ns)?;
    // The time of an access lies between the beginnings of two.
    let apart = if found.has_durations { "" } else { " (with the access before)" };
    Some(format!("{words}{apart}"))
}

/// Pauses between so many accesses in words.
fn pauses_of(all: AccessPauses, accesses: u64, lasted_ns: Option<u64>) -> Option<String> {
    let time = |ns: u64| duration(ns as f64);
    let mean = time(all.mean_ns().filter(|_| all.are_told(lasted_ns, accesses))?);
    if all.count == 1 {
        return Some(format!("a pause of {mean}"));
    }
    let length = if all.are_spread() {
        format!("{} to {} ({mean} on average)", time(all.least_ns), time(all.longest_ns))
    } else {
        mean
    };
    Some(match all.accesses_each(accesses) {
        1 => format!("pauses of {length} between accesses"),
        each => {
            let total = time(all.total_ns);
            format!("pauses of {length} after {each} accesses on average, {total} in all")
        }
    })
}

fn phases(found: &FilePattern) -> String {
    let rows = &found.phases;
    let lasted = found.lasted_ns;
    let row = |row: &PatternPhase| {
        let before = if AccessPauses::of_one(row.before_ns).are_told(lasted, row.accesses) {
            format!("after a pause of {} ", duration(row.before_ns as f64))
        } else {
            String::new()
        };
        let part = lasted.map(|lasted| lasted / rows.len().max(1) as u64);
        let pauses = pauses_of(row.pauses, row.accesses, part);
        let pauses = pauses.map_or_else(String::new, |pauses| format!(" with {pauses}"));
        format!("{before}{}{pauses}", phase(row))
    };
    let named: Vec<String> = rows.iter().take(PHASES_NAMED).map(row).collect();
    let more = rows.len().saturating_sub(PHASES_NAMED);
    let rest = if more > 0 { format!(", then {more} more") } else { String::new() };
    format!("In order: {}{rest}.", named.join(", then "))
}

fn phase(row: &PatternPhase) -> String {
    let what = match row.read_share {
        share if share >= ONE_DIRECTION => "reads",
        share if share <= 1.0 - ONE_DIRECTION => "writes",
        _ => "reads and writes",
    };
    let size = match row.size {
        Some(size) => exact(size),
        None => format!("{} on average", bytes(row.mean_bytes)),
    };
    let accesses = row.accesses;
    match (row.directions, row.pattern) {
        (Some((reads, writes)), _) => {
            format!("{accesses} accesses of {size} ({reads} reads, {writes} writes)")
        }
        (None, AccessPattern::Same) => format!("{accesses} {what} of {size} at the same place"),
        (None, pattern) => format!("{accesses} {pattern} {what} of {size}"),
    }
}

fn remarks(found: &FilePattern) -> Vec<String> {
    let mut remarks = Vec::new();
    if found.is_size_by_request {
        remarks.push(
            "Every read returned nothing: the file was empty, or they began behind its end; sizes \
             are those that were asked for."
                .to_owned(),
        );
    }
    if found.is_opened_before {
        remarks.push(
            "The trace lacks the call that opened it: without one that sets the position, offsets \
             count from where it was."
                .to_owned(),
        );
    }
    let Allocations { clearing, .. } = found.allocations;
    let of_room = found.allocations.of_room();
    if of_room > 0 {
        let is_kept = found.allocations.keeping >= found.allocations.extending;
        let length = if is_kept { ", its length kept" } else { "" };
        let times = times(of_room);
        remarks.push(format!("Room for it was allocated {times} (fallocate{length})."));
    }
    if clearing > 0 {
        let times = times(clearing);
        remarks.push(format!("A range of it was cleared {times} (fallocate: a hole, or zeroes)."));
    }
    if found.emptied > 0 {
        let times = times(found.emptied);
        remarks.push(format!("Its content was thrown away {times}: cut to nothing, or removed."));
    }
    if found.waits.ranges > 0 {
        remarks.push(format!(
            "The writing of ranges was asked for {} (sync_file_range), which is no wait for stable \
             storage.",
            times(found.waits.ranges)
        ));
    }
    if found.is_mapped {
        remarks
            .push("It was mapped, too: accesses through memory are not in the trace.".to_owned());
    }
    remarks
}
