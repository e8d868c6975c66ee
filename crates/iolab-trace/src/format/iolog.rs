//! fio's iolog, versions 2 and 3: what a job did to its files.
//!
//! Source: fio(1), "TRACE FILE FORMAT", and logs of fio 3.33, whose times are microseconds. Every
//! transfer becomes a bio that enters the queue; nothing is known of its end. In version 2 time
//! passes only by `wait`. Each file is a device with major number 0, `sync` and `datasync` are
//! flushes. Left out: version 1, which fio has not read since 2008.

use super::fields::number;
use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Event};

/// Tell whether a line is the first of such a file.
pub fn is_line(line: &[u8]) -> bool {
    version_of(line).is_some()
}

fn version_of(line: &[u8]) -> Option<u32> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

/// The format.
#[derive(Default)]
pub struct Iolog {
    version: u32,
    now_ns: u64,
    rows: u32,
}

impl TextFormat for Iolog {
    const IS_STRICT: bool = true;

    fn line(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Line {
        if self.version == 0 {
            self.version = version_of(line).unwrap_or(0);
            return if self.version == 0 { Line::Wrong } else { Line::Other };
        }
        if line.is_empty() {
            return Line::Other;
        }
        self.entry(line, event, state).unwrap_or(Line::Wrong)
    }
}

impl Iolog {
    fn entry(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Option<Line> {
        let mut words: Vec<&[u8]> =
            line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(6).collect();
        if self.version == 3 {
            if words.is_empty() {
                return None;
            }
            self.now_ns = number(words.remove(0))?.checked_mul(1000)?;
        }
        let (file, action, numbers) = match words.as_slice() {
            [file, action] => (*file, *action, None),
            [file, action, offset, length] => {
                (*file, *action, Some((number(offset)?, number(length)?)))
            }
            _ => return None,
        };
        let (kind, bytes) = match (action, numbers) {
            (b"add" | b"open" | b"close", _) => return Some(Line::Other),
            (b"wait", Some((us, _))) if self.version == 2 => {
                self.now_ns = self.now_ns.checked_add(us.checked_mul(1000)?)?;
                return Some(Line::Other);
            }
            (b"read", Some((_, length))) => (Categories::READ, length),
            (b"write", Some((_, length))) => (Categories::WRITE, length),
            (b"trim", Some((_, length))) => (Categories::DISCARD.with(Categories::WRITE), length),
            (b"sync" | b"datasync" | b"sync_file_range", _) => (Categories::FLUSH, 0),
            _ => return None,
        };
        event.device = state.device_of(&String::from_utf8_lossy(file))?;
        self.rows = self.rows.wrapping_add(1);
        event.action = Action::Queued;
        event.categories = kind.with(Categories::QUEUE);
        event.sector = if bytes == 0 { 0 } else { numbers.map_or(0, |(offset, _)| offset / 512) };
        event.bytes = u32::try_from(bytes).ok()?;
        event.time_ns = self.now_ns;
        event.sequence = self.rows;
        Some(Line::Event)
    }
}
