//! `Scheduler`: the decider that picks the next request.
//!
//! Hooks get the time and the table of requests and answer with decisions; they touch no queue, no
//! device and no clock. The names are those of the kernel's elevator operations.

use iolab_model::Ns;

use super::bio::{Bio, ProcessId};
use super::request::{RequestId, Requests};
use crate::tunable::Tunables;

/// Clock ticks per second (`CONFIG_HZ`); times that the kernel counts in ticks are floored to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hz(pub u32);

impl Hz {
    /// Length of a tick.
    pub const fn tick(self) -> Ns {
        Ns(1_000_000_000 / self.0 as u64)
    }

    /// Whole ticks in `time` (an instant or a duration).
    pub const fn ticks(self, time: Ns) -> u64 {
        time.0 / self.tick().0
    }

    /// `time` floored to whole ticks.
    pub const fn floor(self, time: Ns) -> Ns {
        Ns(self.ticks(time) * self.tick().0)
    }

    /// Milliseconds to ticks, as the kernel does when a tunable is set: rounded up
    /// (`msecs_to_jiffies`).
    pub const fn ticks_of_ms(self, ms: u64) -> u64 {
        (ms * self.0 as u64).div_ceil(1_000)
    }

    /// Ticks to milliseconds, as sysfs shows a tunable (`jiffies_to_msecs`).
    pub const fn ms_of_ticks(self, ticks: u64) -> u64 {
        ticks * 1_000 / self.0 as u64
    }

    /// The duration that a tunable of so many milliseconds means: whole ticks.
    pub const fn time_of_ms(self, ms: u64) -> Ns {
        Ns(self.ticks_of_ms(ms) * self.tick().0)
    }

    /// A duration of whole ticks as sysfs shows it.
    pub const fn ms_of_time(self, time: Ns) -> u64 {
        self.ms_of_ticks(self.ticks(time))
    }
}

/// The kernel's request queue code around a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// The single queue with one lock, to 4.20.
    Legacy,
    /// blk-mq, since 3.13.
    MultiQueue,
}

/// Facts that a scheduler is told about the queue it is attached to.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerContext {
    /// The device has a head that must travel.
    pub is_rotational: bool,
    /// Tick rate.
    pub hz: Hz,
    /// Request slots (`nr_requests`); per sync/async pool in the legacy framework.
    pub slots: u32,
    /// Commands that the device takes at once.
    pub depth: u32,
    /// Number of CPUs that submit.
    pub cpus: u16,
    /// Time at which it is attached.
    pub attached: Ns,
}

/// End of a request that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeEnd {
    /// The bio continues the request.
    Back,
    /// The bio comes right before the request.
    Front,
}

/// A merge to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The request that grows.
    pub into: RequestId,
    /// On which side.
    pub end: MergeEnd,
}

/// An I/O scheduler. See `spec` pages in `docs/reference/schedulers` for what each one decides.
///
/// Every request given to [`Scheduler::insert`] comes out of [`Scheduler::dispatch`] exactly once,
/// unless it was absorbed ([`Scheduler::joined`]).
pub trait Scheduler: Tunables + CloneScheduler {
    /// Takes a request that is ready to be scheduled.
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId);

    /// Takes a request that goes before all others, as data do that follow a flush.
    fn insert_at_head(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.insert(now, requests, id);
    }

    /// Picks the next request, or nothing (nothing there, or it pays to wait).
    ///
    /// Asked again after every event while the device has room; an attempt may change state.
    fn dispatch(&mut self, now: Ns, requests: &Requests) -> Option<RequestId>;

    /// The device starts the request (it left the dispatch list).
    fn activate(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        let _ = (now, requests, id);
    }

    /// The device has finished the request.
    fn complete(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        let _ = (now, requests, id);
    }

    /// Tell whether the end of a request, just reported, has the queue run although nothing waits
    /// for a tag.
    fn wants_run(&self) -> bool {
        true
    }

    /// Of legacy schedulers: whether the end of a request, just reported, has a worker of the
    /// kernel run the queue (`kblockd`), beside the run that follows each end.
    fn asks_for_worker(&self) -> bool {
        false
    }

    /// The device refused a dispatched (and activated) request: it is to be offered again first.
    fn requeue(&mut self, now: Ns, requests: &Requests, id: RequestId);

    /// Time at which [`Scheduler::timer`] is to be called; [`Ns::MAX`] if never. Read after every
    /// hook.
    fn next_timer(&self) -> Ns {
        Ns::MAX
    }

    /// Number of times that a timer was set, if one may be set again to the same instant; only what
    /// software costs depends on it.
    fn timers_set(&self) -> u64 {
        0
    }

    /// The instant of [`Scheduler::next_timer`] has come.
    fn timer(&mut self, now: Ns, requests: &Requests) {
        let _ = (now, requests);
    }

    /// Tell whether requests are queued here (dispatch may still answer nothing).
    fn has_requests(&self) -> bool;

    /// Number of request slots that may be in use for this bio to get one (`limit_depth`).
    fn limit_depth(&self, bio: &Bio, slots: u32) -> u32 {
        let _ = bio;
        slots
    }

    /// Grants one request slot although the pool is full (`may_queue` of the legacy framework).
    fn must_grant(&self, bio: &Bio) -> bool {
        let _ = bio;
        false
    }

    /// The process has ended.
    fn exit(&mut self, now: Ns, process: ProcessId) {
        let _ = (now, process);
    }

    /// Of schedulers with [`Attach::FINDS_OWN_MERGES`] (kyber's staging lists): a merge for this
    /// bio, asked instead of the elevator's one-hit cache, hash and [`Scheduler::front`].
    fn merge_bio(&mut self, now: Ns, requests: &Requests, bio: &Bio) -> Option<Merge> {
        let _ = (now, requests, bio);
        None
    }

    /// A queued request of the right kind that starts where the bio ends.
    fn front(&mut self, now: Ns, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        let _ = (now, requests, bio);
        None
    }

    /// Veto: whether this bio may be merged into this request.
    fn allows_merge(&mut self, now: Ns, requests: &Requests, into: RequestId, bio: &Bio) -> bool {
        let _ = (now, requests, into, bio);
        true
    }

    /// The request before this one in the scheduler's own order, a candidate for joining.
    fn former(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let _ = (requests, id);
        None
    }

    /// The request after this one in the scheduler's own order, a candidate for joining.
    fn latter(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let _ = (requests, id);
        None
    }

    /// Tell whether these two neighbours may be joined.
    fn allows_join(&self, requests: &Requests, first: RequestId, second: RequestId) -> bool {
        let _ = (requests, first, second);
        true
    }

    /// A bio was merged into a queued request (the table shows the result); after a front merge the
    /// request starts earlier than when it was inserted.
    fn merged(&mut self, now: Ns, requests: &Requests, merge: Merge) {
        let _ = (now, requests, merge);
    }

    /// `absorbed` (still in the table as it was) became part of `survivor` (the table shows the
    /// result): forget the one, re-sort the other, take the earlier deadline and its FIFO place.
    fn joined(&mut self, now: Ns, requests: &Requests, survivor: RequestId, absorbed: RequestId);

    /// State that decides about the next request, a fact or a queue per line, for `--explain`.
    fn describe(&self, now: Ns, requests: &Requests) -> Vec<String> {
        let _ = (now, requests);
        Vec::new()
    }

    /// For scenario files: takes on the state that a sentence describes; false if not understood.
    fn preset(&mut self, state: &str) -> bool {
        let _ = state;
        false
    }
}

/// Copies of boxed schedulers; every [`Scheduler`] that is [`Clone`] has it.
pub trait CloneScheduler {
    /// A scheduler in the same state.
    fn boxed_clone(&self) -> Box<dyn Scheduler>;
}

impl<S: Scheduler + Clone + 'static> CloneScheduler for S {
    fn boxed_clone(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Scheduler> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// A scheduler whose state follows from its own choices alone, so that a recording of them can be
/// replayed choice by choice.
pub trait Replayable: Scheduler {
    /// Request that [`Scheduler::dispatch`] would answer now; changes nothing.
    fn predict(&self, now: Ns, requests: &Requests) -> Option<RequestId>;

    /// Dispatches this queued request, whatever the rules say; the state is afterwards as if they
    /// had chosen it.
    fn force(&mut self, now: Ns, requests: &Requests, id: RequestId);
}

/// Constructor of a scheduler for the list.
pub trait Attach: Scheduler + Sized {
    /// The kernel code around it.
    const FRAMEWORK: Framework;

    /// Looks for merges with [`Scheduler::merge_bio`] alone; the elevator's index is not kept.
    const FINDS_OWN_MERGES: bool = false;

    /// Requests are put into it; without one (`none`) they wait for a device tag alone.
    const IS_ELEVATOR: bool = true;

    /// Attaching it ends write-back throttling that is on by default.
    const ENDS_DEFAULT_THROTTLING: bool = false;

    /// A fresh scheduler with default tunables.
    fn attach(context: &SchedulerContext) -> Self;

    /// A fresh scheduler whose choices can be forced, if it can be replayed so.
    fn attach_replayable(context: &SchedulerContext) -> Option<Box<dyn Replayable>> {
        let _ = context;
        None
    }
}
