//! Files that steps keep open by themselves, and closing everything at the end.

use std::sync::Arc;

use iolab_model::Ns;

use super::super::stage::FileId;
use super::choose::Held;
use super::job::{Job, Meaning};
use super::leaf::variant;
use super::{Life, ProgramWorker};
use crate::group::GroupState;
use crate::worker::Step;

impl<G: GroupState> ProgramWorker<'_, G> {
    /// Files that steps keep open by themselves, to be opened before the timed region.
    pub(super) fn files_to_open(&self) -> Vec<(usize, u32)> {
        use super::super::choice::FileBy;
        let mut all = Vec::new();
        for (node, flat) in self.code.flats.iter().enumerate() {
            let Some(chosen) = &flat.file else { continue };
            let is_listed = matches!(
                chosen.choice.by,
                FileBy::Existing | FileBy::Next | FileBy::Own | FileBy::Pick | FileBy::Served
            );
            let is_kept = flat.node.does.uses_handle() && !flat.node.opens_its_slot();
            if !is_kept || !is_listed {
                continue;
            }
            let is_own = chosen.choice.by == FileBy::Own || chosen.choice.is_own;
            let is_mine = |number: &u32| !is_own || number % self.workers == self.index;
            let files = self.stage.sets[chosen.set].existing();
            all.extend(files.into_iter().filter(is_mine).map(|number| (node, number)));
        }
        // They are taken from the end.
        all.reverse();
        all
    }

    /// Opens one of them.
    pub(super) fn open_kept(&mut self, node: usize, number: u32, now: Ns) -> Option<Step> {
        let code = Arc::clone(&self.code);
        let flat = &code.flats[node];
        let set = flat.file.as_ref().map_or(0, |chosen| chosen.set);
        let id = FileId { set: set as u32, number };
        let key = (id, variant(&flat.node));
        if self.kept.contains_key(&key) {
            return None;
        }
        let handle = (self.code.slots.len() + self.kept.len()) as u32;
        self.kept.insert(key, handle);
        let mut job = Job::new(Some(node), now);
        job.handle = handle;
        self.opening(&mut job, Held { id, is_held: false }, &flat.node, false);
        Some(self.one_by_one(job, now))
    }

    /// Closes one of the files that are still open; `None`: none is.
    pub(super) fn close_one(&mut self, now: Ns) -> Option<Step> {
        debug_assert_eq!(self.life, Life::CloseAll, "files are closed when everything is over");
        let handle = self.slots.iter().position(|slot| slot.open.is_some())?;
        let open = self.slots[handle].open?;
        let mut job = Job::new(None, now);
        job.handle = handle as u32;
        job.ops = Self::closing(&open, job.handle);
        job.meaning = Meaning::Closed;
        Some(self.one_by_one(job, now))
    }

    /// An operation outside the timed region, with nothing else under way.
    fn one_by_one(&mut self, mut job: Job, now: Ns) -> Step {
        let Some(token) = self.free.pop() else { return Step::Await };
        let op = job.next_op().expect("a job begins with a call");
        self.jobs[token as usize] = Some(job);
        self.blocked = Some(token);
        self.submit(token, op, now)
    }
}
