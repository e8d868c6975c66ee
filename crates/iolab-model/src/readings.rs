//! Readings of a device's counters over time, few enough to be kept.
//!
//! Rows are in the order of the kernel's `stat` file (Linux Documentation/block/stat.rst).

use serde::{Deserialize, Serialize};

/// Time of the processors of a simulated machine, and what waits in it, up to a reading.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct HostReading {
    /// Processors were busy with what workers compute themselves.
    pub user_ns: u64,
    /// Processors were busy with calls, interrupts and threads of the kernel.
    pub system_ns: u64,
    /// Processors had nothing to do while a request was outstanding.
    pub wait_ns: u64,
    /// Processors had nothing to do, and no request was outstanding.
    pub idle_ns: u64,
    /// Part of the time in the kernel that was charged to the workers.
    pub calls_ns: u64,
    /// Requests that waited in the host times nanoseconds.
    pub queued_ns: u64,
    /// At least one request waited in the host.
    pub queue_busy_ns: u64,
}

/// Most readings that are kept: then every second one is given up, and the distance doubles.
pub const READINGS_MAX: usize = 128;
/// Milliseconds between the first readings.
pub const FIRST_INTERVAL_MS: u64 = 100;
/// Place of the number of requests in flight: a level, all others only grow.
const IN_FLIGHT: usize = 8;

/// Gives up every second entry, the first one stays.
pub fn keep_every_second<T>(list: &mut Vec<T>) {
    let mut place = 0;
    list.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

/// Rows that count from the first one on, levels as they are; none if rows differ in length or are
/// too short.
pub fn since_first(rows: &[Vec<u64>]) -> Option<Vec<Vec<u64>>> {
    let first = rows.first().filter(|first| first.len() > IN_FLIGHT)?;
    if rows.iter().any(|row| row.len() != first.len()) {
        return None;
    }
    let since = |row: &Vec<u64>| {
        let pairs = row.iter().zip(first).enumerate();
        let of = |(place, (now, then)): (usize, (&u64, &u64))| {
            if place == IN_FLIGHT { *now } else { now.saturating_sub(*then) }
        };
        pairs.map(of).collect()
    };
    Some(rows.iter().map(since).collect())
}
