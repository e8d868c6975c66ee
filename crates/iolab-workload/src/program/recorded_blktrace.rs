//! Operations of a recording of block devices by blktrace(8): what entered the queue.
//!
//! The file is one in which the records of all CPUs stand in the order of time, as `blkparse -d`
//! writes it. Reads, writes, discards and flushes that a file system or a process put into the
//! queue are done again, at their place on the device. Left out: commands that only a driver
//! understands, and what the block layer made of the operations.

use std::io::BufRead;

use iolab_model::blktrace::{MAGIC, RECORD_BYTES, RecordHead, VERSION, is_swapped};

use super::deed::Deed;

/// `__BLK_TA_QUEUE` of Linux `include/uapi/linux/blktrace_api.h`.
const QUEUED: u32 = 1;
/// Categories: bits of the upper half of the action (`BLK_TC_*`).
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const READ: u32 = 1;
const DRIVER: u32 = 1 << 9;
const NOTE: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const SECTOR_BYTES: u64 = 512;
/// Bit of the action that says that the payload begins with the control group.
const CGROUP: u32 = 1 << 8;

/// An operation that entered the queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    /// Nanoseconds since tracing began.
    pub(super) time_ns: u64,
    /// Number of the device.
    pub(super) device: u32,
    pub(super) does: Deed,
    pub(super) at: u64,
    pub(super) length: u64,
}

/// Next operation that entered the queue; `None`: the file is at its end.
///
/// `number` counts the records.
pub(super) fn next(from: &mut impl BufRead, number: &mut u64) -> Result<Option<Queued>, String> {
    loop {
        let mut bytes = [0; RECORD_BYTES];
        let found = from.fill_buf().map_err(|error| unreadable(&error))?;
        if found.is_empty() {
            return Ok(None);
        }
        *number += 1;
        from.read_exact(&mut bytes).map_err(|_| "the record is cut off")?;
        let is_swapped = is_swapped(&bytes).unwrap_or(false);
        let head = RecordHead { bytes: &bytes, is_swapped };
        if head.magic() != MAGIC | VERSION {
            return Err(format!("this is no record of blktrace version {VERSION}"));
        }
        skip(from, head.payload_bytes() as u64)?;
        if let Some(queued) = queued(&head)? {
            return Ok(Some(queued));
        }
    }
}

fn unreadable(error: &std::io::Error) -> String {
    format!("it cannot be read: {error}")
}

fn skip(from: &mut impl BufRead, length: u64) -> Result<(), String> {
    let mut payload = std::io::Read::take(from, length);
    let skipped = std::io::copy(&mut payload, &mut std::io::sink());
    let skipped = skipped.map_err(|error| unreadable(&error))?;
    if skipped < length { Err("the record is cut off".to_owned()) } else { Ok(()) }
}

/// The operation of a record; `None`: it is no operation that is done again.
fn queued(head: &RecordHead<'_>) -> Result<Option<Queued>, String> {
    let (action, categories) = (head.action() & 0xffff & !CGROUP, head.action() >> 16);
    let is = |category| categories & category != 0;
    if action != QUEUED || is(NOTE) || is(DRIVER) {
        return Ok(None);
    }
    let length = u64::from(head.length());
    let does = match length {
        0 if is(FLUSH) => Deed::Fsync,
        0 => return Ok(None),
        _ if is(DISCARD) => Deed::Discard,
        _ if is(WRITE) => Deed::Write,
        _ if is(READ) => Deed::Read,
        _ => return Ok(None),
    };
    let at = if does == Deed::Fsync { Some(0) } else { head.sector().checked_mul(SECTOR_BYTES) };
    let at = at.filter(|at| at.checked_add(length).is_some()).ok_or("it is beyond any device")?;
    Ok(Some(Queued { time_ns: head.time_ns(), device: head.device(), does, at, length }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(action: u32, (time, sector, length): (u64, u64, u32), payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((MAGIC | VERSION).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(sector.to_le_bytes());
        for word in [length, action, 7, 0x80_0001, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(0u16.to_le_bytes());
        bytes.extend((payload.len() as u16).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn all(mut bytes: &[u8]) -> Vec<Result<Queued, String>> {
        let mut number = 0;
        std::iter::from_fn(|| next(&mut bytes, &mut number).transpose()).take(9).collect()
    }

    #[test]
    fn operations_that_enter_the_queue_are_found_among_the_others() {
        let mut bytes = record(NOTE << 16, (0, 0, 0), b"name");
        bytes.extend(record(READ << 16 | QUEUED, (5, 8, 4096), &[]));
        bytes.extend(record(READ << 16 | 7, (6, 8, 4096), &[]));
        bytes.extend(record((WRITE | 8) << 16 | QUEUED | CGROUP, (7, 16, 512), &[0; 8]));
        bytes.extend(record((WRITE | FLUSH) << 16 | QUEUED, (8, 0, 0), &[]));
        bytes.extend(record((WRITE | DISCARD) << 16 | QUEUED, (9, 24, 1024), &[]));
        bytes.extend(record((READ | DRIVER) << 16 | QUEUED, (9, 24, 1024), &[]));
        let found: Vec<_> = all(&bytes).into_iter().map(Result::unwrap).collect();
        let short: Vec<_> = found.iter().map(|q| (q.time_ns, q.does, q.at, q.length)).collect();
        let expected = [
            (5, Deed::Read, 4096, 4096),
            (7, Deed::Write, 8192, 512),
            (8, Deed::Fsync, 0, 0),
            (9, Deed::Discard, 12288, 1024),
        ];
        assert_eq!(short, expected);
    }

    #[test]
    fn damage_is_told() {
        let whole = record(READ << 16 | QUEUED, (5, u64::MAX, 4096), &[]);
        assert!(all(&whole)[0].clone().unwrap_err().contains("beyond any device"));
        assert!(all(&whole[..20])[0].clone().unwrap_err().contains("cut off"));
        let cut = record(READ << 16 | QUEUED, (5, 0, 512), b"xy");
        assert!(all(&cut[..49])[0].clone().unwrap_err().contains("cut off"));
        assert!(all(&[7; 48])[0].clone().unwrap_err().contains("no record of blktrace"));
    }
}
