//! A worker that works in slices: between two of them it keeps its open file and its place.
//!
//! The pump is that of every worker; a [`Sliced`] worker only ends early, and is driven again for
//! the next slice. What it does before a slice counts (the first operation, and all that begin
//! within the washout) finds a device that is still busy with somebody else's, and is not counted.
//! An operation that is under way when the slice is over is finished and counted: whoever is slow
//! pays for it.
//!
//! A level that writes through the page cache pays for its pages, too: its slice ends with an fsync
//! inside the counted time, counts from its first operation (the slice before has left nothing to
//! wait for), and writes its file once at most, as a pass over it does.
//!
//! Left out: who has the next slice, and how long it is, which is the caller's to say.

use std::cell::Cell;
use std::path::Path;

use iolab_model::op::{Access, Advice, Handle, Op, OpClass, Token, Transfer};
use iolab_model::{Bytes, Completion, Error, Lane, Ns, Submission, Target};
use iolab_workload::spec::{Direction, FsyncPolicy, Tenant};
use iolab_workload::{Gate, GroupState, RunKind, Step, StreamWorker, Worker};

use super::events::Actor;
use super::threads::Seat;
use super::worker::drive;
use crate::recorder::{ClassHistograms, Recorder};

/// Counts of a worker in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceCount {
    /// Time at which counting began, on the clock of the lane.
    pub begin_ns: u64,
    /// Time at which its last operation ended.
    pub end_ns: u64,
    /// Operations that count.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// The longest of them.
    pub longest_ns: u64,
}

/// The gates of a single worker: it arrives, and passes when it has its first slice.
#[derive(Debug, Default)]
struct Door {
    has_arrived: Cell<bool>,
    is_open: Cell<bool>,
}

impl GroupState for Door {
    fn arrive(&self, _: Gate) {
        self.has_arrived.set(true);
    }

    fn is_open(&self, gate: Gate) -> bool {
        gate == Gate::End || self.is_open.get()
    }

    fn stop(&self) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

/// Part of a worker's life that is driven now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Until it waits for its first slice.
    Opening,
    /// Operations before a slice that ends with a flush; none counts.
    Settling { until: Ns },
    /// A slice: nothing new after the first instant, nothing counted that begins before the second.
    Slice { until: Ns, counted_from: Ns, longest_uncounted: Ns, bytes_max: u64 },
}

/// A worker that ends when its slice does.
struct Sliced<'a> {
    worker: StreamWorker<&'a Door>,
    door: &'a Door,
    part: Part,
    count: SliceCount,
    /// The end of the operation that is not counted, from which the slice counts.
    is_counting: bool,
}

impl Sliced<'_> {
    fn is_over(&self, now: Ns) -> bool {
        match self.part {
            Part::Opening => self.door.has_arrived.get(),
            Part::Settling { until } => now >= until,
            // Without one operation there would be no rate.
            Part::Slice { until, bytes_max, .. } => {
                (now >= until || self.count.bytes >= bytes_max) && self.count.ops > 0
            }
        }
    }

    /// Takes the end of an operation; answers whether it counts.
    fn ended(&mut self, submitted: Ns, completed: Ns, bytes: u64) -> bool {
        let Part::Slice { counted_from, longest_uncounted, .. } = self.part else { return false };
        let took = completed.since(submitted);
        // One that is longer than a slice is a stall: it belongs to who has asked for it.
        if !self.is_counting && took <= longest_uncounted {
            self.is_counting = completed >= counted_from;
            (self.count.begin_ns, self.count.end_ns) = (completed.0, completed.0);
            return false;
        }
        if !self.is_counting {
            self.is_counting = true;
            self.count.begin_ns = submitted.0;
        }
        self.count.end_ns = self.count.end_ns.max(completed.0);
        self.count.longest_ns = self.count.longest_ns.max(took.0);
        self.count.ops += 1;
        self.count.bytes += bytes;
        true
    }
}

impl Worker for Sliced<'_> {
    fn next(&mut self, now: Ns) -> Step {
        if self.is_over(now) {
            return Step::Finished;
        }
        match self.worker.next(now) {
            // It arrived at its gate while it was asked.
            Step::Await if self.part == Part::Opening && self.is_over(now) => Step::Finished,
            step => step,
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        let counts = self.worker.complete(completion);
        let bytes = completion.outcome.map_or(0, |moved| moved.0);
        counts && self.ended(completion.submitted, completion.completed, bytes)
    }

    fn run_kind(&mut self, now: Ns) -> Option<RunKind> {
        if self.part == Part::Opening || self.is_over(now) {
            return None;
        }
        let kind = self.worker.run_kind(now)?;
        Some(RunKind { is_counted_at_once: true, ..kind })
    }

    #[inline]
    fn next_of_run<const WRITES: bool>(&mut self, now: Ns) -> Option<Transfer> {
        if self.is_over(now) { None } else { self.worker.next_of_run::<WRITES>(now) }
    }

    fn ended_in_run(&mut self, submitted: Ns, completed: &[Ns], length: Bytes) -> bool {
        let counts = self.worker.ended_in_run(submitted, completed, length);
        // They are counted at once: there is one.
        counts && completed.iter().all(|end| self.ended(submitted, *end, length.0))
    }

    fn leave_run(&mut self, transfer: &Transfer, now: Ns) -> Option<Submission> {
        self.worker.leave_run(transfer, now)
    }
}

/// Length of a slice.
#[derive(Clone, Copy, Debug)]
pub struct SliceLength {
    /// Nothing is begun after this, counted from the end of the washout.
    pub slice: Ns,
    /// Time from the begin whose operations are not counted; neither is the first one.
    pub washout: Ns,
}

/// Next thing that a worker does.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// A slice.
    Slice(SliceLength),
    /// Hand over what the worker has recorded.
    Collect,
    /// Nothing any more.
    End,
}

/// Driver that tells what a worker does next; asking may take as long as others work.
pub trait SliceDriver {
    /// The next turn, after a slice that gave `count`, or after anything else.
    fn next(&mut self, count: Option<SliceCount>) -> Turn;
    /// Takes the times of operations since the last time.
    fn collect(&mut self, service: ClassHistograms);
}

/// Drives the worker of `seat` through its slices, until there are no more.
///
/// # Errors
///
/// Its file cannot be opened, its lane breaks, or an operation fails.
pub fn run_slices<T: Target>(
    seat: &Seat<'_>,
    target: &T,
    directory: &Path,
    driver: &mut impl SliceDriver,
) -> Result<(), Error> {
    let door = Door::default();
    let Actor { mut lane, worker, mut recorder } = seat.actor(target, directory, &door)?;
    let (slots, interval) = (seat.tenant.slots(), seat.workload.interval_ns);
    let fresh = || Recorder::new(slots, interval, None);
    let depth = seat.tenant.depth.min(target.capabilities().depth_max);
    let mut sliced = Sliced {
        worker,
        door: &door,
        part: Part::Opening,
        count: SliceCount::default(),
        is_counting: false,
    };
    drive(&mut lane, &mut sliced, &mut recorder, depth)?;
    check(&sliced)?;
    door.is_open.set(true);
    let is_buffered = seat.tenant.access == Access::Plain;
    let is_flushed = is_flushed(seat.tenant);
    let mut count = None;
    loop {
        let length = match driver.next(count.take()) {
            Turn::Slice(length) => length,
            Turn::Collect => {
                driver.collect(std::mem::replace(&mut recorder, fresh()).service);
                continue;
            }
            Turn::End => return Ok(()),
        };
        if is_buffered {
            renew(&mut lane, &seat.tenant.file)?;
        }
        let mut washout = length.washout;
        if is_flushed && washout > Ns(0) {
            sliced.part = Part::Settling { until: lane.now() + washout };
            drive(&mut lane, &mut sliced, &mut recorder, depth)?;
            check(&sliced)?;
            flush(&mut lane, &seat.tenant.file)?;
            washout = Ns(0);
        }
        let now = lane.now();
        let counted_from = now + washout;
        let until = counted_from + length.slice;
        let bytes_max = if is_flushed { seat.tenant.file_bytes.0 } else { u64::MAX };
        let longest_uncounted = length.slice;
        sliced.part = Part::Slice { until, counted_from, longest_uncounted, bytes_max };
        sliced.count = SliceCount { begin_ns: now.0, end_ns: now.0, ..SliceCount::default() };
        sliced.is_counting = is_flushed;
        drive(&mut lane, &mut sliced, &mut recorder, depth)?;
        check(&sliced)?;
        if is_flushed {
            let (began, ended) = flush(&mut lane, &seat.tenant.file)?;
            recorder.count(OpClass::Sync, began, ended, 0);
            sliced.count.end_ns = sliced.count.end_ns.max(ended.0);
        }
        count = Some(sliced.count);
    }
}

/// Tell whether each slice of a tenant ends with an fsync inside its time.
pub fn is_flushed(tenant: &Tenant) -> bool {
    tenant.access == Access::Plain
        && tenant.direction != Direction::Read
        && tenant.fsync == FsyncPolicy::Timed
}

/// Lets an open file take the read-ahead that its device has now, as one that is opened now would.
fn renew(lane: &mut impl Lane, file: &str) -> Result<(), Error> {
    let advice = Advice::Normal;
    call(lane, Op::Advise { handle: Handle(0), advice }, ("fadvise", file)).map(|_| ())
}

/// Waits until the device has all that was written; when it began and ended.
fn flush(lane: &mut impl Lane, file: &str) -> Result<(Ns, Ns), Error> {
    call(lane, Op::Fsync { handle: Handle(0) }, ("fsync", file))
}

/// Makes one call on the open file; when it began and ended.
fn call(
    lane: &mut impl Lane,
    op: Op,
    (name, file): (&'static str, &str),
) -> Result<(Ns, Ns), Error> {
    let (now, mut done) = (lane.now(), Vec::new());
    let submission = Submission { token: Token(0), intended: now, is_timed: false, op };
    lane.submit_batch(now, &[submission], &mut done);
    if done.is_empty() {
        lane.kick()?;
        lane.reap(1, Ns::MAX, &mut done)?;
    }
    match done.first().map(|completion| completion.outcome) {
        Some(Err(errno)) => Err(Error::System { call: name, subject: file.into(), errno }),
        _ => Ok((now, lane.now())),
    }
}

fn check(sliced: &Sliced<'_>) -> Result<(), Error> {
    match sliced.worker.report().first_error {
        Some(problem) => Err(Error::BadWorkload {
            problem,
            remedy: "see what the storage says, or compare whole trials".into(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
