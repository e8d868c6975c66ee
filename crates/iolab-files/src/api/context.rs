//! `Context`: the circumstances of a call of a file system, and the effects that it has.
//!
//! A decider performs nothing. It says here which metadata it had to look at and which it changed,
//! what it cost, what should be written now and whom the caller has to wait for. The machine does
//! all of that, in the order of the fields of [`Effects`].

use iolab_model::{Bytes, Ns};

use super::block::{BlockRun, FileRun, NodeId};

/// Number of a transaction: everything with the same or a smaller number is durable once
/// [`super::file_system::FileSystem::durable`] says so. File systems without transactions count
/// what they have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tid(pub u64);

/// Process that makes a call, as far as file systems care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Its process identifier (some allocators colour by it).
    pub pid: u32,
    /// The processor that it runs on (some allocators keep windows per processor).
    pub cpu: u16,
}

/// Circumstances of a call, and room for its effects.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Time, since the machine started.
    pub now: Ns,
    /// Process that makes the call.
    pub caller: Caller,
    /// Effects so far.
    pub effects: Effects,
}

/// Everything that a call asks the machine to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Metadata that had to be looked at: the caller waits for those which no cache holds.
    pub reads: Vec<BlockRun>,
    /// Metadata changed in memory that no journal takes care of: pages of the device become dirty
    /// and are written by their age, or when a [`super::file_system::FsJob`] says so.
    pub dirtied: Vec<BlockRun>,
    /// Work of the caller's processor.
    pub cpu: Ns,
    /// The last transaction that this call changed something in: a crash before it is durable
    /// undoes the call. `None`: nothing was changed.
    pub transaction: Option<Tid>,
    /// Dirty data whose write-back starts now; nobody waits (flush at close, clustering, flush
    /// behind).
    pub push: Vec<FileRun>,
    /// Write-back of everything starts now; nobody waits (space is short).
    pub pushes_all: bool,
    /// The call goes on when this transaction is durable (the running one is full).
    pub wait: Option<Tid>,
    /// The caller sleeps before it writes more if too much of a file is being written (throttling
    /// in the file system at write(2)).
    pub throttle: Option<HoldBack>,
}

/// Marks between which the data of a file on their way to the device swing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldBack {
    /// The file.
    pub node: NodeId,
    /// The caller sleeps if more than this is on its way ...
    pub above: Bytes,
    /// ... until no more than this is.
    pub until: Bytes,
}

impl Effects {
    /// Tell whether there are none.
    pub fn is_empty(&self) -> bool {
        let Self { reads, dirtied, cpu, transaction, push, pushes_all, wait, throttle } = self;
        reads.is_empty()
            && dirtied.is_empty()
            && cpu.0 == 0
            && transaction.is_none()
            && push.is_empty()
            && !pushes_all
            && wait.is_none()
            && throttle.is_none()
    }
}

impl Context {
    /// A context without effects yet.
    pub fn new(now: Ns, caller: Caller) -> Self {
        Self { now, caller, effects: Effects::default() }
    }

    /// Notes metadata that had to be looked at.
    pub fn reads(&mut self, run: BlockRun) {
        self.effects.reads.push(run);
    }

    /// Notes metadata changed outside any journal.
    pub fn dirties(&mut self, run: BlockRun) {
        // A call changes the same few blocks again and again.
        if !self.effects.dirtied.iter().rev().take(8).any(|noted| *noted == run) {
            self.effects.dirtied.push(run);
        }
    }

    /// Notes work of the processor.
    pub fn spends(&mut self, cpu: Ns) {
        self.effects.cpu += cpu;
    }

    /// Notes that something was changed in a transaction.
    pub fn changes(&mut self, tid: Tid) {
        self.effects.transaction = self.effects.transaction.max(Some(tid));
    }
}
