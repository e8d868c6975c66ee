//! Files that are slices of a device without a file system.
//!
//! A target in front of an engine: each file of the workload gets a range of the device, on a whole
//! mebibyte, one behind the other. Reads and writes go to the device at the range's offset; what
//! concerns names (create, stat, unlink, truncate) goes to an empty stand-in file of the same name
//! in memory, whose length says how much of the slice was written. So a worker behaves as on a file
//! system, nothing is ever unlinked or truncated on the device, and no byte outside of a slice can
//! be reached.
//!
//! Left out: access through the page cache, appending, mapping, renaming, folders, and transfers at
//! the position of a handle; each is refused.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::erased::{Erased, ErasedLane};
use iolab_model::error::Errno;
use iolab_model::op::{Access, Handle, Op, OpenHow, PathId, Position, Token, Transfer};
use iolab_model::{
    Accepted, Bytes, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
};
use iolab_workload::Workload;

use super::request::RawDevice;

/// Slices begin on whole mebibytes, as partitions do.
const ALIGNMENT: u64 = 1 << 20;

/// A range of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    start: u64,
    length: u64,
}

/// Table of files and their ranges.
#[derive(Clone, Debug)]
pub struct Table {
    node: PathBuf,
    slices: BTreeMap<String, Slice>,
}

impl Table {
    /// Gives every file of all phases its range, the largest size that any phase wants.
    pub fn new(device: &RawDevice, directory: &Path, workload: &Workload) -> Result<Self, Error> {
        let wrong = |problem: String, remedy: &str| Error::BadWorkload {
            problem,
            remedy: remedy.to_owned(),
        };
        let mut order = Vec::new();
        let mut sizes = BTreeMap::new();
        for tenant in workload.phases.iter().flat_map(|phase| &phase.tenants) {
            if tenant.access != Access::Direct {
                return Err(wrong(
                    "a device without a file system, and I/O through the page cache".into(),
                    "use direct I/O, or choose a file system",
                ));
            }
            if tenant.io_size_bytes.0 % device.unit_bytes != 0 {
                return Err(wrong(
                    format!(
                        "records of {} on a device with sectors of {} bytes",
                        tenant.io_size_bytes, device.unit_bytes
                    ),
                    "use a multiple of the sector",
                ));
            }
            let count = if tenant.is_file_shared { 1 } else { tenant.workers };
            for name in (0..count).map(|index| tenant.file_name(index)) {
                let size = sizes.entry(name.clone()).or_insert_with(|| {
                    order.push(name);
                    0
                });
                *size = tenant.file_bytes.0.max(*size);
            }
        }
        let mut at = device.start_bytes.next_multiple_of(ALIGNMENT);
        let mut slices = BTreeMap::new();
        for name in order {
            let length = sizes[&name].next_multiple_of(ALIGNMENT);
            let end = at.checked_add(length).filter(|end| *end <= device.end_bytes);
            let end = end.ok_or_else(|| {
                wrong(
                    format!(
                        "the files need {} bytes, the device has {}",
                        sizes.values().map(|size| size.next_multiple_of(ALIGNMENT)).sum::<u64>(),
                        device.end_bytes - device.start_bytes
                    ),
                    "use smaller files or fewer workers",
                )
            })?;
            slices.insert(name, Slice { start: at, length });
            at = end;
        }
        Ok(Self { node: directory.join(&device.node), slices })
    }
}

/// An engine that works on slices.
///
/// Direct I/O to a device takes microseconds: the engine may be of any type.
pub struct Sliced<'a> {
    engine: Erased<'a>,
    table: &'a Table,
}

impl<'a> Sliced<'a> {
    /// `engine`, kept within `table`.
    pub fn new<T: Target + Sync>(engine: &'a T, table: &'a Table) -> Self {
        Self { engine: Erased::new(engine), table }
    }
}

impl<'a> Target for Sliced<'a> {
    type Lane = SlicedLane<'a>;

    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_plain: false,
            has_append: false,
            has_mapping: false,
            has_stream: false,
            has_lock: false,
            has_allocate: false,
            ..self.engine.capabilities()
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.engine.facts()
    }

    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error> {
        let mut files = Vec::new();
        for path in request.paths.iter() {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let slice = self.table.slices.get(name).copied().ok_or_else(|| Error::System {
                call: "open",
                subject: path.display().to_string(),
                errno: Errno(libc::ENOENT),
            })?;
            files.push((path.clone(), slice));
        }
        let paths: Arc<[PathBuf]> = Arc::from([self.table.node.clone()]);
        let lane = self.engine.open(&LaneRequest { paths, ..request.clone() })?;
        Ok(SlicedLane { lane, files, opened: Vec::new(), batch: Vec::new() })
    }
}

/// A handle on a slice.
#[derive(Clone, Debug)]
struct Opened {
    path: PathBuf,
    slice: Slice,
    /// Bytes written through this handle.
    written: u64,
}

/// A lane of [`Sliced`].
pub struct SlicedLane<'a> {
    lane: ErasedLane<'a>,
    files: Vec<(PathBuf, Slice)>,
    opened: Vec<Option<Opened>>,
    /// Kept for its memory.
    batch: Vec<Submission>,
}

/// Fate of an op.
enum Fate {
    /// The engine does this.
    Send(Op),
    /// Done.
    Done(Result<Bytes, Errno>),
}

const INVALID: Errno = Errno(libc::EINVAL);

fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(libc::EIO))
}

impl SlicedLane<'_> {
    fn translate(&mut self, op: &Op) -> Fate {
        match *op {
            Op::Read(transfer) => self.within(&transfer).map(Op::Read),
            Op::Write(transfer) => self
                .within(&transfer)
                .inspect(|moved| {
                    self.note_written(moved);
                })
                .map(Op::Write),
            Op::Fsync { handle } | Op::Fdatasync { handle } => {
                self.note_length(handle).map(|()| *op)
            }
            Op::Close { handle } => self.note_length(handle).map(|()| {
                self.opened[handle.0 as usize] = None;
                *op
            }),
            Op::Create { path, handle, how } => self.create(path, handle, how),
            Op::Open { path, handle, how } => self.open(path, handle, how),
            Op::Truncate { handle, length } => return Fate::Done(self.truncate(handle, length)),
            Op::SyncFileRange { handle, at, length, how } => {
                let range = Transfer::plain(handle, Position::At(at), length);
                self.within(&range).map(|_| {
                    let start =
                        self.opened[handle.0 as usize].as_ref().map_or(0, |it| it.slice.start);
                    Op::SyncFileRange { handle, at: Bytes(start + at.0), length, how }
                })
            }
            Op::Think { .. } => Ok(*op),
            Op::Unlink { path } => return Fate::Done(self.unlink(path)),
            Op::Stat { path } => return Fate::Done(self.stat(path)),
            _ => Err(Errno::EOPNOTSUPP),
        }
        .map_or_else(|errno| Fate::Done(Err(errno)), Fate::Send)
    }

    fn file(&self, path: PathId) -> Result<&(PathBuf, Slice), Errno> {
        self.files.get(path.0 as usize).ok_or(Errno::ENOENT)
    }

    fn handle(&mut self, handle: Handle) -> Result<&mut Opened, Errno> {
        self.opened.get_mut(handle.0 as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// The same transfer on the device; a byte outside of the slice is never asked for.
    fn within(&mut self, transfer: &Transfer) -> Result<Transfer, Errno> {
        let slice = self.handle(transfer.handle)?.slice;
        let Position::At(at) = transfer.at else { return Err(INVALID) };
        let end = at.0.checked_add(transfer.length.0).ok_or(INVALID)?;
        if end > slice.length {
            return Err(Errno(libc::ENOSPC));
        }
        Ok(Transfer { at: Position::At(Bytes(slice.start + at.0)), ..*transfer })
    }

    fn note_written(&mut self, moved: &Transfer) {
        if let (Ok(opened), Position::At(at)) = (self.handle(moved.handle), moved.at) {
            opened.written = opened.written.max(at.0 + moved.length.0 - opened.slice.start);
        }
    }

    /// Lets the stand-in be as long as what was written.
    fn note_length(&mut self, handle: Handle) -> Result<(), Errno> {
        let opened = self.handle(handle)?;
        if opened.written == 0 {
            return Ok(());
        }
        let (path, written) = (opened.path.clone(), std::mem::take(&mut opened.written));
        let longer = || {
            let file = OpenOptions::new().write(true).open(path)?;
            let length = file.metadata()?.len().max(written);
            file.set_len(length)
        };
        longer().map_err(|error| errno(&error))
    }

    fn create(&mut self, path: PathId, handle: Handle, how: OpenHow) -> Result<Op, Errno> {
        let stand_in = self.file(path)?.0.clone();
        let made = OpenOptions::new().write(true).create_new(true).open(stand_in);
        made.map_err(|error| errno(&error))?;
        self.open(path, handle, how)
    }

    fn open(&mut self, path: PathId, handle: Handle, how: OpenHow) -> Result<Op, Errno> {
        let (stand_in, slice) = self.file(path)?.clone();
        if how.access != Access::Direct {
            return Err(Errno::EOPNOTSUPP);
        }
        let found = OpenOptions::new()
            .write(true)
            .open(&stand_in)
            .and_then(|file| if how.is_truncating { file.set_len(0) } else { Ok(()) });
        found.map_err(|error| errno(&error))?;
        let slot = handle.0 as usize;
        if self.opened.len() <= slot {
            self.opened.resize_with(slot + 1, || None);
        }
        self.opened[slot] = Some(Opened { path: stand_in, slice, written: 0 });
        let how = OpenHow { is_truncating: false, ..how };
        Ok(Op::Open { path: PathId(0), handle, how })
    }

    fn truncate(&mut self, handle: Handle, length: Bytes) -> Result<Bytes, Errno> {
        let opened = self.handle(handle)?;
        if length.0 > opened.slice.length {
            return Err(Errno(libc::ENOSPC));
        }
        opened.written = 0;
        let path = opened.path.clone();
        let cut = OpenOptions::new().write(true).open(path).and_then(|it| it.set_len(length.0));
        cut.map(|()| Bytes(0)).map_err(|error| errno(&error))
    }

    fn unlink(&self, path: PathId) -> Result<Bytes, Errno> {
        let removed = std::fs::remove_file(&self.file(path)?.0);
        removed.map(|()| Bytes(0)).map_err(|error| errno(&error))
    }

    fn stat(&self, path: PathId) -> Result<Bytes, Errno> {
        let found = std::fs::symlink_metadata(&self.file(path)?.0);
        found.map(|found| Bytes(found.len())).map_err(|error| errno(&error))
    }
}

impl Lane for SlicedLane<'_> {
    #[inline]
    fn now(&self) -> Ns {
        self.lane.now()
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let mut translated = std::mem::take(&mut self.batch);
        translated.clear();
        let mut accepted = Accepted::default();
        for submission in batch {
            let is_transfer = matches!(submission.op, Op::Read(_) | Op::Write(_));
            if !translated.is_empty() && !is_transfer {
                break;
            }
            match self.translate(&submission.op) {
                Fate::Send(op) => translated.push(Submission { op, ..*submission }),
                // It ends the batch, so that what was taken is always a front part of it.
                Fate::Done(outcome) if translated.is_empty() => {
                    let completed = self.lane.now();
                    let token = submission.token;
                    done.push(Completion { token, submitted: now, completed, outcome });
                    accepted.done += 1;
                }
                Fate::Done(_) => break,
            }
        }
        if !translated.is_empty() {
            let sent = self.lane.submit_batch(now, &translated, done);
            accepted.done += sent.done;
            accepted.queued += sent.queued;
        }
        self.batch = translated;
        accepted
    }

    fn kick(&mut self) -> Result<(), Error> {
        self.lane.kick()
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        self.lane.reap(min, until, done)
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        self.lane.in_flight()
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.lane.buffer(token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        self.lane.sleep_until(instant);
    }

    fn time_submissions(&mut self, group: u32) {
        self.lane.time_submissions(group);
    }

    fn submission_ns(&self, token: Token) -> Ns {
        self.lane.submission_ns(token)
    }
}

#[cfg(test)]
mod tests;
