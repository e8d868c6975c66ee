//! Tasks: operations in progress, each a small state machine that waits now and then.

use iolab_model::error::Errno;
use iolab_model::op::Token;
use iolab_model::{Bytes, Ns};

use super::buffered_read::ReadWork;
use super::buffered_write::WriteWork;
use super::daemon::{FlusherWork, JobWork};
use super::direct::DirectWork;
use super::flush::FlushWork;
use super::mapped::TouchWork;
use super::name::NameWork;
use crate::api::context::Tid;

/// Index of a task.
pub(super) type TaskIndex = u32;

/// A process: a worker's, or a thread of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunBy {
    /// The process of a lane.
    Lane(u32),
    /// A thread of the file system's own, by number.
    FileSystem(u8),
    /// The flusher of the device.
    Flusher,
}

/// Something that a task does, one of several in turn.
#[derive(Debug)]
pub(super) enum Work {
    Read(ReadWork),
    Write(WriteWork),
    Direct(DirectWork),
    Flush(FlushWork),
    Touch(TouchWork),
    Name(NameWork),
    Job(JobWork),
    Flusher(FlusherWork),
    /// Nothing but work of the processor.
    Burn(Ns),
    /// Answer of the whole task, in bytes.
    Answer(Bytes),
    /// Copying from the buffer of a stream, by its handle, to its reader.
    FromStream(u32, Bytes),
    /// Leave the lock on a file.
    Unlock(u32),
}

/// Each step takes its work out of the task and puts it back: beyond 128 bytes that is a call of
/// memcpy, and a buffered write takes a quarter longer (`benches/simulated_files.py`).
const _: () = assert!(size_of::<Work>() <= 128, "a work is moved at every step");

/// Answer of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Call the step again, when nothing is waited for any more.
    More,
    /// The work is done.
    Done,
    /// The work failed; the task ends.
    Failed(Errno),
}

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    pub runner: RunBy,
    pub token: Token,
    pub submitted: Ns,
    /// Works still to do, the next one last.
    pub works: Vec<Work>,
    /// Events that must happen before it goes on.
    pub pending: u32,
    /// Between two steps: somebody will resume it when `pending` is 0.
    pub is_waiting: bool,
    pub error: Option<Errno>,
    /// Fails with what it waits for. Not so sync(2) and close(2), which have no answer.
    pub minds: bool,
    /// Answer, in bytes.
    pub bytes: Bytes,
    /// File whose lock it holds.
    pub locked: Option<u32>,
    /// Must wait for this transaction when it is done with its present step.
    pub wait_tid: Option<Tid>,
}

impl Task {
    pub fn new(runner: RunBy, token: Token, submitted: Ns) -> Self {
        Self {
            runner,
            token,
            submitted,
            works: Vec::new(),
            pending: 0,
            is_waiting: false,
            error: None,
            minds: true,
            bytes: Bytes(0),
            locked: None,
            wait_tid: None,
        }
    }
    /// Something that it waited for has failed; the first failure counts.
    pub fn fail(&mut self, errno: Errno) {
        if self.minds {
            self.error.get_or_insert(errno);
        }
    }
}
