//! cfq's tunables: times are kept in ticks, as the kernel does, and shown in milliseconds.
//!
//! Source: Linux 4.1 block/cfq-iosched.c (defaults and ranges); 4.2 for `slice_idle` without a
//! head.

use super::choice::BackSeek;
use super::clock::Tick;
use super::scheduler::Cfq;
use crate::api::scheduler::{Hz, SchedulerContext};
use crate::tunable::{Tunable, TunableInfo, Tuned, Unit};

/// Tunables; pairs are indexed by "is synchronous".
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub quantum: u32,
    pub fifo_expire: [Tick; 2],
    pub back_seek_max_kib: u64,
    pub back_seek_penalty: u64,
    pub slice: [Tick; 2],
    pub slice_async_requests: u32,
    pub slice_idle: Tick,
    pub group_idle: Tick,
    pub is_low_latency: bool,
    pub target_latency: Tick,
}

impl Settings {
    /// Defaults. Those of time are fractions of a second in whole ticks, not rounded milliseconds;
    /// slices and waiting times are at least a tick.
    pub fn defaults(context: &SchedulerContext) -> Self {
        let second = Tick::from(context.hz.0);
        Self {
            quantum: 8,
            fifo_expire: [second / 4, second / 8],
            back_seek_max_kib: 16 * 1024,
            back_seek_penalty: 2,
            slice: [(second / 25).max(1), (second / 10).max(1)],
            slice_async_requests: 2,
            slice_idle: if context.is_rotational { (second / 125).max(1) } else { 0 },
            group_idle: (second / 125).max(1),
            is_low_latency: true,
            target_latency: second * 3 / 10,
        }
    }

    /// Limits of going backwards inside a queue.
    pub fn back_seek(&self) -> BackSeek {
        BackSeek { sectors_max: 2 * self.back_seek_max_kib, penalty: self.back_seek_penalty }
    }
}

/// Greatest value of every unsigned sysfs file of cfq.
const MAX: u64 = u32::MAX as u64;

const fn ticks(hz: Hz, ms: u64) -> Tick {
    hz.ticks_of_ms(ms) as Tick
}

const fn ms(hz: Hz, ticks: Tick) -> u64 {
    hz.ms_of_ticks(ticks as u64)
}

/// A row whose value is a time in milliseconds.
macro_rules! time {
    ($name:literal, $default:literal, $min:literal,
     $field:ident $([$pair:literal])?, $about:literal) => {
        Tunable {
            info: info($name, Unit::Milliseconds, ($default, $min, MAX), $about),
            get: |cfq: &Cfq| ms(cfq.clock.hz, cfq.settings.$field $([$pair])?),
            set: |cfq: &mut Cfq, value| {
                cfq.settings.$field $([$pair])? = ticks(cfq.clock.hz, value);
            },
        }
    };
}

/// A row whose value is kept as it is.
macro_rules! plain {
    ($name:literal, $unit:ident, $default:literal, $min:literal, $field:ident, $about:literal) => {
        Tunable {
            info: info($name, Unit::$unit, ($default, $min, MAX), $about),
            get: |cfq: &Cfq| cfq.settings.$field.into(),
            set: |cfq: &mut Cfq, value| cfq.settings.$field = value as _,
        }
    };
}

/// `numbers`: default, least, greatest.
const fn info(
    name: &'static str,
    unit: Unit,
    numbers: (u64, u64, u64),
    about: &'static str,
) -> TunableInfo {
    let (default, min, max) = numbers;
    TunableInfo { name, unit, default, min, max, about }
}

impl Tuned for Cfq {
    const TUNABLES: &'static [Tunable<Self>] = &[
        plain!("quantum", Requests, 8, 1, quantum, "Most requests of one queue at the device."),
        time!(
            "fifo_expire_sync",
            125,
            1,
            fifo_expire[1],
            "Age of a synchronous request that is honoured at the start of a slice."
        ),
        time!(
            "fifo_expire_async",
            250,
            1,
            fifo_expire[0],
            "Age of an asynchronous request that is honoured at the start of a slice."
        ),
        plain!(
            "back_seek_max",
            KibiBytes,
            16_384,
            0,
            back_seek_max_kib,
            "Longest way back to a request that still belongs to the current sweep."
        ),
        plain!(
            "back_seek_penalty",
            Count,
            2,
            1,
            back_seek_penalty,
            "What a sector backwards costs, in sectors forwards."
        ),
        time!("slice_sync", 100, 1, slice[1], "Slice of a synchronous queue of level 4."),
        time!("slice_async", 40, 1, slice[0], "Slice of an asynchronous queue of level 4."),
        plain!(
            "slice_async_rq",
            Requests,
            2,
            1,
            slice_async_requests,
            "An asynchronous queue's requests per slice: 2 x this x (8 - level), if others wait."
        ),
        time!(
            "slice_idle",
            8,
            0,
            slice_idle,
            "How long the device waits for a queue's next request; without a head 0 by default."
        ),
        time!(
            "group_idle",
            8,
            0,
            group_idle,
            "How long it waits for a group's next request when the group has one queue."
        ),
        Tunable {
            info: info(
                "low_latency",
                Unit::Switch,
                (1, 0, 1),
                "Shorten slices to keep to target_latency, hold asynchronous requests back.",
            ),
            get: |cfq| cfq.settings.is_low_latency.into(),
            set: |cfq, value| cfq.settings.is_low_latency = value != 0,
        },
        time!(
            "target_latency",
            300,
            1,
            target_latency,
            "Time in which every busy queue should have had a slice."
        ),
    ];
}
