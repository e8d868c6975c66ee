//! Write-back throttling: how many buffered writes and discards may be under way beside reads.
//!
//! A write that nobody waits for, and every discard, must pass a gate before it gets a request
//! slot. The gate lets a number of requests pass and keeps the other bios in line. The number
//! follows the reads: after each window of 100 ms it is halved if even the fastest read took too
//! long, and raised if it did not or if nobody read.
//!
//! Left out: what the page cache and memory reclaim would tell (a writer that was stopped for dirty
//! memory in the last second, and kswapd, get the full depth in the kernel); empty flushes and the
//! data of flush sequences, which have no slots here either.
//!
//! Source: Linux 6.18 block/blk-wbt.c, block/blk-stat.c, block/blk-rq-qos.c (behaviour).

mod depth;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use iolab_model::Ns;

use super::waiters::Waiter;
use crate::api::bio::{Bio, Flags, Operation, ProcessId};
use crate::api::request::{Request, RequestId};
use crate::api::scheduler::Hz;
use depth::ScaledDepth;

/// Length of a window at rest (Linux 6.18 block/blk-wbt.c: `RWB_WINDOW_NSEC`).
const WINDOW: Ns = Ns::from_ms(100);
/// Writes without which a window says nothing about reads beside writes
/// (`RWB_MIN_WRITE_SAMPLES`).
const WRITES_MIN: u64 = 3;
/// Windows in a row without a verdict after which the depth takes a step towards rest
/// (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_MOST: u32 = 5;
/// Target for devices that do not rotate, and for those that do (`wbt_default_latency_nsec`).
const DEFAULT_TARGETS: [Ns; 2] = [Ns::from_ms(2), Ns::from_ms(75)];

/// The target that a queue has unless it is told another.
pub const fn default_target(is_rotational: bool) -> Ns {
    DEFAULT_TARGETS[is_rotational as usize]
}

/// Facts about its queue that the gate needs.
#[derive(Clone, Copy, Debug)]
pub struct ThrottleContext {
    /// Reads should not take longer than this from issue to completion.
    pub target: Ns,
    /// The queue's depth: the device's where it is a SCSI one, else the request slots.
    pub depth: u32,
    /// The device may hold writes in a volatile cache.
    pub has_write_cache: bool,
    /// Clock ticks.
    pub hz: Hz,
}

/// Class that the gate gives a bio or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Limited(usize),
    Free,
}

const WRITES: usize = 0;
const DISCARDS: usize = 1;

/// Those of one kind: under way, and waiting in order of arrival.
#[derive(Debug, Default)]
struct Line {
    under_way: u32,
    waiting: VecDeque<Waiter>,
    is_woken: bool,
}

/// Completions in a window.
#[derive(Clone, Copy, Debug)]
struct Seen {
    reads: u64,
    writes: u64,
    fastest_read: Ns,
}

const NOTHING_SEEN: Seen = Seen { reads: 0, writes: 0, fastest_read: Ns::MAX };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    TooSlow,
    OnlyWrites,
    Unknown,
}

/// The gate of one queue.
#[derive(Debug)]
pub struct Throttle {
    context: ThrottleContext,
    depth: ScaledDepth,
    normal: u32,
    background: u32,
    lines: [Line; 2],
    /// Bios in both lines, so that the usual case, none, is seen at a glance.
    sleepers: usize,
    /// Some line is woken.
    has_woken: bool,
    window: Ns,
    window_end: Ns,
    seen: Seen,
    unknown_windows: u32,
    /// A read at the device, and when it got there.
    watched_read: Option<(RequestId, Ns)>,
    last_read_submitted: Option<Ns>,
    last_read_done: Option<Ns>,
}

impl Throttle {
    /// A gate at rest; its last read is long ago.
    pub fn new(context: ThrottleContext) -> Self {
        let mut throttle = Self {
            context,
            depth: ScaledDepth::new(context.depth),
            normal: 0,
            background: 0,
            lines: Default::default(),
            sleepers: 0,
            has_woken: false,
            window: WINDOW,
            window_end: Ns::MAX,
            seen: NOTHING_SEEN,
            unknown_windows: 0,
            watched_read: None,
            last_read_submitted: None,
            last_read_done: None,
        };
        throttle.set_limits();
        throttle
    }

    /// Tell whether a bio may go on to get a slot; if not, it must [wait](Self::wait).
    #[inline]
    pub fn admits(&mut self, now: Ns, bio: &Bio) -> bool {
        match kind(bio.operation, bio.flags) {
            Kind::Read => self.last_read_submitted = Some(now),
            Kind::Free => {}
            Kind::Limited(line) => {
                return self.lines[line].waiting.is_empty() && self.enters(now, line, bio);
            }
        }
        true
    }

    fn enters(&mut self, now: Ns, line: usize, bio: &Bio) -> bool {
        if self.lines[line].under_way >= self.limit(now, bio) {
            return false;
        }
        self.lines[line].under_way += 1;
        if self.window_end == Ns::MAX {
            self.begin_window(now);
        }
        true
    }

    /// Puts a bio at the end of its line.
    pub fn wait(&mut self, waiter: Waiter) {
        match kind(waiter.bio.operation, waiter.bio.flags) {
            Kind::Limited(line) => {
                self.lines[line].waiting.push_back(waiter);
                self.sleepers += 1;
            }
            Kind::Read | Kind::Free => unreachable!("only what is limited waits"),
        }
    }

    /// Tell whether a process sleeps in front of the gate.
    #[inline]
    pub fn is_waiting(&self, process: ProcessId) -> bool {
        let is_its = |waiter: &Waiter| waiter.bio.submitter.process == process;
        self.sleepers > 0 && self.lines.iter().any(|line| line.waiting.iter().any(is_its))
    }

    /// Number that it may have under way.
    fn limit(&self, now: Ns, bio: &Bio) -> u32 {
        let is_hasty = bio.flags.intersects(Flags::SYNC.with(Flags::META).with(Flags::PRIORITY));
        if bio.operation == Operation::Discard {
            self.background
        } else if is_hasty {
            self.depth.most()
        } else if bio.flags.contains(Flags::BACKGROUND) || self.is_beside_reads(now) {
            self.background
        } else {
            self.normal
        }
    }

    /// Tell whether somebody read in the last tenth of a second.
    fn is_beside_reads(&self, now: Ns) -> bool {
        let hz = self.context.hz;
        let is_recent = |at: Ns| hz.ticks(now) < hz.ticks(at) + u64::from(hz.0) / 10;
        self.last_read_submitted.is_some_and(is_recent)
            || self.last_read_done.is_some_and(is_recent)
    }

    /// The device got a request.
    #[inline]
    pub fn issued(&mut self, id: RequestId, request: &Request) {
        if request.operation == Operation::Read && self.watched_read.is_none() {
            self.watched_read = Some((id, request.issued));
        }
    }

    /// The device finished a request.
    #[inline]
    pub fn completed(&mut self, now: Ns, id: RequestId, request: &Request) {
        let is_timed = self.window_end != Ns::MAX;
        if request.operation == Operation::Read {
            if self.watched_read.is_some_and(|(watched, _)| watched == id) {
                self.watched_read = None;
            }
            self.last_read_done = Some(now);
            if is_timed {
                self.seen.reads += 1;
                self.seen.fastest_read = self.seen.fastest_read.min(now.since(request.issued));
            }
            return;
        }
        if is_timed && request.operation != Operation::Flush {
            self.seen.writes += 1;
        }
    }

    /// A request that came with a slot is no more: completed, or absorbed by another.
    #[inline]
    pub fn left(&mut self, request: &Request) {
        let Kind::Limited(index) = kind(request.operation, request.flags) else { return };
        let limit = if index == DISCARDS {
            self.background
        } else if self.context.has_write_cache {
            // The cache is given time to empty.
            0
        } else {
            self.normal
        };
        let line = &mut self.lines[index];
        line.under_way -= 1;
        let is_enough = line.under_way < limit && limit - line.under_way >= self.background / 2;
        if line.under_way == 0 || is_enough {
            line.is_woken = !line.waiting.is_empty();
            self.has_woken |= line.is_woken;
        }
    }

    /// Tell whether somebody in line was woken.
    pub const fn has_woken(&self) -> bool {
        self.has_woken
    }

    /// The next of the woken bios that may go on. The first that may not ends the wake-up.
    pub fn next_woken(&mut self, now: Ns) -> Option<Waiter> {
        if !self.has_woken {
            return None;
        }
        for index in [WRITES, DISCARDS] {
            if !self.lines[index].is_woken {
                continue;
            }
            if let Some(&waiter) = self.lines[index].waiting.front()
                && self.enters(now, index, &waiter.bio)
            {
                self.lines[index].waiting.pop_front();
                self.sleepers -= 1;
                return Some(waiter);
            }
            self.lines[index].is_woken = false;
        }
        self.has_woken = false;
        None
    }

    /// End of the window; `Ns::MAX` while nothing is watched.
    pub const fn next_timer(&self) -> Ns {
        self.window_end
    }

    /// The window ended: judges it, and begins the next one if there is something to watch.
    pub fn timer(&mut self, now: Ns) {
        let is_busy = self.under_way() > 0;
        match self.verdict(now) {
            Verdict::TooSlow => self.shrink(),
            Verdict::Good | Verdict::OnlyWrites => self.grow(),
            Verdict::Unknown => {
                self.unknown_windows += 1;
                if self.unknown_windows >= UNKNOWN_MOST {
                    self.return_to_rest();
                }
            }
        }
        self.seen = NOTHING_SEEN;
        self.window_end = Ns::MAX;
        if is_busy || self.depth.can_return() {
            self.begin_window(now);
        }
    }

    fn verdict(&self, now: Ns) -> Verdict {
        let under_way = self.watched_read.map_or(Ns(0), |(_, since)| now.since(since));
        let target = self.context.target;
        if under_way > self.window || (under_way > target && self.seen.reads == 0) {
            return Verdict::TooSlow;
        }
        if self.seen.reads == 0 || self.seen.writes < WRITES_MIN {
            let has_writes = self.seen.writes > 0 || self.under_way() > 0;
            return if has_writes { Verdict::OnlyWrites } else { Verdict::Unknown };
        }
        if self.seen.fastest_read > target { Verdict::TooSlow } else { Verdict::Good }
    }

    fn under_way(&self) -> u32 {
        self.lines.iter().map(|line| line.under_way).sum()
    }

    fn grow(&mut self) {
        if self.depth.grow() {
            self.stepped();
            for line in &mut self.lines {
                line.is_woken = !line.waiting.is_empty();
                self.has_woken |= line.is_woken;
            }
        }
    }

    fn shrink(&mut self) {
        if self.depth.shrink() {
            self.stepped();
        }
    }

    fn return_to_rest(&mut self) {
        if self.depth.step() > 0 {
            self.grow();
        } else if self.depth.step() < 0 && self.depth.ease() {
            self.stepped();
        }
    }

    fn stepped(&mut self) {
        self.unknown_windows = 0;
        self.set_limits();
    }

    fn set_limits(&mut self) {
        let most = self.depth.most();
        (self.normal, self.background) =
            if most <= 2 { (most, 1) } else { (most.div_ceil(2), most.div_ceil(4)) };
    }

    /// The window shrinks with the square root of the halvings; the timer counts ticks.
    fn begin_window(&mut self, now: Ns) {
        let step = self.depth.step();
        self.window = if step > 0 {
            // Linux 6.18 block/blk-wbt.c: an integer root of four binary places.
            Ns((WINDOW.0 << 4) / ((step as u64 + 1) << 8).isqrt())
        } else {
            WINDOW
        };
        let hz = self.context.hz;
        self.window_end = Ns((hz.ticks(now) + hz.ticks(self.window)) * hz.tick().0);
    }
}

/// A write with `SYNC` but without `NO_IDLE` is `O_DIRECT` or `O_SYNC`: somebody waits, and more
/// will follow.
const fn kind(operation: Operation, flags: Flags) -> Kind {
    match operation {
        Operation::Read => Kind::Read,
        Operation::Discard => Kind::Limited(DISCARDS),
        Operation::Write if flags.contains(Flags::SYNC) && !flags.contains(Flags::NO_IDLE) => {
            Kind::Free
        }
        Operation::Write => Kind::Limited(WRITES),
        Operation::Flush => Kind::Free,
    }
}
