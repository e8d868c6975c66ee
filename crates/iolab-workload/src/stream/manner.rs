//! Behaviour that few tenants ask for ([`crate::spec::Manner`]): replays, jumps, bursts, several
//! buffers.
//!
//! `IOzone` reads one byte of the first page and one of the second before the first and every
//! hundredth record of its disturbed pass (whole pages with direct I/O), and then goes on where it
//! was; traced on version 3.489.

use iolab_model::op::{Access, Advice, Op, OpClass, Position, Transfer};
use iolab_model::{Bytes, Completion, Ns};

use super::timed::Chain;
use super::{FILE, Role, Step, StreamWorker};
use crate::group::GroupState;
use crate::spec::{Phase, Tenant};

impl Tenant {
    /// Buffers of a worker's lane, and tokens of its submissions: one per op in flight, or several
    /// that are used in turn.
    pub fn slots(&self) -> u32 {
        self.depth.max(self.manner.buffers)
    }

    /// Time at which the timed region of worker `index` begins, counted from that of the phase.
    pub fn begins_of(&self, index: u32) -> Ns {
        self.begins_ns + Ns(self.manner.begin_step_ns.0.saturating_mul(u64::from(index)))
    }

    /// Cuts of the time of worker `index` into segments, and the time at which it begins, as they
    /// are counted: its own ones, or those of its phase.
    pub fn cuts_of<'a>(&'a self, phase: &'a Phase, index: u32) -> (&'a [Ns], Ns) {
        match self.manner.warm_up_ns {
            Ns(0) => (&phase.cuts_ns, self.begins_of(index)),
            _ => (std::slice::from_ref(&self.manner.warm_up_ns), Ns(0)),
        }
    }

    /// Tell whether its workers pause between ops, so that their time is not all work.
    pub fn has_pauses(&self) -> bool {
        self.think_ns.0 > 0
            || self.manner.burst.is_some()
            || self.manner.replay.iter().any(|op| op.pause_ns.0 > 0)
    }
}

impl<G: GroupState> StreamWorker<G> {
    /// The slot of the next op, after the one in `slot` has ended.
    #[inline]
    pub(super) fn next_buffer(&self, slot: u32) -> u32 {
        if self.tenant.manner.buffers <= 1 { slot } else { (slot + 1) % self.tenant.manner.buffers }
    }

    /// An op has ended: nothing may begin before its pause is over.
    #[cold]
    pub(super) fn pause_after(&mut self, completion: &Completion, class: OpClass) {
        let mut pause = self.tenant.think_ns;
        if let Some(next) = self.tenant.manner.replay.get(self.issued as usize) {
            pause += next.pause_ns;
        }
        // Slots are empty again: only that of this op was, if all were taken.
        let was_full = self.free.len() == 1;
        if let Some(burst) = &mut self.bursting {
            let moved = completion.outcome.unwrap_or_default();
            burst.ended((class, moved), completion.completed, was_full);
        }
        self.earliest = self.earliest.max(completion.completed + pause);
    }

    /// Begins the pause behind a burst that is over; true while some of it has not ended.
    pub(super) fn must_drain_first(&mut self) -> bool {
        let is_busy = self.in_flight() > 0;
        match &mut self.bursting {
            Some(burst) if burst.is_over() && is_busy => true,
            Some(burst) if burst.is_over() => {
                self.earliest = burst.pause(self.earliest);
                false
            }
            _ => false,
        }
    }

    /// Pauses by which its schedule is later.
    pub(super) fn delayed(&self) -> Ns {
        self.bursting.as_ref().map_or(Ns(0), |burst| burst.delayed())
    }

    /// Tell whether small reads come before the next record.
    #[inline]
    pub(super) fn is_disturbed(&self) -> bool {
        let every = self.tenant.manner.jumps_every;
        every > 0 && self.issued.is_multiple_of(every)
    }

    /// Two reads elsewhere, then the next record.
    #[cold]
    pub(super) fn jump(&mut self, now: Ns) -> Step {
        let is_direct = self.tenant.access == Access::Direct;
        let length = if is_direct { Bytes::PAGE } else { Bytes(1) };
        let record = self.draw();
        self.chain = Chain::of(Op::read(FILE, Bytes::PAGE, length), record);
        self.asides = 2;
        self.submit_aside(now, Op::read(FILE, Bytes(0), length))
    }

    /// Tell whether the cached pages of the file are dropped before the next record.
    #[inline]
    pub(super) fn is_dropping_due(&self) -> bool {
        let every = self.tenant.manner.drops_cache_every;
        every > 0 && self.issued != self.dropped_at && self.issued.is_multiple_of(every)
    }

    /// Drops them; it takes time, and is not counted.
    #[cold]
    pub(super) fn drop_cache(&mut self, now: Ns) -> Step {
        self.dropped_at = self.issued;
        self.asides += 1;
        self.submit_aside(now, Op::Advise { handle: FILE, advice: Advice::DontNeed })
    }

    /// Submits an op that is not counted.
    #[cold]
    pub(super) fn submit_aside(&mut self, now: Ns, op: Op) -> Step {
        self.asides -= 1;
        self.submit_as(now, Role::Aside, op)
    }

    /// Sends an op that is no work of its own.
    pub(super) fn submit_as(&mut self, now: Ns, role: Role, op: Op) -> Step {
        let step = self.submit(now, true, op);
        if let Step::Submit(submission) = step {
            self.slots[submission.token.0 as usize].role = role;
        }
        step
    }

    /// The transfer of the op that was issued last, as the replay has it.
    #[cold]
    pub(super) fn replayed(&self) -> Transfer {
        let replay = &self.tenant.manner.replay;
        let index = (self.issued as usize - 1) % replay.len();
        let op = replay[index];
        Transfer {
            flags: self.tenant.flags,
            ..Transfer::plain(FILE, Position::At(op.at), op.length)
        }
    }
}
