//! Lines from a pipe, without ever blocking on half a line.
//!
//! The descriptor stays blocking, for over ssh it may be the same socket as standard output; it is
//! asked before each read whether there is something.
//! Left out: writing, and waiting, which is `control`'s.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const CHUNK_BYTES: usize = 1 << 16;

/// The reading end of a pipe, cut into lines.
#[derive(Debug)]
pub struct LineReader {
    fd: OwnedFd,
    partial: Vec<u8>,
    lines: VecDeque<String>,
    is_at_end: bool,
}

impl LineReader {
    /// Takes over `fd`.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, partial: Vec::new(), lines: VecDeque::new(), is_at_end: false }
    }

    /// Reads whatever is there now. An error of the pipe is its end.
    pub fn fill(&mut self) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while !self.is_at_end && self.is_ready() {
            match nix::unistd::read(&self.fd, &mut chunk) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => self.take(&chunk[..count]),
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
        self.lines.pop_front()
    }

    /// The next complete line, which stays.
    pub fn peek_line(&self) -> Option<&str> {
        self.lines.front().map(String::as_str)
    }

    /// Whether nothing will ever come any more.
    pub fn is_finished(&self) -> bool {
        self.is_at_end && self.lines.is_empty()
    }

    /// Whether the writer has closed its end; lines may still wait.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let rest = self.partial.split_off(end + 1);
            let line = std::mem::replace(&mut self.partial, rest);
            self.lines.push_back(String::from_utf8_lossy(&line[..end]).into_owned());
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
}
