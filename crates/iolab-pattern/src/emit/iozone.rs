//! Command lines of `IOzone`, which measures one file with one size and whole patterns.

use std::fmt::Write as _;

use super::EmittedWorkload;
use super::bound::LengthBound;
use super::fio::{UsedNames, plain_name};
use super::parts::Part;
use crate::access::StableWaits;
use crate::report::{FilePattern, PatternReport};
use crate::sentence::{exact, pauses, times};
use crate::stream::class::AccessPattern;

/// Share of one size from which on it stands for all.
const ONE_SIZE: f64 = 0.9;
/// Share of accesses to blocks that had been touched from which on that is told.
const REUSED: f64 = 0.1;
/// Relative difference of two numbers of accesses that is told.
const OTHER_COUNT: f64 = 0.1;
/// Bytes of a record, at most (`IOzone` 3.489: "maximum buffer size 16384 kB").
const RECORD_MAX: u64 = 16 << 20;
/// Writes for each wait up to which every write waits.
const EVERY_WRITE: f64 = 1.5;

/// A test of `IOzone`: its number, and the column of its result.
type Test = (u32, &'static str);

/// Command line of a file, and what it does not keep.
struct Line {
    words: String,
    columns: Vec<&'static str>,
    losses: Vec<String>,
}

/// One command line for each file that `IOzone` has tests for.
pub fn command_lines(report: &PatternReport) -> EmittedWorkload {
    let mut made = EmittedWorkload {
        text: String::from("# Run each line as it stands, or with `iolab` in front of it.\n"),
        ..EmittedWorkload::default()
    };
    let (mut names, bound) = (UsedNames::default(), LengthBound::of(report));
    let mut ends = None;
    for file in &report.files {
        match line(file, bound) {
            Err(reason) => {
                let sentence = super::bounded(&file.sentence);
                let _ = writeln!(made.text, "\n# {sentence}\n# left out: {reason}");
                made.losses
                    .push(format!("{}: left out, use --emit fio: {reason}", file.shown_name()));
            }
            Ok(Line { words, columns, mut losses }) => {
                if ends.is_some() && file.begins_ns < ends {
                    losses.push("it was used beside the files above: lines run one by one".into());
                }
                made.begin_file("#", file, &losses);
                let _ = writeln!(made.text, "# its columns: {}", columns.join(", "));
                let name = names.unused(&plain_name(file));
                let _ = writeln!(made.text, "{words} -f {name}.pattern");
                made.files += 1;
                let end = file.begins_ns.zip(file.lasted_ns).map(|(begin, lasted)| begin + lasted);
                ends = ends.max(end);
            }
        }
    }
    made
}

fn line(file: &FilePattern, bound: LengthBound) -> Result<Line, String> {
    let parts = Part::all(file);
    let size = size_of(file, &parts)?;
    let mut tests = vec![(0, "write")];
    let mut columns = Vec::new();
    for part in &parts {
        let (number, column) = test_of(part, size)?;
        if tests.iter().all(|(known, _)| *known != number) {
            tests.push((number, column));
        }
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let (whole, loss) = bound.whole(file, size);
    let mut losses: Vec<String> = loss.into_iter().collect();
    let mut words = format!("iozone -s {}k -r {}k", whole / 1024, size / 1024);
    for (number, _) in &tests {
        let _ = write!(words, " -i {number}");
    }
    let strided = parts.iter().find(|part| part.pattern == AccessPattern::Strided);
    if let Some(stride) = strided.and_then(|part| part.stride) {
        let records = stride.unsigned_abs() / size;
        if records.saturating_mul(size).saturating_mul(2) > whole {
            return Err(format!(
                "steps of {} in a file of {}",
                exact(records * size),
                exact(whole)
            ));
        }
        let _ = write!(words, " -j {records}");
    }
    if file.is_direct {
        words.push_str(" -I");
    }
    losses.extend(sizes_lost(file, size));
    losses.extend(count_lost(file, &parts, whole / size));
    if let Some(align) = file.alignment.filter(|align| *align < size) {
        let [step, record] = [align, size].map(exact);
        losses.push(format!("places at multiples of {step}: records begin at those of {record}"));
    }
    if parts.iter().any(|part| part.span != file.span) {
        losses.push("the places of its parts: each test goes through the whole file".to_owned());
    }
    losses.extend(others_lost(file));
    let (waiting, loss) = waits(file);
    words.push_str(waiting);
    losses.extend(loss);
    Ok(Line { words, columns, losses })
}

/// The one size of all accesses.
fn size_of(file: &FilePattern, parts: &[Part]) -> Result<u64, String> {
    let most = file.sizes.first().map_or(4096, |size| size.bytes);
    for sizes in parts.iter().flat_map(Part::directions) {
        let share = sizes.drawn.first().filter(|first| first.bytes == most);
        if share.is_none_or(|first| first.share < ONE_SIZE) {
            return Err("records of IOzone have one size, these accesses have several".to_owned());
        }
    }
    if most == 0 || !most.is_multiple_of(1024) {
        return Err(format!(
            "records of IOzone are whole KiB, these accesses have {}",
            exact(most)
        ));
    }
    if most > RECORD_MAX {
        return Err(format!(
            "records of IOzone have at most 16 MiB, these accesses {}",
            exact(most)
        ));
    }
    Ok(most)
}

/// The test that does what a part shows.
fn test_of(part: &Part, size: u64) -> Result<Test, String> {
    let (reads, writes) = (part.is_reading(), part.is_writing());
    if !reads && !writes {
        return Err("a test of IOzone reads or writes, here both take turns".to_owned());
    }
    let stride = part.stride.unwrap_or(0);
    Ok(match part.pattern {
        AccessPattern::Sequential if writes => (0, "write"),
        AccessPattern::Sequential => (1, "read"),
        AccessPattern::Random if writes => (2, "random write"),
        AccessPattern::Random => (2, "random read"),
        AccessPattern::Backward if reads => (3, "bkwd read"),
        AccessPattern::Same if writes => (4, "record rewrite"),
        // A stride is counted in records.
        AccessPattern::Strided if reads && stride > 0 && stride % size as i64 == 0 => {
            (5, "stride read")
        }
        pattern => {
            let what = if reads { "reads" } else { "writes" };
            return Err(format!("IOzone has no test of {pattern} {what}"));
        }
    })
}

fn sizes_lost(file: &FilePattern, size: u64) -> Option<String> {
    let first = file.sizes.first().filter(|first| first.share < 1.0)?;
    Some(format!(
        "{:.1} % of its accesses, which are not of {}",
        (1.0 - first.share) * 100.0,
        exact(size)
    ))
}

fn count_lost(file: &FilePattern, parts: &[Part], records: u64) -> Option<String> {
    let accesses = parts.iter().map(|part| part.accesses).max().unwrap_or(0);
    let is_other = accesses.abs_diff(records) as f64 > OTHER_COUNT * records as f64;
    // The test rewrites one record as often as it likes.
    (is_other && file.pattern != AccessPattern::Same).then(|| {
        format!("the number of accesses, {accesses}: a test makes one for each record, {records}")
    })
}

fn others_lost(file: &FilePattern) -> Vec<String> {
    let mut losses = Vec::new();
    let is_reused = file.reused_share.is_some_and(|share| share >= REUSED);
    if is_reused && file.pattern == AccessPattern::Sequential {
        losses.push("it goes through the file more than once: a test does so once".to_owned());
    }
    if let count @ 1.. = file.allocations.of_room() {
        losses.push(format!("room for it, allocated {} (fallocate)", times(count)));
    }
    losses.extend(super::losses::of_cleared(file));
    let depth = file.depth.max(file.queue_depth);
    if depth > 1 {
        losses.push(format!("{depth} accesses at once: here one after the other"));
    }
    losses.extend(pauses(file));
    if file.emptied > 0 {
        let times = times(file.emptied);
        losses.push(format!("its content was thrown away {times}: here it stays"));
    }
    losses
}

/// Options for waits for stable storage, and what they do not keep.
fn waits(file: &FilePattern) -> (&'static str, Option<String>) {
    let StableWaits { sync_writes, dsync_writes, .. } = file.waits;
    let calls = file.waits.calls();
    let writes = file.writes.count;
    if file.waits.total() == 0 {
        return ("", None);
    }
    if writes == 0 {
        return ("", Some(format!("it waits for stable storage {calls} times beside its reads")));
    }
    let is_every = |count: u64| writes as f64 <= EVERY_WRITE * count as f64;
    match () {
        () if is_every(sync_writes) => (" -o", None),
        () if is_every(dsync_writes) => (" -+D", None),
        () if is_every(calls) => {
            (" -o", Some("calls of fsync or fdatasync after writes: here O_SYNC".to_owned()))
        }
        () if calls == 1 => (" -e", None),
        () => {
            let each = writes as f64 / file.waits.total() as f64;
            let loss = format!(
                "it waits for stable storage after {each:.0} writes on average: here at the end"
            );
            (" -e", Some(loss))
        }
    }
}
