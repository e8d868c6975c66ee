//! `Throttle` and `Flusher`: deciders of who may dirty pages, and of when they are written.

use iolab_model::Ns;

use super::block::NodeId;

/// A device with dirty pages: index of a mount's device in the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackingId(pub u16);

/// A file of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// The device that it is written to.
    pub backing: BackingId,
    /// The file; the device's own pages (metadata) have a node of their own.
    pub node: NodeId,
}

/// A process that dirties pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u32);

/// Settings under the kernel's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmSettings {
    /// `vm.dirty_ratio`, percent.
    pub dirty_ratio: u64,
    /// `vm.dirty_background_ratio`, percent.
    pub dirty_background_ratio: u64,
    /// `vm.dirty_bytes`; 0: the ratio counts.
    pub dirty_bytes: u64,
    /// `vm.dirty_background_bytes`; 0: the ratio counts.
    pub dirty_background_bytes: u64,
    /// `vm.dirty_expire_centisecs`.
    pub dirty_expire_centisecs: u64,
    /// `vm.dirty_writeback_centisecs`; 0: no periodic write-back.
    pub dirty_writeback_centisecs: u64,
}

impl Default for VmSettings {
    /// The kernel's (Linux mm/page-writeback.c).
    fn default() -> Self {
        Self {
            dirty_ratio: 20,
            dirty_background_ratio: 10,
            dirty_bytes: 0,
            dirty_background_bytes: 0,
            dirty_expire_centisecs: 3_000,
            dirty_writeback_centisecs: 500,
        }
    }
}

/// Pages at an instant, as far as throttling looks at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirtyView {
    /// Pages that could be dirty: free ones and those of files, less reserves.
    pub dirtyable: u64,
    /// Dirty and under write-back, on all devices.
    pub dirty: u64,
    /// Dirty and under write-back, on the device in question.
    pub device_dirty: u64,
    /// Processors.
    pub cpus: u32,
}

/// Fate of a task that has dirtied pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Go on.
    Go,
    /// Sleep, then ask again with [`Throttle::look`].
    Sleep(Ns),
    /// Write this many pages of the device itself, then ask again (kernels up to 3.1).
    Write(u64),
}

/// A decider of dirty throttling.
pub trait Throttle {
    /// A task has dirtied pages. Cheap: most calls only count.
    fn dirtied(&mut self, now: Ns, task: TaskId, to: BackingId, pages: u64) -> bool;

    /// A look at the limits: after [`Throttle::dirtied`] said so, and after a pause.
    fn look(&mut self, now: Ns, task: TaskId, to: BackingId, view: &DirtyView) -> Pause;

    /// Pages of a device have been written.
    fn written(&mut self, now: Ns, to: BackingId, pages: u64);

    /// Tell whether background write-back should run.
    fn wants_background(&self, view: &DirtyView) -> bool;

    /// Smoothed bandwidth of a device in pages per second, and the hard limit in pages.
    fn bandwidth(&self, of: BackingId) -> (u64, u64);
}

/// A chunk of write-back of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The file.
    pub file: FileKey,
    /// Most pages.
    pub pages_max: u64,
    /// Of old pages or below the limits: requests are marked as background.
    pub is_background: bool,
}

/// End of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkEnd {
    /// The file.
    pub file: FileKey,
    /// Pages that were sent.
    pub pages: u64,
    /// Dirty pages remain.
    pub is_still_dirty: bool,
}

/// A decider of write-back: one per device. A chunk at a time is on its way through the file
/// system; its requests need not have ended when it is done.
pub trait Flusher {
    /// A file that was clean has a dirty page.
    fn dirtied(&mut self, now: Ns, file: FileKey);

    /// A file has no dirty pages any more, or is gone.
    fn cleaned(&mut self, file: FileKey);

    /// Time at which to poll next; [`Ns::MAX`] if never.
    fn next_timer(&self) -> Ns;

    /// Starts background write-back now, or writes all of it (`is_all`: space is short).
    fn wake(&mut self, now: Ns, is_all: bool);

    /// The next chunk, if there is something to write now. `wants_background` answers whether dirty
    /// pages are above the background limit.
    fn poll(&mut self, now: Ns, wants_background: bool, bandwidth: (u64, u64)) -> Option<Chunk>;

    /// A chunk has been sent.
    fn sent(&mut self, now: Ns, end: ChunkEnd);
}
