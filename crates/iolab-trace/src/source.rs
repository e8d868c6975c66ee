//! Interface of every reader: events one after the other, in bounded memory.

use std::io::Read;

use crate::error::{Caveat, Error};
use crate::event::{Device, Event};

/// Bytes that a reader takes from a file at once.
pub const CHUNK_BYTES: usize = 1 << 18;

/// A file that is read from its beginning to its end.
pub struct Input {
    /// Name for messages.
    pub name: String,
    /// The content.
    pub content: Box<dyn Read + Send>,
}

impl Input {
    /// Input with a name for messages.
    pub fn new(name: impl Into<String>, content: impl Read + Send + 'static) -> Self {
        Self { name: name.into(), content: Box::new(content) }
    }
}

/// Events in order of time.
pub trait Source: Send {
    /// Reads the next event; false at the end.
    fn next(&mut self, event: &mut Event) -> Result<bool, Error>;

    /// Faults so far that do not keep from going on.
    fn caveats(&self) -> &[Caveat];

    /// Time of the trace's first event, if that may have been left out.
    fn begin_ns(&self) -> Option<u64> {
        None
    }

    /// Times between which events were wanted, as far as the trace goes: known when all is read.
    fn bounds_ns(&self) -> Option<(u64, u64)> {
        None
    }

    /// Names of devices as a reader of figures wants them: with the parts that are chosen.
    fn titles(&self) -> Vec<(Device, String)> {
        self.devices()
    }

    /// Names of devices in the order of the files that have them, if the format keeps any.
    fn devices(&self) -> Vec<(Device, String)> {
        Vec::new()
    }

    /// Facts about the machine and the capture, if the format keeps any.
    fn facts(&self) -> Facts {
        Facts::new()
    }
}

/// Facts by name.
pub type Facts = std::collections::BTreeMap<String, String>;

/// A buffer over an input: whole pieces can be looked at before they are taken.
pub struct Window {
    input: Input,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Offset in the file of the byte at `begin`.
    offset: u64,
    is_at_end: bool,
}

impl Window {
    /// Window at the beginning of an input.
    pub fn new(input: Input) -> Self {
        let buffer = vec![0; CHUNK_BYTES];
        Self { input, buffer, begin: 0, end: 0, offset: 0, is_at_end: false }
    }

    /// Name of the input.
    pub fn name(&self) -> &str {
        &self.input.name
    }

    /// Offset of the next byte.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that have been read and not been taken.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Takes bytes away, at most those that are there.
    #[inline]
    pub fn take(&mut self, count: usize) {
        let count = count.min(self.end - self.begin);
        self.begin += count;
        self.offset += count as u64;
    }

    /// Reads until `count` bytes are there or the input ends; whether they are there.
    #[inline]
    pub fn ensure(&mut self, count: usize) -> Result<bool, Error> {
        if self.end - self.begin >= count {
            return Ok(true);
        }
        self.fill(count)
    }

    /// Reads more: as much as the buffer holds, which grows to `count` bytes.
    #[cold]
    pub fn fill(&mut self, count: usize) -> Result<bool, Error> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.buffer.len() < count {
            self.buffer.resize(count, 0);
        }
        while !self.is_at_end && self.end < self.buffer.len() {
            match self.input.content.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_at_end = true,
                Ok(length) => self.end += length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Read { name: self.input.name.clone(), error }),
            }
        }
        Ok(self.end - self.begin >= count)
    }
}

/// Longest line of a text format; a longer one is no line of a trace.
pub const LINE_MAX: usize = 1 << 16;

/// Lines of a text input, without their ends.
pub struct Lines {
    window: Window,
    number: u64,
    length: usize,
    line_max: usize,
    is_cut: bool,
}

impl Lines {
    /// Lines of a window at its beginning.
    pub const fn new(window: Window) -> Self {
        Self::with_line_max(window, LINE_MAX)
    }

    /// Lines of at most so many bytes.
    pub const fn with_line_max(window: Window, line_max: usize) -> Self {
        Self { window, number: 0, length: 0, line_max, is_cut: false }
    }

    /// Name of the input.
    pub fn name(&self) -> &str {
        self.window.name()
    }

    /// Number of the line that was read last, from 1 on.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Goes to the next line, see [`Lines::line`]; false at the end. A line longer than
    /// the limit is cut there, and the rest is the next line.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.window.take(self.length);
        self.length = 0;
        self.is_cut = false;
        let mut searched = 0;
        loop {
            let bytes = self.window.bytes();
            let upto = bytes.len().min(self.line_max);
            if let Some(at) = find(&bytes[searched..upto], b'\n') {
                self.length = searched + at + 1;
                break;
            }
            if upto == self.line_max || !self.window.ensure(upto + 1)? {
                self.length = upto.min(self.window.bytes().len());
                self.is_cut = upto == self.line_max;
                break;
            }
            searched = upto;
        }
        self.number += 1;
        Ok(self.length > 0)
    }

    /// True if the line goes on: the next one is the rest of it.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The line.
    pub fn line(&self) -> &[u8] {
        let line = &self.window.bytes()[..self.length];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// A caveat at this line.
    pub fn caveat(&self, what: impl Into<String>, is_damage: bool) -> Caveat {
        let place = crate::error::Place::Line(self.number);
        Caveat { name: self.name().to_owned(), place, what: what.into(), is_damage }
    }
}

fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    // Sixteen at a time: the compiler turns the inner test into vector instructions.
    let chunks = bytes.chunks_exact(16);
    let rest = chunks.remainder();
    for (index, chunk) in chunks.enumerate() {
        if chunk.iter().map(|byte| u8::from(*byte == wanted)).max() == Some(1) {
            return chunk.iter().position(|byte| *byte == wanted).map(|at| index * 16 + at);
        }
    }
    let at = rest.iter().position(|byte| *byte == wanted)?;
    Some(bytes.len() - rest.len() + at)
}

/// The beginning of a line, for messages: printable and short.
pub fn shown(line: &[u8]) -> String {
    const SHOWN: usize = 60;
    let cut = &line[..line.len().min(SHOWN)];
    let text = String::from_utf8_lossy(cut);
    let more = if line.len() > SHOWN { "..." } else { "" };
    format!("`{}{more}`", iolab_model::visible::harmless(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8]) -> Vec<Vec<u8>> {
        let mut lines =
            Lines::new(Window::new(Input::new("x", std::io::Cursor::new(text.to_vec()))));
        let mut found = Vec::new();
        while lines.advance().unwrap() {
            found.push(lines.line().to_vec());
        }
        found
    }

    #[test]
    fn lines_are_those_of_the_text_whatever_their_ends() {
        assert_eq!(lines_of(b"a\r\n\nlast"), [&b"a"[..], b"", b"last"]);
        assert!(lines_of(b"").is_empty());
        let long = vec![b'x'; CHUNK_BYTES * 2];
        assert_eq!(lines_of(&long).concat(), long);
        let many = b"0123456789 abcdef\n".repeat(40_000);
        assert_eq!(lines_of(&many).len(), 40_000);
    }
}
