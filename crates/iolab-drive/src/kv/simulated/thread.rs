//! A background thread of the store: one job after the other, as long as there are clients.

use iolab_lsm::{JobKind, StoreJob};
use iolab_model::op::Token;
use iolab_model::{Completion, Ns, Submission};
use iolab_workload::{Step, Worker};

use super::files::OpenFiles;
use super::shared::SharedCell;

/// A thread.
#[derive(Debug)]
pub struct StoreThread<'a> {
    shared: &'a SharedCell,
    kind: JobKind,
    job: Option<StoreJob>,
    files: OpenFiles,
    is_busy: bool,
}

impl<'a> StoreThread<'a> {
    /// A thread without a job.
    pub fn new(shared: &'a SharedCell, kind: JobKind, can_allocate: bool) -> Self {
        let files = OpenFiles::new(can_allocate);
        Self { shared, kind, job: None, files, is_busy: false }
    }
}

impl Worker for StoreThread<'_> {
    fn next(&mut self, now: Ns) -> Step {
        let mut shared = self.shared.borrow_mut();
        if shared.clients == 0 || shared.failure.is_some() {
            return Step::Finished;
        }
        if self.is_busy {
            return Step::Await;
        }
        loop {
            if let Some(op) = self.files.ops.pop_front() {
                self.is_busy = true;
                let token = Token(0);
                return Step::Submit(Submission { token, op, intended: now, is_timed: false });
            }
            let Some(job) = &mut self.job else {
                self.job = shared.store.take_job(self.kind);
                if self.job.is_none() {
                    return Step::Await;
                }
                continue;
            };
            if let Some(action) = shared.next(job) {
                let is_removal = matches!(action, iolab_lsm::Action::Remove { .. });
                shared.changes += u64::from(is_removal);
                self.files.act(action, shared.store.manifest());
            } else {
                self.job = None;
                self.files.close_all();
            }
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        self.is_busy = false;
        if let Err(errno) = completion.outcome {
            let mut shared = self.shared.borrow_mut();
            shared.failure.get_or_insert(("writing a table of the store", errno));
        }
        false
    }
}
