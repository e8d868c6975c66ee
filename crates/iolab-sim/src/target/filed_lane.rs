//! Ops of a lane on a stack with a file system: they go to the machine.

use std::path::PathBuf;

use iolab_files::machine::Call;
use iolab_model::error::Errno;
use iolab_model::op::{Access, Handle, OpenHow, PathId, Token};
use iolab_model::{Bytes, Ns, Op, Submission};

use super::lane::{Begun, SimLane};
use super::simulation::Simulation;

/// Bytes of one read of [`Simulation::read_beside`].
const WARM_READ: Bytes = Bytes(1 << 20);

impl SimLane {
    /// Takes an op to the machine.
    pub(super) fn begin_filed(&mut self, submission: &Submission) -> Begun {
        let buffer = self.buffers.lend(submission.token, &submission.op);
        let is_lent = buffer.is_some();
        if let Some(buffer) = buffer {
            let (lane, token) = (self.lane, submission.token);
            let mut simulation = self.simulation.borrow_mut();
            simulation.with_machine(|_, machine| machine.lend(lane, token, buffer));
        }
        match self.call(submission) {
            Ok(()) => Begun::InFlight,
            Err(errno) => {
                if is_lent {
                    self.take_back(submission.token);
                }
                Begun::Ended(Err(errno))
            }
        }
    }

    /// Takes the buffer of a transfer back that has ended.
    pub(super) fn take_back(&mut self, token: Token) {
        let mut simulation = self.simulation.borrow_mut();
        let buffer = simulation.with_machine(|_, machine| machine.give_back(self.lane, token));
        self.buffers.put_back(token, buffer.flatten());
    }

    fn call(&mut self, submission: &Submission) -> Result<(), Errno> {
        let op = &submission.op;
        let (first, second) = paths(op);
        let answer = self.answer(op)?;
        let path = |id: Option<PathId>| id.map(|id| self.path(id).map(PathBuf::as_path));
        let call = Call {
            lane: self.lane,
            token: submission.token,
            op,
            path: path(first).transpose()?,
            other: path(second).transpose()?,
            answer,
        };
        let mut simulation = self.simulation.borrow_mut();
        let taken = simulation.with_machine(|now, machine| machine.submit(now, call));
        taken.unwrap_or(Err(Errno::EOPNOTSUPP))
    }

    /// Answer of an op that the lane itself knows: how many names it found.
    fn answer(&mut self, op: &Op) -> Result<Option<Bytes>, Errno> {
        let Op::NextNames { path: id, count } = op else { return Ok(None) };
        let directory = &self.path(*id)?.clone();
        let simulation = self.simulation.borrow();
        let Some(machine) = simulation.machine() else { return Ok(None) };
        machine.directory(directory)?;
        Ok(Some(self.listing.read_on((*id, directory), *count, &machine.names())))
    }
}

/// Paths that an op names.
const fn paths(op: &Op) -> (Option<PathId>, Option<PathId>) {
    match *op {
        Op::Create { path, .. }
        | Op::Open { path, .. }
        | Op::Unlink { path }
        | Op::Stat { path }
        | Op::StatTarget { path }
        | Op::ReadDirectory { path }
        | Op::NextNames { path, .. }
        | Op::MakeDirectory { path }
        | Op::RemoveDirectory { path }
        | Op::SyncDirectory { path } => (Some(path), None),
        Op::Rename { from, to } | Op::Link { from, to, .. } => (Some(from), Some(to)),
        _ => (None, None),
    }
}

impl Simulation {
    /// Does an op in a process of its own and waits for its end; answers how many bytes it moved.
    pub(super) fn do_beside(&mut self, op: &Op, path: Option<&PathBuf>) -> Result<Bytes, Errno> {
        let lane = self.lane_beside();
        let path = path.map(PathBuf::as_path);
        let call = Call { lane, token: Token(0), op, path, other: None, answer: None };
        self.with_machine(|now, machine| machine.submit(now, call)).unwrap_or(Ok(()))?;
        let mut done = Vec::new();
        loop {
            self.collect(lane, &mut done);
            if let Some(completion) = done.pop() {
                return completion.outcome;
            }
            let next = self.next_event();
            if next == Ns::MAX {
                return Err(Errno::EIO);
            }
            self.advance_to(next);
        }
    }

    /// Reads a file from its beginning to its end.
    pub(super) fn read_beside(&mut self, path: &PathBuf) {
        let how = OpenHow { access: Access::Plain, is_readable: true, ..OpenHow::default() };
        let handle = Handle(0);
        let open = Op::Open { path: PathId(0), handle, how };
        if self.do_beside(&open, Some(path)).is_err() {
            return;
        }
        let mut at = Bytes(0);
        while let Ok(got @ Bytes(1..)) = self.do_beside(&Op::read(handle, at, WARM_READ), None) {
            at += got;
        }
        let _ = self.do_beside(&Op::Close { handle }, None);
    }
}
