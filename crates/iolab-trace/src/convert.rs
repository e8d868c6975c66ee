//! From one format to another.

use crate::error::Error;
use crate::event::{Action, Event};
use crate::native;
use crate::show::{PIECE_BYTES, Show, Sink, show};
use crate::source::{Facts, Source};
use crate::write::{blktrace, events_csv, iolog};

iolab_model::registry! {
    /// Format that is written.
    pub enum Output as "output format" {
        /// Our own compact file.
        Iolab = "iolab",
        /// Binary records, one file.
        Blktrace = "blktrace",
        /// Default text of blkparse, without summaries.
        Blkparse = "blkparse",
        /// Events as CSV, every field.
        Csv = "csv",
        /// fio's iolog, version 3.
        Iolog = "iolog",
    }
}

impl Output {
    /// Format that a file name's ending stands for.
    pub fn of_ending(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending {
            "iotrace" => Self::Iolab,
            "blktrace" | "bin" | "dump" => Self::Blktrace,
            "txt" | "blkparse" => Self::Blkparse,
            "csv" => Self::Csv,
            "iolog" | "log" => Self::Iolog,
            _ => return None,
        })
    }
}

/// Amount that was converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// Events that were written.
    pub written: u64,
    /// Events that the format has no place for.
    pub left_out: u64,
}

/// Writes all events of a source in another format.
///
/// # Errors
/// The error of the source or the sink, or the refusal of the format.
pub fn convert(
    source: &mut dyn Source,
    output: Output,
    facts: &Facts,
    sink: Sink<'_>,
) -> Result<Converted, Error> {
    match output {
        Output::Blkparse => {
            let options = Show { is_quiet: true, ..Show::default() };
            let written = show(source, &options, sink)?;
            Ok(Converted { written, left_out: 0 })
        }
        Output::Iolab => to_iolab(source, facts, sink),
        Output::Blktrace => {
            each(source, sink, Vec::new(), |event, bytes, _| blktrace::push(event, bytes))
        }
        Output::Csv => {
            let mut head = Vec::new();
            events_csv::push_head(&mut head);
            let push = |event: &Event, bytes: &mut Vec<u8>, _: &dyn Source| {
                events_csv::push_event(event, bytes);
                Ok(true)
            };
            each(source, sink, head, push)
        }
        Output::Iolog => {
            let mut writer = iolog::Writer::default();
            let mut head = Vec::new();
            iolog::Writer::push_head(&mut head);
            let push = |event: &Event, text: &mut Vec<u8>, source: &dyn Source| {
                Ok(writer.push_event(event, source, text))
            };
            let done = each(source, sink, head, push)?;
            let mut end = Vec::new();
            writer.push_end(&mut end);
            sink(&end)?;
            Ok(done)
        }
    }
}

/// Writes each event by itself.
fn each(
    source: &mut dyn Source,
    sink: Sink<'_>,
    mut bytes: Vec<u8>,
    mut push: impl FnMut(&Event, &mut Vec<u8>, &dyn Source) -> Result<bool, Error>,
) -> Result<Converted, Error> {
    let mut event = Event::default();
    let mut done = Converted::default();
    while source.next(&mut event)? {
        if push(&event, &mut bytes, source)? {
            done.written += 1;
        } else if event.action != Action::NoteProcess {
            done.left_out += 1;
        }
        if bytes.len() >= PIECE_BYTES {
            sink(&bytes)?;
            bytes.clear();
        }
    }
    sink(&bytes)?;
    Ok(done)
}

fn to_iolab(source: &mut dyn Source, facts: &Facts, sink: Sink<'_>) -> Result<Converted, Error> {
    let mut all = source.facts();
    all.extend(facts.iter().map(|(name, value)| (name.clone(), value.clone())));
    all.extend(
        source.devices().into_iter().map(|(device, name)| (format!("device {device}"), name)),
    );
    let mut bytes = Vec::new();
    let mut writer = native::Writer::new(&all, &mut bytes)?;
    let mut event = Event::default();
    let mut written = 0;
    while source.next(&mut event)? {
        writer.push(&event, &mut bytes)?;
        written += 1;
        if bytes.len() >= PIECE_BYTES {
            sink(&bytes)?;
            bytes.clear();
        }
    }
    writer.finish(&mut bytes)?;
    sink(&bytes)?;
    Ok(Converted { written, left_out: 0 })
}
