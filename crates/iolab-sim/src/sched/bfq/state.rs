//! The scheduler's state, and the small questions about it that every part asks.

use std::collections::{BTreeMap, VecDeque};

use iolab_model::{Ns, Sector};

use super::backlog::Items;
use super::bursts::Burst;
use super::choose::BackSeek;
use super::entity::{Class, Entity};
use super::injection::Injection;
use super::marks::Mark;
use super::process::Processes;
use super::queue::{Queue, Ticks};
use super::rate::PeakRate;
use super::service::Agenda;
use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Hz, SchedulerContext};

/// A millisecond.
pub(super) const MS: u64 = 1_000_000;

/// The scheduler's own clock starts here, so that "never" and "long ago" need no special case.
pub(super) const EPOCH: u64 = 1_000_000_000 * 1_000_000;

/// Budget ceiling until the device's rate is known, in sectors.
// Linux block/bfq-iosched.c: bfq_default_max_budget.
const DEFAULT_MAX_BUDGET: u64 = 16 * 1024;

/// From this many (decayed) budgets on, the estimated rate is used: 11 slots.
// Linux block/bfq-iosched.c: bfq_stats_min_budgets.
const ENOUGH_BUDGETS: u64 = 194;

/// Tunables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Age limits of synchronous and of other requests, ns.
    pub(super) expire_sync: u64,
    pub(super) expire_unsync: u64,
    pub(super) back_seek_kib: u64,
    pub(super) back_penalty: u64,
    /// Idle period, ns.
    pub(super) slice_idle: u64,
    /// Longest slot, in ticks.
    pub(super) timeout: Ticks,
    /// Budget ceiling set by the user; 0: automatic.
    pub(super) user_max_budget: u64,
    pub(super) is_strict: bool,
    pub(super) is_low_latency: bool,
    /// Not in sysfs: idle time starts below zero, as with the clock that is read once per plug.
    pub(super) has_plug_clock: bool,
}

/// Knowledge about the device, seen from here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    pub(super) is_rotational: bool,
    /// True if it works on several requests at once, once known.
    pub(super) has_queueing: Option<bool>,
    /// Flash with queueing, as far as known (assumed until measured).
    pub(super) is_parallel_flash: bool,
    pub(super) queueing_samples: u32,
    /// Requests in it.
    pub(super) in_flight: u32,
    /// Most requests in it since the last verdict on queueing.
    pub(super) most_in_flight: u32,
    /// End of the last request dispatched.
    pub(super) last_position: Sector,
    /// The same for the queue in service, 0 while it has dispatched nothing.
    pub(super) service_position: Sector,
    pub(super) last_completion: u64,
    pub(super) last_completed: Option<u32>,
}

/// The slot of the queue in service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) started: u64,
    pub(super) idling_started: u64,
    pub(super) idling_started_ticks: Ticks,
    /// End of the idle period; `u64::MAX` if there is none.
    pub(super) timer: u64,
}

/// Budget fair queueing.
#[derive(Clone, Debug)]
pub struct Bfq {
    pub(super) hz: Hz,
    pub(super) settings: Settings,
    pub(super) device: Device,
    pub(super) slot: Slot,
    pub(super) agenda: Agenda,
    pub(super) queues: Vec<Queue>,
    pub(super) free_queues: Vec<u32>,
    pub(super) processes: Processes,
    pub(super) items: Items,
    /// Refused by the device: to be offered again first.
    pub(super) returned: VecDeque<RequestId>,
    pub(super) now: u64,
    pub(super) ticks: Ticks,
    pub(super) in_service: Option<u32>,
    /// Busy queues by class, and how many of all are raised.
    pub(super) busy: [u32; 3],
    pub(super) raised_busy: u32,
    pub(super) queued: u32,
    pub(super) budgets_assigned: u64,
    pub(super) max_budget: u64,
    pub(super) rate: PeakRate,
    pub(super) injection: Injection,
    pub(super) burst: Burst,
    /// First sectors of the queues that may still be merged, ascending.
    pub(super) positions: BTreeMap<Sector, u32>,
    /// Queues for async writes by class (real time, best effort) and level; last row: idle class.
    pub(super) unsync: [[Option<u32>; 8]; 3],
    /// Reference for stable merges: the first queue created in the last 600 ms.
    pub(super) reference_queue: Option<u32>,
}

impl Attach for Bfq {
    const FRAMEWORK: Framework = Framework::MultiQueue;
    const ENDS_DEFAULT_THROTTLING: bool = true;

    fn attach(context: &SchedulerContext) -> Self {
        let hz = context.hz;
        let is_rotational = context.is_rotational;
        let mut bfq = Self {
            hz,
            settings: Settings {
                // Linux block/bfq-iosched.c: bfq_fifo_expire, bfq_back_max, bfq_back_penalty,
                // bfq_slice_idle, bfq_timeout.
                expire_sync: 125 * MS,
                expire_unsync: 250 * MS,
                back_seek_kib: 16 * 1024,
                back_penalty: 2,
                slice_idle: 8 * MS,
                timeout: i64::from(hz.0 / 8),
                user_max_budget: 0,
                is_strict: false,
                is_low_latency: true,
                has_plug_clock: false,
            },
            device: Device {
                is_rotational,
                has_queueing: None,
                is_parallel_flash: !is_rotational,
                queueing_samples: 0,
                in_flight: 0,
                most_in_flight: 0,
                last_position: Sector(0),
                service_position: Sector(0),
                last_completion: 0,
                last_completed: None,
            },
            slot: Slot { started: 0, idling_started: 0, idling_started_ticks: 0, timer: u64::MAX },
            agenda: Agenda::default(),
            queues: Vec::new(),
            free_queues: Vec::new(),
            processes: Processes::default(),
            items: Items::default(),
            returned: VecDeque::new(),
            now: 0,
            ticks: 0,
            in_service: None,
            busy: [0; 3],
            raised_busy: 0,
            queued: 0,
            budgets_assigned: 0,
            max_budget: DEFAULT_MAX_BUDGET,
            rate: PeakRate::new(is_rotational),
            injection: Injection::default(),
            burst: Burst::default(),
            positions: BTreeMap::new(),
            unsync: [[None; 8]; 3],
            reference_queue: None,
        };
        bfq.set_clock(context.attached);
        bfq.agenda.idle_class_looked_at = bfq.ticks;
        bfq.agenda.idle_class_period = i64::from(hz.0 / 5);
        bfq
    }
}

impl Bfq {
    /// Every hook starts with this.
    pub(super) fn set_clock(&mut self, now: Ns) {
        self.now = now.0 + EPOCH;
        self.ticks = self.hz.ticks(now) as Ticks;
        self.agenda.ticks = self.ticks;
    }

    /// Milliseconds in ticks.
    pub(super) const fn ticks_of(&self, ms: u64) -> Ticks {
        self.hz.ticks_of_ms(ms) as Ticks
    }

    /// A tick later than `ticks` has come.
    pub(super) const fn is_past(&self, ticks: Ticks) -> bool {
        ticks < self.ticks
    }

    pub(super) fn queue(&self, id: u32) -> &Queue {
        &self.queues[id as usize]
    }

    pub(super) fn queue_mut(&mut self, id: u32) -> &mut Queue {
        &mut self.queues[id as usize]
    }

    pub(super) fn entity(&self, id: u32) -> &Entity {
        &self.agenda.entities[id as usize]
    }

    pub(super) fn entity_mut(&mut self, id: u32) -> &mut Entity {
        &mut self.agenda.entities[id as usize]
    }

    pub(super) fn class_of(&self, id: u32) -> Class {
        self.entity(id).class
    }

    pub(super) fn is_raised(&self, id: u32) -> bool {
        self.entity(id).raise > 1
    }

    /// Busy queues: with requests, in service, or waited for.
    pub(super) const fn busy_queues(&self) -> u32 {
        self.busy[0] + self.busy[1] + self.busy[2]
    }

    pub(super) const fn back_seek(&self) -> BackSeek {
        BackSeek { max: self.settings.back_seek_kib * 2, penalty: self.settings.back_penalty }
    }

    /// Budget ceiling for new queues.
    pub(super) const fn budget_ceiling(&self) -> u64 {
        if self.budgets_assigned < ENOUGH_BUDGETS { DEFAULT_MAX_BUDGET } else { self.max_budget }
    }

    /// Smallest budget.
    pub(super) const fn min_budget(&self) -> u64 {
        self.budget_ceiling() / 32
    }

    /// Tell whether the estimated rate is used.
    pub(super) const fn knows_rate(&self) -> bool {
        self.budgets_assigned >= ENOUGH_BUDGETS
    }

    /// Tell whether queues must be told apart: weights differ, or several classes have work.
    pub(super) fn is_asymmetric(&self, id: u32) -> bool {
        let classes = self.busy.iter().filter(|&&count| count > 0).count();
        classes > 1 || self.agenda.weights.vary_for(self.entity(id).counted)
    }

    /// Sectors that a queue is charged for a request.
    pub(super) fn charge(&self, requests: &Requests, request: RequestId, id: u32) -> u64 {
        // Linux block/bfq-iosched.c: bfq_async_charge_factor.
        const UNSYNC_FACTOR: u64 = 3;
        let sectors = u64::from(requests[request].sectors);
        if self.queue(id).is_sync() || self.is_raised(id) || self.is_asymmetric(id) {
            sectors
        } else {
            sectors * UNSYNC_FACTOR
        }
    }

    /// Its next request and what that costs.
    pub(super) fn next_charge(&self, requests: &Requests, id: u32) -> Option<(RequestId, u64)> {
        let next = self.queue(id).next?;
        Some((next, self.charge(requests, next, id)))
    }

    /// Tell whether the queue has a next request that its budget still covers.
    pub(super) fn can_afford_next(&self, requests: &Requests, id: u32) -> bool {
        self.next_charge(requests, id)
            .is_some_and(|(_, charge)| charge as i64 <= self.entity(id).budget_left())
    }

    pub(super) fn set_mark(&mut self, id: u32, mark: Mark, is_so: bool) {
        self.queue_mut(id).marks.set(mark, is_so);
    }
}
