//! Content of the two ends of a device (rule R3): labels, other data, our marker, or nothing.
//!
//! An empty answer of a label search is no proof, so that all but zeros and the marker counts as
//! somebody's. Left out: the middle, which is sampled and told, but refuses nothing; who blanked
//! both ends gave up what was between.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::marker::Marker;
use super::signature::{self, Found};

/// Bytes that are left alone at each end of a device: labels of others lie there, and our marker.
pub const EDGE_BYTES: u64 = 1 << 20;

/// The first and the last mebibyte.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Size of the device.
    pub total_bytes: u64,
    /// From its begin.
    pub begin: Vec<u8>,
    /// Up to its end.
    pub end: Vec<u8>,
}

/// Content that was found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Content that may not be read: a rehearsal by an ordinary user.
    Unseen,
    /// Zeros.
    Blank,
    /// Zeros and our marker.
    Marked(Marker),
    /// Labels, the most telling first.
    Labels(Vec<Found>),
    /// Something that no label explains, at this byte.
    Data(u64),
}

impl Ends {
    /// Reads both ends.
    pub fn read(device: &File, total_bytes: u64) -> io::Result<Self> {
        let length = EDGE_BYTES.min(total_bytes) as usize;
        let (mut begin, mut end) = (vec![0; length], vec![0; length]);
        device.read_exact_at(&mut begin, 0)?;
        device.read_exact_at(&mut end, total_bytes - length as u64)?;
        Ok(Self { total_bytes, begin, end })
    }

    /// Bytes at `offset`, if they lie in one of the ends.
    pub fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let from = |bytes: &'_ [u8], start: u64| {
            let place = usize::try_from(offset.checked_sub(start)?).ok()?;
            (place.checked_add(length)? <= bytes.len()).then_some(place)
        };
        if let Some(place) = from(&self.begin, 0) {
            return Some(&self.begin[place..place + length]);
        }
        let place = from(&self.end, self.total_bytes - self.end.len() as u64)?;
        Some(&self.end[place..place + length])
    }
}

/// Judges both ends.
pub fn verdict(ends: &Ends) -> Verdict {
    let labels = signature::find(ends);
    if !labels.is_empty() {
        return Verdict::Labels(labels);
    }
    let marker = Marker::parse(&ends.begin);
    let skipped = if marker.is_some() { Marker::BYTES } else { 0 };
    let in_begin = ends.begin[skipped..].iter().position(|&byte| byte != 0);
    if let Some(place) = in_begin {
        return Verdict::Data((skipped + place) as u64);
    }
    if let Some(place) = ends.end.iter().position(|&byte| byte != 0) {
        return Verdict::Data(ends.total_bytes - ends.end.len() as u64 + place as u64);
    }
    marker.map_or(Verdict::Blank, Verdict::Marked)
}

/// Command with which the user gives up what is on the device; iolab never does it.
pub fn wipe_command(node: &str, total_bytes: u64) -> String {
    let zeros = format!("dd if=/dev/zero of={node} bs=1M count=1 conv=fsync");
    let at_end = total_bytes.saturating_sub(EDGE_BYTES);
    format!("wipefs -a {node} && {zeros} && {zeros} seek={at_end} oflag=seek_bytes")
}

#[cfg(test)]
mod tests;
