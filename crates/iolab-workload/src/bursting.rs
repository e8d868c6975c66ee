//! Pauses between bursts of work, as a worker makes them ([`Burst`]).

use iolab_model::op::OpClass;
use iolab_model::{Bytes, Ns};

use crate::spec::Burst;

/// Longest time of burning the CPU with one call: who is stopped meanwhile need not wait longer.
pub(crate) const BURN_MAX: Ns = Ns::from_ms(10);

/// The burst at hand of one worker, and the pause behind it.
///
/// A pause begins when all that was under way has ended. Whether a burst is over is looked at after
/// an op was begun and, if no further one may be under way, when one has ended: as fio 3.33 does,
/// of which what ends before the pause counts for the next burst.
#[derive(Clone, Debug)]
pub(crate) struct Bursting {
    rule: Burst,
    bytes: u64,
    ops: u64,
    from: Ns,
    /// End of the last op.
    last: Ns,
    /// The burst is over: nothing begins before the pause.
    is_over: bool,
    /// In its pause the worker burns the CPU until then.
    burning_until: Ns,
    /// By which its schedule is late.
    delayed: Ns,
}

impl Bursting {
    pub(crate) fn new(rule: Burst) -> Self {
        let (from, last, burning_until, delayed) = (Ns(0), Ns(0), Ns(0), Ns(0));
        Self { rule, bytes: 0, ops: 0, from, last, is_over: false, burning_until, delayed }
    }

    /// The timed region begins.
    pub(crate) fn begin(&mut self, now: Ns) {
        (self.from, self.last) = (now, now);
    }

    /// By which the schedule of a rate is late.
    pub(crate) fn delayed(&self) -> Ns {
        self.delayed
    }

    /// Rest of the part of a pause in which the CPU is burnt.
    pub(crate) fn to_burn(&self, now: Ns) -> Option<Ns> {
        (now < self.burning_until).then(|| self.burning_until.since(now))
    }

    /// An op has begun; `is_full`: no further one may be under way.
    pub(crate) fn begun(&mut self, now: Ns, is_full: bool) {
        if !is_full {
            self.look(now);
        }
    }

    /// An op that moved so much has ended; `was_full`: no further one could be under way.
    pub(crate) fn ended(
        &mut self,
        (class, moved): (OpClass, Bytes),
        completed: Ns,
        was_full: bool,
    ) {
        self.bytes += moved.0;
        self.ops += u64::from(matches!(class, OpClass::Read | OpClass::Write));
        self.last = completed;
        if was_full {
            self.look(completed);
        }
    }

    fn look(&mut self, now: Ns) {
        let rule = self.rule;
        let is_full =
            rule.bytes.0 > 0 && self.bytes >= rule.bytes.0 || rule.ops > 0 && self.ops >= rule.ops;
        let is_late = rule.lasting_ns.0 > 0 && now.since(self.from) >= rule.lasting_ns;
        if !self.is_over && (is_full || is_late) {
            self.is_over = true;
            (self.bytes, self.ops) = (0, 0);
        }
    }

    /// True if a burst is over, so that nothing begins before its pause.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Pauses, as all has ended: until when, if nothing begins before `earliest` anyway.
    pub(crate) fn pause(&mut self, earliest: Ns) -> Ns {
        let from = earliest.max(self.last);
        let until = from + self.rule.pause_ns;
        (self.is_over, self.from) = (false, until);
        self.burning_until = from + self.rule.burning_ns.min(self.rule.pause_ns);
        if self.rule.delays_schedule {
            self.delayed += self.rule.pause_ns;
        }
        until
    }
}
