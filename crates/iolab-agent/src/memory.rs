//! Rate at which this machine copies memory: the most that a page cache could hand out or take.
//!
//! Every processor copies a buffer of its own at the same time, far larger than its share of any
//! cache; the best round of each counts, because disturbance only slows down, and an upper bound
//! may be too high but not too low. It takes some 50 ms once per agent, before the first trial.
//! A copied byte counts once, though it is read and written: that is what serving a byte costs.
//!
//! Left out: what a cache of the processor can do (smaller files may be faster than this), and
//! machines so small that the buffers would crowd out what is measured.

use std::hint::black_box;
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::Machine;

/// Name of the fact.
pub const FACT: &str = "memory.copy_bytes_per_s";
/// Of each processor's source, and of its destination.
const BUFFER_BYTES: usize = 32 << 20;
/// More of them do not move more bytes, but need more memory.
const PROCESSORS_MAX: usize = 16;
/// All buffers together take at most this part of the memory that is free.
const MEMORY_PART: u64 = 8;
const ROUNDS: usize = 6;

/// Name and text of the fact; nothing in a rehearsal, or where memory is short.
pub fn fact(machine: &Machine) -> Option<(String, String)> {
    static MEASURED: OnceLock<Option<u64>> = OnceLock::new();
    if machine.is_dry_run() {
        return None;
    }
    let measured = MEASURED.get_or_init(|| {
        let processors = thread::available_parallelism().map_or(1, usize::from).min(PROCESSORS_MAX);
        let needed = 2 * BUFFER_BYTES * processors;
        let free = available_bytes(&machine.peek("/proc/meminfo")?)?;
        (needed as u64 <= free / MEMORY_PART).then(|| copy_rate(processors, BUFFER_BYTES))
    });
    measured.map(|rate| (FACT.to_owned(), rate.to_string()))
}

/// Bytes that programs can have without swapping, as `/proc/meminfo` says.
pub fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Bytes that all threads together copy in a second, each in its fastest round.
fn copy_rate(threads: usize, bytes: usize) -> u64 {
    let barrier = Barrier::new(threads);
    let fastest_round = || -> Duration {
        let source = vec![1_u8; bytes];
        let mut sink = vec![2_u8; bytes];
        let mut fastest = Duration::MAX;
        for _ in 0..ROUNDS {
            barrier.wait();
            let began = Instant::now();
            sink.copy_from_slice(black_box(&source));
            black_box(&mut sink);
            fastest = fastest.min(began.elapsed());
        }
        fastest
    };
    let fastest: Vec<Duration> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(fastest_round)).collect();
        started.into_iter().map(|one| one.join().expect("copying does not panic")).collect()
    });
    fastest.iter().map(|took| bytes as f64 / took.as_secs_f64().max(1e-9)).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read() {
        let text = "MemTotal:       24684092 kB\nMemAvailable:     1000 kB\n";
        assert_eq!(available_bytes(text), Some(1_024_000));
        assert_eq!(available_bytes("MemTotal: 5 kB\n"), None);
    }

    #[test]
    fn a_copy_takes_time_and_two_threads_are_counted_together() {
        let rate = copy_rate(2, 4 << 20);
        // Slower than a disk of 1990, or faster than any cache: then it was not measured.
        assert!((10_000_000..10_000_000_000_000).contains(&rate), "{rate}");
    }
}
