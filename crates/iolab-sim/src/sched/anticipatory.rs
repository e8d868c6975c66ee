//! anticipatory: like deadline, but it waits a little for the process it has just served.
//!
//! A reader that issues its next request only after it has seen the last one looks, to a scheduler
//! that never waits, as if it had nothing to do; the head then leaves for somebody else each time.
//! Anticipatory keeps the disk idle for up to `antic_expire` when the process's habits (think time,
//! seek distance) promise a better next request. Sync and async requests alternate in batches of
//! limited *time*; the number of requests in a write batch adapts to how long the last one took.
//! Short backward seeks are allowed at twice their distance.
//!
//! Left out: forced draining; sorting of the dispatch list (it holds more than one request only
//! after several requests for the same sector); the file `est_time`.
//!
//! Source: Linux 2.6.32 block/as-iosched.c (behaviour and constants); S. Iyer, P. Druschel,
//! *Anticipatory scheduling*, SOSP 2001.

mod batch;
mod history;
mod settings;
mod wait;

use std::collections::VecDeque;

use iolab_model::{Ns, Sector};

use self::batch::Batch;
use self::history::{FAR_PAST, History, Ticks};
use super::common::{PerRequest, Place, SortedFifo, TickClock};
use crate::api::bio::{Bio, ProcessId};
use crate::api::request::{RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Hz, Merge, MergeEnd, Scheduler, SchedulerContext};

/// Linux 2.6.32 block/as-iosched.c: `MAXBACK`, in sectors, and `BACK_PENALTY`.
const BACK_SECTORS_MAX: u64 = 1024 * 1024;
const BACK_PENALTY: u64 = 2;
/// Presence of a task that waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Sync = 0,
    Async = 1,
}

impl Kind {
    const fn of(is_sync: bool) -> Self {
        if is_sync { Self::Sync } else { Self::Async }
    }
}

/// Anticipation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Off,
    /// The request whose successor is hoped for is still at the device.
    WaitRequest,
    /// Done; the timer runs.
    WaitNext,
    /// A good request came, or none did.
    Finished,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    kind: Kind,
    process: ProcessId,
    place: Place,
    /// Among the sorted ones; not (any longer) on the device's side.
    is_queued: bool,
}

/// The anticipatory scheduler.
#[derive(Clone, Debug)]
pub struct Anticipatory {
    hz: Hz,
    clock: TickClock,
    queues: [SortedFifo; 2],
    entries: PerRequest<Entry>,
    /// Refused by the device, or pushed out by another request for the same sector.
    dispatch_list: VecDeque<RequestId>,
    next: [Option<RequestId>; 2],
    /// End of the last dispatched.
    last_sector: [Sector; 2],
    last_check: [Ticks; 2],
    batch: Batch,
    /// Dispatched and not completed.
    dispatched: u32,
    status: Status,
    wait_start: Ticks,
    /// Process of the last dispatched request, if that was sync.
    awaited: Option<ProcessId>,
    is_awaited_finished: bool,
    history: History,
    expire: [u64; 2],
    batch_expire: [u64; 2],
    wait_expire: u64,
}

impl Anticipatory {
    fn ticks(&mut self, now: Ns) -> Ticks {
        self.clock.ticks(now) as Ticks
    }

    const fn is_waiting(&self) -> bool {
        matches!(self.status, Status::WaitRequest | Status::WaitNext)
    }

    fn has(&self, kind: Kind) -> bool {
        !self.queues[kind as usize].fifo.is_empty()
    }

    fn oldest(&self, kind: Kind) -> Option<RequestId> {
        self.queues[kind as usize].fifo.head().map(|(id, _)| id)
    }

    /// Cost of going to a sector, and the wish to avoid it altogether (it lies far behind).
    const fn distance(from: Sector, to: Sector) -> (bool, u64) {
        if to.0 >= from.0 {
            (false, to.0 - from.0)
        } else if to.0 + BACK_SECTORS_MAX >= from.0 {
            (false, (from.0 - to.0) * BACK_PENALTY)
        } else {
            (true, to.0)
        }
    }

    /// The better of two of a kind, seen from the end of the last dispatched. Equal distances: the
    /// higher sector.
    fn better(
        &self,
        requests: &Requests,
        kind: Kind,
        (one, other): (Option<RequestId>, Option<RequestId>),
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (one, other) else {
            return one.or(other);
        };
        let from = self.last_sector[kind as usize];
        let (to_a, to_b) = (requests[a].sector, requests[b].sector);
        let (cost_a, cost_b) = (Self::distance(from, to_a), Self::distance(from, to_b));
        let is_a = cost_a < cost_b || cost_a == cost_b && to_a >= to_b;
        Some(if is_a { a } else { b })
    }

    /// Request after a queued one: its successor (or the lowest, after the last) or predecessor.
    fn following(&self, requests: &Requests, id: RequestId) -> Option<RequestId> {
        let Entry { kind, place, .. } = *self.entries.get(id);
        let sorted = &self.queues[kind as usize].sorted;
        let above = sorted.latter(place.sorted).or_else(|| sorted.first().filter(|&low| low != id));
        self.better(requests, kind, (above, sorted.former(place.sorted)))
    }

    /// At most once per expire interval: whether the oldest of the kind has expired.
    fn is_overdue(&mut self, now: Ticks, kind: Kind) -> bool {
        let index = kind as usize;
        if now - self.last_check[index] < self.expire[index] as Ticks {
            return false;
        }
        self.last_check[index] = now;
        // Deadlines are whole ticks.
        let now = now as u64 * self.hz.tick().0;
        self.queues[index].fifo.head().is_some_and(|(_, deadline)| deadline.0 < now)
    }

    /// The request that should go now; nothing if it pays to wait.
    fn select(&mut self, requests: &Requests, now: Ticks) -> Option<RequestId> {
        let (has_sync, is_async_queued) = (self.has(Kind::Sync), self.has(Kind::Async));
        let kind = self.batch.kind;
        let mut chosen = None;
        if !(has_sync && is_async_queued && self.is_batch_over(now)) {
            chosen = self.next[kind as usize];
            if kind == Kind::Sync && self.wait_expire > 0 {
                if self.is_overdue(now, Kind::Sync) {
                    return self.oldest(Kind::Sync);
                }
                if self.may_wait(requests, now, chosen) {
                    let is_finished = self.is_awaited_finished;
                    self.status = if is_finished { Status::WaitNext } else { Status::WaitRequest };
                    return None;
                }
            }
            if chosen.is_some() && has_sync && !is_async_queued {
                self.batch.end = now + self.batch_expire[Kind::Sync as usize] as Ticks;
            }
        }
        if chosen.is_none() {
            let is_sync_turn = has_sync && !(is_async_queued && kind == Kind::Sync);
            chosen = self.begin_batch(now, Kind::of(is_sync_turn));
        }
        let kind = self.batch.kind;
        if self.is_overdue(now, kind) { self.oldest(kind) } else { chosen }
    }

    /// Moves a request to the device's side.
    fn move_out(&mut self, requests: &Requests, id: RequestId) {
        let Entry { kind, process, place, .. } = *self.entries.get(id);
        self.status = Status::Off;
        self.last_sector[kind as usize] = requests[id].end();
        self.is_awaited_finished = false;
        if kind == Kind::Sync {
            self.awaited = Some(process);
        } else {
            self.awaited = None;
            self.batch.writes_left = self.batch.writes_left.saturating_sub(1);
        }
        self.next[kind as usize] = self.following(requests, id);
        self.queues[kind as usize].remove(place);
        self.entries.get_mut(id).is_queued = false;
        let process = self.history.process(process);
        process.queued -= 1;
        process.dispatched += 1;
        self.dispatched += 1;
    }

    /// Makes room for a request that starts at `sector`: one that already does goes out at once.
    fn push_out(&mut self, requests: &Requests, kind: Kind, sector: Sector) {
        while let Some(alias) = self.queues[kind as usize].sorted.starting_at(sector) {
            self.move_out(requests, alias);
            self.dispatch_list.push_back(alias);
        }
    }
}

impl Attach for Anticipatory {
    const FRAMEWORK: Framework = Framework::Legacy;

    fn attach(context: &SchedulerContext) -> Self {
        let hz = u64::from(context.hz.0);
        // Linux 2.6.32 block/as-iosched.c: the defaults in ticks; the first sync batch counts from
        // the attachment; a tenth of a write batch's ticks is its first number of requests.
        let batch_expire = [hz / 2, hz / 8];
        let batch = Batch {
            kind: Kind::Async,
            end: (context.hz.ticks(context.attached) + batch_expire[0]) as Ticks,
            has_changed: false,
            is_new: false,
            is_idled: false,
            writes: (batch_expire[1] / 10).max(2),
            writes_left: 0,
        };
        Self {
            hz: context.hz,
            clock: TickClock::new(context.hz),
            queues: Default::default(),
            entries: PerRequest::default(),
            dispatch_list: VecDeque::new(),
            next: [None; 2],
            last_sector: [Sector(0); 2],
            last_check: [FAR_PAST; 2],
            batch,
            dispatched: 0,
            status: Status::Off,
            wait_start: FAR_PAST,
            awaited: None,
            is_awaited_finished: false,
            history: History::default(),
            expire: [hz / 8, hz / 4],
            batch_expire,
            wait_expire: (hz / 150).max(1),
        }
    }
}

impl Scheduler for Anticipatory {
    fn insert(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        let tick = self.ticks(now);
        let request = &requests[id];
        let (kind, process) = (Kind::of(request.is_sync()), request.submitter.process);
        self.history.renew(process);
        if kind == Kind::Sync {
            let span = (request.sector, request.end());
            self.history.sample(process, tick, self.hz, span);
        }
        self.history.process(process).queued += 1;
        self.push_out(requests, kind, request.sector);
        let expire = Ns(self.hz.tick().0 * self.expire[kind as usize]);
        let deadline = self.clock.floor(now) + expire;
        let place = self.queues[kind as usize].insert(request.sector, id, deadline);
        self.entries.set(id, Entry { kind, process, place, is_queued: true });
        let next = self.next[kind as usize];
        self.next[kind as usize] = self.better(requests, kind, (Some(id), next));
        if self.is_waiting()
            && let Some(awaited) = self.awaited
            && self.must_go_on(requests, tick, (awaited, Some(id)))
        {
            self.status = Status::Finished;
        }
    }

    fn dispatch(&mut self, now: Ns, requests: &Requests) -> Option<RequestId> {
        if let Some(id) = self.dispatch_list.pop_front() {
            return Some(id);
        }
        let (has_sync, is_async_queued) = (self.has(Kind::Sync), self.has(Kind::Async));
        if self.batch.kind == Kind::Async
            && !has_sync
            && (self.batch.writes_left == 0 || !is_async_queued)
        {
            self.batch.is_idled = true;
        }
        if !(has_sync || is_async_queued) || self.is_waiting() || self.batch.has_changed {
            return None;
        }
        let tick = self.ticks(now);
        let id = self.select(requests, tick)?;
        if self.batch.has_changed {
            if self.dispatched > 0 {
                return None;
            }
            self.batch.has_changed = false;
            if self.batch.kind == Kind::Async {
                self.batch.end = tick + self.batch_expire[Kind::Async as usize] as Ticks;
            } else {
                self.batch.is_new = true;
            }
        }
        self.move_out(requests, id);
        Some(id)
    }

    fn activate(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.history.process(self.entries.get(id).process).dispatched -= 1;
    }

    fn complete(&mut self, now: Ns, _: &Requests, id: RequestId) {
        let tick = self.ticks(now);
        let Entry { kind, process, .. } = *self.entries.get(id);
        if self.batch.has_changed && self.dispatched == 1 {
            self.batch.end = tick + self.batch_expire[self.batch.kind as usize] as Ticks;
            self.batch.has_changed = false;
            self.batch.is_new |= self.batch.kind == Kind::Sync;
        }
        self.dispatched -= 1;
        if self.batch.is_new && self.batch.kind == kind {
            self.resize_write_batch(tick);
            self.batch.end = tick + self.batch_expire[Kind::Sync as usize] as Ticks;
            self.batch.is_new = false;
        }
        if self.awaited == Some(process) {
            self.wait_start = tick;
            self.is_awaited_finished = true;
            if self.status == Status::WaitRequest {
                self.status = Status::WaitNext;
            }
        }
        if kind == Kind::Sync {
            let process = self.history.process(process);
            process.has_completed = true;
            process.last_completion = tick;
        }
    }

    fn requeue(&mut self, _: Ns, _: &Requests, id: RequestId) {
        self.history.process(self.entries.get(id).process).dispatched += 1;
        self.dispatch_list.push_front(id);
    }

    fn next_timer(&self) -> Ns {
        if self.status == Status::WaitNext {
            let tick = (self.wait_start + self.wait_expire as Ticks).max(0) as u64;
            Ns(tick * self.hz.tick().0)
        } else {
            Ns::MAX
        }
    }

    fn timer(&mut self, _: Ns, _: &Requests) {
        if !self.is_waiting() {
            return;
        }
        self.status = Status::Finished;
        let Some(awaited) = self.awaited else {
            return;
        };
        let process = *self.history.process(awaited);
        if process.think.samples == 0 {
            self.history.raise_exit_probability();
        }
        if process.has_exited {
            self.history.raise_no_cooperation();
        }
    }

    fn has_requests(&self) -> bool {
        !self.dispatch_list.is_empty() || self.has(Kind::Sync) || self.has(Kind::Async)
    }

    fn must_grant(&self, bio: &Bio) -> bool {
        self.is_waiting() && self.awaited == Some(bio.submitter.process)
    }

    fn exit(&mut self, _: Ns, process: ProcessId) {
        self.history.process(process).has_exited = true;
    }

    fn front(&mut self, _: Ns, _: &Requests, bio: &Bio) -> Option<RequestId> {
        self.queues[Kind::of(bio.is_sync()) as usize].sorted.starting_at(bio.end())
    }

    fn allows_merge(&mut self, _: Ns, _: &Requests, into: RequestId, _: &Bio) -> bool {
        self.entries.get(into).is_queued
    }

    fn allows_join(&self, _: &Requests, first: RequestId, second: RequestId) -> bool {
        self.entries.get(first).is_queued && self.entries.get(second).is_queued
    }

    fn former(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        let Entry { kind, place, .. } = self.entries.get(id);
        self.queues[*kind as usize].sorted.former(place.sorted)
    }

    fn latter(&self, _: &Requests, id: RequestId) -> Option<RequestId> {
        let Entry { kind, place, .. } = self.entries.get(id);
        self.queues[*kind as usize].sorted.latter(place.sorted)
    }

    fn merged(&mut self, _: Ns, requests: &Requests, merge: Merge) {
        if merge.end == MergeEnd::Back {
            return;
        }
        let Entry { kind, place, .. } = *self.entries.get(merge.into);
        let sector = requests[merge.into].sector;
        self.queues[kind as usize].sorted.remove(place.sorted);
        self.push_out(requests, kind, sector);
        let key = self.queues[kind as usize].sorted.insert(sector, merge.into);
        self.entries.get_mut(merge.into).place.sorted = key;
    }

    fn joined(&mut self, now: Ns, requests: &Requests, survivor: RequestId, absorbed: RequestId) {
        let tick = self.ticks(now);
        let (kept, lost) = (*self.entries.get(survivor), *self.entries.get(absorbed));
        if self.next[lost.kind as usize] == Some(absorbed) {
            self.next[lost.kind as usize] = self.following(requests, absorbed);
        }
        let queue = &mut self.queues[kept.kind as usize];
        let place = queue.joined(kept.place, lost.place, requests[survivor].sector);
        self.entries.get_mut(survivor).place = place;
        let process = self.history.process(lost.process);
        process.queued -= 1;
        if lost.kind == Kind::Sync {
            process.has_completed = true;
            process.last_completion = tick;
        }
    }

    fn preset(&mut self, state: &str) -> bool {
        self.take_on(state)
    }
}

#[cfg(test)]
mod tests;
