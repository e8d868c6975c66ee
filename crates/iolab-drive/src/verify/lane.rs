//! A lane around a lane: what is written is composed before, what was read is examined after.
//!
//! It works with any lane that gives its buffers out. The clock is read again after composing, so
//! that the times of ops leave it out. Where ops of this lane overlap in flight, or others write
//! the same file, only what is certain is claimed: that each sector belongs where it is.
//!
//! Left out: transfers at a file's own position, which no workload makes: they pass unchecked.

use std::sync::{MutexGuard, PoisonError};

use iolab_model::op::{Handle, Op, PathId, Position, Submission, Token};
use iolab_model::seed::Stream;
use iolab_model::{Accepted, Bytes, Completion, Error, Lane, Ns, error::Errno};
use iolab_workload::verify::{Book, Known, Meanwhile, RangeUse};

use super::block::{Fault, Generation, Place, swap_header};
use super::plan::{Expected, Findings, LanePlan, Wrong};

/// Op in flight in a queue slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    kind: Kind,
    file: usize,
    at: u64,
    length: u64,
    sequence: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Idle,
    Read,
    Write,
    /// Contents go: a file is emptied, cut or removed, or a range given back.
    Erase,
}

/// Slot for contents that go from a place on.
fn erase(file: usize, at: u64) -> Slot {
    Slot { kind: Kind::Erase, file, at, length: u64::MAX, sequence: 0 }
}

/// A lane that checks what it reads.
pub struct VerifyingLane<L> {
    inner: L,
    plan: LanePlan,
    /// File of each open handle.
    handles: Vec<Option<usize>>,
    slots: Vec<Slot>,
    in_flight: usize,
    /// Last writes of the blocks of a read that ended.
    known: Vec<Known>,
    sequence: u32,
    scratch: Vec<u8>,
    findings: Findings,
}

impl<L: Lane> VerifyingLane<L> {
    /// A lane of `depth` slots; fills its buffers with what nobody can compress.
    pub fn new(mut inner: L, plan: LanePlan, depth: u32, mut random: Stream) -> Self {
        for slot in 0..depth {
            if let Some(buffer) = inner.buffer(Token(slot)) {
                random.fill(buffer);
            }
        }
        let unit = plan.files.iter().map(|file| file.unit.0).max().unwrap_or(0);
        Self {
            inner,
            handles: Vec::new(),
            slots: vec![Slot::default(); depth as usize],
            in_flight: 0,
            known: Vec::new(),
            sequence: 0,
            scratch: vec![0; unit as usize],
            findings: Findings::default(),
            plan,
        }
    }

    /// Faults that were found.
    pub fn into_findings(self) -> Findings {
        self.findings
    }

    /// Learns which file an op opens; what an op is about, if it can be checked or changes data.
    fn slot_of(&mut self, op: &Op) -> Slot {
        match *op {
            Op::Open { path, handle, how } => {
                let file = self.opened(path, handle);
                file.filter(|_| how.is_truncating).map_or_else(Slot::default, |file| erase(file, 0))
            }
            Op::Create { path, handle, .. } => {
                let file = self.opened(path, handle);
                file.map_or_else(Slot::default, |file| erase(file, 0))
            }
            Op::Unlink { path } => {
                let file = Some(path.0 as usize).filter(|file| *file < self.plan.files.len());
                file.map_or_else(Slot::default, |file| erase(file, 0))
            }
            Op::Truncate { handle, length } => {
                self.file_of(handle).map_or_else(Slot::default, |file| erase(file, length.0))
            }
            Op::Deallocate { handle, at, length, .. } => {
                let file = self.file_of(handle);
                let range = |file| Slot { length: length.0, ..erase(file, at.0) };
                file.map_or_else(Slot::default, range)
            }
            Op::Read(transfer) if !transfer.is_unchecked => {
                self.transfer(Kind::Read, transfer.handle, transfer.at, transfer.length)
            }
            Op::Write(transfer) => {
                self.transfer(Kind::Write, transfer.handle, transfer.at, transfer.length)
            }
            _ => Slot::default(),
        }
    }

    /// Notes the file of a handle.
    fn opened(&mut self, path: PathId, handle: Handle) -> Option<usize> {
        let index = handle.0 as usize;
        if self.handles.len() <= index {
            self.handles.resize(index + 1, None);
        }
        self.handles[index] = Some(path.0 as usize).filter(|file| *file < self.plan.files.len());
        self.handles[index]
    }

    fn file_of(&self, handle: Handle) -> Option<usize> {
        self.handles.get(handle.0 as usize).copied().flatten()
    }

    #[inline]
    fn transfer(&mut self, kind: Kind, handle: Handle, at: Position, length: Bytes) -> Slot {
        let (Some(file), Position::At(at)) = (self.file_of(handle), at) else {
            return Slot::default();
        };
        Slot { kind, file, at: at.0, length: length.0, ..Slot::default() }
    }

    /// Book of a file.
    fn book(&self, file: usize) -> MutexGuard<'_, Book> {
        self.plan.files[file].book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of an op among those of all lanes.
    fn owner(&self, token: Token) -> u64 {
        u64::from(self.plan.writer) << 32 | u64::from(token.0)
    }

    /// Composes what a write sends.
    #[inline]
    fn compose(&mut self, token: Token, slot: &Slot) {
        let file = &self.plan.files[slot.file];
        let generation = Generation::new(self.plan.step, self.plan.writer, slot.sequence);
        let Some(buffer) = self.inner.buffer(token) else { return };
        let Some(bytes) = buffer.get_mut(..slot.length as usize) else { return };
        if let Some(pattern) = &self.plan.pattern {
            pattern.fill(bytes);
            return;
        }
        for (index, block) in bytes.chunks_exact_mut(file.unit.0 as usize).enumerate() {
            let offset = slot.at + index as u64 * file.unit.0;
            let place = Place { file: file.identity, offset, kind: self.plan.kind };
            place.compose(block, generation);
            if file.blocks.header_at_bytes.0 > 0 {
                swap_header(block, file.blocks.header_at_bytes.0 as usize);
            }
        }
    }

    /// Notes what is about to begin, before others can see it.
    #[inline]
    fn begin(&self, token: Token, slot: &Slot) {
        if slot.kind != Kind::Idle {
            let range = (slot.at, slot.length);
            let unit = self.plan.files[slot.file].unit.0;
            let blocks = slot.at / unit..slot.at.saturating_add(slot.length) / unit;
            let usage = match slot.kind {
                Kind::Write => RangeUse::Writes,
                Kind::Erase => RangeUse::Erases,
                Kind::Read | Kind::Idle => RangeUse::Reads,
            };
            self.book(slot.file).begin(self.owner(token), range, usage, blocks);
        }
    }

    /// Notes what the inner lane has taken, or has not.
    #[inline]
    fn note(&mut self, token: Token, slot: Slot, is_taken: bool) {
        if slot.kind == Kind::Idle {
            return;
        }
        if is_taken {
            self.slots[token.0 as usize] = slot;
            self.in_flight += 1;
        } else {
            self.book(slot.file).end(self.owner(token));
        }
    }

    /// Takes the ends of ops; a read of something wrong becomes an error.
    fn finish(&mut self, ended: &mut [Completion]) {
        for completion in ended {
            let slot = std::mem::take(&mut self.slots[completion.token.0 as usize]);
            match slot.kind {
                Kind::Idle => continue,
                Kind::Write => self.wrote(completion.token, &slot, completion.outcome),
                Kind::Erase => self.erased(completion.token, &slot),
                Kind::Read => {
                    let meanwhile = self.look_up(completion.token, &slot);
                    if let Ok(moved) = completion.outcome
                        && !self.examine(completion.token, &slot, moved.0, meanwhile)
                    {
                        completion.outcome = Err(Errno::EILSEQ);
                    }
                }
            }
            self.in_flight -= 1;
        }
    }

    fn wrote(&mut self, token: Token, slot: &Slot, outcome: Result<Bytes, Errno>) {
        let unit = self.plan.files[slot.file].unit.0;
        let generation = Generation::new(self.plan.step, self.plan.writer, slot.sequence);
        let mut book = self.book(slot.file);
        let has_raced = book.end(self.owner(token)).has_raced;
        let is_certain =
            outcome == Ok(Bytes(slot.length)) && !has_raced && slot.at.is_multiple_of(unit);
        for block in slot.at / unit..(slot.at + slot.length).div_ceil(unit) {
            if is_certain {
                book.wrote(block as usize, generation.0);
            } else {
                book.contest(block as usize);
            }
        }
    }

    /// Contents of an erased range are uncertain from now on, whether the op failed or not.
    fn erased(&mut self, token: Token, slot: &Slot) {
        let unit = self.plan.files[slot.file].unit.0;
        let mut book = self.book(slot.file);
        book.end(self.owner(token));
        book.forget(slot.at / unit, slot.at.saturating_add(slot.length).div_ceil(unit));
    }

    /// Ends a read in its book; what happened meanwhile. What is known of its blocks stays in
    /// `known`.
    fn look_up(&mut self, token: Token, slot: &Slot) -> Meanwhile {
        let unit = self.plan.files[slot.file].unit.0;
        let mut known = std::mem::take(&mut self.known);
        let mut book = self.book(slot.file);
        let meanwhile = book.end(self.owner(token));
        known.clear();
        let blocks = slot.at / unit..(slot.at + slot.length) / unit;
        known.extend(blocks.map(|block| book.known(block as usize)));
        drop(book);
        self.known = known;
        meanwhile
    }

    /// True if all that was read is as it should be; differences are noted.
    #[inline]
    fn examine(&mut self, token: Token, slot: &Slot, moved: u64, meanwhile: Meanwhile) -> bool {
        let plan = &self.plan;
        let file = &plan.files[slot.file];
        let unit = file.unit.0;
        let Some(buffer) = self.inner.buffer(token) else { return true };
        let read = &mut buffer[..moved as usize];
        let mut is_right = true;
        if let Some(pattern) = &plan.pattern {
            let (read, length) = (&*read, usize::from(pattern.length).max(1));
            let expected = |at: usize| pattern.bytes[at % length];
            let wrong = read.iter().enumerate().find(|(at, byte)| **byte != expected(*at));
            if let Some((at, _)) = wrong {
                let told = (at, expected(at));
                self.findings.add(|| plan.pattern_mismatch(file, (slot.at, read), told));
                if file.blocks.are_kept {
                    let kept = || LanePlan::kept_pattern(slot.at, read, pattern);
                    self.findings.keep(read.len(), kept);
                }
            }
            return wrong.is_none();
        }
        let header_at = file.blocks.header_at_bytes.0 as usize;
        for (index, block) in read.chunks_exact_mut(unit as usize).enumerate() {
            if header_at > 0 {
                swap_header(block, header_at);
            }
            let offset = slot.at + index as u64 * unit;
            let check = Check {
                place: Place { file: file.identity, offset, kind: plan.kind },
                is_racing: meanwhile.has_raced || file.trust.is_contended,
                was_empty: meanwhile.has_raced && meanwhile.was_empty,
                may_be_mixed: file.trust.may_be_mixed,
                floor: file.trust.floor,
                may_be_foreign: file.blocks.may_be_foreign,
                known: self.known.get(index).copied().unwrap_or(Known::Nothing),
            };
            if let Err(wrong) = check.run(block, &mut self.scratch[..unit as usize]) {
                is_right = false;
                self.findings.add(|| plan.mismatch(file, offset, &wrong));
                if file.blocks.are_kept {
                    let kept = || LanePlan::kept((file, &check.place), block, &wrong, check.own());
                    self.findings.keep(block.len(), kept);
                }
            }
        }
        is_right
    }
}

/// One block that was read, and what is known about it.
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
struct Check {
    place: Place,
    is_racing: bool,
    /// The read raced, and perhaps nothing was there when it began.
    was_empty: bool,
    may_be_mixed: bool,
    floor: Option<u16>,
    /// Anything may have been there before.
    may_be_foreign: bool,
    known: Known,
}

impl Check {
    /// The write that must be there, if it is known.
    #[inline]
    fn own(&self) -> Option<Generation> {
        match self.known {
            Known::Write(generation) if !self.is_racing => Some(Generation(generation)),
            _ => None,
        }
    }

    #[inline]
    fn run(&self, block: &[u8], scratch: &mut [u8]) -> Result<(), Wrong> {
        let own = self.own();
        let is_unclaimed = self.may_be_foreign
            && self.floor.is_none()
            && !matches!(self.known, Known::Write(_))
            && !self.place.is_alike(block);
        if is_unclaimed {
            return Ok(());
        }
        let result = if self.is_racing || self.known == Known::Contested {
            self.place.examine_belonging(block, scratch)
        } else if own.is_none() && self.may_be_mixed {
            self.place.examine_sectors(block, scratch)
        } else {
            match self.place.examine(block, scratch, own) {
                Ok(found) => return self.check_age(found, own),
                Err(fault) => Err(fault),
            }
        };
        result.or_else(|fault| self.judge(fault))
    }

    /// A part of a file that perhaps was never written may be empty.
    fn judge(&self, fault: Fault) -> Result<(), Wrong> {
        let is_written = matches!(self.known, Known::Write(_)) && !self.was_empty;
        let may_be_empty = self.floor.is_none() && !is_written;
        match fault {
            Fault::Zeros if may_be_empty => Ok(()),
            // Somebody is filling it just now.
            Fault::Torn { .. } if may_be_empty && self.is_racing => Ok(()),
            fault => Err(Wrong::Block(fault)),
        }
    }

    #[inline]
    fn check_age(&self, found: Generation, own: Option<Generation>) -> Result<(), Wrong> {
        let expected = match (own, self.floor) {
            (Some(own), _) if own != found => Expected::Write(own),
            (None, Some(floor)) if found.step() < floor => Expected::Step(floor),
            _ => return Ok(()),
        };
        Err(Wrong::Stale { found, expected })
    }
}

impl<L: Lane> Lane for VerifyingLane<L> {
    fn now(&self) -> Ns {
        self.inner.now()
    }

    fn submit_batch(
        &mut self,
        _: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        // What is not taken comes again, with a new generation.
        let room = self.slots.len().saturating_sub(self.in_flight).max(1);
        let batch = &batch[..batch.len().min(room)];
        let mut slots = Vec::with_capacity(batch.len());
        for submission in batch {
            let mut slot = self.slot_of(&submission.op);
            if slot.kind == Kind::Write {
                self.sequence = self.sequence.saturating_add(1);
                slot.sequence = self.sequence;
                self.compose(submission.token, &slot);
            }
            self.begin(submission.token, &slot);
            slots.push(slot);
        }
        let before = done.len();
        let now = self.inner.now();
        let accepted = self.inner.submit_batch(now, batch, done);
        for (index, (submission, slot)) in batch.iter().zip(slots).enumerate() {
            self.note(submission.token, slot, index < accepted.total());
        }
        self.finish(&mut done[before..]);
        accepted
    }

    fn kick(&mut self) -> Result<(), Error> {
        self.inner.kick()
    }

    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        let before = done.len();
        let result = self.inner.reap(min, until, done);
        self.finish(&mut done[before..]);
        result
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.inner.buffer(token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        self.inner.sleep_until(instant);
    }

    fn time_submissions(&mut self, group: u32) {
        self.inner.time_submissions(group);
    }

    fn submission_ns(&self, token: Token) -> Ns {
        self.inner.submission_ns(token)
    }
}

#[cfg(test)]
mod tests;
