//! Events as columns in the memory layout of Arrow, batch by batch: whoever writes Parquet or Arrow
//! takes the buffers as they are.
//!
//! Source: Arrow columnar format 1.5, sections "Fixed-Size Primitive Layout" and "Variable-size
//! Binary Layout"; numbers are little endian. Columns and their meaning are those of the CSV.

use crate::error::Error;
use crate::event::Event;
use crate::format::events_csv::Column;
use crate::source::Source;
use crate::write::events_csv::push_field;

/// Events of a batch, so that a batch has some MiB.
const BATCH_EVENTS: usize = 1 << 16;

iolab_model::registry! {
    /// Type of a column, under Arrow's name.
    pub enum ColumnType as "type of a column" {
        /// Whole numbers of 16 bits.
        U16 = "uint16",
        /// Whole numbers of 32 bits.
        U32 = "uint32",
        /// Whole numbers of 64 bits.
        U64 = "uint64",
        /// Text.
        Text = "string",
        /// Bytes.
        Binary = "binary",
    }
}

/// Type of a column.
pub const fn kind_of(column: Column) -> ColumnType {
    match column {
        Column::Time | Column::Sector | Column::Cgroup => ColumnType::U64,
        Column::Sectors | Column::Pid | Column::Cpu | Column::Bytes | Column::Sequence => {
            ColumnType::U32
        }
        Column::Priority | Column::Error | Column::Categories => ColumnType::U16,
        Column::Event | Column::Letters | Column::Device | Column::Name | Column::Fields => {
            ColumnType::Text
        }
        Column::Payload => ColumnType::Binary,
    }
}

/// Buffers of one column of a batch.
#[derive(Debug, Default)]
pub struct ColumnBuffers {
    /// A bit per event that has a value; empty: all have.
    pub validity: Vec<u8>,
    /// Begin of each value, and the end of the last; empty for numbers.
    pub offsets: Vec<u8>,
    /// The values.
    pub data: Vec<u8>,
}

impl ColumnBuffers {
    fn push(&mut self, column: Column, event: &Event, row: usize) {
        match column {
            Column::Time => self.u64(event.time_ns),
            Column::Sector => self.u64(event.sector),
            Column::Sectors => self.u32(event.sectors()),
            Column::Pid => self.u32(event.pid),
            Column::Cpu => self.u32(event.cpu),
            Column::Bytes => self.u32(event.bytes),
            Column::Sequence => self.u32(event.sequence),
            Column::Priority => self.u16(event.priority),
            Column::Error => self.u16(event.error),
            Column::Categories => self.u16(event.categories.0),
            Column::Cgroup => {
                if row.is_multiple_of(8) {
                    self.validity.push(0);
                }
                if let (Some(_), Some(bits)) = (event.cgroup, self.validity.last_mut()) {
                    *bits |= 1 << (row % 8);
                }
                self.u64(event.cgroup.unwrap_or(0));
            }
            Column::Event | Column::Letters | Column::Device | Column::Name | Column::Fields => {
                push_field(column, event, &mut self.data);
                self.end_value();
            }
            Column::Payload => {
                self.data.extend_from_slice(&event.payload);
                self.end_value();
            }
        }
    }

    fn u16(&mut self, value: u16) {
        self.data.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.data.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.data.extend_from_slice(&value.to_le_bytes());
    }

    fn end_value(&mut self) {
        if self.offsets.is_empty() {
            self.offsets.extend_from_slice(&0_u32.to_le_bytes());
        }
        // Offsets are signed; a batch of the longest payloads stays far below.
        let end = u32::try_from(self.data.len()).unwrap_or(u32::MAX);
        self.offsets.extend_from_slice(&end.to_le_bytes());
    }
}

/// Longest data of a column before its batch ends.
const DATA_BYTES: usize = 1 << 26;

/// Takes a batch: how many events, and the buffers of each column in the order of [`Column::ALL`].
pub type BatchSink<'a> = dyn FnMut(usize, &[ColumnBuffers]) -> Result<(), Error> + 'a;

/// Hands all events of a source over as batches: how many events, and the buffers of each column in
/// the order of [`Column::ALL`]. Returns the number of events.
///
/// # Errors
/// The error of the source or the sink.
pub fn batches(source: &mut dyn Source, sink: &mut BatchSink<'_>) -> Result<u64, Error> {
    let fresh = || Column::ALL.iter().map(|_| ColumnBuffers::default()).collect::<Vec<_>>();
    let (mut columns, mut rows, mut whole) = (fresh(), 0, 0);
    let mut event = Event::default();
    while source.next(&mut event)? {
        for (column, buffers) in Column::ALL.iter().zip(&mut columns) {
            buffers.push(*column, &event, rows);
        }
        rows += 1;
        whole += 1;
        let is_long = columns.iter().any(|buffers| buffers.data.len() >= DATA_BYTES);
        if rows == BATCH_EVENTS || is_long {
            sink(rows, &columns)?;
            (columns, rows) = (fresh(), 0);
        }
    }
    if rows > 0 {
        sink(rows, &columns)?;
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_arrow_looks_for_them() {
        let mut event = Event { sector: 513, payload: vec![1, 2, 3], ..Event::default() };
        let mut columns: Vec<ColumnBuffers> =
            Column::ALL.iter().map(|_| ColumnBuffers::default()).collect();
        for row in 0..9 {
            event.cgroup = (row == 8).then_some(7);
            for (column, buffers) in Column::ALL.iter().zip(&mut columns) {
                buffers.push(*column, &event, row);
            }
        }
        let at = |wanted: Column| Column::ALL.iter().position(|it| *it == wanted).unwrap();
        let sectors = &columns[at(Column::Sector)];
        assert_eq!((sectors.data.len(), &sectors.data[..2]), (72, &[1, 2][..]));
        let payloads = &columns[at(Column::Payload)];
        assert_eq!((payloads.data.len(), payloads.offsets.len()), (27, 40));
        assert_eq!(payloads.offsets[..8], [0, 0, 0, 0, 3, 0, 0, 0]);
        let cgroups = &columns[at(Column::Cgroup)];
        assert_eq!((cgroups.validity.as_slice(), cgroups.data[64]), (&[0, 1][..], 7));
    }
}
