//! Rules of its tenant as a stream follows them.

use iolab_model::error::Errno;
use iolab_model::op::OpClass;
use iolab_model::{Completion, Ns};

use super::StreamWorker;
use crate::following::{Heed, TIMED_OUT};
use crate::group::GroupState;
use crate::report::StreamReport;

impl<G: GroupState> StreamWorker<G> {
    /// An op has failed: whether the worker goes on all the same.
    #[cold]
    pub(super) fn tolerates(&mut self, class: OpClass, errno: Errno, place: &str) -> bool {
        let file = || format!("{place} of file {}", self.tenant.file_name(self.report.worker));
        let Some(following) = &mut self.following else { return false };
        let Some(is_last) = following.tolerates(class, errno, file) else { return false };
        if is_last {
            self.budget = self.issued;
            self.forget_unread();
        }
        true
    }

    /// An op that counts has ended: follows the rules; answers whether it still counts.
    #[cold]
    pub(super) fn obey(&mut self, completion: &Completion, class: OpClass, bytes: u64) -> bool {
        let Some(following) = &mut self.following else { return true };
        let times = (completion.submitted, completion.completed);
        let heed = following.ended(self.started, (class, bytes), times);
        if let Some(idle) = following.idle_slots(self.tenant.depth) {
            self.idle_slots = idle;
        }
        match heed {
            Heed::On => {}
            Heed::Late(what) => self.broke(&what, &format!(" (os error {TIMED_OUT})")),
            Heed::Slow(what) => self.broke(&what, ""),
            Heed::Until(at) => self.deadline = self.deadline.min(at),
            Heed::Anew => {
                self.count_anew(completion.completed);
                return false;
            }
        }
        true
    }

    /// A rule was broken, by what was done to its file.
    fn broke(&mut self, what: &str, number: &str) {
        let file = self.tenant.file_name(self.report.worker);
        self.report.errors += 1;
        self.report.first_error.get_or_insert_with(|| format!("{what} of file {file}{number}"));
    }

    /// Forgets what was counted before `now`.
    fn count_anew(&mut self, now: Ns) {
        let worker = self.report.worker;
        self.report = StreamReport { worker, ..StreamReport::default() };
        (self.started, self.ended) = (now, now);
        self.busy_from = None;
    }

    /// Time at which counting began anew, told once.
    #[cold]
    pub(super) fn take_anew(&mut self) -> Option<Ns> {
        self.following.as_mut().and_then(|following| following.take_anew())
    }
}
