//! Facts that the machine tells of itself: names and lengths, counts, knobs of a mounted system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iolab_model::error::Errno;
use iolab_model::{Bytes, Ns};

use super::engine::Machine;
use crate::api::block::Place;
use crate::api::file_system::{Reshape, Space};

impl Machine {
    /// Names of all files, directories left out.
    pub fn names(&self) -> BTreeMap<PathBuf, u32> {
        self.tree.files()
    }

    /// Length of a file.
    pub fn size(&self, path: &Path) -> Result<Bytes, Errno> {
        self.tree.find(path).map(|owner| Bytes(self.tree.node(owner).size))
    }

    /// Check that a path is a directory.
    pub fn directory(&self, path: &Path) -> Result<(), Errno> {
        let owner = self.tree.find(path)?;
        self.tree.node(owner).children.as_ref().map(|_| ()).ok_or(super::tree::ENOTDIR)
    }

    /// Runs of neighbouring blocks of a file, as FIEMAP tells them; `None` while data have no
    /// place.
    pub fn extents(&self, path: &Path) -> Result<Option<u64>, Errno> {
        let owner = self.tree.find(path)?;
        let node = self.tree.node(owner);
        let block = u64::from(self.facts.block_bytes);
        let (mut at, end, mut count, mut last) = (0, node.size.div_ceil(block), 0, None);
        while at < end {
            let run = crate::api::block::FileRun { node: node.id, first: at, count: end - at };
            let mapped = self.fs.map(run);
            let place = mapped.place.block();
            if let Some((device, first)) = place {
                count += u64::from(last != Some((device, first)));
                last = Some((device, first + mapped.count));
            } else {
                last = None;
            }
            if mapped.place == Place::Delayed {
                return Ok(None);
            }
            at += mapped.count.max(1);
        }
        Ok(Some(count))
    }

    /// Space of the file system, in its blocks.
    pub fn space(&self) -> Space {
        self.fs.space()
    }

    /// Bytes of data that are dirty or on their way.
    pub const fn dirty_bytes(&self) -> u64 {
        (self.cache.dirty + self.cache.write_back) * 4096
    }

    /// Tell whether the space of ranges can be changed so (fallocate(2)).
    pub fn can_reshape(&self, how: Reshape) -> bool {
        self.fs.can_reshape(how)
    }

    /// Preferred size of transfers (`st_blksize` of stat(2)): the unit of its cache.
    pub fn preferred_bytes(&self) -> Bytes {
        Bytes(u64::from(self.fs.facts().cache_unit_bytes))
    }

    /// Times until which the processors of workers and of the kernel's threads are busy.
    pub fn busy_until(&self) -> impl Iterator<Item = Ns> + '_ {
        self.lanes.iter().map(|lane| lane.cpu_free).chain(self.threads)
    }

    /// Time of processors that was charged to workers, and the part of it that they asked for
    /// themselves (computing, no calls).
    pub const fn worked(&self) -> (Ns, Ns) {
        (self.worked, self.computed)
    }

    /// Forgets clean pages, names and attributes (`vm.drop_caches = 3`).
    pub fn drop_caches(&mut self) {
        self.cache.drop_clean();
        let all: Vec<u32> = self.tree.indices().collect();
        for owner in all {
            self.tree.node_mut(owner).is_known = false;
        }
    }

    /// Flat names and values of what was counted. Names of the kernel where it counts the same.
    pub fn counters(&self) -> Vec<(String, f64)> {
        let cache = self.cache.counters;
        let counts = self.counts;
        let mut all: Vec<(String, f64)> = [
            ("cache.pages_used", cache.used as f64),
            ("cache.pages_missed", cache.misses as f64),
            ("cache.pages_read_ahead", cache.read_ahead as f64),
            ("cache.pages_read_ahead_unused", cache.read_ahead_unused as f64),
            ("cache.pages_evicted", cache.evicted as f64),
            ("cache.workingset_refault_file", self.cache.refaults() as f64),
            ("cache.nr_dirty", self.cache.dirty as f64),
            ("cache.nr_dirty_max", counts.dirty_max as f64),
            ("cache.nr_writeback", self.cache.write_back as f64),
            ("cache.throttled_ns", counts.throttled.0 as f64),
            ("cache.pgfault", counts.faults_minor as f64),
            ("cache.pgmajfault", counts.faults_major as f64),
            ("fs.read_bytes", counts.read_bytes as f64),
            ("fs.data_bytes_written", counts.data_bytes as f64),
            ("fs.metadata_bytes_written", counts.metadata_bytes as f64),
            ("fs.flushes", counts.flushes as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        all.extend(
            self.fs.counters().into_iter().map(|(name, value)| (format!("fs.{name}"), value)),
        );
        all
    }
}
