//! Events as CSV: what `iolab sim trace` and `iolab trace convert` write.
//!
//! The first line names the columns, in any order: `ts_ns event sector nr_sectors rwbs ioprio pid
//! cpu device bytes error sequence number comm point`, and those that are written; unknown ones
//! are passed over. Without the column `device` the event `A` is a joined request, as in recordings
//! of the dispatch order; with it `J` is, or the point `rq_merge`, and `A` a remap. A device
//! without a colon is a simulated one.

use super::fields::{Cursor, bytes_of, number};
use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Device, Event};
use crate::simulated::MAJOR;

iolab_model::registry! {
    /// A column.
    pub enum Column as "column" {
        /// Time in nanoseconds.
        Time = "ts_ns",
        /// Letter of the action.
        Event = "event",
        /// First sector.
        Sector = "sector",
        /// Length in sectors.
        Sectors = "nr_sectors",
        /// Letters of the operation.
        Letters = "rwbs",
        /// Priority as the kernel packs it, hexadecimal with `0x`.
        Priority = "ioprio",
        /// Process.
        Pid = "pid",
        /// CPU.
        Cpu = "cpu",
        /// `MAJOR:MINOR`.
        Device = "device",
        /// Length in bytes.
        Bytes = "bytes",
        /// Error number, as in blktrace.
        Error = "error",
        /// Number of the record on its CPU.
        Sequence = "sequence",
        /// Payload in hexadecimal.
        Payload = "payload",
        /// Category bits, hexadecimal with `0x`.
        Categories = "categories",
        /// Id of the cgroup.
        Cgroup = "cgroup",
        /// Name of the trace point of another layer, `SYSTEM:NAME`.
        Name = "name",
        /// Its fields, `field=value` separated by blanks.
        Fields = "fields",
    }
}

/// Two requests that became one: its letter is that of a bio that joined a request.
const REQUEST_MERGED: &[u8] = b"rq_merge";

/// Tell whether a line is the first of such a file.
pub fn is_line(line: &[u8]) -> bool {
    line.starts_with(b"ts_ns,event,")
}

/// The format.
#[derive(Default)]
pub struct EventsCsv {
    columns: Vec<Option<Column>>,
    /// Place of the column that names the kernel's trace point; simulations write it.
    point: Option<usize>,
}

impl TextFormat for EventsCsv {
    const IS_STRICT: bool = true;

    fn line(&mut self, line: &[u8], event: &mut Event, _: &mut State) -> Line {
        if self.columns.is_empty() {
            let names = String::from_utf8_lossy(line);
            self.point = names.split(',').position(|name| name.trim() == "point");
            self.columns = names.split(',').map(|name| name.trim().parse().ok()).collect();
            return if is_line(line) { Line::Other } else { Line::Wrong };
        }
        match self.event(line, event) {
            _ if line.is_empty() => Line::Other,
            Some(()) => Line::Event,
            None => Line::Wrong,
        }
    }
}

impl EventsCsv {
    fn event(&self, line: &[u8], event: &mut Event) -> Option<()> {
        let (mut categories, mut is_request_merged) = (None, false);
        let mut fields = line.split(|byte| *byte == b',');
        for (index, column) in self.columns.iter().enumerate() {
            let field = fields.next()?;
            match column {
                None if Some(index) == self.point => is_request_merged = field == REQUEST_MERGED,
                None => {}
                _ if field.is_empty() => {}
                Some(Column::Time) => event.time_ns = number(field)?,
                Some(Column::Event) => {
                    event.action = std::str::from_utf8(field).ok()?.parse().ok()?;
                }
                Some(Column::Sector) => event.sector = number(field)?,
                Some(Column::Sectors) => event.bytes = event.bytes.max(bytes_of(number(field)?)?),
                Some(Column::Letters) => {
                    event.categories = Categories::of_letters(field)?;
                }
                Some(Column::Priority) => event.priority = hex(field)?,
                Some(Column::Pid) => event.pid = u32::try_from(number(field)?).ok()?,
                Some(Column::Cpu) => event.cpu = u32::try_from(number(field)?).ok()?,
                Some(Column::Device) => event.device = device(field)?,
                Some(Column::Bytes) => event.bytes = u32::try_from(number(field)?).ok()?,
                Some(Column::Error) => event.error = u16::try_from(number(field)?).ok()?,
                Some(Column::Sequence) => event.sequence = u32::try_from(number(field)?).ok()?,
                Some(Column::Payload) => payload(field, &mut event.payload)?,
                Some(Column::Categories) => categories = Some(Categories(hex(field)?)),
                Some(Column::Cgroup) => event.cgroup = Some(number(field)?),
                // The payload has both.
                Some(Column::Name | Column::Fields) => {}
            }
        }
        if fields.next().is_some() {
            return None;
        }
        let is_old = !self.columns.contains(&Some(Column::Device));
        if is_request_merged || (is_old && event.action == Action::Remapped) {
            event.action = Action::Joined;
        }
        let own = event.categories.with(Categories::of_action(event.action));
        event.categories = categories.unwrap_or(own);
        Some(())
    }
}

fn hex(field: &[u8]) -> Option<u16> {
    u16::from_str_radix(std::str::from_utf8(field).ok()?.strip_prefix("0x")?, 16).ok()
}

/// `MAJOR:MINOR`, or the number of a simulated queue.
fn device(field: &[u8]) -> Option<Device> {
    let mut cursor = Cursor(field);
    let major = cursor.number()?;
    if cursor.0.is_empty() {
        return (major < 1 << 20).then(|| Device::new(MAJOR, major as u32));
    }
    cursor.byte(b':')?;
    let minor = cursor.number()?;
    let fits = cursor.0.is_empty() && major < 1 << 12 && minor < 1 << 20;
    fits.then(|| Device::new(major as u32, minor as u32))
}

fn payload(field: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    if !field.len().is_multiple_of(2) {
        return None;
    }
    for pair in field.chunks_exact(2) {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    }
    Some(())
}
