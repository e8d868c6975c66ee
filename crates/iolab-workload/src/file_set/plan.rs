//! Paths of a set of files, and the order in which a worker touches them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::PathId;
use iolab_model::{Bytes, Seed};

use super::{FileAction, FileOrder, FileSetWork, LinkKind};
use crate::draws::{Draws, Source};
use crate::spec::{Opening, Tenant};

/// One file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedFile {
    pub(super) path: PathId,
    /// Directory that it lies in.
    pub(super) parent: PathId,
    pub(super) bytes: u64,
}

/// Work of one worker, with all names and sizes.
///
/// The set's own directory (or the file to extend) is path 0; the subdirectories follow, then the
/// files in the order in which they are made. Where a directory's own order counts, its files have
/// no path here: their names are read from it.
#[derive(Clone, Debug)]
pub struct FileSetPlan {
    pub(super) work: FileSetWork,
    paths: Arc<[PathBuf]>,
    /// Subdirectories; 0: the files lie in the set's own directory.
    pub(super) subdirectories: u32,
    /// In the order in which they are touched.
    pub(super) files: Vec<PlannedFile>,
    /// Bytes of each transfer.
    pub(super) chunk: u64,
    /// For messages.
    pub(super) name: String,
    /// True if a file with the name of the one to extend belongs to another, and is left alone.
    pub(super) takes_only_free_names: bool,
}

impl FileSetPlan {
    /// The plan of worker `index` of a tenant with a set of files; `None` if it has none.
    ///
    /// `preferred` is the file system's size of transfers, in which a file is extended.
    pub fn of(
        tenant: &Tenant,
        index: u32,
        (seed, directory): (Seed, &Path),
        preferred: Option<Bytes>,
    ) -> Option<Self> {
        let work = tenant.file_set.clone()?;
        let name = tenant.file_name(index);
        let own = directory.join(&name);
        let is_extended = work.action == FileAction::Extend;
        let preferred = preferred.filter(|_| is_extended);
        let mut plan = Self {
            chunk: preferred.unwrap_or(tenant.io_size_bytes).0.max(1),
            subdirectories: 0,
            files: Vec::new(),
            paths: Arc::from([]),
            takes_only_free_names: tenant.opening == Opening::New,
            work,
            name,
        };
        if is_extended {
            let (path, bytes) = (PathId(0), plan.work.size_max_bytes.0);
            plan.files.push(PlannedFile { path, parent: path, bytes });
            plan.paths = Arc::from([own]);
            return Some(plan);
        }
        let mut paths = vec![own.clone()];
        let names =
            (0..plan.work.directories).filter_map(|number| plan.work.directory_name(number));
        paths.extend(names.map(|name| own.join(name)));
        plan.subdirectories = paths.len() as u32 - 1;
        if !plan.is_listed() {
            let source = Source::CLibrary { seed: seed.0 as u32 };
            let draws = tenant.draws.clone().unwrap_or(Draws { source, tickets: 0 });
            plan.add_files(&draws, &mut paths);
        }
        plan.paths = Arc::from(paths);
        Some(plan)
    }

    fn add_files(&mut self, numbers: &Draws, paths: &mut Vec<PathBuf>) {
        let drawn = self.work.drawn(numbers);
        let first = paths.len() as u32;
        for (index, name) in (0..).zip(&drawn.names) {
            let parent = self.parent(index);
            paths.push(paths[parent.0 as usize].join(name));
        }
        let file = |index: u64| PlannedFile {
            path: PathId(first + index as u32),
            parent: self.parent(index),
            bytes: drawn.sizes[index as usize].0,
        };
        self.files = drawn.order.into_iter().map(file).collect();
    }

    /// Directory of file number `index`.
    fn parent(&self, index: u64) -> PathId {
        match self.subdirectories {
            0 => PathId(0),
            _ => PathId(1 + self.work.directory_of(index) as u32),
        }
    }

    /// Every path; [`PathId`] counts in this order.
    pub fn paths(&self) -> Arc<[PathBuf]> {
        Arc::clone(&self.paths)
    }

    /// Bytes of the largest transfer.
    pub fn buffer_bytes(&self) -> Bytes {
        Bytes(self.chunk)
    }

    /// Tell whether each directory gives the order of its files.
    pub(super) fn is_listed(&self) -> bool {
        self.work.order == FileOrder::Sequential
            && matches!(self.work.action, FileAction::Read | FileAction::Remove)
    }

    /// Directories that files lie in, as numbers of paths.
    pub(super) fn holding(&self) -> std::ops::RangeInclusive<u32> {
        if self.subdirectories == 0 { 0..=0 } else { 1..=self.subdirectories }
    }

    /// Number of files that a directory is dealt.
    pub(super) fn dealt(&self, directory: u32) -> u32 {
        let all = 0..self.work.files;
        all.filter(|&index| self.parent(index) == PathId(directory)).count() as u32
    }

    /// Tell whether file number `at` in line is a link.
    pub(super) fn is_link(&self, at: usize) -> bool {
        at > 0 && self.work.link != LinkKind::None
    }
}
