//! Rules of its tenant as a program follows them.

use iolab_model::Ns;
use iolab_model::error::Errno;
use iolab_model::op::OpClass;

use super::super::deed::Deed;
use super::super::stage::FileId;
use super::ProgramWorker;
use super::job::Job;
use crate::following::{Heed, TIMED_OUT};
use crate::group::GroupState;

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
        let class = match self.code.flats[node].node.does {
            Deed::Read => OpClass::Read,
            Deed::Write => OpClass::Write,
            Deed::Fsync | Deed::Fdatasync | Deed::SyncFileRange => OpClass::Sync,
            _ => OpClass::Other,
        };
        let Some(following) = &mut self.following else { return };
        match following.ended(self.started, (class, job.moved), times) {
            // A search for a depth is refused beside a program.
            Heed::On | Heed::Anew => {}
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

    /// Words for a file behind what was done to it.
    fn of_file(&self, file: Option<FileId>) -> String {
        let Some(file) = file else { return String::new() };
        let path = self.stage.sets[file.set as usize].path(file.number, false);
        let paths = self.stage.paths();
        let name = paths.get(path.0 as usize).and_then(|path| path.file_name());
        name.map_or(String::new(), |name| format!(" of file {}", name.to_string_lossy()))
    }
}
