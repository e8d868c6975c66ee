//! `Unlimited`: nobody counts dirty pages until memory is full of them.
//!
//! Solaris has no limit of dirty memory: a file system that does not throttle its writers fills it,
//! and everything else waits for the pager. A writer that finds no clean memory sleeps.

use iolab_model::Ns;

use crate::api::write_back::{BackingId, DirtyView, Pause, TaskId, Throttle};

/// Sleep of a writer that finds no memory: the pager runs 100 times a second below `desfree`
/// (Solaris Tunable Parameters Reference Manual).
const SLEEP: Ns = Ns::from_ms(10);
/// Share of memory that is kept free of dirty pages: `lotsfree`, 1/64. [doc]
const LOTSFREE: u64 = 64;
/// Pages that are written in one go for want of a measured bandwidth. [assume]
const PAGES: u64 = 1024;

/// The throttle of a machine without limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Unlimited {
    const fn is_full(view: &DirtyView) -> bool {
        view.dirty + view.dirtyable / LOTSFREE >= view.dirtyable
    }
}

impl Throttle for Unlimited {
    fn dirtied(&mut self, _: Ns, _: TaskId, _: BackingId, _: u64) -> bool {
        true
    }

    fn look(&mut self, _: Ns, _: TaskId, _: BackingId, view: &DirtyView) -> Pause {
        if Self::is_full(view) { Pause::Sleep(SLEEP) } else { Pause::Go }
    }

    fn written(&mut self, _: Ns, _: BackingId, _: u64) {}

    fn wants_background(&self, view: &DirtyView) -> bool {
        Self::is_full(view)
    }

    fn bandwidth(&self, _: BackingId) -> (u64, u64) {
        (2 * PAGES, u64::MAX)
    }
}
