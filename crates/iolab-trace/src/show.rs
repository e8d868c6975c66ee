//! A trace as text, from beginning to end, in pieces.

use crate::error::Error;
use crate::event::Event;
use crate::source::Source;
use crate::write::blkparse::{Options, Writer};
use crate::write::blkparse_totals::Totals;

/// Bytes of output that are handed over at once.
pub const PIECE_BYTES: usize = 1 << 18;

/// Takes pieces of output.
pub type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// Choice of what is shown.
#[derive(Clone, Debug, Default)]
pub struct Show {
    /// Lines.
    pub lines: Options,
    /// True if the summaries of devices and CPUs are left out.
    pub is_quiet: bool,
    /// True if there is a summary per program.
    pub has_programs: bool,
}

/// Writes a trace as blkparse's text; returns the number of events shown.
///
/// # Errors
/// The error of the source or the sink.
pub fn show(source: &mut dyn Source, show: &Show, sink: Sink<'_>) -> Result<u64, Error> {
    let mut writer = Writer::new(show.lines.clone());
    let mut totals = (!show.is_quiet || show.has_programs).then(|| Totals::new(show.has_programs));
    let mut text = Vec::with_capacity(PIECE_BYTES + (1 << 17));
    let mut event = Event::default();
    let mut shown = 0;
    while source.next(&mut event)? {
        if let Some(begin_ns) = source.begin_ns() {
            writer.begin_at(begin_ns);
        }
        let is_shown = writer.push(&event, &mut text);
        shown += u64::from(is_shown);
        if let Some(totals) = &mut totals {
            totals.add(&event, writer.since_begin(&event), is_shown);
        }
        if text.len() >= PIECE_BYTES {
            sink(&text)?;
            text.clear();
        }
    }
    if let Some(totals) = totals {
        let mut summary = String::new();
        if show.has_programs {
            totals.push_programs(writer.names(), &mut summary);
        }
        if !show.is_quiet {
            totals.push_devices(&source.devices(), &mut summary);
        }
        text.extend_from_slice(summary.as_bytes());
    }
    sink(&text)?;
    Ok(shown)
}
