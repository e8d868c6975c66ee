//! A power cut: memory is gone, what the device holds and the file system has made durable stays.

use super::engine::{BACKING, Machine};
use super::tree::{DEVICE, ROOT};
use crate::api::write_back::FileKey;

impl Machine {
    /// Cuts power and mounts again: pages of files and of metadata are gone, files are as long as
    /// the last durable transaction knows them. Answers false, and does nothing, while a call or a
    /// request is on its way.
    ///
    /// Left out: names that are not durable yet stay (there must be none), and data in a log are
    /// not brought to their places (`data=journal`, `ZFS`).
    pub fn cut_power(&mut self) -> bool {
        let is_idle = self.tasks.len() == self.free_tasks.len()
            && self.requests.len() == self.free_requests.len();
        if !is_idle {
            return false;
        }
        let owners: Vec<u32> = self.tree.indices().filter(|owner| *owner != ROOT).collect();
        self.fs.crash();
        (self.stop, self.has_failed_reads) = (None, false);
        for &owner in [DEVICE, ROOT].iter().chain(&owners) {
            self.cache.forget(owner, 0, u64::MAX, |_| {});
            let node = self.tree.node_mut(owner);
            let key = FileKey { backing: BACKING, node: node.id };
            (node.is_queued, node.is_known, node.cursor) = (false, false, 0);
            self.flusher.cleaned(key);
        }
        for owner in owners {
            let id = self.tree.node(owner).id;
            if self.tree.node(owner).children.is_none() {
                self.tree.node_mut(owner).size = self.fs.size_on_disk(id).0;
            }
        }
        true
    }
}
