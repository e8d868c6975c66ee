//! Limits of dirty pages, and the curve by which writers slow down towards them.
//!
//! Source: Linux mm/page-writeback.c (`domain_dirty_limits`, `pos_ratio_polynom`,
//! `wb_position_ratio`). Numbers are pages; ratios are in 1024ths; integers as in the kernel.

use crate::api::write_back::VmSettings;

/// One, as a ratio.
pub const ONE: u64 = 1024;
const PAGE: u64 = 4096;

/// Limits at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyLimits {
    /// Dirty pages from which the flusher works.
    pub background: u64,
    /// Dirty pages that writers may not exceed.
    pub threshold: u64,
}

impl DirtyLimits {
    /// Limits for so many pages that could be dirty.
    pub fn new(settings: &VmSettings, dirtyable: u64) -> Self {
        let share = |bytes: u64, percent: u64| match bytes {
            0 => dirtyable * (percent * PAGE / 100) / PAGE,
            bytes => bytes.div_ceil(PAGE),
        };
        let threshold = share(settings.dirty_bytes, settings.dirty_ratio);
        let background = share(settings.dirty_background_bytes, settings.dirty_background_ratio);
        let background = if background >= threshold { threshold / 2 } else { background };
        Self { background, threshold }
    }

    /// Dirty pages up to which nobody is slowed down.
    pub const fn free_run(&self) -> u64 {
        self.threshold.midpoint(self.background)
    }

    /// Dirty pages that the control aims at, below a hard limit.
    pub const fn set_point(&self, hard: u64) -> u64 {
        self.free_run().midpoint(hard)
    }
}

/// Ratio by which rates are multiplied: 1 at the set point, 2 far below, 0 at the hard limit.
pub fn curve(set: u64, dirty: u64, hard: u64) -> u64 {
    if dirty >= hard {
        return 0;
    }
    let span = (hard.saturating_sub(set) | 1) as i64;
    let x = (set as i64 - dirty as i64) * ONE as i64 / span;
    let cube = (((x * x) >> 10) * x) >> 10;
    (cube + ONE as i64).clamp(0, 2 * ONE as i64) as u64
}

/// Dirty pages of one device and everything that its share depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Limits of all devices together.
    pub limits: DirtyLimits,
    /// Hard limit.
    pub hard: u64,
    /// Dirty pages of all devices.
    pub dirty: u64,
    /// Those of the device.
    pub device_dirty: u64,
    /// The device's part of the threshold, by its share of completions.
    pub device_threshold: u64,
    /// Smoothed bandwidth of the device in pages per second.
    pub bandwidth: u64,
}

impl Shared {
    /// The device's part of the threshold, never less than an eighth of what is left.
    fn threshold(&self) -> u64 {
        let own = self.device_threshold.min(self.limits.threshold);
        own.max(self.hard.saturating_sub(self.dirty) / 8)
    }

    /// Ratio for a writer to the device.
    pub fn ratio(&self) -> u64 {
        let set = self.limits.set_point(self.hard);
        let all = curve(set, self.dirty, self.hard);
        if all == 0 {
            return 0;
        }
        let own = self.threshold();
        let part = (own << 16) / (self.limits.threshold | 1);
        let own_set = (set * part) >> 16;
        let beyond = self.limits.threshold.saturating_sub(own) + 8 * self.bandwidth;
        let span = (beyond * part) >> 16;
        let end = own_set + span;
        let mut ratio = if self.device_dirty < end - span / 4 {
            all * (end - self.device_dirty) / ((end - own_set) | 1)
        } else {
            all / 4
        };
        let reserve = own / 2;
        if self.device_dirty < reserve {
            ratio = if self.device_dirty > reserve / 8 {
                ratio * reserve / self.device_dirty
            } else {
                ratio * 8
            };
        }
        ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pages: u64) -> DirtyLimits {
        DirtyLimits::new(&VmSettings::default(), pages)
    }

    #[test]
    fn wb_1_limits() {
        let limits = limits(2_097_152);
        assert_eq!((limits.threshold, limits.background), (419_328, 209_408));
        assert_eq!((limits.free_run(), limits.set_point(limits.threshold)), (314_368, 366_848));
    }

    #[test]
    fn wb_2_curve() {
        let dirty = [314_368, 366_848, 393_088, 419_327, 419_328];
        let got = dirty.map(|dirty| curve(366_848, dirty, 419_328));
        assert_eq!(got, [2045, 1024, 896, 2, 0]);
    }

    #[test]
    fn pc_5_limits_of_8_gib() {
        let limits = limits(2_097_152);
        let mib = |pages: u64| pages as f64 / 256.0;
        assert!((mib(limits.background) - 819.2).abs() < 2.0);
        assert!((mib(limits.free_run()) - 1228.8).abs() < 2.0);
        assert!((mib(limits.threshold) - 1638.4).abs() < 2.0);
        let set = limits.set_point(limits.threshold);
        assert!((mib(set) - 1433.6).abs() < 2.0);
        assert_eq!(curve(set, set, limits.threshold), ONE);
        // 0.875, but for rounding.
        assert_eq!(curve(set, 1536 * 256, limits.threshold), 894);
        assert_eq!(curve(set, limits.threshold, limits.threshold), 0);
    }

    #[test]
    fn bytes_take_the_place_of_ratios() {
        let settings = VmSettings {
            dirty_bytes: 1 << 20,
            dirty_background_bytes: 1 << 21,
            ..VmSettings::default()
        };
        let limits = DirtyLimits::new(&settings, 1 << 20);
        assert_eq!((limits.threshold, limits.background), (256, 128));
    }

    #[test]
    fn a_device_above_its_share_is_slowed_down_and_one_far_below_is_not() {
        let limits = limits(2_097_152);
        let at = |device_dirty| Shared {
            limits,
            hard: limits.threshold,
            dirty: 366_848,
            device_dirty,
            device_threshold: limits.threshold / 10,
            bandwidth: 1_280,
        };
        assert!(at(40_000).ratio() < ONE);
        assert!(at(2_000).ratio() > ONE);
    }
}
