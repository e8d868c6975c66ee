//! Beginning a step: which calls it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use iolab_model::op::{
    Access, Deallocation, Handle, KeyValueKind, LockKind, Op, OpenHow, Permissions, Position,
    Transfer,
};
use iolab_model::{Bytes, Ns};

use super::super::choice::WhenNone;
use super::super::code::Flat;
use super::super::deed::{Deed, Group};
use super::super::events::EventsFor;
use super::super::node::{Node, Positioned, WHOLE_PIECE};
use super::super::stage::{FileId, Purpose};
use super::choose::Held;
use super::job::{Job, Meaning, Whole};
use super::tree::no_file;
use super::{Last, Open, ProgramWorker};
use crate::group::GroupState;
use crate::spec::LockPolicy;

/// Fate of a step that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// Its first call is to be sent.
    Call(u32),
    /// Ended, or left out.
    Nothing,
    /// Not possible yet.
    Later,
    /// Nothing happens before this instant.
    Sleep(Ns),
    /// No more to do.
    NoMore,
}

/// Way in which a node opens a file.
pub(super) fn how(node: &Node) -> OpenHow {
    OpenHow {
        access: node.path.unwrap_or_default().access(),
        durability: node.durability,
        is_readable: !node.is_write_only,
        is_writable: !node.is_read_only,
        is_truncating: node.is_truncating,
        stream_buffer_bytes: Bytes(0),
        permissions: Permissions::Group,
        write_life: node.write_life,
        is_remembered: false,
    }
}

/// Handles of one file differ if they are opened in different ways.
pub(super) fn variant(node: &Node) -> u8 {
    let path = node.path.unwrap_or_default() as u8;
    path | (node.durability as u8) << 2 | u8::from(node.is_read_only) << 4
}

impl<G: GroupState> ProgramWorker<'_, G> {
    /// Begins a step.
    pub(super) fn begin_leaf(&mut self, node: usize, now: Ns) -> Begun {
        let code = Arc::clone(&self.code);
        let flat = &code.flats[node];
        match flat.node.does.group() {
            Group::Meeting => self.meet(node, flat, now),
            Group::Time if flat.node.does == Deed::Think => {
                let duration = flat.node.duration_ns.as_ref();
                let duration = duration.map_or(0, |amount| amount.draw(&mut self.random));
                if duration == 0 { Begun::Nothing } else { Begun::Sleep(now + Ns(duration)) }
            }
            _ if self.is_timed() && self.is_at_limit() => Begun::NoMore,
            _ if self.free.len() <= self.empty_slots() => Begun::Later,
            _ => {
                let held = self.waiting.alone.take().filter(|job| job.node == Some(node));
                let job = held.map_or_else(|| self.prepare(node, flat, now), |job| Ok(*job));
                match job {
                    Ok(job) if job.begins_alone() && self.is_busy() => {
                        self.waiting.alone = Some(Box::new(job));
                        Begun::Later
                    }
                    Ok(job) => self.send(node, flat, job, now),
                    Err(begun) => begun,
                }
            }
        }
    }

    /// Slots that stay empty now.
    pub(super) fn empty_slots(&mut self) -> usize {
        if !self.is_timed() {
            return 0;
        }
        self.room.idle_of(self.free.len())
    }

    /// The lock that a transfer needs, if any.
    pub(super) fn lock_of(&self, does: Deed) -> Option<LockKind> {
        let is_transfer = matches!(does, Deed::Read | Deed::Write);
        if !is_transfer || !self.is_timed() {
            return None;
        }
        match self.touch.lock {
            LockPolicy::ReadWrite if does == Deed::Read => Some(LockKind::Shared),
            LockPolicy::Exclusive | LockPolicy::ReadWrite => Some(LockKind::Exclusive),
            _ => None,
        }
    }

    /// Tell whether the next transfer is one for a thread of the kernel.
    pub(super) fn is_of_kernel_thread(&self) -> bool {
        let every = self.touch.kernel_thread_every;
        every > 0 && self.directed.transfers().is_multiple_of(every)
    }

    fn meet(&mut self, node: usize, flat: &Flat, now: Ns) -> Begun {
        let done = |is_done| if is_done { Begun::Nothing } else { Begun::Later };
        match flat.node.does {
            Deed::Barrier => return self.come_to(flat.barrier, now),
            Deed::Await => return done(self.is_drained(flat)),
            Deed::Limit => return self.take_events(node, flat, now),
            Deed::Finish if self.is_finished(flat) => return self.finish(flat),
            Deed::Finish => return Begun::Nothing,
            _ => {}
        }
        if flat.node.is_broadcast {
            return done(self.broadcast(flat));
        }
        let count = self.semaphore_count(flat);
        let semaphore = &self.stage.semaphores[flat.semaphore];
        let is_done = match flat.node.does {
            Deed::Post => semaphore.post(count, flat.node.high_water),
            _ => semaphore.take(count),
        };
        self.waiting.resting = (!is_done).then_some((flat.semaphore, count, flat.node.high_water));
        self.waiting.semaphore_wants = (!is_done).then_some(count);
        done(is_done)
    }

    /// Lets others go on, or waits for somebody who does; whether that is done.
    fn broadcast(&mut self, flat: &Flat) -> bool {
        let semaphore = &self.stage.semaphores[flat.semaphore];
        if flat.node.does == Deed::Post {
            semaphore.broadcast();
            return true;
        }
        let heard = semaphore.broadcasts();
        let before = *self.waiting.broadcasts_at_first.get_or_insert(heard);
        if heard > before {
            self.waiting.broadcasts_at_first = None;
        }
        heard > before
    }

    /// Number that is posted or taken; of a step that waits, the same as when it began to.
    fn semaphore_count(&mut self, flat: &Flat) -> u64 {
        let drawn = || flat.node.count.as_ref();
        match self.waiting.semaphore_wants.take() {
            Some(count) => count,
            None => drawn().map_or(1, |count| count.draw(&mut self.random)),
        }
    }

    /// Tell whether few enough operations are under way.
    fn is_drained(&mut self, flat: &Flat) -> bool {
        let most = match flat.node.under_way_percent {
            None => flat.node.under_way,
            Some(percent) => {
                let began = *self.waiting.under_way_at_first.get_or_insert(self.in_flight);
                (u64::from(began) * u64::from(percent) / 100) as u32
            }
        };
        let is_drained = self.in_flight <= most && self.ready.is_empty();
        if is_drained {
            self.waiting.under_way_at_first = None;
        }
        is_drained
    }

    /// Takes the events of a step from their source.
    fn take_events(&mut self, node: usize, flat: &Flat, now: Ns) -> Begun {
        let Some(events) = &flat.node.events else { return Begun::Nothing };
        let each = events.each;
        let more = if each == EventsFor::Step {
            Some(1)
        } else if let Some(tally) = flat.counted {
            let done = match each {
                EventsFor::Mebibyte => self.tallies[tally].bytes(),
                _ => self.tallies[tally].ops,
            };
            let before = std::mem::replace(&mut self.fired[node], done);
            (before > 0).then(|| done - before)
        } else {
            // Each operation of all workers is paid for once, by whoever comes next.
            let done = self.stage.done.number(each);
            let before = self.stage.cursors[self.tenant][node].fetch_max(done, Ordering::Relaxed);
            (before > 0).then(|| done.saturating_sub(before))
        };
        // The first time only tells where counting begins.
        let Some(count) = more.map(|more| each.events(more)).filter(|count| *count > 0) else {
            return Begun::Nothing;
        };
        let ready = self.stage.sources[flat.source].take(count, now);
        if ready > now { Begun::Sleep(ready) } else { Begun::Nothing }
    }

    /// Tell whether the condition of a step holds.
    fn is_finished(&self, flat: &Flat) -> bool {
        let Some(until) = &flat.node.until else { return false };
        let (ops, bytes) = match flat.counted {
            Some(tally) => (self.tallies[tally].ops, self.tallies[tally].bytes()),
            None => self.stage.done.all(),
        };
        until.ops.is_some_and(|least| ops >= least) || until.bytes.is_some_and(|most| bytes > most)
    }

    /// The condition of a step holds.
    fn finish(&mut self, flat: &Flat) -> Begun {
        if flat.node.until.as_ref().is_some_and(|until| until.fails) {
            let name = flat.node.name();
            self.fail(|| format!("the operation {name} ended the run before its time was over"));
        }
        self.no_more(flat.node.name())
    }

    /// The worker ends here, before its time.
    pub(super) fn no_more(&mut self, name: &str) -> Begun {
        self.report.ended_by.get_or_insert_with(|| name.to_owned());
        Begun::NoMore
    }

    /// Comes to a barrier, or looks whether the one where it waits has opened.
    pub(super) fn come_to(&mut self, index: usize, now: Ns) -> Begun {
        let barrier = &self.stage.barriers[index];
        if let Some((at, ticket)) = self.at_barrier {
            if at == index && !barrier.is_open(ticket) {
                return Begun::Later;
            }
            self.at_barrier = None;
            return Begun::Nothing;
        }
        match barrier.come() {
            Some(ticket) => {
                self.at_barrier = Some((index, ticket));
                Begun::Later
            }
            // The others see first that it is open.
            None => Begun::Sleep(now),
        }
    }

    /// Takes a job among those under way.
    pub(super) fn send(&mut self, node: usize, flat: &Flat, job: Job, now: Ns) -> Begun {
        let Some(token) = self.free.pop() else { return Begun::Later };
        if let (Some(tally), true) = (flat.tally, self.is_timed()) {
            self.tallies[tally].begun += 1;
            self.issued.0 += 1;
            self.issued.1 += bytes_of(&job);
            self.directed.count(flat.node.does, bytes_of(&job));
            let is_full = self.free.is_empty();
            self.bursting.iter_mut().for_each(|burst| burst.begun(now, is_full));
        }
        let last = Last { file: job.file, at: place_of(&job), key: job.key };
        self.remember(node, last);
        // Recorded operations overlap as far as depth and stream let them.
        let is_opening = job.is_opening;
        let is_alone = (!flat.node.is_submitted_only || is_opening) && job.recorded.is_none()
            || job.begins_alone();
        self.jobs[token as usize] = Some(job);
        if is_alone {
            self.blocked = Some(token);
        }
        Begun::Call(token)
    }

    /// The calls of a step.
    fn prepare(&mut self, node: usize, flat: &Flat, now: Ns) -> Result<Job, Begun> {
        let mut job = Job::new(Some(node), self.intended);
        let does = flat.node.does;
        match does.group() {
            Group::KeyValue(..) => self.request(flat, &mut job),
            _ if does == Deed::SyncAll => job.ops[0] = Some(Op::SyncAll),
            _ if does == Deed::Burn => {
                let duration = flat.node.duration_ns.as_ref();
                let duration = Ns(duration.map_or(0, |it| it.draw(&mut self.random)));
                // Nothing can stop it once it has begun.
                let left = if self.is_timed() { self.deadline.since(now) } else { Ns::MAX };
                job.ops[0] = Some(Op::Burn { duration: duration.min(left) });
            }
            _ if does.opens() => self.open(node, flat, &mut job)?,
            _ if does == Deed::Close => self.close(flat, &mut job)?,
            _ if does.uses_name() => self.name(node, flat, &mut job)?,
            _ => self.on_handle(node, flat, &mut job)?,
        }
        Ok(job)
    }

    /// Reaction where a step has no file.
    fn without(&mut self, flat: &Flat, when_none: WhenNone) -> Begun {
        match when_none {
            WhenNone::Skip => Begun::Nothing,
            WhenNone::End => self.no_more(flat.node.name()),
            WhenNone::Wait => Begun::Later,
            WhenNone::Fail => {
                self.no_more(flat.node.name());
                self.fail(|| no_file(flat.node.name()));
                Begun::Nothing
            }
        }
    }

    fn file(
        &mut self,
        node: usize,
        flat: &Flat,
        (purpose, is_directory): (Purpose, bool),
    ) -> Result<Held, Begun> {
        let Some(chosen) = &flat.file else { return Err(Begun::Nothing) };
        let found = self.choose(node, chosen, purpose, is_directory);
        found.map_err(|when_none| self.without(flat, when_none))
    }

    fn open(&mut self, node: usize, flat: &Flat, job: &mut Job) -> Result<(), Begun> {
        let slot = self.slot_of(flat);
        if self.slots[slot].open.is_some() {
            let code = Arc::clone(&self.code);
            self.fail(|| {
                format!(
                    "the operation {} opens the slot {}, which is open: close it first",
                    flat.node.name(),
                    code.slots[slot]
                )
            });
            return Err(Begun::Nothing);
        }
        let is_new = flat.node.does == Deed::Create;
        let purpose = if is_new { Purpose::Make } else { Purpose::Use };
        let held = match self.file(node, flat, (purpose, false)) {
            Err(Begun::Later) => {
                self.waiting.held_slot = Some(slot);
                return Err(Begun::Later);
            }
            found => found?,
        };
        job.handle = slot as u32;
        self.opening(job, held, &flat.node, is_new);
        Ok(())
    }

    /// The calls that open a file.
    pub(super) fn opening(&self, job: &mut Job, held: Held, node: &Node, is_new: bool) {
        let set = &self.stage.sets[held.id.set as usize];
        let how = OpenHow { is_remembered: set.is_flat, ..how(node) };
        let handle = Handle(job.handle);
        let path = set.path(held.id.number, false);
        let is_mapped = how.access == Access::Mapped;
        if let Some(advice) = node.advice.filter(|_| !is_mapped) {
            job.ops[1] = Some(Op::Advise { handle, advice });
        }
        job.ops[0] = Some(if is_new {
            Op::Create { path, handle, how }
        } else {
            Op::Open { path, handle, how }
        });
        if is_mapped {
            let size = if is_new {
                set.nominal[held.id.number as usize]
            } else {
                set.size(held.id.number)
            };
            let map = Some(Op::Map { handle, length: Bytes(size) });
            let truncate = Op::Truncate { handle, length: Bytes(size) };
            if is_new {
                (job.ops[1], job.ops[2]) = (Some(truncate), map);
                set.resize(held.id.number, size);
            } else {
                job.ops[1] = map;
            }
        } else if is_new || node.is_truncating {
            set.resize(held.id.number, 0);
        }
        (job.file, job.is_held) = (Some(held.id), held.is_held);
        job.meaning = if is_new { Meaning::Made } else { Meaning::Opened };
        job.open = Some(Open { file: held.id, is_mapped, is_at_end: false });
    }

    fn close(&mut self, flat: &Flat, job: &mut Job) -> Result<(), Begun> {
        let open = self.opened(flat, flat.slot)?;
        job.handle = flat.slot as u32;
        job.ops = Self::closing(&open, job.handle);
        (job.meaning, job.file) = (Meaning::Closed, Some(open.file));
        Ok(())
    }

    /// The open file of a slot.
    fn opened(&mut self, flat: &Flat, slot: usize) -> Result<Open, Begun> {
        let Some(open) = self.slots[slot].open else {
            let name = self.code.slots[slot].clone();
            self.fail(|| {
                format!(
                    "the operation {} uses the slot {name}, which is not open: open it before",
                    flat.node.name()
                )
            });
            return Err(Begun::Nothing);
        };
        Ok(open)
    }

    fn name(&mut self, node: usize, flat: &Flat, job: &mut Job) -> Result<(), Begun> {
        let does = flat.node.does;
        if matches!(does, Deed::ListDirectory | Deed::SyncDirectory) {
            return self.directory(node, flat, job);
        }
        let is_directory = does.is_of_directories();
        let purpose = match does {
            Deed::Unlink | Deed::Rename | Deed::RemoveDirectory => Purpose::Remove,
            Deed::MakeDirectory => Purpose::Make,
            _ => Purpose::Use,
        };
        let held = self.file(node, flat, (purpose, is_directory))?;
        let path_of = |stage: &super::Stage, id: FileId| {
            stage.sets[id.set as usize].path(id.number, is_directory)
        };
        let path = path_of(self.stage, held.id);
        (job.file, job.is_held, job.is_directory) = (Some(held.id), held.is_held, is_directory);
        if does.has_second_file() {
            let Some(to) = &flat.to_file else { return Err(Begun::Nothing) };
            let to = match self.choose(node, to, Purpose::Make, false) {
                Ok(to) => to.id,
                Err(when_none) => {
                    let set = &self.stage.sets[held.id.set as usize];
                    match purpose {
                        Purpose::Remove => set.settle(held.id.number, false, true),
                        _ => set.release(held.id.number, false),
                    }
                    return Err(self.without(flat, when_none));
                }
            };
            job.to_file = Some(to);
            let (from, to) = (path, path_of(self.stage, to));
            (job.ops[0], job.meaning) = if does == Deed::Rename {
                (Some(Op::Rename { from, to }), Meaning::Renamed)
            } else {
                let is_symbolic = does == Deed::SymbolicLink;
                (Some(Op::Link { from, to, is_symbolic }), Meaning::Linked)
            };
            return Ok(());
        }
        (job.ops[0], job.meaning) = match does {
            Deed::Unlink => (Some(Op::Unlink { path }), Meaning::Gone),
            Deed::MakeDirectory => (Some(Op::MakeDirectory { path }), Meaning::Made),
            Deed::RemoveDirectory => (Some(Op::RemoveDirectory { path }), Meaning::Gone),
            _ => (Some(Op::Stat { path }), Meaning::Plain),
        };
        Ok(())
    }

    /// Lists a directory of a tree, or makes the names in it durable.
    fn directory(&mut self, node: usize, flat: &Flat, job: &mut Job) -> Result<(), Begun> {
        use super::super::choice::FileBy;
        let Some(chosen) = &flat.file else { return Err(Begun::Nothing) };
        let named = match chosen.choice.by {
            FileBy::Slot => self.slots[chosen.slot].last,
            FileBy::Same => self.last[chosen.step].file,
            FileBy::Local => self.local_file(chosen.local),
            _ => None,
        };
        let path = if let Some(id) = named {
            self.stage.sets[id.set as usize].parent(id.number)
        } else {
            let set = &self.stage.sets[chosen.set];
            let number = match chosen.choice.by {
                FileBy::Existing => self.random.below(set.directory_count()),
                _ => self.shared_count(node),
            };
            set.directory(number)
        };
        job.ops[0] = Some(match flat.node.does {
            Deed::ListDirectory => {
                job.is_listing = true;
                Op::ReadDirectory { path }
            }
            _ => Op::SyncDirectory { path },
        });
        Ok(())
    }

    fn request(&mut self, flat: &Flat, job: &mut Job) {
        let Some(from) = &flat.key else { return };
        let (space, number) = self.choose_key(from);
        let state = &self.stage.spaces[space];
        let size = flat.node.size_bytes.as_ref().unwrap_or(state.value_bytes());
        let writes = matches!(flat.node.does, Deed::Put | Deed::Modify);
        let length = if writes { size.draw(&mut self.random) } else { size.most() };
        let count = || flat.node.count.clone();
        let kind = match flat.node.does {
            Deed::Get => KeyValueKind::Get,
            Deed::Put => KeyValueKind::Put,
            Deed::Modify => KeyValueKind::Modify,
            Deed::Delete => KeyValueKind::Delete,
            _ => {
                let count = count().map_or(1, |count| count.draw(&mut self.random));
                KeyValueKind::Scan { count: count as u32 }
            }
        };
        let key = state.space.key(number);
        job.ops[0] = Some(Op::KeyValue { kind, key, length: Bytes(length) });
        job.key = Some((space, number));
        if kind == KeyValueKind::Put {
            job.meaning = Meaning::Put;
        }
    }

    /// A step on an open file: that of its slot, or one that is kept open.
    fn on_handle(&mut self, node: usize, flat: &Flat, job: &mut Job) -> Result<(), Begun> {
        if flat.is_served() {
            return self.served(node, flat, job);
        }
        let open = if flat.node.opens_its_slot() {
            match self.open_of_slot(node, flat, job)? {
                Some(open) => open,
                None => return Ok(()),
            }
        } else if flat.file.is_some() {
            self.kept_open(node, flat, job)?
        } else if flat.node.skips_closed && self.slots[flat.slot].open.is_none() {
            return Err(Begun::Nothing);
        } else {
            let open = self.opened(flat, flat.slot)?;
            (job.handle, job.file) = (flat.slot as u32, Some(open.file));
            open
        };
        let is_write = flat.node.does == Deed::Write;
        match flat.node.does {
            Deed::Read | Deed::Write => self.transfer(node, flat, job, (open, is_write)),
            _ => self.other(node, flat, job, open),
        }
    }

    /// Slot of a step: its own, or the next of those that are taken in turn.
    fn slot_of(&mut self, flat: &Flat) -> usize {
        if let Some(slot) = self.waiting.held_slot.take() {
            return slot;
        }
        let turns = usize::from(flat.node.rotates);
        if turns == 0 {
            return flat.slot;
        }
        let turn = self.waiting.rotor % turns;
        self.waiting.rotor = turn + 1;
        self.code.rotation[turns - 1 - turn]
    }

    /// The open file of a step's slot; `None`: it was closed, and `job` opens it first, as an
    /// operation of its own.
    fn open_of_slot(
        &mut self,
        node: usize,
        flat: &Flat,
        job: &mut Job,
    ) -> Result<Option<Open>, Begun> {
        let slot = self.slot_of(flat);
        job.handle = slot as u32;
        if let Some(open) = self.slots[slot].open {
            job.file = Some(open.file);
            return Ok(Some(open));
        }
        self.waiting.held_slot = Some(slot);
        let held = self.file(node, flat, (Purpose::Use, false))?;
        self.opening(job, held, &flat.node, false);
        job.is_opening = true;
        Ok(None)
    }

    /// The handle of a chosen file; its first use opens it.
    fn kept_open(&mut self, node: usize, flat: &Flat, job: &mut Job) -> Result<Open, Begun> {
        let held = self.file(node, flat, (Purpose::Use, false))?;
        Ok(self.handle_of(flat, held, job))
    }

    /// The handle of a file that is kept open; its first use opens it.
    pub(super) fn handle_of(&mut self, flat: &Flat, held: Held, job: &mut Job) -> Open {
        let next = (self.code.slots.len() + self.kept.len()) as u32;
        let handle = *self.kept.entry((held.id, variant(&flat.node))).or_insert(next);
        job.handle = handle;
        if let Some(open) = self.slots.get(handle as usize).and_then(|slot| slot.open) {
            (job.file, job.is_held) = (Some(held.id), held.is_held);
            return open;
        }
        self.opening(job, held, &flat.node, false);
        job.open.expect("who opens a file knows how")
    }

    /// Puts a call behind those that open the file.
    pub(super) fn then(job: &mut Job, op: Op) {
        if let Some(place) = job.ops.iter_mut().find(|place| place.is_none()) {
            *place = Some(op);
        }
    }

    fn transfer(
        &mut self,
        node: usize,
        flat: &Flat,
        job: &mut Job,
        (open, is_write): (Open, bool),
    ) -> Result<(), Begun> {
        let step = &flat.node;
        let set = &self.stage.sets[open.file.set as usize];
        let size = set.size(open.file.number);
        let named = step.from_slot.as_ref().and_then(|_| self.slots[flat.from_slot].last);
        let of = named.unwrap_or(open.file);
        let nominal = self.stage.sets[of.set as usize].nominal[of.number as usize];
        let drawn = step.size_bytes.as_ref().map(|amount| amount.draw(&mut self.random));
        let length = Bytes(drawn.unwrap_or(WHOLE_PIECE.0));
        let handle = Handle(job.handle);
        let positioned = match step.positioned() {
            Positioned::Current if step.is_whole && step.position.is_none() => Positioned::At,
            other => other,
        };
        let at = match positioned {
            Positioned::Append => Position::End,
            Positioned::At if step.is_whole => Position::At(Bytes(0)),
            Positioned::At => match self.place(node, open.file, is_write) {
                Some(at) => Position::At(Bytes(at)),
                None => return Err(self.no_place(flat, job, size)),
            },
            Positioned::Current if open.is_at_end && !is_write => {
                self.rewind(job.handle);
                Position::At(Bytes(0))
            }
            Positioned::Current => Position::Current,
        };
        let (vectors, flags) = (step.vectors.max(1), step.flags);
        let is_unchecked = self.is_unchecked(step);
        let plain = Transfer::plain(handle, at, length);
        let is_of_kernel_thread = self.is_of_kernel_thread();
        let transfer = Transfer { vectors, flags, is_unchecked, is_of_kernel_thread, ..plain };
        job.lock = self.lock_of(flat.node.does);
        let changes = |reaches: u64| match at {
            Position::At(at) => Meaning::Reaches(at.0 + reaches),
            Position::Current | Position::End => Meaning::Grown,
        };
        let opens = job.open.is_some();
        if step.is_whole {
            let left = if is_write { nominal } else { size };
            job.whole = Some(Whole { transfer, is_write, at: 0, left });
            if is_write && !opens {
                job.meaning = changes(left);
            }
            // An empty file is read to its end with one call.
            if left == 0 && is_write {
                return Err(self.let_go(job));
            }
            if left == 0 {
                let nothing = Transfer { length: Bytes(transfer.length.0.max(1)), ..transfer };
                job.whole = Some(Whole { transfer: nothing, is_write, at: 0, left: 1 });
            }
            return Ok(());
        }
        if length.0 == 0 {
            return Err(self.let_go(job));
        }
        if is_write && !opens {
            job.meaning = changes(length.0);
        }
        Self::then(job, if is_write { Op::Write(transfer) } else { Op::Read(transfer) });
        Ok(())
    }

    /// True if what a step reads is compared with nothing.
    pub(super) fn is_unchecked(&self, step: &Node) -> bool {
        !step.verify.unwrap_or(self.stage.verify).is_on()
    }

    fn rewind(&mut self, handle: u32) {
        if let Some(open) = self.slots[handle as usize].open.as_mut() {
            open.is_at_end = false;
        }
    }

    /// A step that does nothing after all gives its file back.
    fn let_go(&mut self, job: &Job) -> Begun {
        if let (Some(file), true) = (job.file, job.is_held) {
            self.stage.sets[file.set as usize].release(file.number, false);
        }
        Begun::Nothing
    }

    fn no_place(&mut self, flat: &Flat, job: &Job, size: u64) -> Begun {
        let begun = self.let_go(job);
        let unit = Bytes(flat.unit);
        self.fail(|| {
            format!(
                "the operation {} has no place for {unit} bytes in a file of {}: use larger files, \
                 smaller transfers, or is_whole = true",
                flat.node.name(),
                Bytes(size)
            )
        });
        begun
    }

    /// A step on an open file that is no transfer.
    fn other(&mut self, node: usize, flat: &Flat, job: &mut Job, open: Open) -> Result<(), Begun> {
        let does = flat.node.does;
        let handle = Handle(job.handle);
        let set = &self.stage.sets[open.file.set as usize];
        let size = set.size(open.file.number);
        let drawn = flat.node.size_bytes.as_ref().map(|amount| amount.draw(&mut self.random));
        let is_placed = flat.node.at.is_some();
        let at = if is_placed {
            let changes = does == Deed::Allocate || does == Deed::Copy;
            match self.place(node, open.file, changes) {
                Some(at) => Bytes(at),
                None => return Err(self.no_place(flat, job, size)),
            }
        } else {
            Bytes(0)
        };
        let length = Bytes(drawn.unwrap_or(size));
        let deallocate = |how| Op::Deallocate { handle, at, length, how };
        let op = match does {
            Deed::Fsync => Op::Fsync { handle },
            Deed::Fdatasync => Op::Fdatasync { handle },
            Deed::SyncFileRange => {
                Op::SyncFileRange { handle, at, length, how: flat.node.range_sync }
            }
            Deed::Msync | Deed::MsyncAsync => {
                Op::Msync { handle, at, length, is_async: does == Deed::MsyncAsync }
            }
            Deed::FlushStream => Op::StreamFlush { handle },
            Deed::Truncate => {
                job.meaning = Meaning::Length(drawn.unwrap_or(0));
                Op::Truncate { handle, length: Bytes(drawn.unwrap_or(0)) }
            }
            Deed::Allocate => {
                job.meaning = Meaning::Reaches(at.0 + length.0);
                Op::Allocate { handle, at, length, keeps_length: flat.node.keeps_length }
            }
            Deed::Punch => deallocate(Deallocation::Punch),
            Deed::Zero => deallocate(Deallocation::Zero),
            Deed::Discard => deallocate(Deallocation::Discard),
            _ => {
                let from = self.opened(flat, flat.from_slot)?;
                let source = &self.stage.sets[from.file.set as usize];
                let length = Bytes(drawn.unwrap_or(source.size(from.file.number)));
                job.meaning = Meaning::Reaches(at.0 + length.0);
                let from = Handle(flat.from_slot as u32);
                Op::Copy { from, from_at: at, to: handle, to_at: at, length }
            }
        };
        Self::then(job, op);
        Ok(())
    }
}

/// Bytes that an operation is to move.
fn bytes_of(job: &Job) -> u64 {
    let ops = job.ops.iter().flatten().map(|op| match op {
        Op::Read(transfer) | Op::Write(transfer) => transfer.length.0,
        Op::KeyValue { length, .. } | Op::Copy { length, .. } => length.0,
        _ => 0,
    });
    ops.sum::<u64>() + job.whole.map_or(0, |whole| whole.left)
}

/// Place of an operation in its file.
fn place_of(job: &Job) -> u64 {
    let mut places = job.ops.iter().flatten().filter_map(|op| match op {
        Op::Read(transfer) | Op::Write(transfer) => match transfer.at {
            Position::At(at) => Some(at.0),
            Position::Current | Position::End => None,
        },
        Op::Allocate { at, .. } | Op::Deallocate { at, .. } => Some(at.0),
        _ => None,
    });
    places.next_back().unwrap_or(0)
}
