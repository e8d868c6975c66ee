//! Rules of its tenant as a program follows them.

use iolab_model::error::Errno;
use iolab_model::op::OpClass;
use iolab_model::{Bytes, Ns};

use super::super::deed::Deed;
use super::super::stage::FileId;
use super::super::tally::Tally;
use super::ProgramWorker;
use super::job::Job;
use crate::following::{Heed, TIMED_OUT};
use crate::group::GroupState;
use crate::report::StreamReport;

impl<G: GroupState> ProgramWorker<'_, G> {
    /// A call of a job has failed: whether the worker goes on all the same.
    #[cold]
    pub(super) fn tolerates(&mut self, job: &Job, errno: Errno) -> bool {
        if self.following.is_none() {
            return false;
        }
        let Some(op) = job.current else { return false };
        let place = self.of_file(job.file);
        let Some(following) = &mut self.following else { return false };
        let Some(is_last) = following.tolerates(op.class(), errno, || place) else { return false };
        self.is_out_of_work |= is_last;
        true
    }

    /// An operation of a step has ended: follows the rules.
    #[cold]
    pub(super) fn obey(&mut self, job: &Job, node: usize, times: (Ns, Ns)) {
        let class = self.class_of(node);
        let depth = self.jobs.len() as u32;
        let Some(following) = &mut self.following else { return };
        let heed = following.ended(self.started, (class, job.moved), times);
        if let Some(idle) = following.idle_slots(depth) {
            self.room.idle = idle;
        }
        match heed {
            Heed::On => {}
            Heed::Anew => self.count_anew(times.1),
            Heed::Until(at) => self.deadline = self.deadline.min(at),
            Heed::Slow(what) => {
                let place = self.of_file(job.file);
                self.fail(|| format!("{what}{place}"));
            }
            Heed::Late(what) => {
                let place = self.of_file(job.file);
                self.fail(|| format!("{what}{place} (os error {TIMED_OUT})"));
            }
        }
    }

    /// An operation of a step has ended, and perhaps a burst with it.
    pub(super) fn count_for_burst(&mut self, job: &Job, node: usize, completed: Ns) {
        let class = self.class_of(node);
        let was_full = self.free.is_empty();
        let Some(bursting) = &mut self.bursting else { return };
        bursting.ended((class, Bytes(job.moved)), completed, was_full);
    }

    fn class_of(&self, node: usize) -> OpClass {
        match self.code.flats[node].node.does {
            Deed::Read => OpClass::Read,
            Deed::Write => OpClass::Write,
            Deed::Fsync | Deed::Fdatasync | Deed::SyncFileRange => OpClass::Sync,
            _ => OpClass::Other,
        }
    }

    /// Forgets what was counted before `now`.
    fn count_anew(&mut self, now: Ns) {
        let worker = self.report.worker;
        self.report = StreamReport { worker, ..StreamReport::default() };
        (self.started, self.ended) = (now, now);
        self.busy_from = None;
        self.tallies.iter_mut().for_each(Tally::count_anew);
        self.fired.fill(0);
    }

    /// Time at which counting began anew, told once.
    #[cold]
    pub(super) fn take_anew(&mut self) -> Option<Ns> {
        self.following.as_mut().and_then(|following| following.take_anew())
    }

    /// Words for a file behind what was done to it.
    fn of_file(&self, file: Option<FileId>) -> String {
        let Some(file) = file else { return String::new() };
        let path = self.stage.sets[file.set as usize].path(file.number, false);
        let paths = self.stage.paths();
        let name = paths.get(path.0 as usize).and_then(|path| path.file_name());
        name.map_or(String::new(), |name| format!(" of file {}", name.to_string_lossy()))
    }
}
