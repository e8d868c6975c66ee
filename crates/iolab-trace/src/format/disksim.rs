//! The ASCII trace of `DiskSim`: five numbers per request.
//!
//! Source: the `DiskSim` 4.0 reference manual, "Traces": arrival time in milliseconds, device,
//! first block, length in blocks, flags in hexadecimal (bit 0: read). Blocks have 512 bytes. Every
//! line becomes a bio that enters the queue; nothing is known of its end.

use super::fields::{bytes_of, number, scaled};
use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Device, Event};

/// Tell whether a line is one of such a file.
pub fn is_line(line: &[u8]) -> bool {
    parse(line, &mut Event::default()).is_some()
}

/// The format.
#[derive(Default)]
pub struct Disksim {
    rows: u32,
}

impl TextFormat for Disksim {
    const IS_STRICT: bool = true;

    fn line(&mut self, line: &[u8], event: &mut Event, _: &mut State) -> Line {
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return Line::Other;
        }
        self.rows = self.rows.wrapping_add(1);
        event.sequence = self.rows;
        match parse(line, event) {
            Some(()) => Line::Event,
            None => Line::Wrong,
        }
    }
}

fn parse(line: &[u8], event: &mut Event) -> Option<()> {
    const NS_PER_MS: f64 = 1e6;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    event.time_ns = scaled(words.next()?, NS_PER_MS)?;
    let device = u32::try_from(number(words.next()?)?).ok().filter(|number| *number < 1 << 20)?;
    event.device = Device::new(0, device);
    event.sector = number(words.next()?)?;
    event.bytes = bytes_of(number(words.next()?)?)?;
    let flags = words.next()?;
    let flags = u32::from_str_radix(std::str::from_utf8(flags).ok()?, 16).ok()?;
    event.action = Action::Queued;
    let kind = if flags & 1 == 1 { Categories::READ } else { Categories::WRITE };
    event.categories = kind.with(Categories::QUEUE);
    words.next().is_none().then_some(())
}
