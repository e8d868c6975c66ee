//! A pattern in plain words.

use std::fmt::Write as _;

use iolab_trace::stages::text::{bytes, duration};

use crate::report::{FilePattern, Moved, PatternPhase};
use crate::stream::class::AccessPattern;

/// Share of one direction from which on the other is not worth a word.
const ONE_DIRECTION: f64 = 0.99;
/// Share of one size from which on it is the size.
const ONE_SIZE: f64 = 0.9;
/// Share of repeated touches from which on a cache is worth a word.
const REUSED: f64 = 0.1;
/// Phases that a sentence names.
const PHASES_NAMED: usize = 6;

/// The sentence of a file: what, how much at once, where, how often it waits.
pub fn of(found: &FilePattern) -> String {
    let mut parts = vec![direction_and_order(found)];
    parts.extend(place(found));
    parts.extend(stability(found));
    parts.extend(reuse(found));
    parts.extend(think(found));
    let mut text = parts.join("; ");
    text.push('.');
    if !found.phases.is_empty() {
        let _ = write!(text, " {}", phases(&found.phases));
    }
    for remark in remarks(found) {
        let _ = write!(text, " {remark}");
    }
    text
}

fn direction_and_order(found: &FilePattern) -> String {
    let total = found.reads.count + found.writes.count;
    let share = found.reads.count as f64 / total.max(1) as f64;
    let (what, mix) = match share {
        share if share >= ONE_DIRECTION => (counted(found.reads, "read"), String::new()),
        share if share <= 1.0 - ONE_DIRECTION => (counted(found.writes, "write"), String::new()),
        share => (
            format!("{total} accesses"),
            format!(" ({:.0} % reads, {:.0} % writes)", share * 100.0, 100.0 - share * 100.0),
        ),
    };
    if total == 1 {
        return format!("{what} of {}", size(found));
    }
    let is_one_place = found
        .span
        .zip(found.size_range)
        .is_some_and(|((first, end), (_, most))| end - first <= most);
    let order = match found.pattern {
        _ if is_one_place => "always at the same place".to_owned(),
        pattern => match found.directions {
            Some((reads, writes)) => {
                format!("reads {}, writes {}", order_of(found, reads), order_of(found, writes))
            }
            None => order_of(found, pattern),
        },
    };
    format!("{what}{mix} of {}, {order}", size(found))
}

fn order_of(found: &FilePattern, pattern: AccessPattern) -> String {
    match pattern {
        AccessPattern::Sequential => "one after the other".to_owned(),
        AccessPattern::Interleaved => {
            format!("{} sequential streams that take turns", found.streams.max(2))
        }
        AccessPattern::Backward => "from the end towards the beginning".to_owned(),
        AccessPattern::Strided => match found.stride {
            Some(stride) => format!("every {}", signed_bytes(stride)),
            None => "at equal distances".to_owned(),
        },
        AccessPattern::Near => "in jumps of at most 128 KiB".to_owned(),
        AccessPattern::Random => "at random places".to_owned(),
        AccessPattern::Mixed => "in no single order".to_owned(),
    }
}

fn counted(moved: Moved, name: &str) -> String {
    format!("{} {name}{}", moved.count, if moved.count == 1 { "" } else { "s" })
}

fn size(found: &FilePattern) -> String {
    match found.sizes.as_slice() {
        [] => "no size".to_owned(),
        [most, ..] if most.share >= ONE_SIZE => exact(most.bytes),
        [first, second, ..] if first.share + second.share >= ONE_SIZE => {
            let (small, large) = (first.bytes.min(second.bytes), first.bytes.max(second.bytes));
            format!("{} or {}", exact(small), exact(large))
        }
        _ => {
            let total = found.reads.count + found.writes.count;
            let mean = (found.reads.bytes + found.writes.bytes) / total.max(1);
            format!("{} on average in {} sizes", bytes(mean), found.size_count)
        }
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
    Some(text)
}

fn stability(found: &FilePattern) -> Option<String> {
    let each = found.writes_per_sync?;
    if found.syncs == 1 && found.writes.count > 1 {
        return Some("waits for stable storage once".to_owned());
    }
    Some(match each {
        each if each < 1.5 => "waits for stable storage after every write".to_owned(),
        each => format!("waits for stable storage after {each:.0} writes on average"),
    })
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

fn think(found: &FilePattern) -> Option<String> {
    let (think, service) = (found.think?, found.service?);
    // Time that strace itself takes lies between calls, too.
    let is_pause = think.p50_ns >= 1_000_000 && think.p50_ns as f64 >= service.mean_ns;
    is_pause.then(|| format!("pauses of {} between accesses", duration(think.p50_ns as f64)))
}

fn phases(rows: &[PatternPhase]) -> String {
    let row = |row: &PatternPhase| {
        let what = match row.read_share {
            share if share >= ONE_DIRECTION => "reads",
            share if share <= 1.0 - ONE_DIRECTION => "writes",
            _ => "reads and writes",
        };
        let size = match row.size {
            Some(size) => exact(size),
            None => format!("{} on average", bytes(row.mean_bytes)),
        };
        format!("{} {} {what} of {size}", row.accesses, row.pattern)
    };
    let named: Vec<String> = rows.iter().take(PHASES_NAMED).map(row).collect();
    let more = rows.len().saturating_sub(PHASES_NAMED);
    let rest = if more > 0 { format!(", then {more} more") } else { String::new() };
    format!("In order: {}{rest}.", named.join(", then "))
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
    if found.emptied > 0 {
        let times =
            if found.emptied == 1 { "once".to_owned() } else { format!("{} times", found.emptied) };
        remarks.push(format!("Its content was thrown away {times}: cut to nothing, or removed."));
    }
    if found.is_mapped {
        remarks
            .push("It was mapped, too: accesses through memory are not in the trace.".to_owned());
    }
    remarks
}
