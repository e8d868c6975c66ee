//! The file that a recording is written to, block by block, and when it must not grow any more.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};

use iolab_trace::Event;
use iolab_trace::event::Action;
use iolab_trace::native::Writer;
use iolab_trace::source::Facts;
use nix::sys::statvfs::fstatvfs;

use crate::error::{Error, Result};
use crate::testbed::{RESERVE_BYTES, reserve_of_size};

/// Bytes that are handed to the file at once.
const PIECE_BYTES: usize = 1 << 18;
const MIB: u64 = 1 << 20;

/// The file behind standard output.
pub struct TraceFile {
    output: File,
    writer: Writer,
    buffer: Vec<u8>,
    /// Events so far.
    pub events: u64,
    /// Bytes so far.
    pub bytes: u64,
    bytes_max: Option<u64>,
    /// Reason why the file must not grow any more.
    limit: Option<String>,
    /// Reason why the file could not be written any more.
    problem: Option<String>,
}

/// A size for messages.
fn size_text(bytes: u64) -> String {
    if bytes < 10 * MIB { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes / MIB) }
}

/// Rule R10: why a file of `bytes` must not grow where so much is free, and must stay free.
fn limit_of(bytes: u64, bytes_max: Option<u64>, free: u64, reserve: u64) -> Option<String> {
    if free < reserve {
        return Some(format!(
            "{} are free on its file system, of which {} stay free",
            size_text(free),
            size_text(reserve)
        ));
    }
    let limit = bytes_max.filter(|limit| bytes >= *limit)?;
    Some(format!("it has {bytes} bytes, and others may write {limit} at once (max_bytes of root)"))
}

impl TraceFile {
    /// Writes the head.
    pub fn begin(facts: &Facts, bytes_max: Option<u64>) -> Result<Self> {
        let output: OwnedFd = std::io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Error::io("open", "the trace file", error))?;
        let mut buffer = Vec::new();
        let writer = Writer::new(facts, &mut buffer)
            .map_err(|error| Error::failed(error.to_string(), ""))?;
        let (limit, problem) = (None, None);
        let output = output.into();
        let mut file =
            Self { output, writer, buffer, events: 0, bytes: 0, bytes_max, limit, problem };
        file.look_at_space();
        match file.limit {
            Some(limit) => {
                let what = format!("nothing was recorded: {limit}");
                Err(Error::refused(what, "make room, or name a place on another file system"))
            }
            None => Ok(file),
        }
    }

    /// True if the file can and may be written.
    pub fn may_grow(&self) -> bool {
        self.problem.is_none() && self.limit.is_none()
    }

    /// Looks whether there is still room for it; a file system that does not say has some.
    pub fn look_at_space(&mut self) {
        let Ok(status) = fstatvfs(&self.output) else { return };
        let unit = status.fragment_size();
        let reserve = reserve_of_size(status.blocks() * unit, RESERVE_BYTES);
        let free = status.blocks_available() * unit;
        self.limit = limit_of(self.bytes, self.bytes_max, free, reserve);
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event) {
        if self.problem.is_none() {
            let pushed = self.writer.push(event, &mut self.buffer);
            let is_note = matches!(event.action, Action::NoteProcess | Action::NoteTime);
            self.events += u64::from(!is_note);
            self.note(pushed.map_err(|error| error.to_string()));
        }
        if self.buffer.len() >= 4 * PIECE_BYTES {
            self.flush();
        }
    }

    fn note(&mut self, result: std::result::Result<(), String>) {
        if let Err(problem) = result {
            self.problem.get_or_insert(problem);
        }
    }

    /// Hands what is ready to the file, if it is much.
    pub fn write_pieces(&mut self) {
        if self.buffer.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    /// Ends the block, so that it can be read after a crash.
    pub fn end_block(&mut self) {
        let ended = self.writer.end_block(&mut self.buffer).map_err(|error| error.to_string());
        self.note(ended);
        self.flush();
    }

    /// The file is as long as what was written to it, or somebody else wrote or cut it.
    fn look_at_content(&mut self) {
        let Ok(found) = self.output.metadata() else { return };
        if found.is_file() && found.len() != self.bytes && self.problem.is_none() {
            self.problem = Some(format!(
                "another program has changed it meanwhile: it has {} bytes instead of {}",
                found.len(),
                self.bytes
            ));
        }
    }

    fn flush(&mut self) {
        self.look_at_content();
        if self.problem.is_none() {
            let written = self.output.write_all(&self.buffer);
            self.note(written.map_err(|error| error.to_string()));
            // A file that is full has a part of the piece.
            let whole = self.bytes + self.buffer.len() as u64;
            self.bytes = self.output.metadata().map_or(whole, |found| found.len());
        }
        self.buffer.clear();
    }

    /// Events, bytes, and what went wrong.
    pub fn finish(mut self, facts: &Facts) -> (u64, u64, Option<String>) {
        let added = self.writer.add_facts(facts, &mut self.buffer);
        self.note(added.map_err(|error| error.to_string()));
        self.flush();
        let mut tail = Vec::new();
        if self.problem.is_none() {
            let Self { writer, mut output, mut bytes, events, limit, .. } = self;
            let ended = writer.finish(&mut tail).map_err(|error| error.to_string());
            let ended = ended.and_then(|()| {
                bytes += tail.len() as u64;
                output.write_all(&tail).map_err(|error| error.to_string())
            });
            return (events, bytes, ended.err().or(limit));
        }
        (self.events, self.bytes, self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stops_at_the_reserve_and_at_what_others_may_write() {
        assert_eq!(limit_of(5 << 20, None, 3 << 20, 2 << 20), None);
        assert_eq!(limit_of(5 << 20, Some(6 << 20), 2 << 20, 2 << 20), None);
        let told = limit_of(0, None, (3 << 20) - 1, 3 << 20).unwrap();
        assert!(
            told.contains("3071 KiB are free") && told.contains("3072 KiB stay free"),
            "{told}"
        );
        let told = limit_of(6 << 20, Some(6 << 20), 1 << 40, 5 << 30).unwrap();
        assert!(told.contains("6291456 bytes") && told.contains("max_bytes"), "{told}");
    }
}
