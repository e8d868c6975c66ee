//! The way in: split, sequence flushes, plug, merge, take a slot or wait, insert.

use iolab_model::trace_event::Action;
use iolab_model::{Ns, Sector};

use super::block::BlockQueue;
use super::chain::Owner;
use super::flush::{Next, Steps};
use super::waiters::{Passed, Waiter};
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, ProcessId, Submitter};
use crate::api::request::{Request, RequestId};
use crate::api::scheduler::{Framework, Merge, MergeEnd};

/// Most requests in a plug before it is flushed (Linux 6.18 block/blk.h: `BLK_MAX_REQUEST_COUNT`).
const PLUG_REQUESTS: usize = 32;
/// A plugged request of this many sectors flushes the plug (`BLK_PLUG_FLUSH_SIZE`, 128 KiB).
const PLUG_SECTORS: u32 = 256;

impl BlockQueue {
    /// Takes a bio into the plug.
    pub(crate) fn plug_bio(&mut self, now: Ns, bio: &Bio) {
        self.run_at = now;
        self.trace(now, Action::Queued, &Request::of(bio, now));
        let steps = Steps::of(bio, self.info.write_cache);
        if !steps.data && !steps.pre {
            self.finished.push(Ended::ok(bio.id));
            return;
        }
        let pieces = self.pieces(bio);
        if pieces <= 1 {
            return self.place_or_sequence(now, bio, Owner::Bio(bio.id), steps);
        }
        self.accounting.split += 1;
        let owner = self.chains.split(bio.id, pieces);
        let mut rest = *bio;
        while rest.sectors > 0 {
            let piece = rest.cut(self.first_piece(&rest));
            if rest.sectors > 0 {
                self.trace(now, Action::Split, &Request::of(&piece, now));
            }
            self.place_or_sequence(now, &piece, owner, steps);
        }
    }

    fn pieces(&self, bio: &Bio) -> u32 {
        let mut rest = *bio;
        let mut pieces = 0;
        while rest.sectors > 0 {
            let _ = rest.cut(self.first_piece(&rest));
            pieces += 1;
        }
        pieces
    }

    /// Length of the first piece when a bio is cut at the limits.
    fn first_piece(&self, bio: &Bio) -> u32 {
        let mut length = bio.sectors.min(self.limits.max_sectors);
        let segments = bio.segments_of(bio.sectors);
        if segments > self.limits.max_segments {
            let most = u64::from(bio.sectors) * u64::from(self.limits.max_segments);
            length = length.min(((most / u64::from(segments)) as u32 / 8 * 8).max(8));
        }
        if self.limits.chunk_sectors > 0 {
            let chunk = u64::from(self.limits.chunk_sectors);
            length = length.min((chunk - bio.sector.0 % chunk) as u32);
        }
        length
    }

    fn place_or_sequence(&mut self, now: Ns, bio: &Bio, owner: Owner, steps: Steps) {
        if !steps.pre && !steps.post {
            let mut bio = *bio;
            if !steps.fua {
                bio.flags = bio.flags.without(Flags::FUA.with(Flags::PREFLUSH));
            }
            return self.place(now, &bio, owner);
        }
        if let Some(owner) = self.flush.begin(now, owner, bio, steps) {
            let mut data = *bio;
            data.flags = data.flags.without(Flags::FUA).with(Flags::NO_MERGE);
            return self.place(now, &data, owner);
        }
        let mut next = core::mem::take(&mut self.steps);
        self.flush.kick(now, &mut next);
        self.follow(now, &mut next);
        self.steps = next;
    }

    /// Carries out what the flush machinery asks for.
    pub(super) fn follow(&mut self, now: Ns, next: &mut Vec<Next>) {
        for step in next.drain(..) {
            match step {
                Next::Done(owner, status) => self.owner_done(owner, status),
                Next::Flush => {
                    let flush = Bio {
                        id: BioId(0),
                        operation: Operation::Flush,
                        sector: Sector(0),
                        sectors: 0,
                        flags: Flags::SYNC,
                        submitter: Submitter::default(),
                        segments: 0,
                    };
                    let request = self.numbered(&flush, now);
                    let id = self.requests.add(request);
                    self.chains.start(id, Owner::Flush(u32::MAX));
                    self.accounting.allocated(now);
                    self.dispatch_list.push_back(id);
                }
                Next::Data(owner, bio) => {
                    let request = self.numbered(&bio, now);
                    let id = self.requests.add(request);
                    self.chains.start(id, owner);
                    self.accounting.allocated(now);
                    self.dispatch_list.push_back(id);
                }
            }
            self.run_at = now;
        }
    }

    /// A piece on its way to a request: merge, slot, or wait.
    fn place(&mut self, now: Ns, bio: &Bio, owner: Owner) {
        let process = bio.submitter.process;
        let is_blocked = self.waiters.has(process) || self.is_throttled(process);
        if is_blocked {
            let waiter = Waiter { bio: *bio, owner, needs_only_slot: false };
            self.waiters.push(waiter);
            return;
        }
        if self.merge_into_plug(now, bio, owner) || self.merge_into_scheduler(now, bio, owner) {
            return;
        }
        if !self.passes_throttle(now, bio, owner) {
            return;
        }
        if let Some(id) = self.allocate(now, bio, owner) {
            self.add_to_plug(now, id);
        } else {
            self.waiters.push(Waiter { bio: *bio, owner, needs_only_slot: true });
        }
    }

    fn is_throttled(&self, process: ProcessId) -> bool {
        self.throttle.as_ref().is_some_and(|throttle| throttle.is_waiting(process))
    }

    /// Tell whether a bio may go on to get a slot; if not, it waits for the throttle.
    fn passes_throttle(&mut self, now: Ns, bio: &Bio, owner: Owner) -> bool {
        let Some(throttle) = &mut self.throttle else { return true };
        let is_admitted = throttle.admits(now, bio);
        if !is_admitted {
            throttle.wait(Waiter { bio: *bio, owner, needs_only_slot: true });
            self.accounting.throttled += 1;
        }
        is_admitted
    }

    /// A request no longer needs its slot.
    pub(super) fn give_slot(&mut self, request: &Request) {
        self.slots.give(request.is_sync());
        if let Some(throttle) = &mut self.throttle {
            throttle.left(request);
        }
    }

    fn allocate(&mut self, now: Ns, bio: &Bio, owner: Owner) -> Option<RequestId> {
        if !self.slots.take(now, bio, &*self.scheduler) {
            return None;
        }
        let request = self.numbered(bio, now);
        let id = self.requests.add(request);
        self.chains.start(id, owner);
        self.accounting.allocated(now);
        self.trace(now, Action::Got, &request);
        Some(id)
    }

    fn add_to_plug(&mut self, now: Ns, id: RequestId) {
        let is_long = |&last: &RequestId| self.requests[last].sectors >= PLUG_SECTORS;
        if self.plug.len() >= PLUG_REQUESTS || self.plug.last().is_some_and(is_long) {
            self.unplug(now);
        }
        if self.plug.is_empty() {
            let request = self.requests[id];
            self.trace(now, Action::Plugged, &request);
        }
        self.plug.push(id);
    }

    /// Tries the requests in the plug: the newest only (blk-mq since 5.16), or all of them, newest
    /// first (legacy).
    fn merge_into_plug(&mut self, now: Ns, bio: &Bio, owner: Owner) -> bool {
        if self.plug.is_empty() || self.nomerges == 2 {
            return false;
        }
        let tried = if self.framework == Framework::Legacy { self.plug.len() } else { 1 };
        let found = self
            .plug
            .iter()
            .rev()
            .take(tried)
            .find_map(|&into| self.end_to_merge(into, bio).map(|end| Merge { into, end }));
        found.inspect(|&merge| self.grow(now, merge, bio, owner)).is_some()
    }

    /// At which end of a request a bio fits, if it may be merged at all.
    fn end_to_merge(&self, id: RequestId, bio: &Bio) -> Option<MergeEnd> {
        let request = &self.requests[id];
        if !self.limits.alike(request, bio) {
            return None;
        }
        let segments = request.segments.saturating_add(bio.segments_of(bio.sectors));
        let total = (u64::from(request.sectors) + u64::from(bio.sectors), segments);
        if request.end() == bio.sector && self.limits.fits(request.sector, total) {
            Some(MergeEnd::Back)
        } else if bio.end() == request.sector && self.limits.fits(bio.sector, total) {
            Some(MergeEnd::Front)
        } else {
            None
        }
    }

    /// Adds a bio to a request.
    fn grow(&mut self, now: Ns, merge: Merge, bio: &Bio, owner: Owner) {
        let request = &mut self.requests[merge.into];
        request.sectors += bio.sectors;
        request.segments = request.segments.saturating_add(bio.segments_of(bio.sectors));
        if merge.end == MergeEnd::Front {
            request.sector = bio.sector;
        }
        if bio.submitter.priority < request.submitter.priority {
            request.submitter.priority = bio.submitter.priority;
        }
        self.chains.add(merge.into, owner);
        self.accounting.merged[usize::from(bio.operation.is_write())] += 1;
        let action = match merge.end {
            MergeEnd::Back => Action::BackMerged,
            MergeEnd::Front => Action::FrontMerged,
        };
        let number = self.requests[merge.into].number;
        self.trace(now, action, &Request { number, ..Request::of(bio, now) });
    }

    fn merge_into_scheduler(&mut self, now: Ns, bio: &Bio, owner: Owner) -> bool {
        if self.nomerges == 2 || bio.flags.contains(Flags::NO_MERGE) {
            return false;
        }
        let Some(merge) = self.find_merge(now, bio) else { return false };
        let old_end = self.requests[merge.into].end();
        self.grow(now, merge, bio, owner);
        self.scheduler.merged(now, &self.requests, merge);
        if self.uses_index {
            self.index.grown(merge.into, old_end, self.requests[merge.into].end());
            self.join_neighbour(now, merge);
        }
        true
    }

    fn find_merge(&mut self, now: Ns, bio: &Bio) -> Option<Merge> {
        if !self.uses_index {
            let merge = self.scheduler.merge_bio(now, &self.requests, bio)?;
            let end = self.end_to_merge(merge.into, bio)?;
            return (end == merge.end).then_some(merge);
        }
        if let Some(into) = self.index.cached
            && let Some(end) = self.end_to_merge(into, bio)
            && self.scheduler.allows_merge(now, &self.requests, into, bio)
        {
            return Some(Merge { into, end });
        }
        if self.nomerges == 1 {
            return None;
        }
        if let Some(into) = self.index.ending_at(bio.sector)
            && self.end_to_merge(into, bio) == Some(MergeEnd::Back)
            && self.scheduler.allows_merge(now, &self.requests, into, bio)
        {
            return Some(Merge { into, end: MergeEnd::Back });
        }
        let into = self.scheduler.front(now, &self.requests, bio)?;
        let is_allowed = self.end_to_merge(into, bio) == Some(MergeEnd::Front)
            && self.scheduler.allows_merge(now, &self.requests, into, bio);
        is_allowed.then_some(Merge { into, end: MergeEnd::Front })
    }

    /// After a merge: if the grown request now touches its neighbour, the two are joined.
    fn join_neighbour(&mut self, now: Ns, merge: Merge) {
        let id = merge.into;
        let pair = match merge.end {
            MergeEnd::Back => self.scheduler.latter(&self.requests, id).map(|latter| (id, latter)),
            MergeEnd::Front => self.scheduler.former(&self.requests, id).map(|former| (former, id)),
        };
        let Some((first, second)) = pair else { return };
        if self.are_joinable(first, second)
            && self.scheduler.allows_join(&self.requests, first, second)
        {
            let old_end = self.requests[first].end();
            let absorbed_end = self.requests[second].end();
            self.absorb(now, first, second);
            self.scheduler.joined(now, &self.requests, first, second);
            self.index.remove(second, absorbed_end);
            self.index.grown(first, old_end, self.requests[first].end());
            self.requests.remove(second);
        }
    }

    fn are_joinable(&self, first: RequestId, second: RequestId) -> bool {
        let (a, b) = (&self.requests[first], &self.requests[second]);
        let segments = a.segments.saturating_add(b.segments);
        let total = (u64::from(a.sectors) + u64::from(b.sectors), segments);
        let as_bio = Bio {
            id: BioId(0),
            operation: b.operation,
            sector: b.sector,
            sectors: b.sectors,
            flags: b.flags,
            submitter: b.submitter,
            segments: 0,
        };
        a.end() == b.sector && self.limits.alike(a, &as_bio) && self.limits.fits(a.sector, total)
    }

    /// The data and owners of `second` become part of `first`; its slot is free again.
    fn absorb(&mut self, now: Ns, first: RequestId, second: RequestId) {
        let lost = self.requests[second];
        let survivor = &mut self.requests[first];
        survivor.sectors += lost.sectors;
        survivor.segments = survivor.segments.saturating_add(lost.segments);
        survivor.allocated = survivor.allocated.min(lost.allocated);
        if lost.submitter.priority < survivor.submitter.priority {
            survivor.submitter.priority = lost.submitter.priority;
        }
        self.chains.join(first, second);
        self.give_slot(&lost);
        self.accounting.absorbed(now, lost.allocated);
        self.trace(now, Action::RequestMerged, &lost);
    }

    /// Flushes the plug into the scheduler.
    pub(crate) fn unplug(&mut self, now: Ns) {
        let mut plug = core::mem::take(&mut self.plug);
        let is_batch = plug.len() > 1;
        if let Some(&first) = plug.first() {
            let request = Request { number: plug.len() as u64, ..self.requests[first] };
            self.trace(now, Action::Unplugged, &request);
        }
        if is_batch && self.framework == Framework::Legacy {
            plug.sort_by_key(|&id| self.requests[id].sector);
        }
        for &id in &plug {
            if !(is_batch && self.merge_request(now, id)) {
                self.insert(now, id);
            }
        }
        plug.clear();
        self.plug = plug;
    }

    /// Tries to append a plugged request to a queued one; the result may be appended again.
    fn merge_request(&mut self, now: Ns, id: RequestId) -> bool {
        if !self.uses_index {
            return false;
        }
        let Some(first) = self.back_neighbour(id) else { return false };
        let old_end = self.requests[first].end();
        self.absorb(now, first, id);
        self.scheduler.merged(now, &self.requests, Merge { into: first, end: MergeEnd::Back });
        self.index.grown(first, old_end, self.requests[first].end());
        self.requests.remove(id);
        let mut grown = first;
        while let Some(before) = self.back_neighbour(grown) {
            if !self.scheduler.allows_join(&self.requests, before, grown) {
                break;
            }
            let (old_end, lost_end) = (self.requests[before].end(), self.requests[grown].end());
            self.absorb(now, before, grown);
            self.scheduler.joined(now, &self.requests, before, grown);
            self.index.remove(grown, lost_end);
            self.index.grown(before, old_end, self.requests[before].end());
            self.requests.remove(grown);
            grown = before;
        }
        true
    }

    fn back_neighbour(&self, id: RequestId) -> Option<RequestId> {
        let fits = |&first: &RequestId| first != id && self.are_joinable(first, id);
        if let Some(first) = self.index.cached.filter(fits) {
            return Some(first);
        }
        if self.nomerges == 1 {
            return None;
        }
        self.index.ending_at(self.requests[id].sector).filter(fits)
    }

    fn insert(&mut self, now: Ns, id: RequestId) {
        self.requests[id].inserted = now;
        if self.kind.is_elevator() {
            let request = self.requests[id];
            self.trace(now, Action::Inserted, &request);
        }
        if self.uses_index {
            self.index.insert(id, self.requests[id].end());
        }
        self.scheduler.insert(now, &self.requests, id);
        self.inserted += 1;
        self.run_at = now;
    }

    /// Lets those go on who wait for slots or for the throttle, until nobody can.
    pub(super) fn wake(&mut self, now: Ns) {
        loop {
            self.admit(now);
            let mut has_woken = false;
            while let Some(waiter) = self.throttle.as_mut().and_then(|t| t.next_woken(now)) {
                has_woken = true;
                if let Some(id) = self.allocate(now, &waiter.bio, waiter.owner) {
                    self.insert(now, id);
                } else {
                    self.wait_for_slot(waiter);
                }
            }
            if !has_woken {
                return;
            }
        }
    }

    /// A bio that passed the throttle waits for a slot, before what its process submitted later.
    fn wait_for_slot(&mut self, waiter: Waiter) {
        self.waiters.push_before_own(waiter);
    }

    /// Gives freed slots to those who wait, in order, as far as the limits allow.
    fn admit(&mut self, now: Ns) {
        let (mut index, mut passed) = (0, Passed::default());
        // Behind the last process that was passed over nobody can be let in.
        while index < self.waiters.len() && passed.len() < self.waiters.processes() {
            let waiter = *self.waiters.get_mut(index);
            let process = waiter.bio.submitter.process;
            let is_blocked = passed.contains(process) || self.is_throttled(process);
            if is_blocked || !self.slots.may_wake(waiter.bio.is_sync()) {
                if self.framework == Framework::MultiQueue && !is_blocked {
                    return;
                }
                passed.add(process);
                index += 1;
                continue;
            }
            if !waiter.needs_only_slot
                && (self.merge_into_scheduler(now, &waiter.bio, waiter.owner)
                    || !self.passes_throttle(now, &waiter.bio, waiter.owner))
            {
                self.waiters.remove(index);
                continue;
            }
            self.slots.woken(now, process);
            if let Some(id) = self.allocate(now, &waiter.bio, waiter.owner) {
                self.waiters.remove(index);
                self.insert(now, id);
            } else {
                self.waiters.get_mut(index).needs_only_slot = true;
                passed.add(process);
                index += 1;
            }
        }
    }
}
