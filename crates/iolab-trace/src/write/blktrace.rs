//! The binary records of blktrace(8), version 7, little endian: one file, in order of time, as
//! `blkparse -d` writes it and btt reads it.
//!
//! Left out: what a record cannot hold (priority), joined requests, trace points of other layers.
//! An event whose payload does not fit into 16 bits of length is refused.

use crate::error::Error;
use crate::event::{Action, Categories, Event};
use crate::format::blktrace::{MAGIC, VERSION};

const CGROUP_FLAG: u32 = 1 << 8;

/// Bytes of a process's name in a note, as the kernel writes it (`TASK_COMM_LEN`, sched.h): its
/// readers look for the zero that ends it.
const NAME_BYTES: usize = 16;

/// Appends a record; false if there is none for the event.
///
/// # Errors
/// [`Error::Unfit`] if the payload is too long.
pub fn push(event: &Event, bytes: &mut Vec<u8>) -> Result<bool, Error> {
    let code = match event.action {
        Action::Joined | Action::Point => return Ok(false),
        Action::NoteProcess => 0,
        Action::NoteTime => 1,
        Action::Message => 2,
        action => u32::from(action.code()),
    };
    let mut categories = event.categories;
    if event.action.is_note() {
        categories = categories.with(Categories::NOTIFY);
    }
    let flag = if event.cgroup.is_some() { CGROUP_FLAG } else { 0 };
    let padding = match event.action {
        Action::NoteProcess => NAME_BYTES.saturating_sub(event.payload.len()),
        _ => 0,
    };
    let length = event.payload.len() + padding + if event.cgroup.is_some() { 8 } else { 0 };
    let Ok(length) = u16::try_from(length) else {
        let what = format!("a payload of {length} bytes");
        return Err(Error::Unfit { format: "blktrace", what });
    };
    bytes.extend_from_slice(&(MAGIC | VERSION).to_le_bytes());
    bytes.extend_from_slice(&event.sequence.to_le_bytes());
    bytes.extend_from_slice(&event.time_ns.to_le_bytes());
    bytes.extend_from_slice(&event.sector.to_le_bytes());
    bytes.extend_from_slice(&event.bytes.to_le_bytes());
    bytes.extend_from_slice(&(code | flag | u32::from(categories.0) << 16).to_le_bytes());
    bytes.extend_from_slice(&event.pid.to_le_bytes());
    bytes.extend_from_slice(&event.device.0.to_le_bytes());
    bytes.extend_from_slice(&event.cpu.to_le_bytes());
    bytes.extend_from_slice(&event.error.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    if let Some(cgroup) = event.cgroup {
        bytes.extend_from_slice(&cgroup.to_le_bytes());
    }
    bytes.extend_from_slice(&event.payload);
    bytes.extend(core::iter::repeat_n(0, padding));
    Ok(true)
}
