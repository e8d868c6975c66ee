//! The traces of Microsoft Research Cambridge, as SNIA offers them: CSV with
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Source: the README of that data set. Times are Windows file times (units of 100 ns), offset and
//! size are bytes. A row becomes a bio that enters the queue at its time and is completed after its
//! response time; there is no issue. Each host and disk is a device with major number 0.

use std::collections::BinaryHeap;

use super::fields::number;
use super::text::{Line, State, TextFormat};
use crate::event::{Action, Categories, Event};

/// Completions that are waited for at once; beyond, the earliest is given early.
const OPEN_MAX: usize = 1 << 16;
const TICK_NS: u64 = 100;

/// Tell whether a line is one of such a file.
pub fn is_line(line: &[u8]) -> bool {
    is_head(line) || parse(line).is_some()
}

fn is_head(line: &[u8]) -> bool {
    line.to_ascii_lowercase().starts_with(b"timestamp,hostname,disknumber,")
}

struct Row<'a> {
    time_ns: u64,
    host: &'a [u8],
    disk: u64,
    is_write: bool,
    sector: u64,
    bytes: u32,
    response_ns: u64,
}

fn parse(line: &[u8]) -> Option<Row<'_>> {
    let fields: Vec<&[u8]> = line.splitn(8, |byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let [time, host, disk, kind, offset, size, response] = fields.try_into().ok()?;
    let is_write = match kind.to_ascii_lowercase().as_slice() {
        b"read" => false,
        b"write" => true,
        _ => return None,
    };
    Some(Row {
        // The origin is the year 1601: what is left of 64 bits of nanoseconds is enough from 1970.
        time_ns: number(time)?.wrapping_mul(TICK_NS),
        host,
        disk: number(disk)?,
        is_write,
        sector: number(offset)? / 512,
        bytes: u32::try_from(number(size)?).ok()?,
        response_ns: number(response)?.checked_mul(TICK_NS)?,
    })
}

/// A completion that is still to come, the earliest first.
#[derive(PartialEq, Eq)]
struct Due(Event);

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |event: &Event| (event.time_ns, event.sequence);
        key(&other.0).cmp(&key(&self.0))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The format.
#[derive(Default)]
pub struct Msr {
    due: BinaryHeap<Due>,
    rows: u32,
}

impl TextFormat for Msr {
    const IS_STRICT: bool = true;

    fn line(&mut self, line: &[u8], event: &mut Event, state: &mut State) -> Line {
        if line.is_empty() || is_head(line) {
            return Line::Other;
        }
        let Some(row) = parse(line) else { return Line::Wrong };
        let name = format!("{}.{}", String::from_utf8_lossy(row.host), row.disk);
        let Some(device) = state.device_of(&name) else { return Line::Wrong };
        self.rows = self.rows.wrapping_add(1);
        event.action = Action::Queued;
        event.time_ns = row.time_ns;
        event.sector = row.sector;
        event.bytes = row.bytes;
        event.device = device;
        event.sequence = self.rows;
        let direction = if row.is_write { Categories::WRITE } else { Categories::READ };
        event.categories = direction.with(Categories::QUEUE);
        while self.due.peek().is_some_and(|due| due.0.time_ns <= row.time_ns)
            || self.due.len() >= OPEN_MAX
        {
            state.queue.extend(self.due.pop().map(|due| due.0));
        }
        let mut end = event.clone();
        end.action = Action::Completed;
        end.time_ns = row.time_ns.wrapping_add(row.response_ns);
        end.categories = direction.with(Categories::COMPLETE);
        self.due.push(Due(end));
        Line::Event
    }

    fn end(&mut self, state: &mut State) {
        while let Some(Due(event)) = self.due.pop() {
            state.queue.push_back(event);
        }
    }
}
