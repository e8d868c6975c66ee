//! A controller's non-volatile write cache, and when its rows go to the disks.
//!
//! A write is done `latency` after it found room and crossed the link to the host. Rows are
//! destaged, cheapest per sector first (commands of the row's plan divided by its dirty sectors:
//! full rows come first), above the fill limit or while writes wait for room up to `destage_rows`
//! at a time, and one at a time once no request has come for the idle time. Left out: a read cache,
//! batteries that fail.
//!
//! Source: Chen et al. (1994), section on NVRAM; the numbers are assumed.

use std::collections::BTreeSet;

use iolab_model::{Ns, Sector};

use super::array::{Array, Timer};
use super::plan::RowWrite;
use super::rows::Phase;
use crate::error::SimError;
use crate::volume::parameters::VolumeParameters;

/// State of the cache, in sectors.
#[derive(Debug)]
pub(super) struct Nvram {
    capacity: u64,
    high: u64,
    latency: Ns,
    bytes_per_s: u64,
    /// Time at which the host's link has moved everything so far.
    link_free: Ns,
    idle: Ns,
    rows_max: u32,
    pub(super) dirty: u64,
    destaging: u64,
    rows: u32,
    last_activity: Ns,
    has_timer: bool,
    /// Rows that can be destaged: cost, number, slot.
    order: BTreeSet<(u64, u64, u32)>,
}

impl Nvram {
    /// As described; nothing without NVRAM.
    pub(super) fn new(parameters: &VolumeParameters) -> Result<Option<Self>, SimError> {
        let capacity = parameters.nvram_sectors();
        let percent = parameters.nvram_high_percent()?;
        let rows_max = parameters.destage_rows()? as u32;
        let bytes_per_s = parameters.nvram_rate_mb_s()? * 1_000_000;
        Ok((capacity > 0).then(|| Self {
            capacity,
            high: capacity * percent / 100,
            latency: Ns::from_us(parameters.nvram_latency_us()),
            bytes_per_s,
            link_free: Ns(0),
            idle: Ns::from_us(parameters.nvram_idle_us()),
            rows_max,
            dirty: 0,
            destaging: 0,
            rows: 0,
            last_activity: Ns(0),
            has_timer: false,
            order: BTreeSet::new(),
        }))
    }

    /// Tell whether a write fits; one larger than the whole cache is taken when it is empty.
    pub(super) const fn has_room(&self, sectors: u64) -> bool {
        self.dirty == 0 || self.dirty + sectors <= self.capacity
    }

    /// Time at which data of this size have crossed the link to the host and are answered for.
    pub(super) fn transfer(&mut self, now: Ns, sectors: u32) -> Ns {
        let bytes = u128::from(sectors) * u128::from(Sector::SIZE.0);
        let duration = bytes * 1_000_000_000 / u128::from(self.bytes_per_s);
        self.link_free = self.link_free.max(now) + Ns(duration as u64);
        self.link_free + self.latency
    }

    /// A row has been written.
    pub(super) const fn destaged(&mut self, sectors: u64) {
        self.dirty -= sectors;
        self.destaging -= sectors;
        self.rows -= 1;
    }

    /// Time from which the host counts as idle.
    fn idle_from(&self) -> Ns {
        self.last_activity + self.idle
    }
}

impl Array {
    /// A request has come from above.
    pub(super) const fn note_activity(&mut self, now: Ns) {
        if let Some(nvram) = &mut self.nvram {
            nvram.last_activity = now;
        }
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.note_activity();
        }
    }

    /// Puts a row into the order of destaging, if it is not locked.
    pub(super) fn price(&mut self, slot: u32) {
        let lost = self.lost_role(self.rows[slot].number);
        let row = &mut self.rows[slot];
        let Some(nvram) = &mut self.nvram else { return };
        if let Some(cost) = row.cost.take() {
            nvram.order.remove(&(cost, row.number, slot));
        }
        if row.phase != Phase::Idle {
            return;
        }
        let touched = &row.gathered.touched;
        let write = RowWrite { geometry: self.geometry, row: row.number, touched, lost };
        self.cost_plan.make(self.rule, write);
        let (reads, writes) = self.cost_plan.counts();
        // Commands per sector, in units of 2^-32.
        let cost = ((reads + writes) as u64) << 32;
        let cost = cost / row.gathered.sectors();
        row.cost = Some(cost);
        nvram.order.insert((cost, row.number, slot));
    }

    /// Destages as much as may be, and plans to look again.
    pub(super) fn consider_destage(&mut self, now: Ns) {
        while let Some(nvram) = &self.nvram {
            let is_idle = now >= nvram.idle_from() && nvram.rows == 0;
            let is_pressed = nvram.dirty - nvram.destaging > nvram.high || !self.backlog.is_empty();
            if nvram.rows >= nvram.rows_max || !(is_pressed || is_idle) {
                break;
            }
            let is_held = |number| self.rebuild.as_ref().is_some_and(|it| it.holds(number));
            let Some(&next) = nvram.order.iter().find(|(_, number, _)| !is_held(*number)) else {
                break;
            };
            self.destage(now, next);
        }
        self.plan_idle(now);
    }

    fn destage(&mut self, now: Ns, next: (u64, u64, u32)) {
        let (_, _, slot) = next;
        if let Some(nvram) = &mut self.nvram {
            nvram.order.remove(&next);
            nvram.destaging += self.rows[slot].gathered.sectors();
            nvram.rows += 1;
        }
        self.rows[slot].cost = None;
        self.start_row(now, slot);
    }

    fn plan_idle(&mut self, now: Ns) {
        if let Some(nvram) = &mut self.nvram {
            let is_waiting = nvram.dirty > nvram.destaging && now < nvram.idle_from();
            if is_waiting && !nvram.has_timer {
                nvram.has_timer = true;
                self.timers.plan(nvram.idle_from(), Timer::Idle);
            }
        }
    }

    /// The host may have become idle.
    pub(super) fn idle_timer(&mut self, now: Ns) {
        if let Some(nvram) = &mut self.nvram {
            nvram.has_timer = false;
        }
        self.consider_destage(now);
    }
}
