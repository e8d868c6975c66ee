//! Jobs of fio: one for each part of a file's accesses.

use super::bound::LengthBound;
use super::parts::{Part, SECTOR};
use super::places::{Places, Range};
use super::{losses, shares};
use crate::processes::ACCESS_MAX;
use iolab_trace::stages::text::duration;

use crate::access::Allocations;
use crate::report::FilePattern;
use crate::sentence::exact;
use crate::stream::class::{AccessPattern, NEAR_BYTES, STRIDE_REPEATS};
use crate::stream::pauses::AccessPauses;
use crate::stream::sizes::DirectionSizes;

/// Streams that take turns and become processes, at most.
const JOBS_MAX: u64 = 64;
/// Requests at once, at most.
const DEPTH_MAX: u64 = 1024;
/// Share of accesses without an order from which on a sequential part has them, too.
const STRAY: f64 = 0.05;
/// Number of accesses without an order from which on they are more than the first one.
const STRAYS_LEAST: f64 = 1.5;
/// Relative difference of a number of writes from a whole one that is told.
const UNEVEN: f64 = 0.1;
/// Longest pause of a job: nobody waits for one of days.
const PAUSE_MAX_NS: u64 = 60_000_000_000;
/// Share of writes with `O_SYNC` from which on all have it.
const ALL_WAIT: f64 = 0.9;

/// A job of fio: its name and its options.
pub struct Job {
    pub name: String,
    pub options: Vec<(&'static str, String)>,
}

/// Jobs of a file, and what they do not keep. Without a job the only loss is the reason.
#[derive(Default)]
#[allow(clippy::struct_field_names, reason = "the type is what the field is")]
pub struct Jobs {
    pub jobs: Vec<Job>,
    pub losses: Vec<String>,
    /// True if they follow each other.
    pub is_in_parts: bool,
}

/// Place and way in which jobs are made.
#[derive(Clone, Copy)]
pub struct Making {
    /// Lengths of files.
    pub bound: LengthBound,
    /// Steps of the shares of sizes.
    pub steps: u64,
}

impl Jobs {
    /// Jobs of a file.
    pub fn of(file: &FilePattern, name: &str, making: Making) -> Self {
        let parts = Part::all(file);
        if let Some(reason) = parts.iter().find_map(|part| refusal(file, part, making)) {
            return Self { losses: vec![reason], ..Self::default() };
        }
        let mut made = Self { is_in_parts: parts.len() > 1, ..Self::default() };
        let mut names = Vec::new();
        let mut streams = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let own = part.streams();
            names.extend(names_of(name, made.is_in_parts.then_some(index + 1), &own));
            streams.extend(own);
        }
        let places = Places::of(file, &streams, making.bound);
        made.lose(places.losses(&streams));
        let has_content = streams.len() > 1 && places.need_content(&streams);
        for (part, own) in streams.iter().zip(names) {
            let mut job = made.job(file, part, (name, making, &places));
            job.name = own.name;
            if has_content && part.is_writing() {
                // Else fio makes the file anew, without the content that is read.
                job.options.push(("overwrite", "1".to_owned()));
            }
            if own.waits {
                job.options.push(("stonewall", String::new()));
            }
            made.jobs.push(job);
        }
        made
    }

    /// Adds what they do not keep.
    pub fn lose(&mut self, loss: impl IntoIterator<Item = String>) {
        for loss in loss {
            if !self.losses.contains(&loss) {
                self.losses.push(loss);
            }
        }
    }

    fn job(
        &mut self,
        file: &FilePattern,
        part: &Part,
        (name, making, places): (&str, Making, &Places),
    ) -> Job {
        let (least, most) = part.size_range();
        let (whole, loss) = making.bound.whole(file, most);
        self.lose(loss);
        let range = places.range(part, whole);
        let mut options = vec![
            // Never the file itself: what is written there is lost.
            ("filename", format!("{name}.pattern")),
            ("rw", direction(part)),
        ];
        let (sizes, losses) = shares::words(part, making.steps);
        self.lose(losses);
        // Else fio rounds to the smallest one.
        let is_uneven = sizes.0 == "bssplit"
            && part.directions().iter().flat_map(|row| &row.drawn).any(|row| row.bytes % least > 0);
        options.push(sizes);
        if is_uneven {
            options.push(("bs_unaligned", "1".to_owned()));
        }
        let steps = in_steps(file, part);
        let jobs = steps.map_or_else(|| self.job_count(file, part), |(jobs, _)| jobs);
        options.push(("io_size", (part.bytes() / jobs).max(1).to_string()));
        options.extend(range_of(part, range, (jobs, steps.map(|(_, distance)| distance))));
        if file.queue_depth > 1 {
            options.push(("ioengine", "libaio".to_owned()));
            options.push(("iodepth", file.queue_depth.min(DEPTH_MAX).to_string()));
        } else {
            options.push(("ioengine", "psync".to_owned()));
        }
        options.extend(drawn(file, part));
        self.lose(order_losses(part, range.size));
        self.lose(losses::of_orders(file, part));
        self.lose(losses::of_places(file, part, (range.size, jobs)));
        self.lose(losses::of_turns(file, part, jobs));
        self.waits(part, making.steps, &mut options);
        if file.is_direct && part.is_of_sectors() {
            options.push(("direct", "1".to_owned()));
        } else if file.is_direct {
            self.lose(["direct I/O: its accesses are no whole sectors".to_owned()]);
        }
        options.extend(allocation(file, part));
        if let (name, count @ 1..) = part.left_out() {
            self.lose([format!("{count} {name} of {} accesses", part.accesses)]);
        }
        self.pauses(file, part, jobs, &mut options);
        self.lose(losses::of_calls(file));
        Job { name: name.to_owned(), options }
    }

    fn job_count(&mut self, file: &FilePattern, part: &Part) -> u64 {
        let is_drawn = part.is_random() && part.pattern != AccessPattern::Same;
        let wanted = match part.pattern {
            AccessPattern::Interleaved => file.streams,
            // One process asks for all of them through the kernel's queue.
            _ if file.queue_depth > 1 => 1,
            _ => match part.own_tasks() {
                Some(tasks) => tasks.min(file.depth.max(1)),
                None if part.is_half => file.depth.div_ceil(2),
                None => file.depth,
            },
        };
        if wanted > JOBS_MAX {
            self.lose([format!("{wanted} accesses or streams at once: here {JOBS_MAX}")]);
        }
        if wanted > 1 && !is_drawn && part.pattern != AccessPattern::Interleaved {
            self.lose([format!(
                "{wanted} accesses at once in one order: here one after the other"
            )]);
            return 1;
        }
        wanted.clamp(1, JOBS_MAX).min(part.accesses.max(1))
    }

    /// Options for pauses: as long as they are on average, after as many accesses. Each of several
    /// processes makes a part of the accesses and pauses so much longer.
    fn pauses(
        &mut self,
        file: &FilePattern,
        part: &Part,
        jobs: u64,
        options: &mut Vec<(&'static str, String)>,
    ) {
        let time = |ns: u64| duration(ns as f64);
        let lasted = file.lasted_ns.map(|lasted| lasted / file.phases.len().max(1) as u64);
        if AccessPauses::of_one(part.before_ns).are_told(file.lasted_ns, part.accesses) {
            self.lose([format!("a pause of {} before a part of it", time(part.before_ns))]);
        }
        let pauses = part.pauses.all;
        let Some(mean_ns) = pauses.mean_ns().filter(|_| pauses.are_told(lasted, part.accesses))
        else {
            self.lose(losses::of_idle_time(file));
            return;
        };
        if mean_ns > PAUSE_MAX_NS {
            let most = time(PAUSE_MAX_NS);
            self.lose([format!("pauses of {}: here {most} each", time(mean_ns))]);
        }
        let each_ns = mean_ns.min(PAUSE_MAX_NS).saturating_mul(jobs);
        options.push(("thinktime", format!("{}us", each_ns / 1000)));
        let each = pauses.accesses_each(part.accesses);
        if each > 1 {
            options.push(("thinktime_blocks", each.to_string()));
        }
        if pauses.are_spread() {
            let [least, longest] = [pauses.least_ns, pauses.longest_ns].map(time);
            self.lose([format!("pauses of {least} to {longest}: here {} each", time(mean_ns))]);
        }
        if !file.has_durations {
            self.lose(["times of accesses, which the trace does not have: here they are in the \
                        pauses"
                .to_owned()]);
        }
    }

    /// Options for waits for stable storage.
    fn waits(&mut self, part: &Part, steps: u64, options: &mut Vec<(&'static str, String)>) {
        let (waits, writes) = (part.waits, part.write_count());
        if waits.total() == 0 {
            return;
        }
        if part.is_reading() || writes == 0 {
            let times = waits.total();
            self.lose([format!("it waits for stable storage {times} times beside its reads")]);
            return;
        }
        for (count, flag, word) in
            [(waits.sync_writes, "O_SYNC", "sync"), (waits.dsync_writes, "O_DSYNC", "dsync")]
        {
            if count as f64 >= ALL_WAIT * writes as f64 {
                options.push(("sync", word.to_owned()));
            } else if count > 0 {
                self.lose([format!("{flag} of {count} of its {writes} writes")]);
            }
        }
        let calls = waits.calls();
        if calls == 0 {
            return;
        }
        if calls == 1 && part.accesses > 1 {
            options.push(("end_fsync", "1".to_owned()));
            return;
        }
        if steps == shares::WHOLE && !part.is_writing() {
            self.lose(["the number of waits for stable storage: fio 3.33 waits once more after \
                        each read that follows such a write, iolab fio does not"
                .to_owned()]);
        }
        let is_of_data = 2 * waits.fdatasync >= calls;
        let (word, other, others) = if is_of_data {
            ("fdatasync", "fsync", calls - waits.fdatasync)
        } else {
            ("fsync", "fdatasync", waits.fdatasync)
        };
        if others as f64 > UNEVEN * calls as f64 {
            self.lose([format!("{others} of its {calls} waits are calls of {other}, here {word}")]);
        }
        let each = writes as f64 / calls as f64;
        let whole = each.round().max(1.0);
        if (each - whole).abs() > UNEVEN * each {
            self.lose([format!(
                "it waits for stable storage after {each:.1} writes on average, here after {whole}"
            )]);
        }
        options.push((word, format!("{whole:.0}")));
        if writes == whole as u64 * calls {
            // fio does not wait after the last write for this option alone.
            options.push(("end_fsync", "1".to_owned()));
        }
    }
}

/// Name of a job, and whether it waits for those before it.
struct JobName {
    name: String,
    waits: bool,
}

/// Names of the jobs of a part, which has a number if it is one of several.
fn names_of(name: &str, number: Option<usize>, streams: &[Part]) -> Vec<JobName> {
    let part = number.map_or_else(|| name.to_owned(), |number| format!("{name}-part{number}"));
    let row = |(index, stream): (usize, &Part)| JobName {
        name: match () {
            () if !stream.is_half => part.clone(),
            () if stream.is_reading() => format!("{part}-reads"),
            () => format!("{part}-writes"),
        },
        waits: index == 0 && number.is_some_and(|number| number > 1),
    };
    streams.iter().enumerate().map(row).collect()
}

/// The reason why no job does what a part shows.
fn refusal(file: &FilePattern, part: &Part, making: Making) -> Option<String> {
    let (_, most) = part.size_range();
    if most > ACCESS_MAX {
        return Some(format!("accesses of {}: one call moves at most 2 GiB", exact(most)));
    }
    let stride = part.stride.filter(|_| part.pattern == AccessPattern::Strided)?.unsigned_abs();
    let (whole, loss) = making.bound.whole(file, most);
    (loss.is_some() && stride > whole / (u64::from(STRIDE_REPEATS) + 1))
        .then(|| format!("steps of {} do not fit into a file of {}", exact(stride), exact(whole)))
}

/// The way in which room is allocated before it is written: fio does so unless it is told not to
/// (fio 3.33, HOWTO, `fallocate`).
fn allocation(file: &FilePattern, part: &Part) -> Option<(&'static str, String)> {
    let Allocations { extending, keeping, .. } = file.allocations;
    let way = match () {
        () if part.is_reading() => return None,
        () if extending + keeping == 0 => "none",
        () if keeping >= extending => "keep",
        () => "native",
    };
    Some(("fallocate", way.to_owned()))
}

/// Number of processes that go on in steps, each from a place of its own, and the distance of
/// these places.
fn in_steps(file: &FilePattern, part: &Part) -> Option<(u64, u64)> {
    let are_steps = part.pattern.class_of_steps().is_some() && part.pattern == file.pattern;
    let are_processes = (2..=JOBS_MAX).contains(&file.streams) && file.queue_depth <= 1;
    let distance = file.stream_distance.filter(|_| are_steps && are_processes && !part.is_half)?;
    Some((file.streams, distance))
}

/// Options for the range of so many processes, whose places may have a distance.
fn range_of(
    part: &Part,
    range: Range,
    (jobs, distance): (u64, Option<u64>),
) -> Vec<(&'static str, String)> {
    let most = part.size_range().1;
    let mut options = Vec::new();
    if jobs > 1 {
        options.push(("numjobs", jobs.to_string()));
    }
    if range.offset > 0 {
        options.push(("offset", range.offset.to_string()));
    }
    if let Some(distance) = distance {
        let size = range.size.saturating_sub((jobs - 1).saturating_mul(distance)).max(most);
        options.push(("offset_increment", distance.to_string()));
        options.push(("size", size.to_string()));
        return options;
    }
    let is_shared = jobs > 1 && part.pattern == AccessPattern::Interleaved;
    let size = if is_shared { (range.size / jobs / most).max(1) * most } else { range.size };
    if is_shared {
        options.push(("offset_increment", size.to_string()));
    }
    options.push(("size", size.to_string()));
    options
}

fn direction(part: &Part) -> String {
    let prefix = if part.is_random() || is_stray(part) { "rand" } else { "" };
    let base = match () {
        () if part.is_reading() => format!("{prefix}read"),
        () if part.is_writing() => format!("{prefix}write"),
        () => format!("{prefix}rw"),
    };
    // fio adds the number behind the colon to the end of each access.
    let accesses: u64 = part.directions().into_iter().map(DirectionSizes::accesses).sum();
    let size = i64::try_from(part.bytes() / accesses.max(1)).unwrap_or(i64::MAX).max(1);
    match part.pattern {
        AccessPattern::Strided => {
            let stride = part.stride.unwrap_or(size.saturating_mul(2));
            format!("{base}:{}", stride.saturating_sub(size))
        }
        AccessPattern::Backward => format!("{base}:-{}", size.saturating_mul(2)),
        _ => base,
    }
}

/// True of a sequential part some of whose accesses are anywhere.
fn is_stray(part: &Part) -> bool {
    // Where it begins, no access follows another one.
    let share = strays(part);
    part.pattern == AccessPattern::Sequential
        && share >= STRAY
        && share * part.accesses as f64 >= STRAYS_LEAST
}

/// Share of accesses without an order.
fn strays(part: &Part) -> f64 {
    let (reads, writes) = part.random_shares;
    reads * part.read_share + writes * (1.0 - part.read_share)
}

/// Options for the mixture of directions and for places.
fn drawn(file: &FilePattern, part: &Part) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let is_both = !part.is_reading() && !part.is_writing();
    if is_both {
        // None of a hundred would be none at all.
        options.push(("rwmixread", percent(part.read_share.clamp(0.01, 0.99))));
    }
    let (least, most) = part.size_range();
    let is_partly = part.pattern == AccessPattern::Mixed || is_stray(part);
    if is_partly && is_both {
        let (reads, writes) = part.random_shares;
        options.push(("percentage_random", format!("{},{}", percent(reads), percent(writes))));
    } else if is_partly {
        options.push(("percentage_random", percent(strays(part))));
    }
    if part.is_random() || is_partly {
        let align = match part.pattern {
            AccessPattern::Same => Some(most),
            _ if file.is_direct => file.alignment.map(|align| align.max(SECTOR)),
            _ => file.alignment,
        };
        if let Some(align) = align.filter(|align| *align != least) {
            options.push(("blockalign", align.to_string()));
        }
        options.push(("norandommap", "1".to_owned()));
    }
    options
}

/// Parts of an order that fio has no words for.
fn order_losses(part: &Part, whole: u64) -> Vec<String> {
    let mut losses = Vec::new();
    let (least, most) = part.size_range();
    if matches!(part.pattern, AccessPattern::Backward | AccessPattern::Strided) && least != most {
        losses
            .push("equal distances between accesses of several sizes: here gaps are equal".into());
    }
    if part.pattern == AccessPattern::Near && whole > 2 * NEAR_BYTES {
        losses.push("jumps of at most 128 KiB: here places are anywhere in the file".into());
    }
    if let Some((reads, writes)) = part.orders {
        let is_told = |order: AccessPattern| {
            matches!(order, AccessPattern::Backward | AccessPattern::Strided | AccessPattern::Same)
        };
        for (name, order) in [("reads", reads), ("writes", writes)] {
            if is_told(order) {
                losses.push(format!("the order of its {name} ({order}): fio has one for both"));
            }
        }
    }
    losses
}
