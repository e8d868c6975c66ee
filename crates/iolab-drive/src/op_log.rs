//! A log of single ops: where each one was, how long it took, how much it moved.
//!
//! One file per worker, written by the worker itself through a buffer of fixed size, so that memory
//! does not grow with the number of ops. An entry has [`ENTRY_BYTES`] bytes, all numbers
//! little-endian: offset in bytes (8), service time in ns (8), bytes moved (4), 0 for a read or 1
//! for a write (4). Only transfers that count are in it. Left out: flushes, and when an op began.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use iolab_model::error::Errno;
use iolab_model::op::{Op, OpClass, Position, Token};
use iolab_model::{Completion, Error};

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 24;
/// So much is gathered before it is written; whole entries.
const BUFFER_BYTES: usize = 4096 * ENTRY_BYTES;

/// The log of one worker.
#[derive(Debug)]
pub struct OpLog {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Per slot: where the op in flight is, and whether it writes; absent for what is no transfer.
    slots: Vec<Option<(u64, bool)>>,
    /// The first failure; nothing is written after it.
    failure: Option<std::io::Error>,
}

impl OpLog {
    /// Name of the file of worker number `ordinal` of a phase.
    pub fn file_name(phase: &str, ordinal: u32) -> String {
        format!("{phase}.{ordinal}")
    }

    /// A new file in `folder` for a lane of so many slots.
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
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(Self { file, path, buffer, slots: vec![None; slots as usize], failure: None })
    }

    /// Notes what an op is about.
    #[inline]
    pub fn submitted(&mut self, Token(slot): Token, op: &Op) {
        let is_write = op.class() == OpClass::Write;
        self.slots[slot as usize] = match op {
            Op::Read(transfer) | Op::Write(transfer) => match transfer.at {
                Position::At(at) => Some((at.0, is_write)),
                Position::Current | Position::End => Some((0, is_write)),
            },
            _ => None,
        };
    }

    /// Writes down an op that counts.
    #[inline]
    pub fn completed(&mut self, completion: &Completion) {
        let Some((at, is_write)) = self.slots[completion.token.0 as usize] else { return };
        let moved = completion.outcome.map_or(0, |moved| moved.0);
        self.buffer.extend_from_slice(&at.to_le_bytes());
        self.buffer.extend_from_slice(&completion.service().0.to_le_bytes());
        self.buffer.extend_from_slice(&(moved as u32).to_le_bytes());
        self.buffer.extend_from_slice(&u32::from(is_write).to_le_bytes());
        if self.buffer.len() == BUFFER_BYTES {
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
    /// What could not be written, and why.
    pub fn close(mut self) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_model::op::Handle;
    use iolab_model::{Bytes, Ns};

    fn entries(bytes: &[u8]) -> Vec<(u64, u64, u32, u32)> {
        let entry = |entry: &[u8]| {
            let long = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap());
            let short = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().unwrap());
            (long(0), long(8), short(16), short(20))
        };
        bytes.chunks_exact(ENTRY_BYTES).map(entry).collect()
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
        let folder = std::env::temp_dir().join(format!("iolab-op-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut log = OpLog::create(&folder, "read", 3, 2).unwrap();
        let taken = OpLog::create(&folder, "read", 3, 2).unwrap_err().to_string();
        let (handle, length) = (Handle(0), Bytes(4096));
        log.submitted(Token(0), &Op::read(handle, Bytes(8192), length));
        log.submitted(Token(1), &Op::write(handle, Bytes(0), length));
        log.completed(&ended(1, 7));
        log.completed(&ended(0, 9));
        log.submitted(Token(0), &Op::Fsync { handle });
        log.completed(&ended(0, 11));
        for at in 0..3 * 4096 {
            log.submitted(Token(0), &Op::read(handle, Bytes(at), length));
            log.completed(&ended(0, 1));
            assert!(log.buffer.capacity() <= BUFFER_BYTES);
        }
        log.close().unwrap();
        let found = entries(&std::fs::read(folder.join("read.3")).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found[..2], [(0, 7, 4096, 1), (8192, 9, 4096, 0)]);
        assert_eq!(found.len(), 2 + 3 * 4096);
        assert!(taken.contains("read.3"), "{taken}");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_an_error_and_not_a_short_file() {
        let mut log = OpLog {
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            path: "/dev/full".into(),
            buffer: Vec::new(),
            slots: vec![Some((0, false))],
            failure: None,
        };
        log.completed(&ended(0, 1));
        assert!(log.close().unwrap_err().contains("/dev/full"));
    }
}
