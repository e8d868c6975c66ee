//! Bandwidth of a device, rate of its writers, and length of their pauses.
//!
//! Source: Linux mm/page-writeback.c (`wb_update_write_bandwidth`, `wb_update_dirty_ratelimit`,
//! `wb_max_pause`, `wb_min_pause`, `dirty_poll_interval`, `writeback_chunk_size`).

use iolab_model::Ns;

use super::limits::ONE;

/// Ticks per second.
pub const HZ: u64 = 250;
/// A tick.
pub const TICK: Ns = Ns(1_000_000_000 / HZ);
/// Interval at which bandwidth and rate are looked at, in ticks: 200 ms.
pub const INTERVAL: u64 = HZ / 5;
/// Bandwidth of a device that has not written yet: 100 MiB/s.
pub const BANDWIDTH_START: u64 = 25_600;
/// Period of the filter of bandwidth: 3 s, rounded up to a power of two.
const PERIOD: u64 = (3 * HZ).next_power_of_two();
/// Dirtied pages after which a task looks at the limits at first, and below which pauses are
/// stretched: 128 KiB.
pub const POLL_PAGES: u64 = 32;
/// Pages of a chunk are a multiple of this: 4 MiB.
const CHUNK_PAGES: u64 = 1024;

/// Pages that a free task may dirty before it looks again.
pub fn poll_pages(dirty: u64, threshold: u64) -> u64 {
    threshold.checked_sub(dirty).filter(|left| *left > 0).map_or(1, |left| 1 << (left.ilog2() / 2))
}

/// Pages that the flusher writes of one file before it turns to the next one.
pub fn chunk_pages(bandwidth: u64, hard: u64) -> u64 {
    let wanted = (bandwidth / 2).min(hard / 8) + CHUNK_PAGES;
    wanted / CHUNK_PAGES * CHUNK_PAGES
}

/// Longest pause in ticks: no longer than the dirty pages of the device last.
pub fn pause_max(bandwidth: u64, device_dirty: u64) -> u64 {
    let per_tick = 1 + bandwidth / (1 + HZ / 8).next_power_of_two();
    (device_dirty / per_tick + 1).min(HZ / 5)
}

/// Pages to the next look and shortest pause in ticks.
pub fn pause_min(bandwidth: u64, most: u64, task_rate: u64, rate: u64) -> (u64, u64) {
    let per_second = HZ.next_power_of_two();
    let (high, low) = (u64::from(bandwidth.max(1).ilog2()), u64::from(rate.max(1).ilog2()));
    let mut ticks = HZ / 100 + high.saturating_sub(low) * (10 * HZ) / 1024;
    ticks = ticks.min(1 + most / 2);
    let mut pages = rate * ticks / per_second;
    if pages < POLL_PAGES {
        ticks = most;
        pages = rate * ticks / per_second;
        if pages > POLL_PAGES {
            pages = POLL_PAGES;
            ticks = HZ * POLL_PAGES / rate.max(1);
        }
    }
    if HZ * pages / (task_rate + 1) > most {
        ticks = most;
        pages = task_rate * ticks / per_second;
    }
    (pages, if pages >= POLL_PAGES { 1 + ticks / 2 } else { ticks })
}

/// Pace of one device.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Filtered once.
    bandwidth: u64,
    /// Filtered twice: pages per second.
    pub smooth: u64,
    /// Pages per second that each writer may dirty at the set point.
    pub rate: u64,
    balanced: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            bandwidth: BANDWIDTH_START,
            smooth: BANDWIDTH_START,
            rate: BANDWIDTH_START,
            balanced: BANDWIDTH_START,
        }
    }
}

impl Pace {
    /// Pages were written in so many ticks.
    pub fn observe(&mut self, pages: u64, ticks: u64) {
        let ticks = ticks.max(1);
        if ticks > PERIOD {
            self.bandwidth = pages * HZ / ticks;
            self.smooth = self.bandwidth.max(1);
            return;
        }
        let (old, new) =
            (self.bandwidth, (pages * HZ + self.bandwidth * (PERIOD - ticks)) / PERIOD);
        if self.smooth > old && old >= new {
            self.smooth -= (self.smooth - old) >> 3;
        }
        if self.smooth < old && old <= new {
            self.smooth += (old - self.smooth) >> 3;
        }
        self.smooth = self.smooth.max(1);
        self.bandwidth = new;
    }

    /// Pages were dirtied in so many ticks, at this ratio and on this side of the set point.
    pub fn adjust(&mut self, dirtied: u64, ticks: u64, ratio: u64, is_below: bool) {
        let dirty_rate = dirtied * HZ / ticks.max(1);
        let task = self.rate * ratio / ONE + 1;
        let balanced = (task * self.smooth / (dirty_rate | 1)).min(self.smooth);
        let step = if is_below {
            self.balanced.min(balanced).min(task).saturating_sub(self.rate)
        } else {
            self.rate.saturating_sub(self.balanced.max(balanced).max(task))
        };
        let shift = self.rate / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.rate =
            if self.rate < balanced { self.rate + step } else { self.rate.saturating_sub(step) };
        self.rate = self.rate.max(1);
        self.balanced = balanced;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wb_3_poll() {
        let got = [0, 100_000, 300_000, 314_368].map(|dirty| poll_pages(dirty, 419_328));
        assert_eq!(got, [512, 512, 256, 256]);
        assert_eq!(poll_pages(419_328, 419_328), 1);
    }

    #[test]
    fn wb_4_bandwidth_filter() {
        let mut pace = Pace::default();
        pace.observe(10_240, 50);
        assert_eq!(pace.bandwidth, 26_850);
    }

    #[test]
    fn wb_5_max_pause() {
        assert_eq!((pause_max(25_600, 300_000), pause_max(25_600, 1_000)), (50, 2));
    }

    #[test]
    fn wb_6_target() {
        let got = [25_600, 12_800, 3_200, 100].map(|rate| pause_min(25_600, 50, rate, rate));
        assert_eq!(got, [(200, 2), (200, 3), (112, 5), (19, 50)]);
    }

    #[test]
    fn wb_7_chunk() {
        let cases = [(25_600, 10_000_000), (2_560, 10_000_000), (25_600, 40_000)];
        let got = cases.map(|(bandwidth, hard)| chunk_pages(bandwidth, hard));
        assert_eq!(got, [13_312, 2_048, 5_120]);
        assert_eq!(chunk_pages(256_000, 100_000_000), 129_024);
    }

    #[test]
    fn pc_7_chunk_of_100_mib_per_second() {
        assert_eq!(chunk_pages(100 * 256, u64::MAX / 16) * 4096, 52 << 20);
    }

    #[test]
    fn bandwidth_follows_and_rate_stays_below_it() {
        let mut pace = Pace::default();
        for _ in 0..200 {
            pace.observe(2_560, INTERVAL);
            pace.adjust(2_560, INTERVAL, ONE * 9 / 10, false);
        }
        assert!((12_500..13_100).contains(&pace.smooth), "{}", pace.smooth);
        assert!(pace.rate < BANDWIDTH_START, "{}", pace.rate);
    }
}
