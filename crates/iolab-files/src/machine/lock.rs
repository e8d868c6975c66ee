//! Locks of files: many who share, or one alone, in the order of their coming.

use std::collections::VecDeque;

use super::task::TaskIndex;
use crate::api::file_system::Lock;

/// The lock of one file.
#[derive(Debug, Default)]
pub(super) struct FileLock {
    sharers: u32,
    is_exclusive: bool,
    queue: VecDeque<(TaskIndex, Lock)>,
}

impl FileLock {
    fn is_free_for(&self, lock: Lock) -> bool {
        match lock {
            Lock::Free => true,
            Lock::Shared => !self.is_exclusive,
            Lock::Exclusive => !self.is_exclusive && self.sharers == 0,
        }
    }

    fn give(&mut self, lock: Lock) {
        match lock {
            Lock::Free => {}
            Lock::Shared => self.sharers += 1,
            Lock::Exclusive => self.is_exclusive = true,
        }
    }

    /// Takes the lock, or stands in line; tells whether it was given at once.
    pub fn take(&mut self, task: TaskIndex, lock: Lock) -> bool {
        if self.queue.is_empty() && self.is_free_for(lock) {
            self.give(lock);
            return true;
        }
        self.queue.push_back((task, lock));
        false
    }

    /// Gives the lock back; appends those who have it now.
    pub fn release(&mut self, next: &mut Vec<TaskIndex>) {
        if self.is_exclusive {
            self.is_exclusive = false;
        } else {
            self.sharers = self.sharers.saturating_sub(1);
        }
        while let Some(&(task, lock)) = self.queue.front() {
            if !self.is_free_for(lock) {
                break;
            }
            self.queue.pop_front();
            self.give(lock);
            next.push(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharers_share_and_nobody_overtakes() {
        let mut lock = FileLock::default();
        assert!(lock.take(1, Lock::Shared) && lock.take(2, Lock::Shared));
        assert!(!lock.take(3, Lock::Exclusive));
        assert!(!lock.take(4, Lock::Shared), "stands behind the one that came before");
        let mut next = Vec::new();
        lock.release(&mut next);
        assert!(next.is_empty());
        lock.release(&mut next);
        assert_eq!(next, [3]);
        lock.release(&mut next);
        assert_eq!(next, [3, 4]);
    }
}
