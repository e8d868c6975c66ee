//! The text of blkparse(1): its default line, `-f` formats, `-a` filters and `-t`.
//!
//! Source of the layout: blkparse(1), "OUTPUT DESCRIPTION AND FORMATTING", and recorded output of
//! version 1.2.0. Differences, all on purpose: control characters in names and messages become
//! `?`; the time from issue to completion that `-t` appends is right for requests without the `fs`
//! bit, too (blkparse prints what its memory held); `%U` of an event without a count is 0; an event
//! of an action that blkparse does not know prints nothing.

use super::blkparse_track::Tracks;
use crate::error::Error;
use crate::event::{Action, Categories, Event};
use crate::names::{Names, push_clean};
use crate::number::{push, push_left, push_right, push_signed, push_text, push_zeros, set_right};

/// Longest `-f` format that is taken.
const FORMAT_MAX: usize = 4096;
/// Widest field of a format.
const WIDTH_MAX: usize = 256;

/// Choice of what is printed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Format of every event instead of the default line.
    pub format: Option<Format>,
    /// Only events with one of these category bits.
    pub mask: Categories,
    /// True if the time since the step before is appended.
    pub tracks: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: None, mask: Categories(u16::MAX), tracks: false }
    }
}

/// Category bits by the words of `-a`.
pub const MASK_WORDS: &[(&str, Categories)] = &[
    ("read", Categories::READ),
    ("write", Categories::WRITE),
    ("flush", Categories::FLUSH),
    ("sync", Categories::SYNC),
    ("queue", Categories::QUEUE),
    ("requeue", Categories::REQUEUE),
    ("issue", Categories::ISSUE),
    ("complete", Categories::COMPLETE),
    ("fs", Categories::FS),
    ("pc", Categories::PC),
    ("notify", Categories::NOTIFY),
    ("ahead", Categories::AHEAD),
    ("meta", Categories::META),
    ("discard", Categories::DISCARD),
    ("drv_data", Categories::DRV_DATA),
    ("fua", Categories::FUA),
];

/// Category bits of the words of `-a`, separated by commas.
///
/// # Errors
/// [`Error::Option`] if a word is not known; lists those that are.
pub fn mask_of(words: &str) -> Result<Categories, Error> {
    let mut mask = Categories(0);
    for word in words.split(',') {
        let bits = MASK_WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word.trim()));
        let Some((_, bits)) = bits else {
            let known: Vec<&str> = MASK_WORDS.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            return Err(Error::Option(format!(
                "there is no event kind '{word}'; kinds are {known}"
            )));
        };
        mask = mask.with(*bits);
    }
    Ok(mask)
}

/// A format of `-f`.
#[derive(Clone, Debug)]
pub struct Format(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(u8),
    Field { name: u8, width: usize, is_left: bool },
}

impl Format {
    /// Understands a format: text, `\n` and the like, and fields such as `%-8C`.
    ///
    /// # Errors
    /// [`Error::Option`] if an escape is not known, or the format or a field is too wide.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > FORMAT_MAX {
            return Err(Error::Option(format!("a format has at most {FORMAT_MAX} characters")));
        }
        let mut parts = Vec::new();
        let mut rest = text.bytes().peekable();
        while let Some(byte) = rest.next() {
            parts.push(match byte {
                b'\\' => Part::Text(escape(rest.next())?),
                b'%' => {
                    let is_left = rest.next_if_eq(&b'-').is_some();
                    let mut width = 0;
                    while let Some(digit) = rest.next_if(u8::is_ascii_digit) {
                        width = width * 10 + usize::from(digit - b'0');
                        if width > WIDTH_MAX {
                            let most = format!("a field is at most {WIDTH_MAX} columns wide");
                            return Err(Error::Option(most));
                        }
                    }
                    let name = rest.next().unwrap_or(b'%');
                    Part::Field { name, width, is_left }
                }
                other => Part::Text(other),
            });
        }
        Ok(Self(parts))
    }
}

fn escape(letter: Option<u8>) -> Result<u8, Error> {
    match letter {
        Some(b'n') => Ok(b'\n'),
        Some(b't') => Ok(b'\t'),
        Some(b'r') => Ok(b'\r'),
        Some(b'b') => Ok(8),
        Some(b'\\') => Ok(b'\\'),
        other => {
            let shown = other.map_or(String::new(), |byte| char::from(byte).to_string());
            Err(Error::Option(format!(
                "there is no escape \\{shown}; there are \\n \\t \\r \\b \\\\"
            )))
        }
    }
}

/// Writes lines; what an event means for later ones (names, times of steps) is kept here.
pub struct Writer {
    options: Options,
    names: Names,
    tracks: Tracks,
    genesis: Option<u64>,
}

impl Writer {
    /// Writer at the beginning of a trace.
    pub fn new(options: Options) -> Self {
        Self { options, names: Names::default(), tracks: Tracks::default(), genesis: None }
    }

    /// Names that have been told so far.
    pub fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Times are told since then, also if the event of that time is not shown.
    pub fn begin_at(&mut self, begin_ns: u64) {
        self.genesis.get_or_insert(begin_ns);
    }

    /// Time since the first event.
    pub fn since_begin(&self, event: &Event) -> u64 {
        event.time_ns.saturating_sub(self.genesis.unwrap_or(event.time_ns))
    }

    /// Appends the event's line if it has one; whether it passed the filter, as blkparse counts.
    pub fn push(&mut self, event: &Event, text: &mut Vec<u8>) -> bool {
        match event.action {
            Action::NoteProcess => {
                self.names.learn(event);
                return false;
            }
            Action::NoteTime => return false,
            // blkparse 1.2.0 takes a message with a cgroup for a note that it does not know.
            Action::Message if event.cgroup.is_some() => return false,
            _ => {}
        }
        self.genesis.get_or_insert(event.time_ns);
        if !event.categories.has(self.options.mask) {
            return false;
        }
        let elapsed = if self.options.tracks { self.tracks.step(event) } else { None };
        match event.action {
            Action::Message => self.push_message(event, text),
            Action::Point if self.options.format.is_none() => self.push_point(event, text),
            Action::DriverData | Action::Aborted | Action::Joined => {}
            _ => match self.options.format.take() {
                Some(format) => {
                    self.push_formatted(event, elapsed, &format, text);
                    self.options.format = Some(format);
                }
                None => self.push_line(event, elapsed, text),
            },
        }
        true
    }

    fn push_message(&mut self, event: &Event, text: &mut Vec<u8>) {
        if event.payload.is_empty() {
            return;
        }
        push_place(event, text);
        push_right(text, 0, 8);
        self.push_time(event, text);
        text.extend_from_slice(b"    0  m   N ");
        push_clean(text, event.name());
        text.push(b'\n');
    }

    /// A trace point of another layer: blkparse knows none; its name stands where sectors do.
    fn push_point(&mut self, event: &Event, text: &mut Vec<u8>) {
        push_place(event, text);
        push_right(text, u64::from(event.sequence), 8);
        self.push_time(event, text);
        push_right(text, u64::from(event.pid), 5);
        text.extend_from_slice(b"  T   N ");
        push_clean(text, &event.payload);
        text.push(b' ');
        self.push_name(event, text);
        text.push(b'\n');
    }

    fn push_time(&self, event: &Event, text: &mut Vec<u8>) {
        let time = self.since_begin(event);
        text.push(b' ');
        push_right(text, time / 1_000_000_000, 5);
        text.push(b'.');
        push_zeros(text, time % 1_000_000_000, 9);
        text.push(b' ');
    }

    fn push_name(&mut self, event: &Event, text: &mut Vec<u8>) {
        text.push(b'[');
        text.extend_from_slice(self.names.of(event.pid).unwrap_or(b"(null)"));
        text.push(b']');
    }

    /// Appends what every line begins with if every number fits into its columns; most do.
    #[inline]
    fn push_usual_head(&self, event: &Event, text: &mut Vec<u8>) -> bool {
        let time = self.since_begin(event);
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        let (major, minor) = (event.device.major(), event.device.minor());
        let is_usual = major < 1000
            && minor < 1000
            && event.cpu < 100
            && event.sequence < 100_000_000
            && seconds < 100_000
            && event.pid < 100_000;
        if !is_usual {
            return false;
        }
        let mut head = *b"   ,                     .000000000          ";
        set_right(&mut head[..3], u64::from(major));
        let digits = 1 + usize::from(minor > 9) + usize::from(minor > 99);
        set_right(&mut head[4..4 + digits], u64::from(minor));
        set_right(&mut head[8..10], u64::from(event.cpu));
        set_right(&mut head[11..19], u64::from(event.sequence));
        set_right(&mut head[20..25], seconds);
        set_right(&mut head[26..35], rest);
        set_right(&mut head[36..41], u64::from(event.pid));
        let action = event.action.name().as_bytes();
        let width = action.len().min(2);
        head[44 - width..44].copy_from_slice(&action[..width]);
        text.extend_from_slice(&head);
        push_letters(event, text);
        text.push(b' ');
        true
    }

    fn push_wide_head(&self, event: &Event, text: &mut Vec<u8>) {
        push_place(event, text);
        push_right(text, u64::from(event.sequence), 8);
        self.push_time(event, text);
        push_right(text, u64::from(event.pid), 5);
        text.push(b' ');
        push_text(text, event.action.name().as_bytes(), 2, false);
        text.push(b' ');
        push_letters(event, text);
        text.push(b' ');
    }

    fn push_line(&mut self, event: &Event, elapsed: Option<u64>, text: &mut Vec<u8>) {
        if !self.push_usual_head(event, text) {
            self.push_wide_head(event, text);
        }
        match event.action {
            Action::Completed | Action::Requeued => push_end(event, elapsed, text),
            Action::Remapped => push_remap(event, text),
            Action::Split => {
                push(text, event.sector);
                text.extend_from_slice(b" / ");
                push(text, event.number() & 0xffff_ffff);
                text.push(b' ');
                self.push_name(event, text);
            }
            Action::Plugged => self.push_name(event, text),
            Action::Unplugged | Action::TimerUnplugged => {
                self.push_name(event, text);
                text.push(b' ');
                push(text, event.number() & 0xffff_ffff);
            }
            action => {
                let is_inner = matches!(
                    action,
                    Action::Issued | Action::Inserted | Action::Queued | Action::Bounced
                );
                push_what(event, elapsed, is_inner, text);
                self.push_name(event, text);
            }
        }
        text.push(b'\n');
    }

    fn push_formatted(
        &mut self,
        event: &Event,
        elapsed: Option<u64>,
        format: &Format,
        text: &mut Vec<u8>,
    ) {
        for part in &format.0 {
            match *part {
                Part::Text(byte) => text.push(byte),
                Part::Field { name, width, is_left } => {
                    let begin = text.len();
                    let is_zeros = name == b't';
                    self.push_field(event, elapsed, (name, width), text);
                    if !is_zeros && !matches!(name, b'D' | b'P') {
                        pad(text, begin, width, is_left);
                    }
                }
            }
        }
    }

    fn push_field(
        &mut self,
        event: &Event,
        elapsed: Option<u64>,
        (name, width): (u8, usize),
        text: &mut Vec<u8>,
    ) {
        let time = self.since_begin(event);
        match name {
            b'a' => text.extend_from_slice(event.action.name().as_bytes()),
            b'c' => push(text, u64::from(event.cpu)),
            b'C' => text.extend_from_slice(self.names.of(event.pid).unwrap_or(b"(null)")),
            b'd' => {
                let (letters, length) = event.letters();
                text.extend_from_slice(&letters[..length]);
            }
            b'D' => {
                push_right(text, u64::from(event.device.major()), 3);
                text.push(b',');
                push_left(text, u64::from(event.device.minor()), 3);
            }
            b'e' => push(text, u64::from(event.error)),
            b'M' => push(text, u64::from(event.device.major())),
            b'm' => push(text, u64::from(event.device.minor())),
            b'n' => push(text, u64::from(event.sectors())),
            b'N' => push(text, u64::from(event.bytes)),
            b'p' => push(text, u64::from(event.pid)),
            b'P' if event.action == Action::Point => push_clean(text, &event.payload),
            b'P' => push_payload(event, text),
            b's' => push(text, u64::from(event.sequence)),
            b'S' => push(text, event.sector),
            b't' => push_zeros(text, time % 1_000_000_000, if width == 0 { 9 } else { width }),
            b'T' => push(text, time / 1_000_000_000),
            b'u' => push(text, elapsed.unwrap_or(0) / 1000),
            b'U' => push(text, event.number() & 0xffff_ffff),
            other => text.push(other),
        }
    }
}

fn push_place(event: &Event, text: &mut Vec<u8>) {
    push_right(text, u64::from(event.device.major()), 3);
    text.push(b',');
    push_left(text, u64::from(event.device.minor()), 3);
    text.push(b' ');
    push_right(text, u64::from(event.cpu), 2);
    text.push(b' ');
}

/// Widens a field that begins at `begin`.
fn pad(text: &mut Vec<u8>, begin: usize, width: usize, is_left: bool) {
    let length = text.len() - begin;
    if length < width {
        text.resize(begin + width, b' ');
        if !is_left {
            text[begin..].rotate_right(width - length);
        }
    }
}

fn push_letters(event: &Event, text: &mut Vec<u8>) {
    let (letters, length) = event.letters();
    text.extend_from_slice(&b"   "[length.min(3)..]);
    text.extend_from_slice(&letters[..length]);
}

/// `SECTOR + COUNT ` or, of a packet command, `BYTES (PAYLOAD) `.
fn push_what(event: &Event, elapsed: Option<u64>, is_inner: bool, text: &mut Vec<u8>) {
    if is_inner && event.is_packet() {
        push(text, u64::from(event.bytes));
        text.push(b' ');
        push_payload_in_brackets(event, text);
        return;
    }
    if event.sectors() > 0 {
        push(text, event.sector);
        text.extend_from_slice(b" + ");
        push(text, u64::from(event.sectors()));
        text.push(b' ');
    }
    if let Some(elapsed) = elapsed.filter(|_| is_inner) {
        push_elapsed(elapsed, text);
    }
}

/// Text after the letters of a completion or requeue.
fn push_end(event: &Event, elapsed: Option<u64>, text: &mut Vec<u8>) {
    if event.is_packet() {
        push_payload_in_brackets(event, text);
    } else {
        push(text, event.sector);
        if event.sectors() > 0 {
            text.extend_from_slice(b" + ");
            push(text, u64::from(event.sectors()));
        }
        text.push(b' ');
        if let Some(elapsed) = elapsed {
            push_elapsed(elapsed, text);
        }
    }
    text.push(b'[');
    push_signed(text, i64::from(event.error));
    text.push(b']');
}

fn push_elapsed(elapsed: u64, text: &mut Vec<u8>) {
    text.push(b'(');
    push_right(text, elapsed, 8);
    text.extend_from_slice(b") ");
}

fn push_remap(event: &Event, text: &mut Vec<u8>) {
    push(text, event.sector);
    text.extend_from_slice(b" + ");
    push(text, u64::from(event.sectors()));
    text.extend_from_slice(b" <- (");
    let from = event.remap();
    push(text, from.map_or(0, |from| u64::from(from.device.major())));
    text.push(b',');
    push(text, from.map_or(0, |from| u64::from(from.device.minor())));
    text.extend_from_slice(b") ");
    push(text, from.map_or(0, |from| from.sector));
}

fn push_payload_in_brackets(event: &Event, text: &mut Vec<u8>) {
    if !event.payload.is_empty() {
        text.push(b'(');
        push_payload(event, text);
        text.extend_from_slice(b") ");
    }
}

/// Hexadecimal bytes of a packet command; `..` for the zeros at the end. Nothing of other events.
fn push_payload(event: &Event, text: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    if !event.is_packet() {
        return;
    }
    let last = event.payload.iter().rposition(|byte| *byte != 0);
    let shown = last.map_or(1, |last| last + 2).min(event.payload.len());
    for (index, byte) in event.payload[..shown].iter().enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        text.push(HEX[usize::from(byte >> 4)]);
        text.push(HEX[usize::from(byte & 15)]);
    }
    if event.payload.last() == Some(&0) {
        text.extend_from_slice(b" ..");
    }
}
