//! fio's iolog, versions 2 and 3: what a job did to its files.
//!
//! Lines are decoded by [`iolab_model::iolog`]. Every transfer becomes a bio that enters the queue;
//! nothing is known of its end. In version 2 time passes only by `wait`. Each file is a device with
//! major number 0, `sync` and `datasync` are flushes.

use iolab_model::iolog;

use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Event};

/// Tell whether a line is the first of such a file.
pub fn is_line(line: &[u8]) -> bool {
    iolog::Version::of(line).is_some()
}

/// The format.
#[derive(Default)]
pub struct Iolog {
    version: Option<iolog::Version>,
    now_ns: u64,
    rows: u32,
}

impl TextFormat for Iolog {
    const IS_STRICT: bool = true;

    fn line(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Line {
        let Some(version) = self.version else {
            self.version = iolog::Version::of(line);
            return if self.version.is_none() { Line::Wrong } else { Line::Other };
        };
        if line.is_empty() {
            return Line::Other;
        }
        self.entry((version, line), event, state).unwrap_or(Line::Wrong)
    }
}

impl Iolog {
    fn entry(
        &mut self,
        (version, line): (iolog::Version, &[u8]),
        event: &mut Event,
        state: &mut State,
    ) -> Option<Line> {
        let line = iolog::Line::decode(version, line).ok()?;
        if let Some(us) = line.us {
            self.now_ns = us * 1000;
        }
        let (kind, at, bytes) = match line.action {
            iolog::Action::Add | iolog::Action::Open | iolog::Action::Close => {
                return Some(Line::Other);
            }
            iolog::Action::Wait(us) => {
                self.now_ns = self.now_ns.checked_add(us * 1000)?;
                return Some(Line::Other);
            }
            iolog::Action::Read(at, length) => (Categories::READ, at, length),
            iolog::Action::Write(at, length) => (Categories::WRITE, at, length),
            iolog::Action::Trim(at, length) => {
                (Categories::DISCARD.with(Categories::WRITE), at, length)
            }
            iolog::Action::Sync | iolog::Action::DataSync | iolog::Action::SyncFileRange => {
                (Categories::FLUSH, 0, 0)
            }
        };
        event.device = state.device_of(&String::from_utf8_lossy(line.file))?;
        self.rows = self.rows.wrapping_add(1);
        event.action = Action::Queued;
        event.categories = kind.with(Categories::QUEUE);
        event.sector = at / 512;
        event.bytes = u32::try_from(bytes).ok()?;
        event.time_ns = self.now_ns;
        event.sequence = self.rows;
        Some(Line::Event)
    }
}
