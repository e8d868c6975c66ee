//! `LsmStore`: the state of a store, and the numbers of its files.

use std::collections::VecDeque;

use iolab_model::kv::KvDurability;

use crate::action::{FileKind, FileNo, StoreCost};
use crate::cache::BlockCache;
use crate::facts::Counts;
use crate::leveled::Running;
use crate::memtable::Memtable;
use crate::options::LsmOptions;
use crate::stall::Stall;
use crate::version::Version;
use crate::write::Writer;

/// A log-structured merge store.
#[derive(Debug)]
pub struct LsmStore {
    pub(crate) options: LsmOptions,
    pub(crate) cost: StoreCost,
    pub(crate) durability: KvDurability,
    pub(crate) version: Version,
    pub(crate) active: Memtable,
    /// Buffers that are full, the oldest first.
    pub(crate) full: Vec<Memtable>,
    pub(crate) cache: BlockCache,
    pub(crate) writers: VecDeque<Writer>,
    /// Writes that were taken, and those that are logged.
    pub(crate) issued: u64,
    pub(crate) committed: u64,
    /// Writers in front whose log is being written.
    pub(crate) group: usize,
    pub(crate) switched_from: Option<FileNo>,
    pub(crate) is_log_new: bool,
    pub(crate) stall: Stall,
    pub(crate) flushes_running: u32,
    pub(crate) flushes_begun: u64,
    pub(crate) compactions_running: Vec<Running>,
    /// Files that nobody needs any more.
    pub(crate) removable: Vec<(FileNo, FileKind)>,
    pub(crate) manifest: FileNo,
    pub(crate) manifest_bytes: u64,
    pub(crate) counts: Counts,
    next_file: u32,
    /// Names in use, by number.
    names: Vec<bool>,
}

impl LsmStore {
    /// An empty store, whose first log and manifest are still to be made.
    pub fn new(options: LsmOptions, durability: KvDurability, cost: StoreCost) -> Self {
        let levels = options.num_levels as usize;
        let cache = BlockCache::new(options.block_cache_bytes());
        let is_logged = durability != KvDurability::None;
        Self {
            cost,
            durability,
            version: Version::new(levels),
            active: Memtable::new(is_logged.then_some(FileNo(1))),
            full: Vec::new(),
            cache,
            writers: VecDeque::new(),
            issued: 0,
            committed: 0,
            group: 0,
            switched_from: None,
            is_log_new: is_logged,
            stall: Stall::new(),
            flushes_running: 0,
            flushes_begun: 0,
            compactions_running: Vec::new(),
            removable: Vec::new(),
            manifest: FileNo(0),
            manifest_bytes: 0,
            counts: Counts::new(levels),
            next_file: 2,
            names: (0..FileNo::NAMES).map(|name| name < 2).collect(),
            options,
        }
    }

    /// Its options.
    pub const fn options(&self) -> &LsmOptions {
        &self.options
    }

    /// Time of a processor for its work.
    pub const fn cost(&self) -> &StoreCost {
        &self.cost
    }

    /// The list of its tables, which is there before anything else.
    pub const fn manifest(&self) -> FileNo {
        self.manifest
    }

    /// The log that is written to.
    pub const fn log(&self) -> Option<FileNo> {
        self.active.log
    }

    /// Tell whether a table is still there.
    pub fn has_table(&self, file: FileNo) -> bool {
        self.version.has(file)
    }

    /// A number for a new file, whose name nobody has.
    pub(crate) fn new_file(&mut self) -> FileNo {
        loop {
            let no = FileNo(self.next_file);
            self.next_file += 1;
            let name = &mut self.names[no.name() as usize];
            if !core::mem::replace(name, true) {
                return no;
            }
        }
    }

    /// A file is gone: its name may be used again.
    pub(crate) fn gone(&mut self, file: FileNo) {
        self.names[file.name() as usize] = false;
    }

    /// Looks anew whether writers must be slowed down.
    pub(crate) fn refresh(&mut self) {
        self.stall.refresh(&self.version, &self.options, self.full.len() as u64);
    }
}
