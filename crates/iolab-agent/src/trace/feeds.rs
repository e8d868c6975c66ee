//! Sources of records: raw pages of a tracing instance, or rings of perf events; one per CPU.
//!
//! tracefs first: pages cost less than rings, one instance sees single processes with all that they
//! start, and the kernel counts exactly what it lost. Rings of perf events need no more than that
//! tracefs can be read, as in a container whose tracefs is mounted read-only. Of these the kernel
//! tells a loss only before the next record, so that one at the very end is not counted.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::capture::Files;
use super::layers::Chosen;
use super::order::Order;
use crate::error::{Error, Result};
use crate::sys::perf::Ring;

/// Records of one CPU.
pub enum Feed {
    /// Raw pages, and where the kernel counts what it lost.
    Pipe(File, PathBuf),
    /// A ring, and what it has lost so far.
    Ring(Ring, u64),
}

/// Buffer of one CPU.
pub struct Cpu {
    /// Number of the CPU.
    pub number: u32,
    /// Number of the instance.
    pub recorder: u32,
    /// Its records.
    pub feed: Feed,
    /// Time of the last event that was read.
    pub last_ns: u64,
}

impl Cpu {
    /// Events that were lost so far.
    pub fn lost(&self) -> u64 {
        match &self.feed {
            Feed::Pipe(_, stats) => std::fs::read_to_string(stats).map_or(0, |it| lost_in(&it)),
            Feed::Ring(_, lost) => *lost,
        }
    }
}

/// Buffers of instances.
pub fn pipes(instances: &[Files]) -> Result<Vec<Cpu>> {
    let mut cpus = Vec::new();
    for (recorder, instance) in (0..).zip(instances) {
        for number in instance.cpus() {
            let folder = PathBuf::from(format!("per_cpu/cpu{number}"));
            let pipe = instance.open(&folder.join("trace_pipe_raw"))?;
            let feed = Feed::Pipe(pipe, instance.0.join(folder).join("stats"));
            cpus.push(Cpu { number, recorder, feed, last_ns: 0 });
        }
    }
    Ok(cpus)
}

/// Rings of perf events.
pub fn rings(order: &Order, chosen: &[Chosen]) -> Result<Vec<Cpu>> {
    let points: Vec<(u16, String)> =
        chosen.iter().map(|point| (point.id, point.filter.clone())).collect();
    let mut cpus = Vec::new();
    for number in online() {
        let opened = Ring::open(number, &points, order.buffer_bytes).map_err(|error| {
            let hint = "record on the host, or give the container CAP_PERFMON or CAP_SYS_ADMIN";
            Error::failed(format!("perf events cannot be opened on CPU {number}: {error}"), hint)
        })?;
        let Some(ring) = opened else { continue };
        cpus.push(Cpu { number, recorder: 0, feed: Feed::Ring(ring, 0), last_ns: 0 });
    }
    Ok(cpus)
}

/// CPUs that are on line.
fn online() -> Vec<u32> {
    let path = Path::new("/sys/devices/system/cpu/online");
    listed(&std::fs::read_to_string(path).unwrap_or_else(|_| "0".to_owned()))
}

/// Numbers of a list such as `0-2,4`.
fn listed(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Sum of what `per_cpu/cpuN/stats` says of lost events.
fn lost_in(stats: &str) -> u64 {
    let kinds = ["overrun", "commit overrun", "dropped events"];
    let values = stats.lines().filter_map(|line| line.split_once(':'));
    let lost = values.filter(|(name, _)| kinds.contains(&name.trim()));
    lost.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}

/// Reads a page if there is one; the bytes that were read.
pub fn read_page(file: &mut File, page: &mut [u8]) -> usize {
    loop {
        match file.read(page) {
            Ok(count) => return count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Nothing there, or the CPU went away: the others are still read.
            Err(_) => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_all_kinds_are_counted() {
        let stats = "entries: 292\noverrun: 60\ncommit overrun: 2\nbytes: 19368\n\
            oldest event ts:  2580.829013\ndropped events: 1\nread events: 9\n";
        assert_eq!(lost_in(stats), 63);
        assert_eq!(lost_in(""), 0);
    }

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(listed("0-2,4,7-8\n"), [0, 1, 2, 4, 7, 8]);
        assert_eq!(listed("0"), [0]);
        assert!(listed("").is_empty() && listed("x-3").is_empty());
    }
}
