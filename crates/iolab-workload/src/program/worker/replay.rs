//! The timed region of a recorded program: when the next operation may begin, and its calls.
//!
//! Operations begin in the order of the stream. One that must wait (for its time, for an earlier
//! operation, for a free place of the depth) holds back those behind it.

use std::collections::BTreeSet;

use iolab_model::Bytes;
use iolab_model::Ns;
use iolab_model::op::{Deallocation, Handle, Op, Position, Transfer};

use super::super::code::Flat;
use super::super::deed::Deed;
use super::super::description::Pace;
use super::super::recorded_stream::{RecordedOp, RecordedStream};
use super::super::stage::FileId;
use super::ProgramWorker;
use super::choose::Held;
use super::job::Job;
use super::leaf::Begun;
use crate::group::GroupState;
use crate::worker::Step;

/// Opens a recorded stream at its beginning, once for each pass.
pub type OpenRecorded = Box<dyn FnMut() -> Result<RecordedStream, String>>;

/// Position of a worker in a recorded stream.
#[derive(Default)]
pub(super) struct Replay {
    open: Option<OpenRecorded>,
    stream: Option<RecordedStream>,
    /// Operation that was taken from it and could not begin yet.
    next: Option<RecordedOp>,
    /// Time at which the pass began.
    began: Ns,
    /// Numbers of operations that have not ended; at most as many as the depth.
    pub(super) under_way: BTreeSet<u64>,
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// The same, with the recorded stream of its program.
    #[must_use]
    pub fn with_recorded(mut self, open: Option<OpenRecorded>) -> Self {
        self.replay.open = open;
        self
    }

    /// Goes on with the recorded stream; `None`: ask again.
    pub(super) fn timed_recorded(&mut self, now: Ns) -> Option<Step> {
        if self.replay.stream.is_none() {
            // A pass begins when all operations of the one before have ended.
            if self.in_flight > 0 || !self.ready.is_empty() {
                return Some(Step::Await);
            }
            if let Some(step) = self.begin_pass(now) {
                return step;
            }
            self.open_stream(now);
        }
        if let Some(step) = self.pause_first(now) {
            return step;
        }
        match self.begin_recorded(now) {
            Begun::Call(token) => {
                let job = self.jobs[token as usize].as_mut();
                let op = job.and_then(Job::next_op).expect("a job begins with a call");
                Some(self.submit(token, op, now))
            }
            Begun::Later => Some(Step::Await),
            Begun::Sleep(until) => Some(Step::SleepUntil(until.min(self.deadline))),
            Begun::NoMore => {
                self.replay.stream = None;
                self.end_pass(now);
                None
            }
            // A failure is dealt with where the next step is asked for.
            Begun::Nothing => None,
        }
    }

    fn open_stream(&mut self, now: Ns) {
        let opened = match &mut self.replay.open {
            Some(open) => open(),
            None => Err("nobody has opened its file".to_owned()),
        };
        match opened {
            Ok(stream) => (self.replay.stream, self.replay.began) = (Some(stream), now),
            Err(why) => self.fail(|| format!("the recorded stream: {why}")),
        }
    }

    /// Begins the next operation, if it may begin now.
    fn begin_recorded(&mut self, now: Ns) -> Begun {
        let next = match self.replay.next.take() {
            Some(op) => Some(Ok(op)),
            None => self.replay.stream.as_mut().and_then(Iterator::next),
        };
        let op = match next {
            None if self.report.errors > 0 => return Begun::Nothing,
            None => return Begun::NoMore,
            Some(Ok(op)) => op,
            Some(Err(why)) => {
                self.fail(|| format!("the recorded stream, {why}"));
                return Begun::Nothing;
            }
        };
        let due = match self.code.program.pace {
            Pace::Recorded { speed } => {
                Some(self.replay.began + Ns((op.time.0 as f64 / speed) as u64))
            }
            _ => None,
        };
        let is_waiting = op.after.iter().any(|earlier| self.replay.under_way.contains(earlier));
        let begun = match due {
            Some(due) if now < due => Some(Begun::Sleep(due)),
            _ if is_waiting || self.free.len() <= self.empty_slots() => Some(Begun::Later),
            _ => None,
        };
        if let Some(begun) = begun {
            self.replay.next = Some(op);
            return begun;
        }
        self.intended = due.unwrap_or(now);
        self.send_recorded(&op, now)
    }

    /// The calls of an operation of the recorded stream.
    fn send_recorded(&mut self, op: &RecordedOp, now: Ns) -> Begun {
        let code = std::sync::Arc::clone(&self.code);
        let Some(node) = code.recorded_step(op.does) else {
            self.fail(|| format!("the recorded stream, line {}: no step does it", op.line));
            return Begun::Nothing;
        };
        let flat = &code.flats[node];
        if let Some(problem) = self.recorded_problem(flat, op) {
            self.fail(|| format!("the recorded stream, line {}: {problem}", op.line));
            return Begun::Nothing;
        }
        let mut job = Job::new(Some(node), self.intended);
        let set = flat.file.as_ref().map_or(0, |chosen| chosen.set);
        let id = FileId { set: set as u32, number: op.file };
        self.handle_of(flat, Held { id, is_held: false }, &mut job);
        let (handle, at, length) = (Handle(job.handle), Bytes(op.at), Bytes(op.length));
        let (vectors, flags) = (flat.node.vectors.max(1), flat.node.flags);
        let plain = Transfer::plain(handle, Position::At(at), length);
        let is_unchecked = self.is_unchecked(&flat.node);
        let is_of_kernel_thread = self.is_of_kernel_thread();
        let transfer = Transfer { vectors, flags, is_unchecked, is_of_kernel_thread, ..plain };
        job.lock = self.lock_of(flat.node.does);
        Self::then(
            &mut job,
            match op.does {
                Deed::Read => Op::Read(transfer),
                Deed::Write => Op::Write(transfer),
                Deed::Fsync => Op::Fsync { handle },
                Deed::Fdatasync => Op::Fdatasync { handle },
                _ => Op::Deallocate { handle, at, length, how: Deallocation::Discard },
            },
        );
        job.recorded = Some(op.number);
        self.replay.under_way.insert(op.number);
        self.send(node, flat, job, now)
    }

    /// Reason why an operation leads out of the files that it may work on, if it does.
    fn recorded_problem(&self, flat: &Flat, op: &RecordedOp) -> Option<String> {
        let set = &self.stage.sets[flat.file.as_ref()?.set];
        let Some(&size) = set.nominal.get(op.file as usize) else {
            return Some(format!("file {} of a set of {}", op.file, set.nominal.len()));
        };
        let end = op.at.saturating_add(op.length);
        if end > size {
            return Some(format!("bytes {} to {end} of a file of {}", op.at, Bytes(size)));
        }
        let moves = matches!(op.does, Deed::Read | Deed::Write);
        (moves && op.length > flat.unit)
            .then(|| format!("{} in a buffer of {}", Bytes(op.length), Bytes(flat.unit)))
    }
}
