//! The settings of a queue, under the names of sysfs.

use std::collections::BTreeMap;

use iolab_model::Ns;
use serde::{Deserialize, Serialize};

use super::throttle::default_target;
use crate::api::scheduler::Framework;
use crate::error::SimError;
use crate::sched::SchedulerKind;

/// Most requests or commands that make sense; a queue of a fast flash drive has 65536 slots.
pub(crate) const DEPTH_MAX: u32 = 65_536;

/// The settings of a queue; what is absent takes the kernel's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueParameters {
    /// The scheduler.
    pub scheduler: SchedulerKind,
    /// Its tunables that differ from the defaults.
    pub tunables: BTreeMap<String, u64>,
    /// Request slots; absent: 128 per sync and async pool (legacy), twice the smaller of device
    /// depth and 128 (blk-mq with a scheduler), the device's depth (none).
    pub nr_requests: Option<u32>,
    /// Commands given to the device at once; absent: what it takes.
    pub queue_depth: Option<u32>,
    /// Requests pulled beyond the device's depth: 1 as most real stacks do, 0 as SCSI does.
    pub look_ahead: u32,
    /// 0: all merges, 1: the one-hit cache only, 2: none.
    pub nomerges: u8,
    /// Longest request.
    pub max_sectors_kb: Option<u32>,
    /// Most pieces of memory per request: pages of 4 KiB, or folios of the page cache.
    pub max_segments: Option<u32>,
    /// Clock ticks per second.
    pub hz: u32,
    /// Target of write-back throttling, us: 0 turns it off, -1 asks for the kernel's default.
    /// Absent: that default, but off under bfq and in the legacy framework.
    pub wbt_lat_usec: Option<i32>,
    /// CPUs that submit.
    pub cpus: u16,
    /// Overrides what the device says of itself.
    pub rotational: Option<bool>,
    /// The device refuses every so manieth request once it has work (`QUEUE FULL` of a SCSI
    /// target); it is put back and offered again after the next completion. 0: never.
    pub refuse_every: u32,
}

impl Default for QueueParameters {
    fn default() -> Self {
        Self {
            scheduler: SchedulerKind::None,
            tunables: BTreeMap::new(),
            nr_requests: None,
            queue_depth: None,
            look_ahead: 1,
            nomerges: 0,
            max_sectors_kb: None,
            max_segments: None,
            hz: 1000,
            wbt_lat_usec: None,
            cpus: 1,
            rotational: None,
            refuse_every: 0,
        }
    }
}

/// A number's name, value, range and unit.
type Checked = (&'static str, Option<u32>, (u32, u32), &'static str);

impl QueueParameters {
    /// Refuses what a queue in front of a device of this depth cannot have.
    pub fn check(&self, device_depth: u32) -> Result<(), SimError> {
        let depth_max = device_depth.min(DEPTH_MAX);
        let numbers: [Checked; 8] = [
            ("nr_requests", self.nr_requests, (1, DEPTH_MAX), "requests"),
            ("queue_depth", self.queue_depth, (1, depth_max), "commands"),
            ("look_ahead", Some(self.look_ahead), (0, 1), "requests"),
            ("nomerges", Some(u32::from(self.nomerges)), (0, 2), ""),
            // A request holds at least a page (Linux block/blk-settings.c).
            ("max_sectors_kb", self.max_sectors_kb, (4, 1 << 20), "KiB"),
            ("max_segments", self.max_segments, (1, 1 << 16), "segments"),
            ("hz", Some(self.hz), (100, 1000), "ticks/s"),
            ("cpus", Some(u32::from(self.cpus)), (1, 4096), "CPUs"),
        ];
        for (name, value, (min, max), unit) in numbers {
            if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
                return Err(SimError::OutOfRange {
                    name: format!("queue: {name}"),
                    value: f64::from(value),
                    unit: unit.to_owned(),
                    min: f64::from(min),
                    max: f64::from(max),
                });
            }
        }
        self.check_throttling()
    }

    fn check_throttling(&self) -> Result<(), SimError> {
        let Some(latency_us) = self.wbt_lat_usec else { return Ok(()) };
        if latency_us < -1 {
            return Err(SimError::OutOfRange {
                name: "queue: wbt_lat_usec".into(),
                value: f64::from(latency_us),
                unit: "us".into(),
                min: -1.0,
                max: f64::from(i32::MAX),
            });
        }
        if latency_us > 0 && self.scheduler.framework() == Framework::Legacy {
            return Err(SimError::Inconsistent {
                subject: format!("queue: wbt_lat_usec = {latency_us}"),
                problem: format!("{} has no write-back throttling", self.scheduler),
                remedy: "leave it out, or choose none, mq-deadline, kyber or bfq".into(),
            });
        }
        Ok(())
    }

    /// The target of write-back throttling on a device; none if it is off.
    ///
    /// bfq turns off what is on by default, and only that: a target that was written, -1 included,
    /// stays or begins (tried on Linux 6.18).
    pub fn throttling_target(&self, is_rotational: bool) -> Option<Ns> {
        if self.scheduler.framework() == Framework::Legacy {
            return None;
        }
        match self.wbt_lat_usec {
            None if self.scheduler.ends_default_throttling() => None,
            None | Some(-1) => Some(default_target(is_rotational)),
            Some(latency_us) => {
                u64::try_from(latency_us).ok().filter(|&us| us > 0).map(Ns::from_us)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_deeper_than_its_device_is_refused() {
        let parameters = QueueParameters { queue_depth: Some(64), ..QueueParameters::default() };
        let error = parameters.check(32).unwrap_err().to_string();
        assert_eq!(error, "queue: queue_depth = 64 commands: must be 1 to 32 commands");
        assert_eq!(parameters.check(u32::MAX), Ok(()));
    }

    #[test]
    fn throttling_is_on_by_default_but_off_under_bfq_and_in_the_legacy_framework() {
        use SchedulerKind::{Bfq, Cfq, MqDeadline, None as Nothing};
        let target = |scheduler: SchedulerKind, wbt_lat_usec, is_rotational| {
            QueueParameters { scheduler, wbt_lat_usec, ..QueueParameters::default() }
                .throttling_target(is_rotational)
        };
        assert_eq!(target(Nothing, None, false), Some(Ns::from_ms(2)));
        assert_eq!(target(MqDeadline, None, true), Some(Ns::from_ms(75)));
        assert_eq!(target(MqDeadline, Some(-1), true), Some(Ns::from_ms(75)));
        assert_eq!(target(MqDeadline, Some(500), true), Some(Ns::from_us(500)));
        assert_eq!(target(MqDeadline, Some(0), true), None);
        assert_eq!(target(Bfq, None, true), None);
        // What is written counts under bfq too, as on Linux 6.18.
        assert_eq!(target(Bfq, Some(-1), true), Some(Ns::from_ms(75)));
        assert_eq!(target(Bfq, Some(500), true), Some(Ns::from_us(500)));
        assert_eq!(target(Cfq, None, true), None);
        assert_eq!(target(Cfq, Some(-1), true), None);
    }

    #[test]
    fn a_target_that_no_queue_can_have_is_refused() {
        let refused = |scheduler, latency_us| {
            let wbt_lat_usec = Some(latency_us);
            QueueParameters { scheduler, wbt_lat_usec, ..QueueParameters::default() }
                .check(32)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(SchedulerKind::Kyber, -2),
            "queue: wbt_lat_usec = -2 us: must be -1 to 2147483647 us"
        );
        assert_eq!(
            refused(SchedulerKind::Cfq, 2000),
            "queue: wbt_lat_usec = 2000: cfq has no write-back throttling; leave it out, or choose \
             none, mq-deadline, kyber or bfq"
        );
    }

    #[test]
    fn zero_slots_merges_beyond_two_and_odd_clocks_are_refused() {
        let usual = QueueParameters::default;
        for wrong in [
            QueueParameters { nr_requests: Some(0), ..usual() },
            QueueParameters { nomerges: 3, ..usual() },
            QueueParameters { max_sectors_kb: Some(3), ..usual() },
            QueueParameters { hz: 0, ..usual() },
            QueueParameters { cpus: 0, ..usual() },
        ] {
            assert!(wrong.check(32).is_err(), "{wrong:?}");
        }
    }
}
