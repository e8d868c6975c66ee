//! Readings of a device's counters over time, few enough to be kept.
//!
//! Rows are in the order of the kernel's `stat` file (Linux Documentation/block/stat.rst).

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
