//! Knowledge of the fair scheduler about a queue: its budget, service, virtual times and weight.

use crate::api::bio::PriorityClass;

/// Sectors are shifted left by this before they are divided by a weight.
// Linux block/bfq-wf2q.c: WFQ_SERVICE_SHIFT.
const SERVICE_SHIFT: u32 = 22;

/// Weight per step of the I/O priority.
// Linux block/bfq-iosched.h: BFQ_WEIGHT_CONVERSION_COEFF.
const WEIGHT_PER_LEVEL: u32 = 10;

/// Weight of an I/O priority level: 80 for 0 down to 10 for 7.
pub(super) const fn weight_of_level(level: u8) -> u32 {
    (8 - if level > 7 { 7 } else { level } as u32) * WEIGHT_PER_LEVEL
}

/// Service in the virtual time of something that weighs `weight`, floored.
pub(super) const fn virtual_time(service: u64, weight: u64) -> u64 {
    (service << SERVICE_SHIFT) / if weight == 0 { 1 } else { weight }
}

/// Priority class as the index of a service tree; the order is that of selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Real time.
    RealTime = 0,
    /// Best effort, also for processes that never asked for a class.
    #[default]
    BestEffort = 1,
    /// Idle.
    Idle = 2,
}

impl Class {
    /// In the order of selection.
    pub(super) const ALL: [Self; 3] = [Self::RealTime, Self::BestEffort, Self::Idle];

    /// Of a request.
    pub(super) const fn of(class: PriorityClass) -> Self {
        match class {
            PriorityClass::RealTime => Self::RealTime,
            PriorityClass::BestEffort | PriorityClass::None => Self::BestEffort,
            PriorityClass::Idle => Self::Idle,
        }
    }

    /// As an index into the service trees.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// Tree that an entity is in. The one in service is in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// In no tree.
    #[default]
    Nowhere,
    /// Has work.
    Active,
    /// Has none, but its finish time is still to come.
    Idle,
}

/// Knowledge of the fair scheduler about a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Entity {
    /// Sectors it may use in its slot.
    pub(super) budget: u64,
    /// Sectors charged in its slot.
    pub(super) service: u64,
    /// Virtual start time.
    pub(super) start: u64,
    /// Virtual finish time.
    pub(super) finish: u64,
    /// Weight in force.
    pub(super) weight: u32,
    /// Weight without raising.
    pub(super) original_weight: u32,
    /// Original weight from the next activation on.
    pub(super) new_weight: u32,
    /// Factor by which the weight is to be raised (1: not raised).
    pub(super) raise: u32,
    /// Class in force.
    pub(super) class: Class,
    /// Class from the next activation on.
    pub(super) new_class: Class,
    /// The weight or the class is to be looked at again.
    pub(super) must_reweigh: bool,
    /// Counts in the weight sum of its class: active, idle or in service.
    pub(super) is_weighed: bool,
    pub(super) place: Place,
    /// Weight under which it is counted in [`super::weights::Weights`].
    pub(super) counted: Option<u32>,
    /// Neighbours in the list of active entities, newest first.
    pub(super) newer: Option<u32>,
    pub(super) older: Option<u32>,
}

impl Entity {
    /// A fresh one.
    pub(super) fn new(class: Class, weight: u32) -> Self {
        Self {
            weight,
            original_weight: weight,
            new_weight: weight,
            raise: 1,
            class,
            new_class: class,
            must_reweigh: true,
            ..Self::default()
        }
    }

    /// Sectors that it may still use; negative when charged for more than its budget.
    pub(super) const fn budget_left(&self) -> i64 {
        self.budget as i64 - self.service as i64
    }

    /// Sets the finish time for that much service from the start time.
    pub(super) fn finish_after(&mut self, service: u64) {
        self.finish = self.start + virtual_time(service, u64::from(self.weight));
    }
}
