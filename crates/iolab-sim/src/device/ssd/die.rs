//! Work of a die, and the queue for it.
//!
//! A die reads, programs or erases, one thing at a time; the planes take part together, but for
//! independent reads. While it works, the data of the next program may already be transferred to it
//! (cache register), and data that were read leave it while it does the next thing.

use std::collections::VecDeque;

use iolab_model::Ns;

/// Owner that the data of a page go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A read command.
    Command(u32),
    /// A read command that lacks a page of the map.
    Map(u32),
    /// A segment of the read-ahead.
    Segment(u32),
    /// No owner waits: read-modify-write, map pages for writes.
    Nobody,
}

/// The read of a page, or of a part of it.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    /// Page, counted over the whole drive.
    pub page: u32,
    /// Bytes to transfer.
    pub bytes: u32,
    /// Owner that they go to.
    pub owner: Owner,
}

/// Work of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Idle,
    /// Reading on some planes.
    Reading,
    /// Reading a row of a victim, so many valid units.
    Collecting(u32),
    /// Programming the row `Die::running`.
    Programming,
    /// Erasing a block.
    Erasing(u32),
    /// Folding a row from single-level mode.
    Folding,
    /// Stopping an erase or program.
    Suspending,
}

/// A row to program.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its first unit.
    pub first: u32,
    /// Programmed in single-level mode.
    pub is_slc: bool,
    /// Time at which its data have been transferred.
    pub ready: Ns,
}

/// A die.
#[derive(Debug)]
pub struct Die {
    /// Reads that wait.
    pub reads: VecDeque<PageRead>,
    /// Reads under way, per plane.
    pub planes: Vec<Option<PageRead>>,
    /// Number of reads under way.
    pub reading: u32,
    /// Work of the die.
    pub work: Work,
    /// End of that work; meaningless for `Reading`.
    pub work_end: Ns,
    /// Tells ends of work that was suspended from ends that count.
    pub generation: u32,
    /// Work that was stopped, and what is left of it.
    pub suspended: Option<(Work, Ns)>,
    /// The work under way may be suspended.
    pub may_suspend: bool,
    /// Next row to program.
    pub loaded: Option<Row>,
    /// Row being programmed.
    pub running: Option<Row>,
    /// Cache slots of the two rows.
    pub loaded_slots: Vec<u32>,
    /// Cache slots of the row being programmed.
    pub running_slots: Vec<u32>,
    /// Reads begun since other work was last begun.
    pub passed: u32,
    /// Since when it has not been idle.
    pub busy_since: Ns,
    /// Time not idle, up to `busy_since`.
    pub busy: Ns,
}

impl Die {
    /// An idle die.
    pub fn new(planes: u32, row_units: u32) -> Self {
        Self {
            reads: VecDeque::new(),
            planes: vec![None; planes as usize],
            reading: 0,
            work: Work::Idle,
            work_end: Ns(0),
            generation: 0,
            suspended: None,
            may_suspend: true,
            loaded: None,
            running: None,
            loaded_slots: Vec::with_capacity(row_units as usize),
            running_slots: Vec::with_capacity(row_units as usize),
            passed: 0,
            busy_since: Ns(0),
            busy: Ns(0),
        }
    }

    /// Changes what the die does, and accounts for the time.
    pub fn set_work(&mut self, now: Ns, work: Work) {
        match (self.work == Work::Idle, work == Work::Idle) {
            (true, false) => self.busy_since = now,
            (false, true) => self.busy += now.since(self.busy_since),
            _ => {}
        }
        self.work = work;
    }
}

/// Something that serves one after another in the order of arrival: a channel, a link, a
/// controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Server {
    free: Ns,
    /// Time served.
    pub busy: Ns,
}

impl Server {
    /// Occupies the server for `time` as soon as it is free; answers the end.
    pub fn occupy(&mut self, now: Ns, time: Ns) -> Ns {
        self.free = self.free.max(now) + time;
        self.busy += time;
        self.free
    }
}

/// Time to move bytes at a rate in bytes per second.
pub fn transfer(bytes: u64, rate: u64) -> Ns {
    Ns((bytes * 1_000_000_000 + rate / 2) / rate)
}
