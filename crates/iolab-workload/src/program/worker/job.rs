//! An operation under way: one call, or several one after the other.

use iolab_model::error::Errno;
use iolab_model::op::{Handle, LockKind, Op, OpClass, Position, Transfer};
use iolab_model::{Bytes, Completion, Ns};

use super::super::deed::Deed;
use super::super::stage::FileId;
use super::{Open, ProgramWorker};
use crate::group::GroupState;

/// A whole file that is moved piece by piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) transfer: Transfer,
    pub(super) is_write: bool,
    pub(super) at: u64,
    pub(super) left: u64,
}

/// Meaning of its end for shared state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Meaning {
    /// Nothing.
    #[default]
    Plain,
    /// A file exists now, and perhaps is open in a handle.
    Made,
    /// A file does not exist any more.
    Gone,
    /// The first file has the name of the second.
    Renamed,
    /// The second file has become a name of the first.
    Linked,
    /// A handle is open.
    Opened,
    /// A handle is closed.
    Closed,
    /// A file has this length.
    Length(u64),
    /// A file reaches at least so far.
    Reaches(u64),
    /// A file became longer by what was moved.
    Grown,
    /// A key is in the store.
    Put,
}

/// An operation under way.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(super) struct Job {
    /// Absent: a file that is closed at the end.
    pub(super) node: Option<usize>,
    /// Calls before the others that prepare them, the last one first.
    pub(super) before: Vec<Op>,
    /// The call under way is one of those.
    is_before: bool,
    pub(super) ops: [Option<Op>; 3],
    pub(super) whole: Option<Whole>,
    pub(super) intended: Ns,
    /// Time at which its first call began.
    pub(super) began: Option<Ns>,
    pub(super) moved: u64,
    /// End of its last call that was work.
    ended: Option<Ns>,
    /// Lock that its transfer needs, and has not yet.
    pub(super) lock: Option<LockKind>,
    /// True while it holds the lock of its file.
    is_locked: bool,
    /// The call under way.
    pub(super) current: Option<Op>,
    pub(super) meaning: Meaning,
    pub(super) file: Option<FileId>,
    pub(super) to_file: Option<FileId>,
    pub(super) is_directory: bool,
    /// The first file was taken for use, and is given back.
    pub(super) is_held: bool,
    pub(super) handle: u32,
    pub(super) open: Option<Open>,
    pub(super) key: Option<(usize, u64)>,
    /// Only opens the slot of its step, which is done afterwards.
    pub(super) is_opening: bool,
    /// Lists a directory: what it answers are bytes.
    pub(super) is_listing: bool,
    /// Its number in a recorded stream.
    pub(super) recorded: Option<u64>,
}

impl Job {
    pub(super) fn new(node: Option<usize>, intended: Ns) -> Self {
        Self {
            node,
            before: Vec::new(),
            is_before: false,
            ops: [None; 3],
            whole: None,
            intended,
            began: None,
            moved: 0,
            ended: None,
            lock: None,
            is_locked: false,
            current: None,
            meaning: Meaning::Plain,
            file: None,
            to_file: None,
            is_directory: false,
            is_held: false,
            handle: 0,
            open: None,
            key: None,
            is_opening: false,
            is_listing: false,
            recorded: None,
        }
    }

    /// Its next call.
    pub(super) fn next_op(&mut self) -> Option<Op> {
        self.current = self.before.pop();
        self.is_before = self.current.is_some();
        if self.is_before {
            return self.current;
        }
        let is_transfer =
            matches!(self.ops[0], Some(Op::Read(_) | Op::Write(_))) || self.ops[0].is_none();
        if let Some(kind) = self.lock.filter(|_| is_transfer) {
            (self.lock, self.is_locked) = (None, true);
            self.current = Some(self.lock_op(kind));
            return self.current;
        }
        let op = self.ops[0].take().or_else(|| self.whole.as_mut().and_then(Whole::piece));
        self.ops.rotate_left(1);
        self.current = op;
        if op.is_none() && std::mem::take(&mut self.is_locked) {
            self.current = Some(self.lock_op(LockKind::Release));
        }
        self.current
    }

    /// A lock of the whole file: length 0 is everything to its end (fcntl(2)).
    fn lock_op(&self, kind: LockKind) -> Op {
        Op::Lock { handle: Handle(self.handle), kind, at: Bytes(0), length: Bytes(0) }
    }

    /// After a failure: what gives the lock back, if there is one.
    fn unlocking(&self) -> Option<Self> {
        self.is_locked.then(|| Self::aside(self.lock_op(LockKind::Release), self.intended))
    }

    /// One call that is no work.
    pub(super) fn aside(op: Op, intended: Ns) -> Self {
        Self { before: vec![op], ..Self::new(None, intended) }
    }

    /// Tell whether its call under way only prepares those behind it.
    fn is_aside(&self) -> bool {
        self.is_before || matches!(self.current, Some(Op::Advise { .. } | Op::Lock { .. }))
    }

    /// Tell whether nothing else may be under way when it begins: it flushes its file or makes it
    /// anew.
    pub(super) fn begins_alone(&self) -> bool {
        self.before.iter().any(|op| matches!(op, Op::Fsync { .. } | Op::Close { .. }))
    }

    fn has_more(&self) -> bool {
        !self.before.is_empty()
            || self.is_locked
            || self.ops[0].is_some()
            || self.whole.is_some_and(|whole| whole.left > 0)
    }
}

impl Whole {
    fn piece(&mut self) -> Option<Op> {
        if self.left == 0 {
            return None;
        }
        let length = self.transfer.length.0.min(self.left);
        let at = match self.transfer.at {
            Position::At(_) => Position::At(Bytes(self.at)),
            other => other,
        };
        self.at += length;
        self.left -= length;
        let transfer = Transfer { at, length: Bytes(length), ..self.transfer };
        Some(if self.is_write { Op::Write(transfer) } else { Op::Read(transfer) })
    }
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// Takes the end of a call; answers whether it counts.
    pub(super) fn call_ended(&mut self, completion: &Completion, is_timed: bool) -> bool {
        let token = completion.token.0;
        let mut job = self.jobs[token as usize].take().expect("a call belongs to a job");
        // Time of what comes before a transfer is not the transfer's.
        if !job.is_aside() {
            job.began.get_or_insert(completion.submitted);
            job.ended = Some(completion.completed);
        }
        let is_last = completion.outcome.is_err() || !job.has_more();
        if let Some(number) = job.recorded.filter(|_| is_last) {
            self.replay.under_way.remove(&number);
        }
        let moved = match completion.outcome {
            Ok(moved) => moved.0,
            // A key that is not there is an answer.
            Err(Errno::ENOENT) if job.key.is_some() => 0,
            Err(errno) => {
                let (node, file) = (job.node, job.file);
                self.forget(&job);
                if is_timed && self.tolerates(&job, errno) {
                    match job.unlocking() {
                        Some(unlocking) => {
                            self.jobs[token as usize] = Some(unlocking);
                            self.ready.push(token);
                        }
                        None => self.free(token),
                    }
                    return false;
                }
                self.free(token);
                self.failed_call(node, file, errno);
                return false;
            }
        };
        let counts = self.count_call(&mut job, moved, is_timed);
        if job.has_more() {
            self.jobs[token as usize] = Some(job);
            self.ready.push(token);
            return counts;
        }
        let ended = job.ended.unwrap_or(completion.completed);
        self.job_ended(&job, ended, is_timed);
        self.free(token);
        counts
    }

    fn free(&mut self, token: u32) {
        self.room.call_ended(self.free.len());
        self.free.push(token);
        if self.blocked == Some(token) {
            self.blocked = None;
        }
    }

    /// Counts the bytes of a call; whether the recorder shall count it, too.
    fn count_call(&mut self, job: &mut Job, moved: u64, is_timed: bool) -> bool {
        let Some(op) = job.current else { return false };
        if job.is_aside() {
            return false;
        }
        let is_transfer = matches!(op, Op::Read(_) | Op::Write(_) | Op::Copy { .. })
            || matches!(op, Op::KeyValue { .. });
        if let Op::Read(transfer) = op {
            self.was_read(job, &transfer, moved);
        }
        let is_moved = is_transfer || (job.is_listing && matches!(op, Op::ReadDirectory { .. }));
        job.moved += if is_moved { moved } else { 0 };
        let moved = if is_transfer { moved } else { 0 };
        if is_timed {
            self.report.bytes += moved;
            match op.class() {
                OpClass::Read => self.report.read_bytes += moved,
                OpClass::Write => self.report.write_bytes += moved,
                OpClass::Sync | OpClass::Other => {}
            }
        }
        is_timed
    }

    /// A read that found less than it was to find.
    fn was_read(&mut self, job: &mut Job, transfer: &Transfer, moved: u64) {
        if moved >= transfer.length.0 {
            return;
        }
        match transfer.at {
            Position::At(at) if job.whole.is_none() => {
                let (length, file) = (transfer.length, job.file);
                self.fail(|| {
                    format!(
                        "reading {length} bytes at {at} of file number {} gave {moved} bytes: the \
                         file ends there",
                        file.map_or(0, |file| file.number)
                    )
                });
            }
            _ => {
                if let Some(whole) = &mut job.whole {
                    whole.left = 0;
                }
                if let Some(open) = self.slots.get_mut(job.handle as usize) {
                    open.open.iter_mut().for_each(|open| open.is_at_end = true);
                }
            }
        }
    }

    /// An operation has ended.
    fn job_ended(&mut self, job: &Job, completed: Ns, is_timed: bool) {
        self.settle(job);
        let Some(node) = job.node else { return };
        let Some(tally) = self.code.flats[node].tally else { return };
        if is_timed {
            let began = job.began.unwrap_or(completed);
            self.count_in((tally, job.intended, began), completed, job.moved);
            self.report.ops += 1;
            let is_transfer = matches!(self.code.flats[node].node.does, Deed::Read | Deed::Write);
            if self.code.flats[node].node.does.is_operation() {
                self.stage.done.count(is_transfer && !job.is_opening, job.moved);
            }
            if !job.is_opening {
                self.count_for_burst(job, node, completed);
            }
            if self.following.is_some() && !job.is_opening {
                self.obey(job, node, (began, completed));
            }
        }
    }

    /// Counts an operation, also in the part of the phase in which it ended.
    pub(super) fn count_in(
        &mut self,
        (tally, intended, began): (usize, Ns, Ns),
        ended: Ns,
        bytes: u64,
    ) {
        self.tallies[tally].count((intended, began), ended, bytes);
        if !self.cuts_ns.is_empty() {
            let at = ended.since(self.started);
            let part = self.cuts_ns.partition_point(|cut| *cut <= at);
            self.tallies[tally].count_part(part, ended.since(began), bytes);
        }
    }

    /// Settle shared state after the end of an operation.
    fn settle(&mut self, job: &Job) {
        let set = |file: FileId| &self.stage.sets[file.set as usize];
        if let (Some(file), true) = (job.file, job.is_held) {
            set(file).release(file.number, job.is_directory);
        }
        match (job.meaning, job.file) {
            (Meaning::Made, Some(file)) => set(file).settle(file.number, job.is_directory, true),
            (Meaning::Gone, Some(file)) => {
                set(file).settle(file.number, job.is_directory, false);
                if !job.is_directory {
                    set(file).resize(file.number, 0);
                }
            }
            (Meaning::Renamed | Meaning::Linked, Some(from)) => {
                if let Some(to) = job.to_file {
                    let size = set(from).size(from.number);
                    set(to).resize(to.number, size);
                    set(to).settle(to.number, false, true);
                }
                if matches!(job.meaning, Meaning::Renamed) {
                    set(from).settle(from.number, false, false);
                }
            }
            (Meaning::Length(bytes), Some(file)) => set(file).resize(file.number, bytes),
            (Meaning::Reaches(bytes), Some(file)) => set(file).reach(file.number, bytes),
            (Meaning::Grown, Some(file)) => set(file).lengthen(file.number, job.moved),
            (Meaning::Put, _) => {
                if let Some((space, number)) = job.key {
                    self.stage.spaces[space].acknowledge(number);
                }
            }
            _ => {}
        }
        self.settle_handle(job);
    }

    fn settle_handle(&mut self, job: &Job) {
        if matches!(job.meaning, Meaning::Made | Meaning::Opened)
            && let Some(open) = job.open
        {
            let slot = job.handle as usize;
            if self.slots.len() <= slot {
                self.slots.resize_with(slot + 1, Default::default);
            }
            self.slots[slot].open = Some(open);
            self.slots[slot].last = Some(open.file);
        }
        if matches!(job.meaning, Meaning::Closed) {
            self.slots[job.handle as usize].open = None;
        }
    }

    /// Gives back what a failed operation held.
    fn forget(&mut self, job: &Job) {
        let set = |file: FileId| &self.stage.sets[file.set as usize];
        if let (Some(file), true) = (job.file, job.is_held) {
            set(file).release(file.number, job.is_directory);
        }
        let is_making =
            job.node.is_some_and(|node| self.code.flats[node].node.does == Deed::Create);
        if let (Some(file), true) = (job.file, is_making) {
            set(file).settle(file.number, job.is_directory, false);
        }
    }

    /// A call that closes a handle, or two of a mapped file.
    pub(super) fn closing(open: &Open, handle: u32) -> [Option<Op>; 3] {
        let handle = Handle(handle);
        let close = Some(Op::Close { handle });
        if open.is_mapped { [Some(Op::Unmap { handle }), close, None] } else { [close, None, None] }
    }
}
