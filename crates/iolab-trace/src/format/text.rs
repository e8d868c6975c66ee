//! A reader of lines: what all text formats share.

use std::collections::VecDeque;

use crate::error::{Caveat, Error, Place};
use crate::event::{Device, Event};
use crate::names::Names;
use crate::source::{Lines, Source, Window, shown};

/// Meaning of a line.
pub enum Line {
    /// One event, which has been filled in.
    Event,
    /// Events that have been put into the queue.
    Queued,
    /// Something that belongs to the format and is no event.
    Other,
    /// Nothing of the format.
    Wrong,
}

/// State of a format between lines.
#[derive(Default)]
pub struct State {
    /// Events that come before the next line's.
    pub queue: VecDeque<Event>,
    /// Names that have been told already.
    names: Names,
    /// Devices by name.
    pub devices: Vec<(Device, String)>,
    /// Caveats without a line of their own.
    pub remarks: Vec<String>,
}

impl State {
    /// Puts the note of a process's name into the queue unless it has been there.
    pub fn name(&mut self, pid: u32, name: &[u8], time_ns: u64) {
        if name == b"(null)" || self.names.of(pid).is_some() {
            return;
        }
        self.names.insert(pid, name);
        let mut note = Event::default();
        note.set_process(pid, self.names.of(pid).unwrap_or(name));
        note.time_ns = time_ns;
        self.queue.push_back(note);
    }

    /// Number of a device that has only a name.
    pub fn device_of(&mut self, name: &str) -> Option<Device> {
        if let Some((device, _)) = self.devices.iter().find(|(_, known)| known == name) {
            return Some(*device);
        }
        let number = u32::try_from(self.devices.len()).ok().filter(|number| *number < 4096)?;
        let device = Device::new(0, number);
        self.devices.push((device, name.to_owned()));
        Some(device)
    }
}

/// A text format.
pub trait TextFormat: Send {
    /// True if a line that is wrong damages the file; otherwise it is left out and counted.
    const IS_STRICT: bool;

    /// Understands a line.
    fn line(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Line;

    /// Called at the end of the file: what is still to come goes into the queue.
    fn end(&mut self, state: &mut State) {
        let _ = state;
    }
}

/// Events of a text.
pub struct TextReader<F> {
    format: F,
    lines: Lines,
    state: State,
    caveats: Vec<Caveat>,
    left_out: u64,
    first_left_out: Option<Caveat>,
    is_at_end: bool,
}

impl<F: TextFormat> TextReader<F> {
    /// Reader of a text at its beginning.
    pub fn new(format: F, window: Window) -> Self {
        Self {
            format,
            lines: Lines::new(window),
            state: State::default(),
            caveats: Vec::new(),
            left_out: 0,
            first_left_out: None,
            is_at_end: false,
        }
    }

    /// Tells at the end what was left out.
    fn finish(&mut self) {
        self.is_at_end = true;
        self.format.end(&mut self.state);
        if let Some(first) = self.first_left_out.take() {
            let what = match self.left_out {
                1 => format!("1 line is no event and is left out: {}", first.what),
                lines => {
                    format!("{lines} lines are no events and are left out, first {}", first.what)
                }
            };
            self.caveats.push(Caveat { what, ..first });
        }
        let (name, place) = (self.lines.name().to_owned(), Place::Line(self.lines.number()));
        for what in self.state.remarks.drain(..) {
            self.caveats.push(Caveat { name: name.clone(), place, what, is_damage: false });
        }
    }

    fn wrong(&mut self) {
        let text = shown(self.lines.line());
        if F::IS_STRICT {
            let what = format!("{text} is no event; the rest of the file is not used");
            self.caveats.push(self.lines.caveat(what, true));
            self.finish();
            return;
        }
        self.left_out += 1;
        if self.first_left_out.is_none() {
            self.first_left_out = Some(self.lines.caveat(text, false));
        }
    }
}

impl<F: TextFormat> Source for TextReader<F> {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        loop {
            if let Some(queued) = self.state.queue.pop_front() {
                *event = queued;
                return Ok(true);
            }
            if self.is_at_end {
                return Ok(false);
            }
            if !self.lines.advance()? {
                self.finish();
                continue;
            }
            event.clear();
            match self.format.line(self.lines.line(), event, &mut self.state) {
                Line::Event if self.state.queue.is_empty() => return Ok(true),
                Line::Event => self.state.queue.push_back(event.clone()),
                Line::Queued | Line::Other => {}
                Line::Wrong => self.wrong(),
            }
        }
    }

    fn caveats(&self) -> &[Caveat] {
        &self.caveats
    }

    fn devices(&self) -> Vec<(Device, String)> {
        self.state.devices.clone()
    }
}
