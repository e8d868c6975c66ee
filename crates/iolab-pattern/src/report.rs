//! Findings about a trace, as plain data.

use iolab_model::visible::harmless;
use iolab_trace::density::{Density, Picture};
use serde::Serialize;

use crate::access::{Allocations, File, StableWaits};
use crate::analysis::PatternAnalysis;
use crate::stream::class::{
    AccessClass, AccessPattern, ClassCounts, ClassShare, Span, directions_of, is_stream_each,
    with_directions,
};
use crate::stream::pauses::FilePauses;
use crate::stream::sizes::{DirectionSizes, SizeCounts, SizeShare};
use crate::stream::tally::FileTally;
use crate::text::scan::find;

pub mod phases;

pub use phases::PatternPhase;
use phases::phases_of;

/// Access patterns of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PatternReport {
    /// System calls, or events of a block trace.
    pub calls: u64,
    /// Files with accesses, those with the most bytes first.
    pub files: Vec<FilePattern>,
    /// Files with accesses that are not in the list.
    pub files_left_out: u64,
    /// Bytes of their accesses.
    pub bytes_left_out: u64,
    /// Files with accesses whose names do not have what was asked for.
    pub files_of_other_names: u64,
    /// True if the trace has times.
    pub has_times: bool,
    /// Sentences about what the trace cannot show.
    pub notes: Vec<String>,
}

/// A number of accesses and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Moved {
    /// Accesses.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Durations {
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Half of all are at most this long.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
}

/// Access pattern of a file or a device.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FilePattern {
    /// Path; bytes that are no text are replaced.
    pub name: String,
    /// The pattern in one word.
    pub pattern: AccessPattern,
    /// Patterns of the reads and of the writes, where these differ and each has an order.
    pub directions: Option<(AccessPattern, AccessPattern)>,
    /// Shares of the reads and of the writes that have no order.
    pub random_shares: (f64, f64),
    /// Streams that take turns: of several tasks or open files, or within one of them.
    pub streams: u64,
    /// Distance between the beginnings of strided accesses in bytes.
    pub stride: Option<i64>,
    /// Share of it among all strides.
    pub stride_share: Option<f64>,
    /// Reads.
    pub reads: Moved,
    /// Writes.
    pub writes: Moved,
    /// Accesses of each class.
    pub classes: Vec<ClassShare>,
    /// Sizes, the most frequent first.
    pub sizes: Vec<SizeShare>,
    /// Number of different sizes.
    pub size_count: u64,
    /// Sizes of the reads alone.
    pub read_sizes: DirectionSizes,
    /// Sizes of the writes alone.
    pub write_sizes: DirectionSizes,
    /// Smallest and largest size in bytes.
    pub size_range: Option<(u64, u64)>,
    /// Largest power of two, up to 1 MiB, that divides all offsets.
    pub alignment: Option<u64>,
    /// Share of offsets that are multiples of 4 KiB.
    pub aligned_4k_share: Option<f64>,
    /// First byte that was accessed, and the one behind the last.
    pub span: Option<(u64, u64)>,
    /// The same of the reads and of the writes.
    pub direction_spans: (Span, Span),
    /// True if the reads are one sequential stream and the writes another one.
    pub is_stream_each: bool,
    /// Numbers of tasks that only read and that only write, if they take turns and no task does
    /// both.
    pub readers_and_writers: Option<(u64, u64)>,
    /// Writes before the first read, and reads before the first write.
    pub before_first: (u64, u64),
    /// The task that made all accesses, if it was one.
    pub only_task: Option<u32>,
    /// Equal distance of the beginnings of its streams.
    pub stream_distance: Option<u64>,
    /// Accesses whose position was set by a call of its own.
    pub sought: u64,
    /// Positions that were set and not used.
    pub sought_in_vain: u64,
    /// Empty reads at the end of the file.
    pub reads_at_end: u64,
    /// True if all reads were empty, and sizes are what was asked for.
    pub is_size_by_request: bool,
    /// Number of times that stable storage was waited for.
    pub syncs: u64,
    /// The same by the way in which it waited.
    pub waits: StableWaits,
    /// Room that was allocated before it was written, and ranges that were cleared.
    pub allocations: Allocations,
    /// Accesses of several buffers at once (`readv` and its like).
    pub vectored: u64,
    /// Number of times that its content was thrown away after it had been accessed: cut to
    /// nothing, or removed and made anew.
    pub emptied: u64,
    /// Those of the waits before which nothing had been written since the one before.
    pub idle_waits: StableWaits,
    /// Writes for each of the others.
    pub writes_per_sync: Option<f64>,
    /// Number of writes to the place that was read just before.
    pub written_back: u64,
    /// Share of 4 KiB blocks touched that had been touched before.
    pub reused_share: Option<f64>,
    /// Size of a least-recently-used cache, a power of two, that would serve half of those.
    pub reuse_bytes: Option<u64>,
    /// True if only the first accesses count for both, because the trace has too many.
    pub is_reuse_cut: bool,
    /// Most accesses at once.
    pub depth: u64,
    /// Most requests of a queue of the kernel at once; 0 if it used none.
    pub queue_depth: u64,
    /// Time between accesses of one task.
    pub think: Option<Durations>,
    /// Pauses between its accesses, whoever makes them; without durations the access before is in
    /// them.
    pub pauses: FilePauses,
    /// True if the trace has times of ends of its accesses.
    pub has_durations: bool,
    /// Time of an access.
    pub service: Option<Durations>,
    /// Time of the first access on the clock of the trace.
    pub begins_ns: Option<u64>,
    /// Time from the first access to the end of the last.
    pub lasted_ns: Option<u64>,
    /// Accesses around the page cache; all requests of a block device.
    pub direct: u64,
    /// True if these are nearly all.
    pub is_direct: bool,
    /// True if it was mapped into memory: accesses through memory are not in the trace.
    pub is_mapped: bool,
    /// True if it was open before the trace began: offsets count from where it was.
    pub is_opened_before: bool,
    /// Parts of it that differ; empty if it has only one.
    pub phases: Vec<PatternPhase>,
    /// Places over time; only of the first 512 files with 16 accesses or more.
    pub picture: Option<Picture>,
    /// The pattern in a sentence.
    pub sentence: String,
}

/// Sizes that are listed.
const SIZES_LISTED: usize = 8;
/// One part of so many of all bytes: what a file must have to be listed. Programs read many small
/// files when they start.
const SMALL_SHARE: u64 = 1000;
/// Accesses of a stream from which on it can take turns with others.
const TURNS_MIN: u64 = 8;
/// Share of strided accesses from which on the stride is told.
const STRIDED_SHARE: f64 = 0.1;
/// One access in so many of those that are counted: from there on others are worth a note.
const WORTH_TELLING: u64 = 10;
/// Names of errors that a note has, at most.
const ERRORS_NAMED: usize = 8;
/// Share of direct accesses from which on a file is one of direct I/O.
const NEARLY_ALL: f64 = 0.9;
/// Exponent of 4 KiB.
const ALIGNED_4K: usize = 12;

impl PatternReport {
    /// Report of the files whose names have `only` in them: those with the most bytes, at most
    /// `files_max`; all of them without it.
    pub fn of(analysis: &PatternAnalysis, only: &str, files_max: Option<usize>) -> Self {
        let is_every = files_max.is_none() || !only.is_empty();
        let files_max = files_max.unwrap_or(usize::MAX);
        let is_wanted = |file: &usize| {
            let name = &analysis.files[*file].name;
            analysis.tallies[*file].accesses() > 0
                && (is_every || !(is_library(name) || analysis.files[*file].is_code))
                && (only.is_empty() || find(name, only.as_bytes()).is_some())
        };
        let is_accessed = |file: &usize| analysis.tallies[*file].accesses() > 0;
        let has_other_name = |file: &usize| {
            !only.is_empty() && find(&analysis.files[*file].name, only.as_bytes()).is_none()
        };
        let others = (0..analysis.files.len()).filter(is_accessed).filter(has_other_name).count();
        let mut order: Vec<usize> = (0..analysis.files.len()).filter(is_wanted).collect();
        order.sort_by_key(|file| (std::cmp::Reverse(analysis.tallies[*file].bytes()), *file));
        let total: u64 = order.iter().map(|file| analysis.tallies[*file].bytes()).sum();
        let is_small =
            |file: &&usize| analysis.tallies[**file].bytes().saturating_mul(SMALL_SHARE) < total;
        let large = order.iter().take_while(|file| !is_small(file)).count();
        // Many small files that are alike: none of them is beside the point.
        let large = if is_every || large == 0 { order.len() } else { large };
        let left_out = order.split_off(large.min(files_max));
        let pattern = |file: &usize| FilePattern::of(analysis, *file);
        Self {
            calls: analysis.calls,
            files: order.iter().map(pattern).collect(),
            files_left_out: left_out.len() as u64,
            bytes_left_out: left_out.iter().map(|file| analysis.tallies[*file].bytes()).sum(),
            files_of_other_names: others as u64,
            has_times: analysis.has_times,
            notes: notes(analysis),
        }
    }
}

/// True of what the dynamic loader reads of every program: the beginnings of its libraries.
fn is_library(name: &[u8]) -> bool {
    let endings = [&b".so"[..], b"/locale.alias", b".pyc"];
    endings.iter().any(|ending| name.ends_with(ending)) || find(name, b".so.").is_some()
}

fn notes(analysis: &PatternAnalysis) -> Vec<String> {
    let mut notes = Vec::new();
    if analysis.has_ring {
        notes.push(
            "the program used io_uring; a trace of system calls does not show those transfers, \
             a block trace does (iolab trace record)"
                .to_owned(),
        );
    }
    if analysis.hidden > 0 {
        let (what, remedy) = if analysis.is_of_points {
            ("trace points leave", "strace shows them (--with strace)")
        } else {
            ("the text leaves", "add -v to the options of strace")
        };
        notes
            .push(format!("{what} out {} of the requests of io_submit; {remedy}", analysis.hidden));
    }
    if !analysis.failed.is_empty() {
        let mut each: Vec<_> =
            analysis.failed.iter().map(|(error, count)| format!("{error} ({count})")).collect();
        if each.len() > ERRORS_NAMED {
            each.truncate(ERRORS_NAMED);
            each.push("and others".to_owned());
        }
        let total: u64 = analysis.failed.values().sum();
        let calls =
            if total == 1 { "1 read or write" } else { &format!("{total} reads or writes") };
        notes.push(format!("{calls} failed: {}", each.join(", ")));
    }
    let counted: u64 = analysis.tallies.iter().map(FileTally::accesses).sum();
    if analysis.of_standard * WORTH_TELLING > counted {
        notes.push(format!(
            "{} reads and writes of standard input, output or error are not counted: nothing in \
             the trace says that these are files; trace openat, dup2 and close, too, or add -y to \
             the options of strace",
            analysis.of_standard
        ));
    }
    notes.extend(notes_of_points(analysis));
    // Of those without a name the loader's are the most: a note of its own tells of them.
    let is_mapped = |file: &&File| file.is_mapped && !file.is_code && !file.is_unnamed;
    let mapped: Vec<_> = analysis.files.iter().filter(is_mapped).collect();
    // The largest: small ones are those of messages and characters.
    if let Some(first) = mapped.iter().rev().max_by_key(|file| file.mapped_bytes) {
        let others = match mapped.len() - 1 {
            0 => String::new(),
            1 => " and another file".to_owned(),
            count => format!(" and {count} more files"),
        };
        let name = harmless(&String::from_utf8_lossy(&first.name));
        let were = if mapped.len() == 1 { "was" } else { "were" };
        notes.push(format!(
            "{name}{others} {were} mapped into memory; accesses through memory are not in a trace \
             of system calls"
        ));
    }
    notes.extend(notes_of_order(analysis));
    notes
}

/// A sentence about times that the text does not have.
fn note_of_times(analysis: &PatternAnalysis) -> Option<String> {
    let is_text = !analysis.is_of_blocks && !analysis.is_of_points;
    let remedy = |options: &str| {
        let is_strace = analysis.format == "strace";
        if is_strace { format!("; add {options} to the options of strace") } else { String::new() }
    };
    match (analysis.has_times, analysis.has_durations) {
        _ if !is_text => None,
        (false, _) => Some(format!(
            "no times: pauses, and what was used at the same time, are not known{}",
            remedy("-ttt -T")
        )),
        (true, _) if !analysis.has_fractions => Some(format!(
            "times of whole seconds: pauses, and accesses at once, are not known{}",
            remedy("-ttt")
        )),
        (true, false) => Some(format!(
            "no durations: accesses at once are not known, and pauses contain the access before \
             them{}",
            remedy("-T")
        )),
        (true, true) => None,
    }
}

/// Sentences about the order of calls, where the text leaves it open, and about what is left out.
fn notes_of_order(analysis: &PatternAnalysis) -> Vec<String> {
    let mut notes: Vec<String> = note_of_times(analysis).into_iter().collect();
    match analysis.impossible {
        0 => {}
        1 => notes.push(
            "one read or write is not counted: it moved more than it was asked for, or than one \
             call can"
                .to_owned(),
        ),
        many => notes.push(format!(
            "{many} reads or writes are not counted: they moved more than they were asked for, \
             or than one call can"
        )),
    }
    if analysis.unfollowed > 0 {
        notes.push(format!(
            "{} processes came after too many with too many open files: what they use of their \
             parents' files is not known",
            analysis.unfollowed
        ));
    }
    if analysis.is_unordered {
        notes.push(
            "several files without times: which accesses came first is not known, and no phases \
             are told; add -ttt to the options of strace"
                .to_owned(),
        );
    }
    if analysis.guessed > 0 {
        notes.push(
            "several processes were made at the same time; which of them used which descriptor is \
             guessed; add -y to the options of strace"
                .to_owned(),
        );
    }
    notes
}

/// Sentences about what a recording of trace points does not tell.
fn notes_of_points(analysis: &PatternAnalysis) -> Vec<String> {
    let mut notes = Vec::new();
    let unnamed = analysis.files.iter().zip(&analysis.tallies);
    let is_unnamed = |file: &File| file.is_unnamed && !file.is_code;
    let unnamed = unnamed.filter(|(file, tally)| is_unnamed(file) && tally.accesses() > 0).count();
    if analysis.is_of_points && unnamed > 0 {
        let (files, they) = if unnamed == 1 { ("file", "it was") } else { ("files", "they were") };
        notes.push(format!(
            "the names of {unnamed} {files} are not known: {they} closed before the descriptors \
             could be looked up; strace names all (--with strace)"
        ));
    }
    if analysis.unplaced > 0 {
        let copies = match analysis.unplaced {
            1 => "the offset of a copy".to_owned(),
            many => format!("the offsets of {many} copies"),
        };
        notes.push(format!(
            "trace points leave out {copies} between descriptors: taken as going on where the \
             last one ended (strace shows it: --with strace)"
        ));
    }
    match analysis.cut_off {
        0 => {}
        1 => notes.push("one read or write had not ended and is not counted".to_owned()),
        many => notes.push(format!("{many} reads or writes had not ended and are not counted")),
    }
    notes
}

impl FilePattern {
    /// Its name without characters that would move a terminal's cursor.
    pub fn shown_name(&self) -> String {
        harmless(&self.name)
    }

    fn of(analysis: &PatternAnalysis, number: usize) -> Self {
        let (file, tally) = (&analysis.files[number], &analysis.tallies[number]);
        let Order { pattern, streams, counts, directions, stride } = Order::of(tally);
        let is_fine = analysis.has_fractions || !analysis.has_times;
        let all_sizes = tally.all_sizes();
        let [reads, writes] = &tally.sizes;
        // What was written through memory is not in the trace.
        let idle_waits = if file.is_mapped { StableWaits::default() } else { tally.idle_waits };
        let mut found = Self {
            name: String::from_utf8_lossy(&file.name).into_owned(),
            pattern,
            directions: directions_of(pattern, directions),
            random_shares: directions.map(|counts| counts.random_share()).into(),
            streams,
            stride: stride.map(|(stride, _)| stride),
            stride_share: stride.map(|(_, share)| share),
            reads: Moved { count: tally.reads.0, bytes: tally.reads.1 },
            writes: Moved { count: tally.writes.0, bytes: tally.writes.1 },
            classes: counts.shares(),
            sizes: sizes_of(&all_sizes, tally.accesses()),
            size_count: all_sizes.len() as u64,
            size_range: range_of(&all_sizes),
            read_sizes: DirectionSizes::of(reads),
            write_sizes: DirectionSizes::of(writes),
            alignment: alignment_of(tally),
            aligned_4k_share: aligned_share(tally),
            span: tally.span(),
            direction_spans: tally.spans.into(),
            is_stream_each: is_stream_each(directions),
            before_first: tally.before_first.map(Option::unwrap_or_default).into(),
            readers_and_writers: tally.readers_and_writers(),
            only_task: tally.only_task(),
            stream_distance: distance_of(&tally.stream_firsts, tally.streams),
            sought: tally.sought,
            sought_in_vain: tally.sought_in_vain,
            reads_at_end: tally.at_end,
            is_size_by_request: tally.is_by_request,
            syncs: tally.waits.total(),
            waits: tally.waits,
            allocations: file.allocations,
            vectored: file.vectored,
            emptied: tally.emptied,
            idle_waits,
            writes_per_sync: writes_per_sync(tally, &idle_waits),
            written_back: tally.written_back,
            reused_share: tally.reuse.repeated_share(),
            reuse_bytes: tally.reuse.median_bytes(),
            is_reuse_cut: tally.reuse.is_cut,
            depth: if is_fine { tally.depth } else { 0 },
            queue_depth: tally.queue_depth,
            think: tally.think().and_then(durations),
            pauses: if is_fine { tally.pauses() } else { FilePauses::default() },
            has_durations: tally.has_durations,
            service: tally.service().and_then(durations),
            begins_ns: tally.times_ns.map(|(first, _)| first),
            lasted_ns: tally.times_ns.map(|(first, last)| last - first),
            direct: tally.direct,
            is_direct: tally.direct as f64 >= NEARLY_ALL * tally.accesses() as f64,
            is_mapped: file.is_mapped && !file.is_code,
            is_opened_before: file.is_opened_before,
            phases: Vec::new(),
            picture: tally.density().map(Density::picture),
            sentence: String::new(),
        };
        if !analysis.is_unordered {
            found.phases = phases_of(tally, pattern, found.stride);
        }
        found.sentence = crate::sentence::of(&found, analysis.is_of_blocks);
        found
    }
}

/// Order of a file's accesses: that of its single streams, or of all of them together.
struct Order<'a> {
    pattern: AccessPattern,
    /// Streams that take turns.
    streams: u64,
    counts: &'a ClassCounts,
    /// Counts of the reads and of the writes.
    directions: &'a [ClassCounts; 2],
    /// Most frequent stride, and its share of all.
    stride: Option<(i64, f64)>,
}

impl<'a> Order<'a> {
    fn of(tally: &'a FileTally) -> Self {
        let (pattern, streams) = pattern_of(tally);
        let (own, joint) = (&tally.own, &tally.joint);
        let is_joint = own.label().is_open() && joint.counts.label() == pattern;
        let (counts, directions, stride) = if is_joint {
            (&joint.counts, &joint.direction_counts, joint.stride())
        } else {
            (own, &tally.directions, tally.stride())
        };
        let pattern = with_directions(pattern, directions);
        let strided = counts.accesses(AccessClass::Strided) as f64;
        // A few equal distances are chance, or the turns of streams.
        let is_told =
            pattern == AccessPattern::Strided || strided >= STRIDED_SHARE * counts.total() as f64;
        let stride = stride.filter(|_| is_told);
        let stride = stride.and_then(|(stride, share)| Some((i64::try_from(stride).ok()?, share)));
        Self { pattern, streams, counts, directions, stride }
    }
}

/// The pattern of a file's streams, and how many of them take turns.
fn pattern_of(tally: &FileTally) -> (AccessPattern, u64) {
    let (own, joint) = (tally.own.label(), tally.joint.counts.label());
    let within = tally.joint.streams() as u64;
    // Streams of a few accesses cannot take turns: the jumps are their beginnings.
    let is_short = tally.accesses() < TURNS_MIN * tally.streams.max(1);
    match (own, joint) {
        // Whoever made them: opened anew for each, or passed on to others.
        (_, AccessPattern::Sequential) => (AccessPattern::Sequential, 1),
        (_, AccessPattern::Same) => (AccessPattern::Same, tally.streams),
        (AccessPattern::Sequential, _) if is_short => (AccessPattern::Sequential, tally.streams),
        (_, joint) if is_short => (joint, within),
        // Each of them is sequential, together they are not.
        (AccessPattern::Sequential, _) => (AccessPattern::Interleaved, tally.streams.max(within)),
        (AccessPattern::Interleaved, _) => (AccessPattern::Interleaved, within.max(tally.streams)),
        // Of a pool of tasks each does whatever comes next: only together they have an order.
        (own, joint) if own.is_open() && !joint.is_open() => (joint, within),
        (own, _) => (own, tally.streams),
    }
}

/// Equal distance of the beginnings of so many streams, if they have one.
fn distance_of(firsts: &[u64], streams: u64) -> Option<u64> {
    let mut firsts = firsts.to_vec();
    firsts.sort_unstable();
    let distances: Vec<u64> = firsts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let first = *distances.first()?;
    let is_equal = distances.iter().all(|distance| *distance == first);
    (is_equal && first > 0 && firsts.len() as u64 == streams).then_some(first)
}

/// Share of offsets that are multiples of 4 KiB.
fn aligned_share(tally: &FileTally) -> Option<f64> {
    let placed: u64 = tally.alignments.iter().sum();
    let aligned: u64 = tally.alignments[ALIGNED_4K..].iter().sum();
    (placed > 0).then(|| aligned as f64 / placed as f64)
}

/// Writes for each wait for stable storage but the idle ones.
fn writes_per_sync(tally: &FileTally, idle: &StableWaits) -> Option<f64> {
    let (after_writes, writes) = (tally.waits.without(idle).total(), tally.writes.0);
    (after_writes > 0 && writes > 0).then(|| writes as f64 / after_writes as f64)
}

/// Largest power of two that divides all offsets; none if nothing was done behind the beginning.
fn alignment_of(tally: &FileTally) -> Option<u64> {
    let found = tally.alignments.iter().position(|count| *count > 0).filter(|_| tally.is_moved);
    found.map(|bits| 1 << bits)
}

/// Smallest and largest size.
fn range_of(sizes: &SizeCounts) -> Option<(u64, u64)> {
    Some((*sizes.keys().next()?, *sizes.keys().next_back()?))
}

fn sizes_of(sizes: &SizeCounts, accesses: u64) -> Vec<SizeShare> {
    let total = accesses.max(1) as f64;
    let row = |(bytes, count): (&u64, &u64)| SizeShare {
        bytes: *bytes,
        count: *count,
        share: *count as f64 / total,
    };
    let mut rows: Vec<SizeShare> = sizes.iter().map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.count), row.bytes));
    rows.truncate(SIZES_LISTED);
    rows
}

fn durations(times: &iolab_model::histogram::Histogram) -> Option<Durations> {
    Some(Durations {
        mean_ns: times.mean()?,
        p50_ns: times.quantile(0.5)?,
        p99_ns: times.quantile(0.99)?,
    })
}
