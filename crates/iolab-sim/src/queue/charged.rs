//! Time of processors in a queue: what its scheduler's calls cost, one after the other under the
//! queue's lock, and what they cause: timers, and workers of the kernel that run the queue.
//!
//! A call's decision is made at once; what follows it (the next dispatch, the end that the
//! submitter sees) comes when its time is over. Left out: spinning for the lock (who waits for it
//! does nothing else, but its processor is not charged), interrupts that are handled on another
//! processor than the submitter's.
//!
//! Source: Linux 4.20 block/cfq-iosched.c (`cfq_schedule_dispatch`), block/blk-core.c; 6.18
//! block/blk-mq.c (`blk_mq_submit_bio` runs the queue of a scheduler by a worker).

use iolab_model::Ns;

use crate::Calendar;
use crate::api::bio::{Ended, Submitter};
use crate::sched::SchedulerKind;
use crate::software::{CostTable, HookCosts, ProcessorClocks};

/// A queue's share of the software's costs.
#[derive(Debug)]
pub(super) struct Charged {
    hooks: HookCosts,
    timer: Ns,
    switch: Ns,
    processors: ProcessorClocks,
    /// The scheduler's calls are made under a lock.
    is_locked: bool,
    /// End of the last call.
    lock_free: Ns,
    /// The call that is being paid for is the next dispatch.
    is_paid: bool,
    /// Instant before which no worker is asked to come again.
    worker_at: Ns,
    /// Ends that nobody has been told of yet.
    ended: Calendar<Ended>,
    /// Processor time of scheduler calls, and workers that ran.
    spent: Ns,
    workers: u64,
}

impl Charged {
    pub(super) fn new(table: &CostTable, kind: SchedulerKind, processors: ProcessorClocks) -> Self {
        Self {
            hooks: table.of(kind),
            timer: table.timer,
            switch: table.switch,
            processors,
            is_locked: kind.is_elevator(),
            lock_free: Ns(0),
            is_paid: false,
            worker_at: Ns(0),
            ended: Calendar::default(),
            spent: Ns(0),
            workers: 0,
        }
    }

    /// A call of `cost_ns` by a submitter; answers its end.
    fn call(&mut self, now: Ns, by: Submitter, cost_ns: u64, has_timer: bool) -> Ns {
        let cost = Ns(cost_ns) + if has_timer { self.timer } else { Ns(0) };
        let begun = if self.is_locked { now.max(self.lock_free) } else { now };
        let end = self.processors.charge(by, begun, cost);
        self.spent += cost;
        if self.is_locked {
            self.lock_free = self.lock_free.max(end);
        }
        end
    }

    /// A bio came: a merge was sought and, unless there was one, a request taken in.
    pub(super) fn taken_in(&mut self, now: Ns, by: Submitter, inserted: u64, has_timer: bool) {
        let cost = self.hooks.merge_ns + inserted * self.hooks.insert_ns;
        self.call(now, by, cost, has_timer);
    }

    /// A worker of the kernel is to run the queue for a submitter that goes on; answers when.
    pub(super) fn worker(&mut self, now: Ns, by: Submitter) -> Ns {
        if self.worker_at < now {
            self.workers += 1;
            self.worker_at = self.processors.charge(by, now, self.switch);
        }
        self.worker_at
    }

    /// Instant until which the next dispatch has to wait; nothing if it may be made now.
    pub(super) fn dispatch_at(&mut self, now: Ns, has_requests: bool) -> Option<Ns> {
        if self.lock_free > now && self.is_locked {
            return Some(self.lock_free);
        }
        if !has_requests || self.is_paid || self.hooks.dispatch_ns == 0 {
            self.is_paid = false;
            return None;
        }
        self.is_paid = true;
        self.spent += Ns(self.hooks.dispatch_ns);
        self.lock_free = now + Ns(self.hooks.dispatch_ns);
        Some(self.lock_free)
    }

    /// Time until a worker of the kernel runs.
    pub(super) const fn switch(&self) -> Ns {
        self.switch
    }

    /// A timer was set by a dispatch.
    pub(super) fn timer_set(&mut self, now: Ns) {
        self.spent += self.timer;
        self.lock_free = self.lock_free.max(now) + self.timer;
    }

    /// A request has ended; answers when whoever waits for it is told. `runs_worker`: a worker of
    /// the kernel looks for more to do, on the same processor and before the task that is woken.
    pub(super) fn completed(
        &mut self,
        now: Ns,
        by: Submitter,
        (has_timer, runs_worker): (bool, bool),
    ) -> Ns {
        let end = self.call(now, by, self.hooks.complete_ns, has_timer);
        if !runs_worker {
            return end;
        }
        self.workers += 1;
        let dispatch = Ns(self.hooks.dispatch_ns);
        self.spent += dispatch;
        self.processors.charge(by, end, self.switch + dispatch + self.switch)
    }

    /// An end is told at an instant.
    pub(super) fn tell(&mut self, at: Ns, ended: Ended) {
        self.ended.plan(at, ended);
    }

    /// Instant of the next end that is to be told.
    pub(super) fn next_event(&self) -> Ns {
        self.ended.next_event()
    }

    /// Ends that are due.
    pub(super) fn take_due(&mut self, now: Ns, done: &mut Vec<Ended>) {
        while let Some((_, ended)) = self.ended.take_due(now) {
            done.push(ended);
        }
    }

    /// Counts for the record.
    pub(super) fn counters(&self) -> [(String, f64); 2] {
        [
            ("scheduler_cpu_ns".to_owned(), self.spent.0 as f64),
            ("scheduler_worker_runs".to_owned(), self.workers as f64),
        ]
    }
}
