//! The default text of blkparse(1), with or without `-t`.
//!
//! Source: blkparse(1), "DEFAULT OUTPUT". Summaries, which follow the events, are left out. What
//! the text does not tell: the wall clock, cgroups, categories beyond the letters, the length of a
//! bio that is split (the length of its first part is taken) and of a packet command that ends (the
//! length of the command is taken).

use super::fields::{Cursor, bytes_of, number};
use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Event, Remap};

/// The format.
#[derive(Default)]
pub struct Blkparse {
    is_summary: bool,
}

/// Tell whether a line is one of an event.
pub fn is_line(line: &[u8]) -> bool {
    parse(line, &mut Event::default()).is_some()
}

impl TextFormat for Blkparse {
    const IS_STRICT: bool = false;

    fn line(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Line {
        match parse(line, event) {
            Some(name) => {
                self.is_summary = false;
                if !name.is_empty() {
                    state.name(event.pid, name, event.time_ns);
                }
                Line::Event
            }
            None if self.is_other(line) => Line::Other,
            None => Line::Wrong,
        }
    }
}

impl Blkparse {
    fn is_other(&mut self, line: &[u8]) -> bool {
        const HEADS: [&[u8]; 5] = [b"CPU", b"Total (", b"Throughput", b"Events (", b"Skips:"];
        let is_head = HEADS.iter().any(|head| line.starts_with(head));
        let is_program = line.ends_with(b")") && !line.starts_with(b" ");
        self.is_summary |= is_head || is_program;
        let is_own = line.is_empty() || line.starts_with(b"Input file ");
        is_own || is_head || is_program || (self.is_summary && line.starts_with(b" "))
    }
}

/// Fills an event; the name of its process, which is empty if the line has none.
fn parse<'a>(line: &'a [u8], event: &mut Event) -> Option<&'a [u8]> {
    let mut cursor = Cursor(line);
    event.device = cursor.device()?;
    event.cpu = u32::try_from(cursor.next_number()?).ok()?;
    event.sequence = u32::try_from(cursor.next_number()?).ok()?;
    event.time_ns = cursor.seconds()?;
    event.pid = u32::try_from(cursor.next_number()?).ok()?;
    let word = std::str::from_utf8(cursor.word()?).ok()?;
    event.action = word.parse().ok().filter(|action| *action != Action::Joined)?;
    let own = Categories::of_letters(cursor.word()?)?;
    event.categories = own.with(Categories::of_action(event.action));
    match event.action {
        Action::Message => {
            cursor.byte(b' ')?;
            event.payload.extend_from_slice(cursor.0);
            Some(b"")
        }
        Action::Completed | Action::Requeued => parse_end(cursor, event),
        Action::Remapped => {
            extent(&mut cursor, event)?;
            let from = cursor.0.strip_prefix(b" <- (").map(Cursor);
            let mut from = from?;
            let device = from.device()?;
            from.byte(b')')?;
            event.set_remap(Remap { device, sector: from.next_number()? });
            Some(b"")
        }
        Action::Split => {
            event.sector = cursor.next_number()?;
            cursor.token(b'/')?;
            let behind = cursor.next_number()?;
            event.payload.extend_from_slice(&behind.to_be_bytes());
            event.bytes = bytes_of(behind.saturating_sub(event.sector)).unwrap_or(0);
            cursor.brackets()
        }
        Action::Unplugged | Action::TimerUnplugged => {
            let name = cursor.brackets()?;
            event.payload.extend_from_slice(&cursor.next_number()?.to_be_bytes());
            Some(name)
        }
        Action::Plugged => cursor.brackets(),
        Action::Point => parse_point(cursor, event),
        Action::NoteProcess | Action::NoteTime | Action::Joined => None,
        _ => parse_start(cursor, event),
    }
}

/// `SYSTEM:NAME field=value [process]`.
fn parse_point<'a>(cursor: Cursor<'a>, event: &mut Event) -> Option<&'a [u8]> {
    let text = cursor.0.trim_ascii_start();
    let at = text.windows(2).rposition(|pair| pair == b" [")?;
    let name = text[at + 2..].strip_suffix(b"]")?;
    event.payload.extend_from_slice(&text[..at]);
    event.point().0.contains(&b':').then_some(name)
}

/// `SECTOR + COUNT`.
fn extent(cursor: &mut Cursor<'_>, event: &mut Event) -> Option<()> {
    event.sector = cursor.next_number()?;
    cursor.token(b'+')?;
    event.bytes = bytes_of(cursor.next_number()?)?;
    Some(())
}

fn parse_start<'a>(mut cursor: Cursor<'a>, event: &mut Event) -> Option<&'a [u8]> {
    let mut ahead = cursor;
    if extent(&mut ahead, event).is_some() {
        cursor = ahead;
        cursor.parentheses(); // The time that -t appends.
    } else {
        event.sector = 0;
        if let Some(bytes) = cursor.next_number() {
            event.bytes = u32::try_from(bytes).ok()?;
            event.categories = event.categories.with(Categories::PC);
            packet(&mut cursor, event);
        }
    }
    cursor.brackets()
}

fn parse_end<'a>(mut cursor: Cursor<'a>, event: &mut Event) -> Option<&'a [u8]> {
    let mut ahead = cursor;
    if extent(&mut ahead, event).is_some() {
        cursor = ahead;
        cursor.parentheses();
    } else if let Some(sector) = cursor.next_number() {
        event.sector = sector;
        cursor.parentheses();
    } else {
        event.sector = 0;
        event.categories = event.categories.with(Categories::PC);
        packet(&mut cursor, event);
        event.bytes = event.payload.len() as u32;
    }
    let error = cursor.brackets()?;
    event.error = match error.strip_prefix(b"-") {
        Some(digits) => (number(digits)? as u16).wrapping_neg(),
        None => u16::try_from(number(error)?).ok()?,
    };
    Some(b"")
}

/// `(12 00 00 00 24 00 ..)`: the zeros at the end are not told, one of them is.
fn packet(cursor: &mut Cursor<'_>, event: &mut Event) {
    let Some(inner) = cursor.parentheses() else { return };
    for word in inner.split(|byte| *byte == b' ').filter(|word| *word != b"..") {
        let digits = std::str::from_utf8(word).unwrap_or("");
        event.payload.extend(u8::from_str_radix(digits, 16).ok());
    }
}
