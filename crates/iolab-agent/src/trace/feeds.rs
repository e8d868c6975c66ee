//! Sources of records: raw pages of a tracing instance, or rings of perf events; one per CPU.
//!
//! tracefs first: pages cost less than rings, and the kernel counts what it lost of every version.
//! Rings of perf events need no more than that tracefs can be read, as in a container whose tracefs
//! is mounted read-only. Single processes are events of their own there, which what they start
//! inherits. Before Linux 6.0 the kernel tells a loss in a ring only before the next record: one at
//! the very end is not counted.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::capture::Files;
use super::layers::Chosen;
use super::order::Order;
use super::processes;
use crate::error::{Error, Result};
use crate::sys::allow_many_files;
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
            Feed::Ring(ring, lost) => ring.lost().unwrap_or(0).max(*lost),
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

/// Rings of perf events: trace points of devices, and those of processes that are known.
pub fn rings(order: &Order, chosen: &[Chosen]) -> Result<Vec<Cpu>> {
    allow_many_files();
    let points = numbers_of(chosen, false);
    let mut cpus = Vec::new();
    for number in online() {
        let opened = Ring::open(number, &points, order.buffer_bytes);
        let opened = opened.map_err(|error| not_opened(number, &error))?;
        let Some(ring) = opened else { continue };
        cpus.push(Cpu { number, recorder: 0, feed: Feed::Ring(ring, 0), last_ns: 0 });
    }
    if !order.pids.is_empty() {
        follow(&mut cpus, chosen, &order.pids, false)?;
        processes::check(&order.pids, order.bound_uid)?;
    }
    Ok(cpus)
}

/// Records processes, too, and what they start from now on; `is_on` if recording has begun.
pub fn follow(cpus: &mut [Cpu], chosen: &[Chosen], pids: &[u32], is_on: bool) -> Result<()> {
    let points = numbers_of(chosen, true);
    let threads = processes::threads_of(pids);
    for Cpu { number, feed, .. } in cpus {
        let Feed::Ring(ring, _) = feed else { continue };
        let mut added = threads.iter().map(|thread| ring.add(*thread, &points, is_on));
        let added = added.try_for_each(std::convert::identity);
        added.map_err(|error| not_opened(*number, &error))?;
    }
    Ok(())
}

/// The kernel's numbers and filters of trace points: of processes, or of devices.
fn numbers_of(chosen: &[Chosen], is_of_processes: bool) -> Vec<(u16, String)> {
    let points = chosen.iter().filter(|point| point.is_of_processes == is_of_processes);
    points.map(|point| (point.id, point.filter.clone())).collect()
}

fn not_opened(cpu: u32, error: &io::Error) -> Error {
    let what = format!("perf events cannot be opened on CPU {cpu}: {error}");
    let hint = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => {
            "each trace point takes an open file per CPU: raise the limit (ulimit -n), or record \
             fewer layers"
        }
        _ => "record on the host, or give the container CAP_PERFMON or CAP_SYS_ADMIN",
    };
    Error::failed(what, hint)
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
