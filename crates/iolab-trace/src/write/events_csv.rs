//! Events as CSV with every field, see [`crate::format::events_csv`].

use crate::event::Event;
use crate::format::events_csv::Column;
use crate::number::push;

/// Appends the line that names the columns.
pub fn push_head(text: &mut Vec<u8>) {
    for (index, column) in Column::ALL.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(column.name().as_bytes());
    }
    text.push(b'\n');
}

/// Appends an event.
pub fn push_event(event: &Event, text: &mut Vec<u8>) {
    for (index, column) in Column::ALL.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        push_field(*column, event, text);
    }
    text.push(b'\n');
}

/// Appends one field of an event.
pub fn push_field(column: Column, event: &Event, text: &mut Vec<u8>) {
    match column {
        Column::Time => push(text, event.time_ns),
        Column::Event => text.extend_from_slice(event.action.name().as_bytes()),
        Column::Sector => push(text, event.sector),
        Column::Sectors => push(text, u64::from(event.sectors())),
        Column::Letters => {
            let (letters, length) = event.letters();
            text.extend_from_slice(&letters[..length]);
        }
        Column::Priority => push_hex(text, event.priority),
        Column::Pid => push(text, u64::from(event.pid)),
        Column::Cpu => push(text, u64::from(event.cpu)),
        Column::Device => {
            push(text, u64::from(event.device.major()));
            text.push(b':');
            push(text, u64::from(event.device.minor()));
        }
        Column::Bytes => push(text, u64::from(event.bytes)),
        Column::Error => push(text, u64::from(event.error)),
        Column::Sequence => push(text, u64::from(event.sequence)),
        Column::Payload => {
            for byte in &event.payload {
                text.push(hex_digit(byte >> 4));
                text.push(hex_digit(byte & 15));
            }
        }
        Column::Categories => push_hex(text, event.categories.0),
        Column::Name => push_plain(text, event.point().0),
        Column::Fields => push_plain(text, event.point().1),
        Column::Cgroup => {
            if let Some(cgroup) = event.cgroup {
                push(text, cgroup);
            }
        }
    }
}

/// Appends a name or fields: what would end a field of CSV becomes `?`.
fn push_plain(text: &mut Vec<u8>, raw: &[u8]) {
    text.extend(raw.iter().map(|byte| match byte {
        b' '..=b'~' if !matches!(byte, b',' | b'"') => *byte,
        _ => b'?',
    }));
}

const fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

fn push_hex(text: &mut Vec<u8>, value: u16) {
    text.extend_from_slice(b"0x");
    for shift in [12, 8, 4, 0] {
        text.push(hex_digit((value >> shift & 15) as u8));
    }
}
