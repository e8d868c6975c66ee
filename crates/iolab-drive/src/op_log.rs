//! A log of single ops, or of what happened in equal windows of time.
//!
//! One file per worker, written by the worker itself through a buffer of fixed size, so that memory
//! does not grow with the number of ops. Transfers, trims and flushes that count are in it, and
//! of single ops also flushes of the timed region and behind it that do not count. All
//! numbers are little-endian; times are those of the worker's clock, in ns.
//!
//! An entry of one op has [`ENTRY_BYTES`] bytes: offset in bytes (8), end of the op (8), service
//! time (8), bytes moved (4), direction (1): 0 for a read, 1 for a write, 2 for a trim, 3 for an
//! fsync, 4 for an fdatasync, 5 for a `sync_file_range`; and the number of its file among those of
//! the lane (3). An entry of a window ([`WINDOW_ENTRY_BYTES`]): end of the window
//! (8), sum of the service times (8), the
//! longest of them (8), bytes moved (8), number of ops (4), direction (4); one for each direction
//! that was used. The last window ends with its last op.
//!
//! Where times of submission are kept apart, each entry has more behind that: of one op the time of
//! its submission (8); of a window the sum of these times (8), the longest of them (8), the longest
//! of the times from there to the ends of the ops (8).

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use iolab_model::error::Errno;
use iolab_model::op::{Handle, Op, OpClass, PathId, Position, Token};
use iolab_model::{Bytes, Completion, Error, Ns};

/// Bytes of an entry of one op.
pub const ENTRY_BYTES: usize = 32;
/// Bytes of an entry of a window.
pub const WINDOW_ENTRY_BYTES: usize = 40;
/// Bytes that an entry of one op has more with its time of submission.
pub const SUBMISSION_BYTES: usize = 8;
/// Bytes that an entry of a window has more with times of submission.
pub const WINDOW_SUBMISSION_BYTES: usize = 24;
/// Bytes of an entry of a window with all that it may have.
const WINDOW_BYTES_MAX: usize = WINDOW_ENTRY_BYTES + WINDOW_SUBMISSION_BYTES;
/// Bytes that are gathered before they are written; whole entries of either kind.
const BUFFER_BYTES: usize = 512 * ENTRY_BYTES * WINDOW_ENTRY_BYTES / 8;

/// Directions of entries.
const READ: usize = 0;
const WRITE: usize = 1;
const TRIM: usize = 2;
const FSYNC: usize = 3;
const FDATASYNC: usize = 4;
const SYNC_RANGE: usize = 5;
const DIRECTIONS: usize = 6;
/// Bits of an entry's direction; above them is the number of its file.
const DIRECTION_BITS: u32 = 8;
/// Largest number of a file in an entry.
const FILE_MAX: u32 = (1 << (u32::BITS - DIRECTION_BITS)) - 1;

/// An op in flight: where it is, how long it is if that is not what it answers, its direction.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    at: u64,
    length: Option<u64>,
    direction: usize,
    file: u32,
}

/// Sums of one direction in its window.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    index: u64,
    ops: u32,
    bytes: u64,
    total_ns: u64,
    longest_ns: u64,
    last_end: u64,
    submission_ns: u64,
    longest_submission_ns: u64,
    longest_completion_ns: u64,
}

/// Windows of equal width, from the beginning of the timed region on.
#[derive(Debug)]
struct Windows {
    width: u64,
    origin: u64,
    sums: [Sums; DIRECTIONS],
    has_submissions: bool,
}

/// The log of one worker.
#[derive(Debug)]
pub struct OpLog {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Per slot: the op in flight; absent for what has no entry.
    slots: Vec<Option<InFlight>>,
    /// Number of the file of each handle that was opened.
    files: Vec<u32>,
    /// Absent: each op has an entry.
    windows: Option<Windows>,
    /// Times of submission are in it.
    has_submissions: bool,
    /// Time of submission of the op that ends next.
    handed_over: u64,
    /// Time at which the timed region began.
    origin: Option<Ns>,
    /// The first failure; nothing is written after it.
    failure: Option<std::io::Error>,
}

impl InFlight {
    /// An op; `files` are those of the handles.
    fn of(op: &Op, files: &[u32]) -> Option<Self> {
        let found = |handle: Handle, at: u64, length: Option<u64>, direction: usize| {
            let file = files.get(handle.0 as usize).copied().unwrap_or(0);
            Some(Self { at, length, direction, file })
        };
        let direction = if op.class() == OpClass::Write { WRITE } else { READ };
        let place = |at: Position| match at {
            Position::At(at) => at.0,
            Position::Current | Position::End => 0,
        };
        match *op {
            Op::Read(transfer) | Op::Write(transfer) => {
                found(transfer.handle, place(transfer.at), None, direction)
            }
            Op::Touch { handle, at, length: Bytes(length), .. } => {
                found(handle, at.0, Some(length), direction)
            }
            Op::Deallocate { handle, at, length: Bytes(length), .. } => {
                found(handle, at.0, Some(length), TRIM)
            }
            Op::Fsync { handle } | Op::Msync { handle, .. } => found(handle, 0, Some(0), FSYNC),
            Op::Fdatasync { handle } => found(handle, 0, Some(0), FDATASYNC),
            Op::SyncFileRange { handle, .. } => found(handle, 0, Some(0), SYNC_RANGE),
            _ => None,
        }
    }
}

impl OpLog {
    /// Name of the file of worker number `ordinal` of a phase.
    pub fn file_name(phase: &str, ordinal: u32) -> String {
        format!("{phase}.{ordinal}")
    }

    /// A new file in `folder` for a lane of so many slots; every op has an entry.
    ///
    /// # Errors
    ///
    /// It cannot be made; also if it is there already, because then it is somebody else's.
    pub fn create(folder: &Path, phase: &str, ordinal: u32, slots: u32) -> Result<Self, Error> {
        let path = folder.join(Self::file_name(phase, ordinal));
        let mut how = OpenOptions::new();
        let file = how.write(true).create_new(true).mode(0o644).open(&path).map_err(|error| {
            let errno = Errno(error.raw_os_error().unwrap_or(Errno::EIO.0));
            Error::System { call: "creating", subject: path.display().to_string(), errno }
        })?;
        Ok(Self {
            file,
            path,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            slots: vec![None; slots as usize],
            files: Vec::new(),
            windows: None,
            has_submissions: false,
            handed_over: 0,
            origin: None,
            failure: None,
        })
    }

    /// The same with times of submission; before [`OpLog::in_windows`].
    #[must_use]
    pub fn with_submissions(self, has_submissions: bool) -> Self {
        Self { has_submissions, ..self }
    }

    /// The same with one entry per window of `width` and direction; 0: per op.
    #[must_use]
    pub fn in_windows(self, Ns(width): Ns) -> Self {
        let sums = [Sums::default(); DIRECTIONS];
        let has_submissions = self.has_submissions;
        let windows = (width > 0).then_some(Windows { width, origin: 0, sums, has_submissions });
        Self { windows, ..self }
    }

    /// The timed region begins, if it has not yet: windows are counted from here.
    #[inline]
    pub fn begin(&mut self, now: Ns) {
        if self.origin.is_none() {
            self.origin = Some(now);
            if let Some(windows) = &mut self.windows {
                windows.origin = now.0;
            }
        }
    }

    /// Notes what an op is about.
    #[inline]
    pub fn submitted(&mut self, Token(slot): Token, op: &Op) {
        if let Op::Open { path, handle, .. } | Op::Create { path, handle, .. } = *op {
            self.opened(handle, path);
        }
        self.slots[slot as usize] = InFlight::of(op, &self.files);
    }

    #[cold]
    fn opened(&mut self, Handle(handle): Handle, PathId(path): PathId) {
        let handle = handle as usize;
        self.files.resize(self.files.len().max(handle + 1), 0);
        self.files[handle] = path.min(FILE_MAX);
    }

    /// Writes down a flush of the timed region, or of what follows it, that does not count.
    #[cold]
    pub fn uncounted(&mut self, completion: &Completion) {
        let op = self.slots[completion.token.0 as usize];
        let is_flush = op.is_some_and(|op| op.direction >= FSYNC);
        let is_single = self.windows.is_none() && self.origin.is_some();
        if is_flush && is_single && completion.outcome.is_ok() {
            self.completed(completion);
        }
    }

    /// Notes how long it took to hand over the op whose end comes next.
    #[inline]
    pub fn handed_over(&mut self, took: Ns) {
        self.handed_over = took.0;
    }

    /// Writes down an op that counts.
    #[inline]
    pub fn completed(&mut self, completion: &Completion) {
        let Some(op) = self.slots[completion.token.0 as usize] else { return };
        let moved = match (completion.outcome, op.length) {
            (Ok(_), Some(length)) => length,
            (Ok(moved), None) => moved.0,
            (Err(_), _) => 0,
        };
        let (ended, took) = (completion.completed.0, completion.service().0);
        let submission = std::mem::take(&mut self.handed_over).min(took);
        if let Some(windows) = &mut self.windows {
            windows.add((ended, took, moved), (op.direction, submission), &mut self.buffer);
        } else {
            for long in [op.at, ended, took] {
                self.buffer.extend_from_slice(&long.to_le_bytes());
            }
            for short in [moved as u32, op.direction as u32 | op.file << DIRECTION_BITS] {
                self.buffer.extend_from_slice(&short.to_le_bytes());
            }
            if self.has_submissions {
                self.buffer.extend_from_slice(&submission.to_le_bytes());
            }
        }
        if self.buffer.len() + DIRECTIONS * WINDOW_BYTES_MAX > BUFFER_BYTES {
            self.flush();
        }
    }

    #[cold]
    fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.file.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    /// Writes what is left; an error says that the log is not complete.
    ///
    /// # Errors
    ///
    /// The part that could not be written, and the reason.
    pub fn close(mut self) -> Result<(), String> {
        if let Some(windows) = &mut self.windows {
            windows.end(&mut self.buffer);
        }
        self.flush();
        match self.failure {
            None => Ok(()),
            Some(error) => Err(format!(
                "the log of single operations {} could not be written: {error}; free some space",
                self.path.display()
            )),
        }
    }
}

impl Windows {
    /// Counts an op, after writing down all windows that end before it.
    #[inline]
    fn add(
        &mut self,
        (ended, took, moved): (u64, u64, u64),
        (direction, submission): (usize, u64),
        to: &mut Vec<u8>,
    ) {
        let index = ended.saturating_sub(self.origin) / self.width;
        if self.sums[direction].index != index || self.sums[direction].ops == 0 {
            self.pass(index, to);
            self.sums[direction] = Sums { index, ..Sums::default() };
        }
        let sums = &mut self.sums[direction];
        sums.ops += 1;
        sums.bytes += moved;
        sums.total_ns += took;
        sums.longest_ns = sums.longest_ns.max(took);
        sums.last_end = ended;
        sums.submission_ns += submission;
        sums.longest_submission_ns = sums.longest_submission_ns.max(submission);
        sums.longest_completion_ns = sums.longest_completion_ns.max(took - submission);
    }

    /// Writes down the windows before number `index`.
    #[cold]
    fn pass(&mut self, index: u64, to: &mut Vec<u8>) {
        for direction in 0..DIRECTIONS {
            let sums = self.sums[direction];
            if sums.ops > 0 && sums.index < index {
                let end = self.origin + (sums.index + 1) * self.width;
                write_window(sums, (end, self.has_submissions), direction, to);
                self.sums[direction] = Sums::default();
            }
        }
    }

    /// Writes down what is left: the last window ends with its last op.
    fn end(&mut self, to: &mut Vec<u8>) {
        let last = self.sums.iter().filter(|sums| sums.ops > 0).map(|sums| sums.index).max();
        self.pass(last.unwrap_or(0), to);
        let end = self.sums.iter().map(|sums| sums.last_end).max().unwrap_or(0);
        for (direction, sums) in std::mem::take(&mut self.sums).into_iter().enumerate() {
            if sums.ops > 0 {
                write_window(sums, (end, self.has_submissions), direction, to);
            }
        }
    }
}

fn write_window(
    sums: Sums,
    (end, has_submissions): (u64, bool),
    direction: usize,
    to: &mut Vec<u8>,
) {
    for long in [end, sums.total_ns, sums.longest_ns, sums.bytes] {
        to.extend_from_slice(&long.to_le_bytes());
    }
    for short in [sums.ops, direction as u32] {
        to.extend_from_slice(&short.to_le_bytes());
    }
    if has_submissions {
        let Sums { submission_ns, longest_submission_ns, longest_completion_ns, .. } = sums;
        for long in [submission_ns, longest_submission_ns, longest_completion_ns] {
            to.extend_from_slice(&long.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::op::{OpenHow, RangeSync};

    fn long(entry: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(entry[at..at + 8].try_into().unwrap())
    }

    fn short(entry: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(entry[at..at + 4].try_into().unwrap())
    }

    fn entries(bytes: &[u8]) -> Vec<(u64, u64, u64, u32, u32)> {
        let entry =
            |it: &[u8]| (long(it, 0), long(it, 8), long(it, 16), short(it, 24), short(it, 28));
        bytes.chunks_exact(ENTRY_BYTES).map(entry).collect()
    }

    /// A directory that is removed when it goes out of scope.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("iolab-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn ended(slot: u32, took: u64) -> Completion {
        Completion {
            token: Token(slot),
            outcome: Ok(Bytes(4096)),
            submitted: Ns(100),
            completed: Ns(100 + took),
        }
    }

    #[test]
    fn transfers_are_written_in_the_order_of_their_ends_and_memory_does_not_grow() {
        let folder = Folder::new("op-log");
        let mut log = OpLog::create(&folder.0, "read", 3, 2).unwrap();
        let taken = OpLog::create(&folder.0, "read", 3, 2).unwrap_err().to_string();
        let (handle, length) = (Handle(0), Bytes(4096));
        log.submitted(Token(0), &Op::read(handle, Bytes(8192), length));
        log.submitted(Token(1), &Op::write(handle, Bytes(0), length));
        log.completed(&ended(1, 7));
        log.completed(&ended(0, 9));
        log.submitted(Token(0), &Op::Fsync { handle });
        log.completed(&ended(0, 11));
        log.submitted(Token(0), &Op::SyncAll);
        log.completed(&ended(0, 12));
        let trim = Op::Deallocate {
            handle,
            at: Bytes(512),
            length,
            how: iolab_model::op::Deallocation::Punch,
        };
        log.submitted(Token(0), &trim);
        log.completed(&Completion { outcome: Ok(Bytes(0)), ..ended(0, 5) });
        for at in 0..3 * BUFFER_BYTES as u64 / 32 {
            log.submitted(Token(0), &Op::read(handle, Bytes(at), length));
            log.completed(&ended(0, 1));
            assert!(log.buffer.capacity() <= BUFFER_BYTES);
        }
        log.close().unwrap();
        let found = entries(&std::fs::read(folder.0.join("read.3")).unwrap());
        let first = [
            (0, 107, 7, 4096, 1),
            (8192, 109, 9, 4096, 0),
            (0, 111, 11, 0, 3),
            (512, 105, 5, 4096, 2),
        ];
        assert_eq!(found[..4], first);
        assert_eq!(found.len(), 4 + 3 * BUFFER_BYTES / 32);
        assert!(taken.contains("read.3"), "{taken}");
    }

    #[test]
    fn windows_add_up_what_ended_in_them_and_the_last_one_ends_early() {
        let folder = Folder::new("op-log-windows");
        let mut log = OpLog::create(&folder.0, "w", 0, 1).unwrap().in_windows(Ns(1000));
        log.begin(Ns(50));
        log.begin(Ns(77));
        let (handle, length) = (Handle(0), Bytes(4096));
        // Two writes and a read in the first window, nothing in the second, a read in the third.
        for (write, end, took) in
            [(true, 100, 10), (false, 200, 20), (true, 1049, 30), (false, 2222, 40)]
        {
            let op = if write { Op::write } else { Op::read };
            log.submitted(Token(0), &op(handle, Bytes(0), length));
            let (submitted, completed) = (Ns(end - took), Ns(end));
            log.completed(&Completion { submitted, completed, ..ended(0, 0) });
        }
        log.close().unwrap();
        let bytes = std::fs::read(folder.0.join("w.0")).unwrap();
        let of = |it: &[u8]| -> ([u64; 4], [u32; 2]) {
            let longs = [long(it, 0), long(it, 8), long(it, 16), long(it, 24)];
            (longs, [short(it, 32), short(it, 36)])
        };
        let found: Vec<_> = bytes.chunks_exact(WINDOW_ENTRY_BYTES).map(of).collect();
        let expected = [
            ([1050, 20, 20, 4096], [1, 0]),
            ([1050, 40, 30, 8192], [2, 1]),
            ([2222, 40, 40, 4096], [1, 0]),
        ];
        assert_eq!(found, expected);
    }

    /// Before, entries did not say of which file they are, and flushes at the end were missing.
    #[test]
    fn entries_tell_their_file_and_flushes_at_the_end_are_among_them() {
        let folder = Folder::new("op-log-files");
        let mut log = OpLog::create(&folder.0, "w", 0, 1).unwrap();
        let open = |path, handle| Op::Open { path, handle, how: OpenHow::default() };
        let run = |log: &mut OpLog, op: Op, is_counted: bool| {
            log.submitted(Token(0), &op);
            if is_counted { log.completed(&ended(0, 1)) } else { log.uncounted(&ended(0, 1)) }
        };
        let (first, second) = (Handle(3), Handle(1));
        run(&mut log, open(PathId(9), first), false);
        run(&mut log, open(PathId(700), second), false);
        // Files that are made are flushed before the time.
        run(&mut log, Op::Fsync { handle: first }, false);
        log.begin(Ns(50));
        run(&mut log, Op::write(first, Bytes(0), Bytes(4096)), true);
        run(&mut log, Op::write(second, Bytes(0), Bytes(4096)), true);
        run(&mut log, Op::write(second, Bytes(4096), Bytes(4096)), false);
        let (at, length, how) = (Bytes(0), Bytes(4096), RangeSync::default());
        run(&mut log, Op::SyncFileRange { handle: second, at, length, how }, true);
        run(&mut log, Op::Fsync { handle: first }, false);
        log.close().unwrap();
        let found = entries(&std::fs::read(folder.0.join("w.0")).unwrap());
        let found: Vec<_> = found.iter().map(|it| (it.4 & 255, it.4 >> 8, it.3)).collect();
        assert_eq!(found, [(1, 9, 4096), (1, 700, 4096), (5, 700, 0), (3, 9, 0)]);
    }

    /// Before, logs had no times of submission: fio's logs of them were empty for engines that
    /// have some.
    #[test]
    fn times_of_submission_stand_behind_each_entry() {
        let folder = Folder::new("op-log-submissions");
        let op = Op::read(Handle(0), Bytes(0), Bytes(4096));
        for (name, width) in [("single", Ns(0)), ("windows", Ns(1000))] {
            let log = OpLog::create(&folder.0, name, 0, 1).unwrap();
            let mut log = log.with_submissions(true).in_windows(width);
            log.begin(Ns(100));
            for (took, submission) in [(10, 3), (20, 9), (30, 40)] {
                log.submitted(Token(0), &op);
                log.handed_over(Ns(submission));
                log.completed(&ended(0, took));
            }
            log.close().unwrap();
        }
        let bytes = std::fs::read(folder.0.join("single.0")).unwrap();
        let single: Vec<_> = bytes
            .chunks_exact(ENTRY_BYTES + SUBMISSION_BYTES)
            .map(|it| (long(it, 16), long(it, ENTRY_BYTES)))
            .collect();
        // No part is longer than the whole.
        assert_eq!(single, [(10, 3), (20, 9), (30, 30)]);
        let it = std::fs::read(folder.0.join("windows.0")).unwrap();
        assert_eq!(it.len(), WINDOW_BYTES_MAX);
        let parts = [long(&it, 8), long(&it, 40), long(&it, 48), long(&it, 56)];
        assert_eq!(parts, [60, 42, 30, 11]);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_an_error_and_not_a_short_file() {
        let mut log = OpLog {
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            path: "/dev/full".into(),
            buffer: Vec::new(),
            slots: vec![InFlight::of(&Op::read(Handle(0), Bytes(0), Bytes(1)), &[])],
            files: Vec::new(),
            windows: None,
            has_submissions: false,
            handed_over: 0,
            origin: None,
            failure: None,
        };
        log.completed(&ended(0, 1));
        assert!(log.close().unwrap_err().contains("/dev/full"));
    }
}
