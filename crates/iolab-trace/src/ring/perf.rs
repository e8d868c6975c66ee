//! Records of a ring of perf events: samples of trace points, and losses.
//!
//! Source: Linux `include/uapi/linux/perf_event.h`. Left out: the mapping itself, which is the
//! recorder's, and all kinds of records but these two.

use std::ops::Range;

/// `PERF_RECORD_LOST`.
const RECORD_LOST: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
const RECORD_SAMPLE: u32 = 9;
/// Bytes of `struct perf_event_header`.
const HEADER_BYTES: usize = 8;

/// Events that a ring holds.
#[derive(Debug, PartialEq, Eq)]
pub enum PerfRecord<'a> {
    /// A record of a trace point: time, and its bytes from the number of the event on.
    Record(u64, &'a [u8]),
    /// So many were lost before the next one.
    Lost(u64),
}

/// Gives the records between two counters of bytes, in order; the counter up to which they are
/// used.
///
/// `copy` puts so many bytes, from a counter on, into an empty buffer. A record that is shorter
/// than its head or goes beyond the end ends the reading: what follows cannot be found.
pub fn records(
    span: Range<u64>,
    mut copy: impl FnMut(u64, usize, &mut Vec<u8>),
    mut sink: impl FnMut(PerfRecord<'_>),
) -> u64 {
    let (mut at, mut record) = (span.start, Vec::new());
    while span.end.wrapping_sub(at) >= HEADER_BYTES as u64 {
        record.clear();
        copy(at, HEADER_BYTES, &mut record);
        let length = record.get(6..8).and_then(|bytes| bytes.first_chunk());
        let length = length.map_or(0, |bytes| u16::from_ne_bytes(*bytes));
        if usize::from(length) < HEADER_BYTES || u64::from(length) > span.end.wrapping_sub(at) {
            return span.end;
        }
        record.clear();
        copy(at, usize::from(length), &mut record);
        if let Some(found) = understood(&record) {
            sink(found);
        }
        at = at.wrapping_add(u64::from(length));
    }
    at
}

/// A record of the buffer, if it is of a known kind.
fn understood(record: &[u8]) -> Option<PerfRecord<'_>> {
    let long = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    match word(0)? {
        // header, id, lost.
        RECORD_LOST => Some(PerfRecord::Lost(long(16)?)),
        // header, time, length of the raw data, raw data.
        RECORD_SAMPLE => {
            let length = usize::try_from(word(16)?).ok()?;
            Some(PerfRecord::Record(long(8)?, record.get(20..20_usize.checked_add(length)?)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&(8 + 8 * words.len() as u16).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn sample(time_ns: u64) -> Vec<u8> {
        record(RECORD_SAMPLE, &[time_ns, u64::from(4_u32) | 0x0a0b_0c0d << 32])
    }

    #[test]
    fn records_are_samples_and_losses() {
        let raw = 0x0a0b_0c0d_u32.to_ne_bytes();
        assert_eq!(understood(&sample(77)), Some(PerfRecord::Record(77, &raw)));
        assert_eq!(understood(&record(RECORD_LOST, &[1, 60])), Some(PerfRecord::Lost(60)));
        for damaged in [
            record(RECORD_SAMPLE, &[77, u64::from(u32::MAX)]),
            record(RECORD_SAMPLE, &[77]),
            record(RECORD_LOST, &[1]),
            record(3, &[1, 2, 3]),
            Vec::new(),
        ] {
            assert_eq!(understood(&damaged), None, "{damaged:?}");
        }
    }

    /// Reads a ring of `bytes`, beginning anywhere; times of samples, losses, and the new counter.
    fn read(bytes: &[u8], begin: u64) -> (Vec<u64>, u64, u64) {
        let (mut times, mut lost) = (Vec::new(), 0);
        let copy = |from: u64, length: usize, out: &mut Vec<u8>| {
            out.extend(
                (0..length as u64).map(|i| bytes[((from + i - begin) as usize) % bytes.len()]),
            );
        };
        let end = records(begin..begin + bytes.len() as u64, copy, |found| match found {
            PerfRecord::Record(time_ns, _) => times.push(time_ns),
            PerfRecord::Lost(count) => lost += count,
        });
        (times, lost, end)
    }

    #[test]
    fn a_ring_is_read_record_by_record_and_no_further_than_it_makes_sense() {
        let mut bytes = [sample(1), record(RECORD_LOST, &[1, 60]), sample(2)].concat();
        assert_eq!(read(&bytes, 4096), (vec![1, 2], 60, 4096 + bytes.len() as u64));
        let cut = &bytes[..bytes.len() - 8];
        assert_eq!(read(cut, 0), (vec![1], 60, cut.len() as u64));
        bytes[6] = 7;
        assert_eq!(read(&bytes, 0), (vec![], 0, bytes.len() as u64), "shorter than its head");
    }
}
