//! A workload that does what a trace shows, for other programs to run.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::report::{FilePattern, PatternPhase, PatternReport};
use crate::sentence::exact;
use crate::stream::class::{AccessClass, AccessPattern};

iolab_model::registry! {
    /// Form of an emitted workload.
    pub enum PatternForm as "form of a workload" {
        /// A study of iolab.
        Study = "study",
        /// A job file of fio.
        Fio = "fio",
        /// Command lines of `IOzone`.
        Iozone = "iozone",
    }
}

/// Share of one direction from which on the other is left out.
const ONE_DIRECTION: f64 = 0.99;
/// Streams that take turns and become processes, at most.
const JOBS_MAX: u64 = 64;
/// Sizes that are told apart, at most.
const SIZES_MAX: usize = 4;
/// Pauses shorter than this are those of strace itself.
const PAUSE_NS: u64 = 1_000_000;

/// A job of fio: its name and its options.
struct Job {
    name: String,
    options: Vec<(&'static str, String)>,
}

/// Text of a workload; every line that is left out says why.
pub fn emit(report: &PatternReport, form: PatternForm) -> String {
    match form {
        PatternForm::Fio => job_file(report),
        PatternForm::Study => study(report),
        PatternForm::Iozone => iozone(report),
    }
}

fn job_file(report: &PatternReport) -> String {
    let mut out = String::from("; Run it with: iolab fio FILE, or fio FILE\n");
    for (file, jobs) in all_jobs(report) {
        let _ = writeln!(out, "\n; {}", file.sentence);
        for job in jobs {
            let _ = writeln!(out, "[{}]", job.name);
            for (name, value) in job.options {
                let equals = if value.is_empty() { "" } else { "=" };
                let _ = writeln!(out, "{name}{equals}{value}");
            }
        }
    }
    out
}

/// Files in the order in which the program came to them, with their jobs. A file that it came to
/// when it was done with those before waits for these.
fn all_jobs(report: &PatternReport) -> Vec<(&FilePattern, Vec<Job>)> {
    let mut files: Vec<&FilePattern> = report.files.iter().collect();
    files.sort_by_key(|file| file.begins_ns);
    let (mut names, mut end) = (HashSet::from(["global".to_owned()]), None);
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let mut jobs = jobs(file, &unused(&plain_name(file), &mut names));
        let begins = file.begins_ns;
        if let (Some(first), true) = (jobs.first_mut(), end.is_some() && begins >= end) {
            first.options.push(("stonewall", String::new()));
        }
        let ends = begins.zip(file.lasted_ns).map(|(begin, lasted)| begin + lasted);
        end = end.max(ends);
        found.push((file, jobs));
    }
    found
}

/// A name that no other file has.
fn unused(name: &str, names: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|one| !names.contains(one));
    let free = free.unwrap_or_default();
    names.insert(free.clone());
    free
}

fn study(report: &PatternReport) -> String {
    let mut out = String::from(
        "# Run it with: iolab run FILE\n\
         name = \"pattern\"\n\
         testbed = \"loop:SIZE\"\n\
         \n\
         [factors]\n\
         scheduler = [\"none\", \"mq-deadline\", \"bfq\"]\n\
         \n\
         [settings]\n\
         fs = \"ext4\"\n",
    )
    .replace("SIZE", &space(report));
    for (file, jobs) in all_jobs(report) {
        let _ =
            writeln!(out, "\n# {}\n[[workloads]]\ndialect = \"fio\"\ncommand = [", file.sentence);
        for job in jobs {
            let option = |(name, value): (&str, String)| match value.as_str() {
                "" => format!("\"--{name}\""),
                value => format!("\"--{name}={value}\""),
            };
            let words: Vec<String> = job.options.into_iter().map(option).collect();
            let _ = writeln!(out, "  \"--name={}\", {},", job.name, words.join(", "));
        }
        out.push_str("]\n");
    }
    out
}

/// Size of a device on which all files have room twice, with a file system.
fn space(report: &PatternReport) -> String {
    let lengths = report.files.iter().map(length);
    let bytes = lengths.fold(0_u64, u64::saturating_add).saturating_mul(2);
    format!("{}g", bytes.div_ceil(1 << 30).max(1))
}

/// Bytes of the part of a file that was accessed; of appended ones all that was written.
fn length(file: &FilePattern) -> u64 {
    let spanned = file.span.map_or(0, |(first, end)| end - first);
    let is_once = file.emptied == 0 && file.reused_share.is_none_or(|share| share < REUSED);
    let moved = file.reads.bytes + file.writes.bytes;
    if file.pattern == AccessPattern::Sequential && is_once { spanned.max(moved) } else { spanned }
}

/// Share of repeated touches from which on a file is gone through more than once.
const REUSED: f64 = 0.1;

/// Sizes of the accesses of a part.
enum Sizes {
    /// One size.
    One(u64),
    /// Sizes with their shares in per cent.
    Several(Vec<(u64, u64)>),
    /// Anything from one size to another.
    Range(u64, u64),
}

/// A part of a file's accesses that one job does.
struct Part {
    pattern: AccessPattern,
    read_share: f64,
    accesses: u64,
    bytes: u64,
    sizes: Sizes,
}

fn parts(file: &FilePattern) -> Vec<Part> {
    if !file.phases.is_empty() {
        return file.phases.iter().map(|phase| part_of_phase(file, phase)).collect();
    }
    let total = file.reads.count + file.writes.count;
    vec![Part {
        pattern: file.pattern,
        read_share: file.reads.count as f64 / total.max(1) as f64,
        accesses: total,
        bytes: file.reads.bytes + file.writes.bytes,
        sizes: sizes(file),
    }]
}

fn part_of_phase(file: &FilePattern, phase: &PatternPhase) -> Part {
    Part {
        pattern: phase.pattern,
        read_share: phase.read_share,
        accesses: phase.accesses,
        bytes: phase.mean_bytes * phase.accesses,
        sizes: phase.size.map_or_else(|| sizes(file), Sizes::One),
    }
}

fn sizes(file: &FilePattern) -> Sizes {
    let (least, most) = file.size_range.unwrap_or((4096, 4096));
    if least == most {
        return Sizes::One(least);
    }
    let listed = &file.sizes[..file.sizes.len().min(SIZES_MAX)];
    let share: f64 = listed.iter().map(|size| size.share).sum();
    if share < LISTED_SHARE {
        return Sizes::Range(least, most);
    }
    let percent = |share: f64| (share * 100.0).round().max(1.0) as u64;
    let mut sizes: Vec<(u64, u64)> =
        listed.iter().map(|size| (size.bytes, percent(size.share))).collect();
    // What the sizes that are left out have is added to the most frequent one.
    let others: u64 = sizes.iter().skip(1).map(|(_, share)| share).sum();
    if let Some(first) = sizes.first_mut() {
        first.1 = 100_u64.saturating_sub(others).max(1);
    }
    Sizes::Several(sizes)
}

/// Share of the listed sizes from which on they stand for all.
const LISTED_SHARE: f64 = 0.9;

/// The name of a file without its folders and without what a section's name cannot have.
fn plain_name(file: &FilePattern) -> String {
    let last = file.name.rsplit('/').find(|part| !part.is_empty()).unwrap_or("file");
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    last.chars().map(|one| if is_plain(one) { one } else { '-' }).collect()
}

fn jobs(file: &FilePattern, name: &str) -> Vec<Job> {
    let parts = parts(file);
    let is_several = parts.len() > 1;
    let job = |(index, part): (usize, &Part)| {
        let mut job = job(file, part, name);
        if is_several {
            job.name = format!("{name}-part{}", index + 1);
            if index > 0 {
                job.options.push(("stonewall", String::new()));
            }
        }
        job
    };
    parts.iter().enumerate().map(job).collect()
}

fn job(file: &FilePattern, part: &Part, name: &str) -> Job {
    let (size, words) = match &part.sizes {
        Sizes::One(size) => (*size, vec![("bs", size.to_string())]),
        Sizes::Several(sizes) => {
            let split: Vec<String> =
                sizes.iter().map(|(bytes, share)| format!("{bytes}/{share}")).collect();
            (sizes.first().map_or(4096, |size| size.0), vec![("bssplit", split.join(":"))])
        }
        Sizes::Range(least, most) => (*most, vec![("bsrange", format!("{least}-{most}"))]),
    };
    let is_odd = !matches!(part.sizes, Sizes::One(_));
    let size = size.max(1);
    // The file is as long as the part that was accessed, in whole accesses.
    let whole = length(file).max(size).next_multiple_of(size);
    let mut options = vec![
        // Never the file itself: what is written there is lost.
        ("filename", format!("{name}.pattern")),
        ("rw", direction(file, part, size)),
    ];
    options.extend(words);
    if is_odd && !file.is_direct {
        options.push(("bs_unaligned", "1".to_owned()));
    }
    let jobs = job_count(file, part);
    options.push(("io_size", (part.bytes / jobs).max(1).to_string()));
    if jobs > 1 {
        options.push(("numjobs", jobs.to_string()));
    }
    if jobs > 1 && part.pattern == AccessPattern::Interleaved {
        let share = (whole / jobs / size).max(1) * size;
        options.push(("offset_increment", share.to_string()));
        options.push(("size", share.to_string()));
    } else {
        options.push(("size", whole.to_string()));
    }
    if file.queue_depth > 1 {
        options.push(("ioengine", "libaio".to_owned()));
        options.push(("iodepth", file.queue_depth.min(DEPTH_MAX).to_string()));
    } else {
        options.push(("ioengine", "psync".to_owned()));
    }
    options.extend(behaviour(file, part));
    Job { name: name.to_owned(), options }
}

/// Requests at once, at most.
const DEPTH_MAX: u64 = 1024;

fn job_count(file: &FilePattern, part: &Part) -> u64 {
    let streams = match part.pattern {
        AccessPattern::Interleaved => file.streams,
        // One process asks for all of them through the kernel's queue.
        _ if file.queue_depth > 1 => 1,
        _ => file.depth,
    };
    streams.clamp(1, JOBS_MAX).min(part.accesses.max(1))
}

fn direction(file: &FilePattern, part: &Part, size: u64) -> String {
    let is_random =
        matches!(part.pattern, AccessPattern::Random | AccessPattern::Near | AccessPattern::Mixed);
    let prefix = if is_random { "rand" } else { "" };
    let base = match part.read_share {
        share if share >= ONE_DIRECTION => format!("{prefix}read"),
        share if share <= 1.0 - ONE_DIRECTION => format!("{prefix}write"),
        _ => format!("{prefix}rw"),
    };
    // fio adds the number behind the colon to the end of each access.
    let size = size as i64;
    match part.pattern {
        AccessPattern::Strided => {
            let stride = file.stride.unwrap_or(size * 2);
            format!("{base}:{}", stride.saturating_sub(size))
        }
        AccessPattern::Backward => format!("{base}:-{}", size.saturating_mul(2)),
        _ => base,
    }
}

fn behaviour(file: &FilePattern, part: &Part) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    let is_both = part.read_share < ONE_DIRECTION && part.read_share > 1.0 - ONE_DIRECTION;
    if is_both {
        options.push(("rwmixread", format!("{:.0}", part.read_share * 100.0)));
    }
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    if part.pattern == AccessPattern::Mixed && is_both {
        let (reads, writes) = file.random_shares;
        options.push(("percentage_random", format!("{},{}", percent(reads), percent(writes))));
    } else if part.pattern == AccessPattern::Mixed {
        let random: f64 = file
            .classes
            .iter()
            .filter(|row| matches!(row.class, AccessClass::Random | AccessClass::Near))
            .map(|row| row.share)
            .sum();
        options.push(("percentage_random", percent(random)));
    }
    let is_random =
        matches!(part.pattern, AccessPattern::Random | AccessPattern::Near | AccessPattern::Mixed);
    if is_random {
        options.push(("norandommap", "1".to_owned()));
    }
    if file.is_direct {
        options.push(("direct", "1".to_owned()));
    }
    if let Some(each) = file.writes_per_sync.filter(|_| part.read_share < ONE_DIRECTION) {
        options.push(match file.syncs {
            1 if part.accesses > 1 => ("end_fsync", "1".to_owned()),
            _ => ("fdatasync", format!("{:.0}", each.max(1.0))),
        });
    }
    if let Some(think) = file.think.filter(|think| think.p50_ns >= PAUSE_NS) {
        options.push(("thinktime", format!("{}us", think.p50_ns / 1000)));
    }
    options
}

/// One command line for each file: `IOzone` measures one file with one size and whole patterns.
fn iozone(report: &PatternReport) -> String {
    let mut out = String::from("# Run each line as it stands, or with `iolab` in front of it.\n");
    let mut names = HashSet::new();
    for file in &report.files {
        let _ = writeln!(out, "\n# {}", file.sentence);
        let size = file.sizes.first().map_or(4096, |size| size.bytes);
        if size < 1024 || size % 1024 != 0 {
            let _ = writeln!(
                out,
                "# left out: IOzone takes records of whole KiB, and these have {}",
                exact(size)
            );
            continue;
        }
        let Some(tests) = tests(file) else {
            let _ = writeln!(out, "# left out: IOzone has no test of this; use --emit fio");
            continue;
        };
        let whole = length(file).max(size).next_multiple_of(size);
        let mut words = format!("iozone -s {}k -r {}k -i 0{tests}", whole / 1024, size / 1024);
        if let Some(stride) = file.stride.filter(|_| file.pattern == AccessPattern::Strided) {
            let _ = write!(words, " -j {}", (stride.unsigned_abs() / size).max(1));
        }
        if file.is_direct {
            words.push_str(" -I");
        }
        if file.writes_per_sync.is_some_and(|each| each < 1.5) {
            words.push_str(" -o");
        } else if file.syncs > 0 {
            words.push_str(" -e");
        }
        let _ = writeln!(out, "{words} -f {}.pattern", unused(&plain_name(file), &mut names));
    }
    out
}

/// Tests behind the first one, which makes the file; None if no test does what the file shows.
fn tests(file: &FilePattern) -> Option<&'static str> {
    match file.pattern {
        AccessPattern::Sequential if file.reads.count == 0 => Some(""),
        AccessPattern::Sequential | AccessPattern::Interleaved => Some(" -i 1"),
        AccessPattern::Random | AccessPattern::Near => Some(" -i 2"),
        // These tests only read.
        AccessPattern::Backward if file.writes.count == 0 => Some(" -i 3"),
        AccessPattern::Strided if file.writes.count == 0 => Some(" -i 5"),
        _ => None,
    }
}
