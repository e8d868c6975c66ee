//! Lines from a pipe, without ever blocking on half a line.
//!
//! The descriptor stays blocking, for over ssh it may be the same socket as standard output; it is
//! asked before each read whether there is something.
//! Left out: writing, and waiting, which is `control`'s.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const CHUNK_BYTES: usize = 1 << 16;
/// Bytes that may wait, in a line or in many: a replay of a million operations takes half of it.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// The reading end of a pipe, cut into lines.
#[derive(Debug)]
pub struct LineReader {
    fd: OwnedFd,
    partial: Vec<u8>,
    lines: VecDeque<String>,
    /// Bytes of all these.
    waiting_bytes: usize,
    is_at_end: bool,
    is_too_long: bool,
}

impl LineReader {
    /// Takes over `fd`.
    pub fn new(fd: OwnedFd) -> Self {
        let (partial, lines) = (Vec::new(), VecDeque::new());
        Self { fd, partial, lines, waiting_bytes: 0, is_at_end: false, is_too_long: false }
    }

    /// Reads whatever is there now. An error of the pipe is its end, and so is more than anybody
    /// has to say at once: memory of root's process is not for the taking.
    pub fn fill(&mut self) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while !self.is_at_end && self.is_ready() {
            match nix::unistd::read(&self.fd, &mut chunk) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => {
                    self.take(&chunk[..count]);
                    if self.waiting_bytes + self.partial.len() > WAITING_BYTES_MAX {
                        (self.is_at_end, self.is_too_long) = (true, true);
                        self.partial = Vec::new();
                    }
                }
                Err(nix::Error::EAGAIN) => return,
                Err(nix::Error::EINTR) => {}
                Err(_) => self.is_at_end = true,
            }
        }
    }

    fn is_ready(&self) -> bool {
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
    }

    /// The next complete line, if one has been read.
    pub fn next_line(&mut self) -> Option<String> {
        let line = self.lines.pop_front()?;
        self.waiting_bytes -= line.len();
        Some(line)
    }

    /// The next complete line, which stays.
    pub fn peek_line(&self) -> Option<&str> {
        self.lines.front().map(String::as_str)
    }

    /// Tell whether nothing will ever come any more.
    pub fn is_finished(&self) -> bool {
        self.is_at_end && self.lines.is_empty()
    }

    /// Tell whether the writer has closed its end; lines may still wait.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Tell whether the end is one because too much came before it.
    pub fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        self.partial.extend_from_slice(pieces.next().unwrap_or_default());
        for piece in pieces {
            let line = std::mem::replace(&mut self.partial, piece.to_vec());
            let line = String::from_utf8_lossy(&line).into_owned();
            self.waiting_bytes += line.len();
            self.lines.push_back(line);
        }
    }
}

impl AsFd for LineReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_the_end_is_seen() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let mut lines = LineReader::new(reader);
        nix::unistd::write(&writer, b"one\ntw").unwrap();
        lines.fill();
        assert_eq!(lines.next_line().as_deref(), Some("one"));
        assert_eq!(lines.next_line(), None);
        nix::unistd::write(&writer, b"o\n").unwrap();
        drop(writer);
        lines.fill();
        assert!(!lines.is_finished());
        assert_eq!(lines.next_line().as_deref(), Some("two"));
        assert!(lines.is_finished());
    }

    /// Issue 14, point 4: a line without an end took all memory of root's process.
    #[test]
    fn too_much_at_once_is_the_end() {
        let feed = |ending: &'static str| {
            let (reader, writer) = nix::unistd::pipe().unwrap();
            let giver = std::thread::spawn(move || {
                let chunk = "x".repeat(CHUNK_BYTES - ending.len()) + ending;
                let mut given = 0;
                while nix::unistd::write(&writer, chunk.as_bytes()).is_ok_and(|n| n > 0) {
                    given += chunk.len();
                    if given > 2 * WAITING_BYTES_MAX {
                        break;
                    }
                }
            });
            let mut lines = LineReader::new(reader);
            while !lines.is_at_end() {
                lines.fill();
            }
            assert!(lines.is_too_long());
            let count = lines.lines.len();
            drop(lines); // Nobody reads any more: the other side is told by an error.
            giver.join().unwrap();
            count
        };
        assert_eq!(feed(""), 0);
        assert!(feed("\n") > 0, "whole lines that nobody takes count, too");
    }
}
