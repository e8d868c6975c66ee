//! State that all clients and threads of a simulated store share.

use std::cell::RefCell;

use iolab_lsm::{LsmStore, StoreJob};
use iolab_model::error::Errno;

/// A store at work.
#[derive(Debug)]
pub struct Shared {
    pub store: LsmStore,
    /// Clients that have not ended.
    pub clients: u32,
    /// Changes after which somebody may hold a file open that is gone.
    pub changes: u64,
    /// The first operation on a file that failed.
    pub failure: Option<(&'static str, Errno)>,
}

/// Access of all players, which are on one thread.
pub type SharedCell = RefCell<Shared>;

impl Shared {
    /// The next action of a job.
    pub fn next(&mut self, job: &mut StoreJob) -> Option<iolab_lsm::Action> {
        job.next(&mut self.store)
    }
}
