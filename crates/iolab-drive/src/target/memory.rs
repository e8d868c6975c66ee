//! A target whose files are byte vectors: real data, no kernel. Synchronous.
//!
//! It is the reference for the conformance suite and for workloads whose data must come back. Left
//! out: mapping, stdio, locks, symbolic links, and everything about durability (a flush has nothing
//! to do). Its key-value store is a tree in memory that all lanes share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use iolab_model::listing::SortedListing;
use iolab_model::op::{Access, Handle, KeyValueKind, OpenHow, PathId, Position, Token, Transfer};
use iolab_model::seed::Stream;
use iolab_model::target::Content;
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Op, Submission,
    Target, error::Errno,
};

use crate::clock::{burn, monotonic, sleep_until};

type File = Arc<RwLock<Vec<u8>>>;

/// Names and the bytes behind them; shared by all lanes.
#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<PathBuf, File>,
    directories: BTreeSet<PathBuf>,
}

/// The values of the key-value store, by key.
type Store = Arc<RwLock<BTreeMap<u64, Vec<u8>>>>;

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    names: Arc<Mutex<Names>>,
    store: Store,
}

#[derive(Debug)]
struct Opened {
    file: File,
    how: OpenHow,
    position: u64,
}

/// A lane of the memory target.
#[derive(Debug)]
pub struct MemoryLane {
    names: Arc<Mutex<Names>>,
    store: Store,
    paths: Arc<[PathBuf]>,
    handles: Vec<Option<Opened>>,
    buffers: Vec<Vec<u8>>,
    content: Content,
    stamps: Stream,
    listed: SortedListing,
}

impl Target for Memory {
    type Lane = MemoryLane;

    fn name(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            can_verify: true,
            has_namespace: true,
            has_direct: true,
            has_append: true,
            has_vectors: true,
            has_small_calls: true,
            has_allocate: true,
            has_deallocate: true,
            has_zeroing: true,
            has_end: true,
            has_links: true,
            has_key_value: true,
            ..Capabilities::MINIMAL
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn open(&self, request: &LaneRequest) -> Result<MemoryLane, Error> {
        let mut random = request.seed.stream("buffer", u64::from(request.worker));
        let buffer = |_| {
            let mut bytes = vec![0; request.buffer_bytes.0 as usize];
            if request.content == Content::Incompressible {
                random.fill(&mut bytes);
            }
            bytes
        };
        Ok(MemoryLane {
            names: Arc::clone(&self.names),
            store: Arc::clone(&self.store),
            paths: Arc::clone(&request.paths),
            handles: Vec::new(),
            buffers: (0..request.depth).map(buffer).collect(),
            content: request.content,
            stamps: request.seed.stream("stamp", u64::from(request.worker)),
            listed: SortedListing::default(),
        })
    }
}

impl Lane for MemoryLane {
    fn now(&self) -> Ns {
        monotonic()
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut submitted = now;
        for submission in batch {
            let outcome = self.perform(submission.token, &submission.op);
            let completed = monotonic();
            done.push(Completion { token: submission.token, submitted, completed, outcome });
            submitted = completed;
        }
        Accepted { done: batch.len(), queued: 0 }
    }

    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn reap(&mut self, _: u32, _: Ns, _: &mut Vec<Completion>) -> Result<(), Error> {
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        0
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.buffers.get_mut(token.0 as usize).map(Vec::as_mut_slice)
    }

    fn sleep_until(&mut self, instant: Ns) {
        sleep_until(instant);
    }
}

/// Files here are neither mapped nor streams.
fn is_possible(how: OpenHow) -> Result<(), Errno> {
    let is_declined = matches!(how.access, Access::Mapped | Access::Stdio);
    if is_declined { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
}

impl MemoryLane {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, id: PathId) -> Result<PathBuf, Errno> {
        let listed = (id.0 as usize).checked_sub(self.paths.len());
        let found = match listed {
            None => self.paths.get(id.0 as usize),
            Some(place) => self.listed.names().get(place),
        };
        found.cloned().ok_or(Errno::ENOENT)
    }

    fn next_names(&mut self, path: PathId, count: u32) -> Result<Bytes, Errno> {
        let directory = self.path(path)?;
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.directories.contains(&directory) {
            return Err(Errno::ENOENT);
        }
        Ok(self.listed.read_on((path, &directory), count, &names.files))
    }

    fn opened(&mut self, handle: Handle) -> Result<&mut Opened, Errno> {
        self.handles.get_mut(handle.0 as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    fn perform(&mut self, token: Token, op: &Op) -> Result<Bytes, Errno> {
        match *op {
            Op::Read(transfer) => self.read(token, transfer),
            Op::Write(transfer) => self.write(token, transfer),
            Op::Fsync { handle }
            | Op::Fdatasync { handle }
            | Op::SyncFileRange { handle, .. }
            | Op::Allocate { handle, .. }
            | Op::Advise { handle, .. } => self.opened(handle).map(|_| Bytes(0)),
            Op::SyncAll => Ok(Bytes(0)),
            Op::KeyValue { kind, key, length } => self.request(token, kind, key, length),
            Op::Create { path, handle, how } => self.create(path, handle, how),
            Op::Open { path, handle, how } => {
                is_possible(how)?;
                let path = self.path(path)?;
                let file = self.names().files.get(&path).cloned().ok_or(Errno::ENOENT)?;
                if how.is_truncating {
                    file.write().unwrap_or_else(PoisonError::into_inner).clear();
                }
                self.install(handle, file, how);
                Ok(Bytes(0))
            }
            Op::Close { handle } => {
                self.opened(handle)?;
                self.handles[handle.0 as usize] = None;
                Ok(Bytes(0))
            }
            Op::Truncate { handle, length } => {
                let file = &self.opened(handle)?.file;
                file.write().unwrap_or_else(PoisonError::into_inner).resize(length.0 as usize, 0);
                Ok(Bytes(0))
            }
            Op::Deallocate { handle, at, length, .. } => self.clear(handle, at, length),
            Op::Copy { from, from_at, to, to_at, length } => {
                self.copy((from, from_at), (to, to_at), length)
            }
            Op::Burn { duration } => {
                burn(duration);
                Ok(Bytes(0))
            }
            Op::Think { duration } => {
                sleep_until(monotonic() + duration);
                Ok(Bytes(0))
            }
            _ => self.perform_on_names(op),
        }
    }

    fn perform_on_names(&mut self, op: &Op) -> Result<Bytes, Errno> {
        let done = |is_done: bool| if is_done { Ok(Bytes(0)) } else { Err(Errno::ENOENT) };
        match *op {
            Op::Unlink { path } => {
                let path = self.path(path)?;
                done(self.names().files.remove(&path).is_some())
            }
            Op::Rename { from, to } => {
                let (from, to) = (self.path(from)?, self.path(to)?);
                let mut names = self.names();
                let file = names.files.remove(&from).ok_or(Errno::ENOENT)?;
                names.files.insert(to, file);
                Ok(Bytes(0))
            }
            Op::Stat { path } | Op::StatTarget { path } => {
                let path = self.path(path)?;
                let file = self.names().files.get(&path).cloned().ok_or(Errno::ENOENT)?;
                let length = file.read().unwrap_or_else(PoisonError::into_inner).len();
                Ok(Bytes(length as u64))
            }
            Op::NextNames { path, count } => self.next_names(path, count),
            Op::MakeDirectory { path } => {
                let path = self.path(path)?;
                let is_new = self.names().directories.insert(path);
                if is_new { Ok(Bytes(0)) } else { Err(Errno::EEXIST) }
            }
            Op::ReadDirectory { path } | Op::SyncDirectory { path } => {
                let path = self.path(path)?;
                done(self.names().directories.contains(&path))
            }
            Op::Link { is_symbolic: true, .. } => Err(Errno::EOPNOTSUPP),
            Op::Link { from, to, .. } => {
                let (from, to) = (self.path(from)?, self.path(to)?);
                let mut names = self.names();
                let file = names.files.get(&from).cloned().ok_or(Errno::ENOENT)?;
                if names.files.contains_key(&to) {
                    return Err(Errno::EEXIST);
                }
                names.files.insert(to, file);
                Ok(Bytes(0))
            }
            Op::RemoveDirectory { path } => {
                let path = self.path(path)?;
                done(self.names().directories.remove(&path))
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// A range reads as zeros afterwards; the file does not grow.
    fn clear(&mut self, handle: Handle, at: Bytes, length: Bytes) -> Result<Bytes, Errno> {
        let file = &self.opened(handle)?.file;
        let mut file = file.write().unwrap_or_else(PoisonError::into_inner);
        let start = (at.0 as usize).min(file.len());
        let end = (start + length.0 as usize).min(file.len());
        file[start..end].fill(0);
        Ok(Bytes(0))
    }

    fn copy(
        &mut self,
        (from, from_at): (Handle, Bytes),
        (to, to_at): (Handle, Bytes),
        length: Bytes,
    ) -> Result<Bytes, Errno> {
        let source = Arc::clone(&self.opened(from)?.file);
        let target = Arc::clone(&self.opened(to)?.file);
        // One lock after the other: source and target may be one file.
        let part = {
            let source = source.read().unwrap_or_else(PoisonError::into_inner);
            let start = (from_at.0 as usize).min(source.len());
            source[start..(start + length.0 as usize).min(source.len())].to_vec()
        };
        let mut target = target.write().unwrap_or_else(PoisonError::into_inner);
        let (start, end) = (to_at.0 as usize, to_at.0 as usize + part.len());
        if target.len() < end {
            target.resize(end, 0);
        }
        target[start..end].copy_from_slice(&part);
        Ok(Bytes(part.len() as u64))
    }

    /// A request to the store; the bytes that it moved.
    fn request(
        &mut self,
        token: Token,
        kind: KeyValueKind,
        key: u64,
        length: Bytes,
    ) -> Result<Bytes, Errno> {
        let buffer = self.buffers.get_mut(token.0 as usize).ok_or(Errno::EINVAL)?;
        let write = |buffer: &[u8]| buffer.get(..length.0 as usize).map(<[u8]>::to_vec);
        let values = || self.store.read().unwrap_or_else(PoisonError::into_inner);
        let change = || self.store.write().unwrap_or_else(PoisonError::into_inner);
        let moved = match kind {
            KeyValueKind::Get => {
                let values = values();
                let value = values.get(&key).ok_or(Errno::ENOENT)?;
                let size = value.len().min(buffer.len());
                buffer[..size].copy_from_slice(&value[..size]);
                value.len()
            }
            KeyValueKind::Put => {
                let value = write(buffer).ok_or(Errno::EINVAL)?;
                change().insert(key, value);
                length.0 as usize
            }
            KeyValueKind::Modify => {
                let fresh = write(buffer).ok_or(Errno::EINVAL)?;
                let mut values = change();
                let value = values.get_mut(&key).ok_or(Errno::ENOENT)?;
                let read = value.len();
                *value = fresh;
                read + length.0 as usize
            }
            KeyValueKind::Delete => change().remove(&key).map(|_| 0).ok_or(Errno::ENOENT)?,
            KeyValueKind::Scan { count } => {
                values().range(key..).take(count as usize).map(|(_, value)| value.len()).sum()
            }
        };
        Ok(Bytes(moved as u64))
    }

    fn create(&mut self, path: PathId, handle: Handle, how: OpenHow) -> Result<Bytes, Errno> {
        is_possible(how)?;
        let path = self.path(path)?;
        let file = File::default();
        {
            let mut names = self.names();
            if names.files.contains_key(&path) {
                return Err(Errno::EEXIST);
            }
            names.files.insert(path, Arc::clone(&file));
        }
        self.install(handle, file, how);
        Ok(Bytes(0))
    }

    fn install(&mut self, handle: Handle, file: File, how: OpenHow) {
        let slot = handle.0 as usize;
        if self.handles.len() <= slot {
            self.handles.resize_with(slot + 1, || None);
        }
        self.handles[slot] = Some(Opened { file, how, position: 0 });
    }

    fn read(&mut self, token: Token, transfer: Transfer) -> Result<Bytes, Errno> {
        let Self { handles, buffers, .. } = self;
        let opened = handles.get_mut(transfer.handle.0 as usize).and_then(Option::as_mut);
        let opened = opened.ok_or(Errno::EBADF)?;
        if !transfer.flags.is_empty() {
            return Err(Errno::EOPNOTSUPP);
        }
        let file = opened.file.read().unwrap_or_else(PoisonError::into_inner);
        let at = match transfer.at {
            Position::At(at) => at.0,
            Position::Current => opened.position,
            Position::End => return Err(Errno::EINVAL),
        };
        let start = (at as usize).min(file.len());
        let end = (start + transfer.length.0 as usize).min(file.len());
        let buffer = buffers.get_mut(token.0 as usize).ok_or(Errno::EINVAL)?;
        buffer.get_mut(..end - start).ok_or(Errno::EINVAL)?.copy_from_slice(&file[start..end]);
        opened.position = end as u64;
        Ok(Bytes((end - start) as u64))
    }

    fn write(&mut self, token: Token, transfer: Transfer) -> Result<Bytes, Errno> {
        let Self { handles, buffers, stamps, content, .. } = self;
        let opened = handles.get_mut(transfer.handle.0 as usize).and_then(Option::as_mut);
        let opened = opened.ok_or(Errno::EBADF)?;
        if !transfer.flags.is_empty() {
            return Err(Errno::EOPNOTSUPP);
        }
        let length = transfer.length.0 as usize;
        let buffer = buffers.get_mut(token.0 as usize).and_then(|b| b.get_mut(..length));
        let buffer = buffer.ok_or(Errno::EINVAL)?;
        if *content == Content::Incompressible {
            for page in buffer.chunks_mut(Bytes::PAGE.0 as usize) {
                let stamp = stamps.next_u64().to_le_bytes();
                let size = page.len().min(stamp.len());
                page[..size].copy_from_slice(&stamp[..size]);
            }
        } else if let Content::Pattern(pattern) = content {
            pattern.fill(buffer);
        }
        let mut file = opened.file.write().unwrap_or_else(PoisonError::into_inner);
        let at = match transfer.at {
            _ if opened.how.access == Access::Append => file.len(),
            Position::End => file.len(),
            Position::At(at) => at.0 as usize,
            Position::Current => opened.position as usize,
        };
        if file.len() < at + length {
            file.resize(at + length, 0);
        }
        file[at..at + length].copy_from_slice(buffer);
        opened.position = (at + length) as u64;
        Ok(transfer.length)
    }
}
