//! All that is counted of one file.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};

use iolab_model::histogram::Histogram;
use iolab_trace::density::Density;

use super::class::{CURSORS, ClassCounts, Classified, Classifier, Span, widened};
use super::order::OrderLog;
use super::pauses::{FilePauses, PAUSE_NS, PauseLengths};
use super::phases::JointRuns;
use super::reuse::ReuseDistances;
use super::sizes::SizeCounts;
use crate::access::{FileAccess, StableWait, StableWaits};

/// Powers of two up to 1 MiB, by which offsets are divisible.
pub const ALIGNMENTS: usize = 21;
/// Different sizes that are counted exactly.
const SIZES_MAX: usize = 1 << 12;
/// Tasks of a file that are told apart.
const TASKS_MAX: usize = 64;
/// Changes between tasks from which on they take turns, and accesses of a turn at most, on average:
/// longer ones are parts of what several programs do.
const TURNS_MIN: u64 = 8;
const TURN_MAX: u64 = 64;
/// Accesses from which on a file has histograms and a picture: a trace may have 100,000 files.
const WORTH_A_PICTURE: usize = 16;

/// Cells of the picture of a file along the time.
const PICTURE_COLUMNS: usize = 64;
/// Cells along the places.
const PICTURE_ROWS: usize = 16;

/// Amounts that may still be kept of a whole trace, so that memory is bounded whatever it has.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Touches of blocks whose distances are counted: some 30 bytes each.
    pub touches: usize,
    /// Files with histograms and a picture: some 80 KiB each.
    pub pictures: usize,
    /// Runs of alike accesses or sizes, and waits: some 80 bytes each.
    pub runs: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { touches: 1 << 21, pictures: 1 << 9, runs: 1 << 20 }
    }
}

/// An access with its place along the time of a picture, and what its task did before.
#[derive(Clone, Copy, Debug)]
pub struct PlacedAccess {
    /// The access.
    pub access: FileAccess,
    /// Nanoseconds since the first access of the trace, or its number.
    pub at: u64,
    /// Time that its task did something else.
    pub think_ns: Option<u64>,
}

/// Distances of strided accesses, and how often each occurs.
#[derive(Clone, Debug, Default)]
struct Strides(BTreeMap<i128, u64>);

impl Strides {
    /// Adds one, as long as there is room.
    fn add(&mut self, stride: Option<i128>) {
        let has_room = |one: &i128| self.0.len() < STRIDES_MAX || self.0.contains_key(one);
        if let Some(stride) = stride.filter(has_room) {
            *self.0.entry(stride).or_default() += 1;
        }
    }

    fn merge(&mut self, others: Self) {
        for (stride, count) in others.0 {
            *self.0.entry(stride).or_default() += count;
        }
    }

    /// The most frequent one, and its share.
    fn most(&self) -> Option<(i128, f64)> {
        let total: u64 = self.0.values().sum();
        let (stride, count) = self.0.iter().max_by_key(|(_, count)| **count)?;
        Some((*stride, *count as f64 / total as f64))
    }
}

/// Classes of the accesses through one open file description.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    classifier: Classifier,
    counts: ClassCounts,
    /// Reads alone and writes alone, whatever lies between them.
    directions: [(Classifier, ClassCounts); 2],
    /// Strides, and how often each occurs.
    strides: Strides,
    /// Lowest place of an access.
    first: Option<u64>,
    /// Empty reads, until it is known whether there are others.
    empty: Vec<FileAccess>,
    at_end: u64,
    is_by_request: bool,
    has_result: bool,
}

/// Empty reads that are kept at most; more of them say no more.
const EMPTY_MAX: usize = 1 << 12;
const STRIDES_MAX: usize = 64;

impl Stream {
    /// Adds an access; whether it moved something.
    fn add(&mut self, access: &FileAccess) -> bool {
        if access.bytes == 0 && (access.requested == 0 || !access.is_write) {
            if access.requested == 0 {
                // It asks for nothing: a test of the descriptor.
            } else if self.has_result {
                self.at_end += 1;
            } else if self.empty.len() < EMPTY_MAX {
                self.empty.push(*access);
            }
            return false;
        }
        if !self.has_result {
            self.has_result = true;
            self.at_end += self.empty.drain(..).count() as u64;
        }
        self.classify(access);
        true
    }

    fn classify(&mut self, access: &FileAccess) {
        let Self { classifier, counts, directions, .. } = self;
        let (offset, bytes, is_write) = (access.offset, access.bytes, access.is_write);
        self.first = [self.first, offset].into_iter().flatten().min();
        classifier.add(offset, bytes, is_write, |one| counts.add(&one));
        let (classifier, counts) = &mut directions[usize::from(is_write)];
        classifier.add(offset, bytes, is_write, |one| counts.add(&one));
        self.strides.add(self.classifier.stride());
    }

    /// Ends it; gives accesses whose sizes are those that were asked for, if all results were
    /// empty.
    pub fn finish(&mut self) -> Vec<FileAccess> {
        let mut asked = std::mem::take(&mut self.empty);
        if !self.has_result && !asked.is_empty() {
            self.is_by_request = true;
            for access in &mut asked {
                access.bytes = access.requested;
                self.classify(access);
            }
        }
        let Self { classifier, counts, directions, .. } = self;
        classifier.finish(|one| counts.add(&one));
        for (classifier, counts) in directions {
            classifier.finish(|one| counts.add(&one));
        }
        asked
    }
}

/// All accesses of a file in their order, whoever made them.
#[derive(Clone, Debug, Default)]
pub struct Joint {
    classifier: Classifier,
    /// Reads alone and writes alone, whatever lies between them.
    directions: [Classifier; 2],
    /// Counts of classes.
    pub counts: ClassCounts,
    /// Runs of equal accesses.
    pub runs: JointRuns,
    /// Sizes and waits in their order.
    pub order: OrderLog,
    /// Number of streams back that interleaved accesses continue.
    depths: [u64; CURSORS],
    /// Counts of classes of the reads alone and of the writes alone.
    pub direction_counts: [ClassCounts; 2],
    /// Strides, and how often each occurs.
    strides: Strides,
}

impl Joint {
    fn add(&mut self, access: &FileAccess, runs_left: &mut usize) {
        self.order.arrive();
        let Self { classifier, directions, counts, runs, order, depths, .. } = self;
        let (offset, bytes, is_write) = (access.offset, access.bytes, access.is_write);
        let way = usize::from(is_write);
        let (own, own_counts) = (&mut runs.directions[way], &mut self.direction_counts[way]);
        directions[way].add(offset, bytes, is_write, |one| {
            own_counts.add(&one);
            own.add(&one, runs_left);
        });
        let taken = |one: Classified| taken(&one, counts, (runs, order, runs_left), depths);
        classifier.add(offset, bytes, is_write, taken);
        self.strides.add(self.classifier.stride());
    }

    fn finish(&mut self, runs_left: &mut usize) {
        let Self { classifier, directions, counts, runs, order, depths, .. } = self;
        let counted = runs.directions.iter_mut().zip(&mut self.direction_counts);
        for (classifier, (own, own_counts)) in directions.iter_mut().zip(counted) {
            classifier.finish(|one| {
                own_counts.add(&one);
                own.add(&one, runs_left);
            });
        }
        classifier.finish(|one| taken(&one, counts, (runs, order, runs_left), depths));
    }

    /// Stride that occurs most often, and its share of all.
    pub fn stride(&self) -> Option<(i128, f64)> {
        self.strides.most()
    }

    /// Number of streams that take turns.
    pub fn streams(&self) -> usize {
        let total: u64 = self.depths.iter().sum();
        let is_usual = |count: &u64| *count * 20 >= total.max(1);
        self.depths.iter().rposition(is_usual).map_or(1, |depth| depth + 1)
    }
}

fn taken(
    one: &Classified,
    counts: &mut ClassCounts,
    (runs, order, runs_left): (&mut JointRuns, &mut OrderLog, &mut usize),
    depths: &mut [u64; CURSORS],
) {
    counts.add(one);
    runs.joint.add(one, runs_left);
    order.add(one, runs_left);
    depths[one.depth] += 1;
}

/// Part that only files with enough accesses have.
#[derive(Clone)]
struct Pictured {
    density: Density,
    think: Histogram,
    service: Histogram,
}

/// Counts of one file.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
#[derive(Clone, Default)]
pub struct FileTally {
    /// All accesses in their order.
    pub joint: Joint,
    /// Classes of the streams through each open file description, added up.
    pub own: ClassCounts,
    /// The same of their reads alone and of their writes alone.
    pub directions: [ClassCounts; 2],
    /// Strides of those streams, and how often each occurs.
    strides: Strides,
    /// Most requests of a queue of the kernel at once.
    pub queue_depth: u64,
    /// Number of those streams with an access.
    pub streams: u64,
    /// Lowest places of the first of them.
    pub stream_firsts: Vec<u64>,
    /// Pauses between all accesses.
    pauses: PauseLengths,
    /// Pauses between its reads and between its writes, whatever lies between them.
    direction_pauses: [PauseLengths; 2],
    /// End of the last access so far, of all and of each direction.
    ends_ns: [Option<u64>; 3],
    /// Accesses of the other direction before the first read and the first write.
    pub before_first: [Option<u64>; 2],
    /// Accesses around the page cache.
    pub direct: u64,
    /// True if an access has a time of its end.
    pub has_durations: bool,
    /// Number of reads and their bytes.
    pub reads: (u64, u64),
    /// Number of writes and their bytes.
    pub writes: (u64, u64),
    /// Number of reads and of writes by size.
    pub sizes: [SizeCounts; 2],
    /// Accesses by the power of two that divides their offset.
    pub alignments: [u64; ALIGNMENTS],
    /// Accesses behind a call that set the position.
    pub sought: u64,
    /// Positions set in vain.
    pub sought_in_vain: u64,
    /// Numbers of times that stable storage was waited for.
    pub waits: StableWaits,
    /// Those of them before which nothing was written since the one before.
    pub idle_waits: StableWaits,
    /// Writes to the place that was read just before.
    pub written_back: u64,
    /// Reads and writes of each task, of the first ones.
    tasks: BTreeMap<u32, [u64; 2]>,
    /// Changes from one task to another.
    turns: u64,
    last: Option<FileAccess>,
    /// Number of times that its content was thrown away after it had been accessed.
    pub emptied: u64,
    /// True if an access was elsewhere than at the beginning of the file.
    pub is_moved: bool,
    /// First byte and the one behind the last of the reads and of the writes.
    pub spans: [Span; 2],
    /// Time of the first access and of the last one's end.
    pub times_ns: Option<(u64, u64)>,
    /// Largest number of accesses at once.
    pub depth: u64,
    /// Distances.
    pub reuse: ReuseDistances,
    /// True if reads with an empty result count by what they asked for.
    pub is_by_request: bool,
    /// Empty reads at the end.
    pub at_end: u64,
    /// True if it was accessed since its content was thrown away.
    has_content: bool,
    /// True if it was written since it was last on stable storage.
    pub is_dirty: bool,
    under_way: BinaryHeap<Reverse<u64>>,
    pictured: Option<Box<Pictured>>,
    first: Vec<PlacedAccess>,
}

impl FileTally {
    /// Adds an access of a stream.
    pub fn add(&mut self, stream: &mut Stream, placed: &PlacedAccess, budget: &mut Budget) {
        if stream.add(&placed.access) {
            self.count(placed, budget);
        }
    }

    /// Adds a stream that has ended, and what it held back until its end.
    pub fn finish_stream(&mut self, stream: Stream, held: &[PlacedAccess], budget: &mut Budget) {
        for placed in held {
            self.count(placed, budget);
        }
        self.is_by_request |= stream.is_by_request;
        self.at_end += stream.at_end;
        self.own.merge(&stream.counts);
        for ((_, counts), known) in stream.directions.iter().zip(&mut self.directions) {
            known.merge(counts);
        }
        self.strides.merge(stream.strides);
        self.streams += u64::from(stream.counts.total() > 0);
        if self.stream_firsts.len() < TASKS_MAX {
            self.stream_firsts.extend(stream.first);
        }
    }

    /// Forgets its content: what is accessed from now on is something else.
    pub fn empty(&mut self) {
        self.emptied += u64::from(self.has_content);
        (self.has_content, self.is_dirty) = (false, false);
        self.reuse.forget();
    }

    /// Ends the file.
    pub fn finish(&mut self, budget: &mut Budget) {
        self.joint.finish(&mut budget.runs);
    }

    fn count(&mut self, placed: &PlacedAccess, budget: &mut Budget) {
        let access = &placed.access;
        self.pause(access, budget);
        let others = if access.is_write { self.reads.0 } else { self.writes.0 };
        self.before_first[usize::from(access.is_write)].get_or_insert(others);
        self.direct += u64::from(access.is_direct);
        self.has_durations |= access.end_ns.is_some();
        self.joint.add(access, &mut budget.runs);
        self.follow(access);
        self.has_content = true;
        self.is_dirty |= access.is_write;
        let (number, bytes) = if access.is_write { &mut self.writes } else { &mut self.reads };
        *number += 1;
        *bytes += access.bytes;
        self.count_size(access.bytes, access.is_write);
        self.sought += u64::from(access.is_sought);
        if let Some(offset) = access.offset {
            self.is_moved |= offset > 0;
            let power = (offset | 1 << (ALIGNMENTS - 1)).trailing_zeros() as usize;
            self.alignments[power] += 1;
            let end = offset.saturating_add(access.bytes);
            let own = &mut self.spans[usize::from(access.is_write)];
            *own = widened(*own, Some((offset, end)));
            self.reuse.add(offset, access.bytes, &mut budget.touches);
        }
        self.count_times(access);
        self.picture(placed, budget);
    }

    /// Counts the time in which no access was under way before one.
    fn pause(&mut self, access: &FileAccess, budget: &mut Budget) {
        let Some(begin) = access.begin_ns else { return };
        let end = access.end_ns.unwrap_or(begin);
        let since = |before: Option<u64>| {
            let idle = begin.saturating_sub(before?).saturating_sub(access.aside_ns);
            Some(idle).filter(|idle| *idle >= PAUSE_NS)
        };
        let way = 1 + usize::from(access.is_write);
        if let Some(pause_ns) = since(self.ends_ns[0]) {
            self.pauses.add(pause_ns);
            self.joint.order.pause(pause_ns, &mut budget.runs);
        }
        if let Some(pause_ns) = since(self.ends_ns[way]) {
            self.direction_pauses[way - 1].add(pause_ns);
        }
        for last in [0, way] {
            self.ends_ns[last] = self.ends_ns[last].max(Some(end));
        }
    }

    /// Counts the end of an access that was added without one.
    pub fn complete(&mut self, end_ns: u64, is_write: bool) {
        self.has_durations = true;
        for last in [0, 1 + usize::from(is_write)] {
            self.ends_ns[last] = self.ends_ns[last].max(Some(end_ns));
        }
    }

    /// Its pauses.
    pub fn pauses(&self) -> FilePauses {
        FilePauses::of(&self.pauses, &self.direction_pauses)
    }

    /// Looks at an access and the one before it.
    fn follow(&mut self, access: &FileAccess) {
        if let Some(last) = self.last.replace(*access) {
            self.turns += u64::from(last.task != access.task);
            let is_back = access.is_write && !last.is_write && access.offset.is_some();
            self.written_back += u64::from(is_back && access.offset == last.offset);
        }
        let has_room = self.tasks.len() < TASKS_MAX;
        match self.tasks.entry(access.task) {
            Entry::Vacant(_) if !has_room => {}
            entry => entry.or_default()[usize::from(access.is_write)] += 1,
        }
    }

    /// Numbers of tasks that only read and of tasks that only write, if both are there, take turns
    /// and no task does both: which of them is next is a matter of the scheduler.
    pub fn readers_and_writers(&self) -> Option<(u64, u64)> {
        let is_one_way = |counts: &[u64; 2]| counts.contains(&0);
        let of = |way: usize| self.tasks.values().filter(|counts| counts[way] > 0).count() as u64;
        let take_turns = self.turns >= TURNS_MIN && self.turns * TURN_MAX >= self.accesses();
        let found = (of(0), of(1));
        let are_both = found.0 > 0 && found.1 > 0 && self.tasks.values().all(is_one_way);
        (take_turns && are_both).then_some(found)
    }

    /// The task that made all accesses, if it was one.
    pub fn only_task(&self) -> Option<u32> {
        self.tasks.keys().next().copied().filter(|_| self.tasks.len() == 1)
    }

    fn count_size(&mut self, bytes: u64, is_write: bool) {
        let sizes = &mut self.sizes[usize::from(is_write)];
        if sizes.len() < SIZES_MAX || sizes.contains_key(&bytes) {
            *sizes.entry(bytes).or_default() += 1;
        }
    }

    /// Counts a wait for stable storage.
    pub fn wait(&mut self, wait: StableWait, budget: &mut Budget) {
        self.waits.add(wait);
        if wait == StableWait::Range {
            return;
        }
        if !self.is_dirty {
            self.idle_waits.add(wait);
            return;
        }
        self.is_dirty = false;
        self.joint.order.wait(wait, &mut budget.runs);
    }

    fn count_times(&mut self, access: &FileAccess) {
        let Some(begin) = access.begin_ns else { return };
        let end = access.end_ns.unwrap_or(begin);
        let (first, last) = self.times_ns.unwrap_or((begin, end));
        self.times_ns = Some((first.min(begin), last.max(end)));
        if access.end_ns.is_some() {
            while self.under_way.peek().is_some_and(|Reverse(end)| *end <= begin) {
                self.under_way.pop();
            }
            self.under_way.push(Reverse(end));
            self.depth = self.depth.max(self.under_way.len() as u64);
        }
    }

    fn picture(&mut self, placed: &PlacedAccess, budget: &mut Budget) {
        if self.pictured.is_some() {
            self.draw(placed);
        } else if self.first.len() + 1 < WORTH_A_PICTURE {
            self.first.push(*placed);
        } else if budget.pictures > 0 {
            budget.pictures -= 1;
            let (density, think) = (Density::new(PICTURE_COLUMNS, PICTURE_ROWS), Histogram::new());
            self.pictured = Some(Box::new(Pictured { density, think, service: Histogram::new() }));
            for placed in std::mem::take(&mut self.first) {
                self.draw(&placed);
            }
            self.draw(placed);
        }
    }

    fn draw(&mut self, placed: &PlacedAccess) {
        let Some(pictured) = &mut self.pictured else { return };
        let access = &placed.access;
        if let Some(offset) = access.offset {
            pictured.density.add(placed.at, offset, access.is_write);
        }
        if let Some(think_ns) = placed.think_ns {
            pictured.think.record(think_ns);
        }
        if let Some((begin, end)) = access.begin_ns.zip(access.end_ns) {
            pictured.service.record(end.saturating_sub(begin));
        }
    }

    /// The picture, if there are enough accesses for one.
    pub fn density(&self) -> Option<&Density> {
        self.pictured.as_ref().map(|pictured| &pictured.density)
    }

    /// Times between accesses of one task.
    pub fn think(&self) -> Option<&Histogram> {
        self.pictured.as_ref().map(|pictured| &pictured.think).filter(|think| think.count() > 0)
    }

    /// Times of accesses.
    pub fn service(&self) -> Option<&Histogram> {
        self.pictured.as_ref().map(|pictured| &pictured.service).filter(|times| times.count() > 0)
    }

    /// Distance between beginnings in a stream that occurs most often, in bytes, and its share of
    /// all.
    pub fn stride(&self) -> Option<(i128, f64)> {
        self.strides.most()
    }

    /// Number of accesses by size, of both directions.
    pub fn all_sizes(&self) -> SizeCounts {
        let [mut all, writes] = self.sizes.clone();
        for (bytes, count) in writes {
            *all.entry(bytes).or_default() += count;
        }
        all
    }

    /// First byte and the one behind the last.
    pub fn span(&self) -> Span {
        let [reads, writes] = self.spans;
        widened(reads, writes)
    }

    /// Number of accesses.
    pub const fn accesses(&self) -> u64 {
        self.reads.0 + self.writes.0
    }

    /// Bytes moved.
    pub const fn bytes(&self) -> u64 {
        self.reads.1 + self.writes.1
    }
}
