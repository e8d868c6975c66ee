//! Files of the store as one actor has them open, and its operations on them as ops.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_lsm::{Action, BlockRead, FileKind, FileNo, LogWrite, LsmStore};
use iolab_model::op::{Access, Advice, Handle, OpenHow, PathId, RangeSync};
use iolab_model::{Bytes, Op};

/// Path of the directory, and of the list of tables, behind those of logs and tables.
pub const DIRECTORY: PathId = PathId(2 * FileNo::NAMES);
const MANIFEST: PathId = PathId(2 * FileNo::NAMES + 1);

const HOW: OpenHow = OpenHow {
    access: Access::Plain,
    durability: iolab_model::op::Durability::None,
    is_readable: true,
    is_writable: true,
    is_truncating: false,
    stream_buffer_bytes: Bytes(0),
    permissions: iolab_model::op::Permissions::Group,
    write_life: iolab_model::op::WriteLife::Unsaid,
    is_remembered: false,
};

/// Paths of all files that the store may have.
pub fn paths(directory: &Path) -> Arc<[PathBuf]> {
    let both = |name| {
        let path = |kind: &str| directory.join(format!("{name:06}.{kind}"));
        [path("sst"), path("log")]
    };
    let names = (0..FileNo::NAMES).flat_map(both);
    names.chain([directory.to_owned(), directory.join("MANIFEST")]).collect()
}

const fn path(file: FileNo, kind: FileKind) -> PathId {
    match kind {
        FileKind::Table => PathId(2 * file.name()),
        FileKind::Log => PathId(2 * file.name() + 1),
        FileKind::Manifest => MANIFEST,
    }
}

/// Use that is made of a table that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Blocks here and there: nothing is read ahead (`advise_random_on_open`).
    Random,
    /// From its beginning to its end.
    Sequential,
}

/// Open files of an actor, and ops that it will submit.
#[derive(Debug)]
pub struct OpenFiles {
    open: BTreeMap<FileNo, (Handle, FileKind)>,
    free: Vec<Handle>,
    handles: u32,
    can_allocate: bool,
    pub ops: VecDeque<Op>,
}

impl OpenFiles {
    /// Nothing is open.
    pub fn new(can_allocate: bool) -> Self {
        let (open, free) = (BTreeMap::new(), Vec::new());
        Self { open, free, handles: 0, can_allocate, ops: VecDeque::new() }
    }

    fn take_handle(&mut self, file: FileNo, kind: FileKind) -> Handle {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.handles += 1;
            Handle(self.handles - 1)
        });
        self.open.insert(file, (handle, kind));
        handle
    }

    fn create(&mut self, file: FileNo, kind: FileKind) -> Handle {
        let handle = self.take_handle(file, kind);
        self.ops.push_back(Op::Create { path: path(file, kind), handle, how: HOW });
        handle
    }

    /// The handle of a file, which is opened if it is not.
    fn handle(&mut self, file: FileNo, kind: FileKind, reading: Option<Reading>) -> Handle {
        if let Some((handle, _)) = self.open.get(&file) {
            return *handle;
        }
        let handle = self.take_handle(file, kind);
        self.ops.push_back(Op::Open { path: path(file, kind), handle, how: HOW });
        if reading == Some(Reading::Random) {
            self.ops.push_back(Op::Advise { handle, advice: Advice::Random });
        }
        handle
    }

    fn close(&mut self, file: FileNo) {
        if let Some((handle, _)) = self.open.remove(&file) {
            self.ops.push_back(Op::Close { handle });
            self.free.push(handle);
        }
    }

    fn allocate(&mut self, handle: Handle, bytes: u64) {
        if self.can_allocate {
            self.ops.push_back(Op::Allocate {
                handle,
                at: Bytes(0),
                length: Bytes(bytes),
                keeps_length: true,
            });
        }
    }

    /// Makes the directory and the list of tables.
    pub fn make(&mut self, store: &LsmStore) {
        self.ops.push_back(Op::MakeDirectory { path: DIRECTORY });
        let manifest = store.manifest();
        self.create(manifest, FileKind::Manifest);
        self.close(manifest);
    }

    /// Closes what the store has no more: tables that are gone, and logs before the present one.
    pub fn close_stale(&mut self, store: &LsmStore) {
        let is_stale = |file: FileNo, kind: FileKind| match kind {
            FileKind::Table => !store.has_table(file),
            FileKind::Log => store.log() != Some(file),
            FileKind::Manifest => false,
        };
        let all = self.open.iter().filter(|(file, (_, kind))| is_stale(**file, *kind));
        let stale: Vec<FileNo> = all.map(|(file, _)| *file).collect();
        for file in stale {
            self.close(file);
        }
    }

    /// Closes everything but the list of tables.
    pub fn close_all(&mut self) {
        let all = self.open.iter().filter(|(_, (_, kind))| *kind != FileKind::Manifest);
        let all: Vec<FileNo> = all.map(|(file, _)| *file).collect();
        for file in all {
            self.close(file);
        }
    }

    /// Reads of a lookup.
    pub fn read(&mut self, reads: &[BlockRead]) {
        for read in reads {
            let handle = self.handle(read.file, FileKind::Table, Some(Reading::Random));
            self.ops.push_back(Op::read(handle, Bytes(read.at), Bytes(read.bytes)));
        }
    }

    /// Operations of a writer on the log.
    pub fn log(&mut self, write: &LogWrite) {
        write.old.into_iter().for_each(|old| self.close(old));
        let Some(log) = write.log else { return };
        let handle = if write.is_new {
            self.create(log, FileKind::Log)
        } else {
            self.handle(log, FileKind::Log, None)
        };
        if write.reserve_to > 0 {
            self.allocate(handle, write.reserve_to);
        }
        self.ops.push_back(Op::write(handle, Bytes(write.at), Bytes(write.bytes)));
        if write.write_out.1 > 0 {
            let (at, length) = (Bytes(write.write_out.0), Bytes(write.write_out.1));
            self.ops.push_back(Op::SyncFileRange { handle, at, length, how: RangeSync::default() });
        }
        if write.is_synced {
            self.ops.push_back(Op::Fdatasync { handle });
        }
    }

    /// An action of a background job.
    pub fn act(&mut self, action: Action, manifest: FileNo) {
        let kind_of = |file| if file == manifest { FileKind::Manifest } else { FileKind::Table };
        match action {
            Action::Create { file, kind } => {
                self.create(file, kind);
            }
            Action::Allocate { file, bytes } => {
                let handle = self.handle(file, kind_of(file), None);
                self.allocate(handle, bytes);
            }
            Action::Read { file, at, bytes } => {
                let handle = self.handle(file, kind_of(file), Some(Reading::Sequential));
                self.ops.push_back(Op::read(handle, Bytes(at), Bytes(bytes)));
            }
            Action::Append { file, at, bytes } => {
                let handle = self.handle(file, kind_of(file), None);
                self.ops.push_back(Op::write(handle, Bytes(at), Bytes(bytes)));
            }
            Action::WriteOut { file, at, bytes } => {
                let handle = self.handle(file, kind_of(file), None);
                let (at, length) = (Bytes(at), Bytes(bytes));
                self.ops.push_back(Op::SyncFileRange {
                    handle,
                    at,
                    length,
                    how: RangeSync::default(),
                });
            }
            Action::Finish { file, bytes, is_cut } => {
                let handle = self.handle(file, kind_of(file), None);
                if is_cut && self.can_allocate {
                    self.ops.push_back(Op::Truncate { handle, length: Bytes(bytes) });
                }
                self.ops.push_back(Op::Fsync { handle });
                self.close(file);
            }
            Action::Sync { file } => {
                let handle = self.handle(file, kind_of(file), None);
                self.ops.push_back(Op::Fsync { handle });
            }
            Action::Remove { file, kind } => {
                self.close(file);
                self.ops.push_back(Op::Unlink { path: path(file, kind) });
            }
            Action::Burn(duration) => self.ops.push_back(Op::Burn { duration }),
        }
    }
}
