//! Reading on in a directory of a target that keeps its names sorted.
//!
//! The order is that of the names. A name that is removed between two parts is not missed, one that
//! is made behind the last one is found.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::op::PathId;
use crate::units::Bytes;

/// Place of a lane in a directory that it lists.
#[derive(Debug, Default)]
pub struct SortedListing {
    path: Option<PathId>,
    last: Option<PathBuf>,
    names: Vec<PathBuf>,
}

impl SortedListing {
    /// Reads up to `count` further names of `directory`, the path number `path`, from `all`;
    /// answers how many there were.
    pub fn read_on<V>(
        &mut self,
        (path, directory): (PathId, &Path),
        count: u32,
        all: &BTreeMap<PathBuf, V>,
    ) -> Bytes {
        let from = match self.last.take() {
            Some(last) if self.path == Some(path) => last,
            _ => directory.to_owned(),
        };
        let behind = all.range((Bound::Excluded(from), Bound::Unbounded));
        let inside = behind.map(|(name, _)| name).take_while(|name| name.starts_with(directory));
        let own = inside.filter(|name| name.parent() == Some(directory));
        self.names.clear();
        self.names.extend(own.take(count as usize).cloned());
        self.path = Some(path);
        if self.names.len() == count as usize {
            self.last = self.names.last().cloned();
        }
        Bytes(self.names.len() as u64)
    }

    /// The names of the part that was read last.
    pub fn names(&self) -> &[PathBuf] {
        &self.names
    }
}
