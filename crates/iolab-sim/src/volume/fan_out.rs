//! The state machine of volumes without parity: map a bio, send the pieces, wait for the last.
//!
//! A write that asks for a flush in front first flushes all members, then writes, as Linux md does;
//! a flush goes to all members. What differs between layouts is where pieces go ([`Placement`]).
//!
//! Source: Linux drivers/md/md.c, raid0.c, raid1.c (behaviour).

use iolab_model::{Ns, Sector, TraceEvent};

use super::members::{Command, Finished, Members};
use super::slots::Slots;
use super::transfer::Transfers;
use crate::api::bio::{Bio, BioId, Flags, Operation, ProcessId};
use crate::api::layer::{Info, Layer};

/// Where the pieces of a bio go: what a layout decides.
pub(super) trait Placement {
    /// Size of the volume.
    fn capacity(&self) -> Sector;

    /// Appends the transfers of a read, write or discard.
    fn place(&mut self, bio: &Bio, members: &Members<u32>, transfers: &mut Transfers);

    /// Whether a write is done with the first member that has finished its part.
    fn is_done_with_first(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    bio: Bio,
    pending: u32,
    is_flushing: bool,
    is_acknowledged: bool,
}

/// Sectors asked for from above, and sectors of further copies.
#[derive(Clone, Copy, Debug, Default)]
struct Above {
    read: u64,
    written: u64,
    copied: u64,
}

/// A volume without parity.
pub(super) struct FanOut<P> {
    placement: P,
    info: Info,
    members: Members<u32>,
    parents: Slots<Parent>,
    /// Commands still out per parent and member; used when the first member decides.
    left: Vec<u32>,
    transfers: Transfers,
    finished: Vec<Finished<u32>>,
    above: Above,
}

impl<P: Placement> FanOut<P> {
    /// A volume that places as told.
    pub(super) fn new(placement: P, members: Members<u32>) -> Self {
        Self {
            info: members.info(placement.capacity()),
            placement,
            members,
            parents: Slots::default(),
            left: Vec::new(),
            transfers: Transfers::default(),
            finished: Vec::new(),
            above: Above::default(),
        }
    }

    fn start(&mut self, now: Ns, owner: u32) {
        let bio = self.parents[owner].bio;
        self.transfers.clear();
        self.placement.place(&bio, &self.members, &mut self.transfers);
        let mut pending = 0;
        let watches = bio.operation.is_write() && self.placement.is_done_with_first();
        for &transfer in self.transfers.as_slice() {
            let commands = self.members.send(now, transfer, Command::of(&bio), owner);
            pending += commands;
            if watches {
                let index = owner as usize * self.members.len() + usize::from(transfer.member);
                self.left.resize(self.left.len().max(index + 1), 0);
                self.left[index] = commands;
            }
        }
        let sectors = self.transfers.sectors();
        debug_assert!(sectors >= u64::from(bio.sectors), "a part of {bio:?} went nowhere");
        self.above.copied += sectors - u64::from(bio.sectors);
        let parent = &mut self.parents[owner];
        (parent.pending, parent.is_flushing) = (pending, false);
    }

    fn start_flush(&mut self, now: Ns, owner: u32) {
        let submitter = self.parents[owner].bio.submitter;
        let pending = self.members.flush(now, submitter, owner);
        let parent = &mut self.parents[owner];
        (parent.pending, parent.is_flushing) = (pending, true);
    }

    fn finish(&mut self, now: Ns, finished: Finished<u32>, done: &mut Vec<BioId>) {
        let owner = finished.owner;
        let parent = &mut self.parents[owner];
        parent.pending -= 1;
        let is_last = parent.pending == 0;
        if parent.is_flushing && parent.bio.sectors > 0 {
            if is_last {
                self.start(now, owner);
            }
            return;
        }
        let watches = self.placement.is_done_with_first() && parent.bio.operation.is_write();
        let is_enough = is_last
            || watches && !parent.is_flushing && {
                let index = owner as usize * self.members.len() + usize::from(finished.member);
                self.left[index] -= 1;
                self.left[index] == 0
            };
        if is_enough && !parent.is_acknowledged {
            parent.is_acknowledged = true;
            done.push(parent.bio.id);
        }
        if is_last {
            self.parents.remove(owner);
        }
    }
}

impl<P: Placement> Layer for FanOut<P> {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        debug_assert!(bio.end() <= self.info.capacity, "{bio:?} is beyond the end");
        match bio.operation {
            Operation::Read => self.above.read += u64::from(bio.sectors),
            _ => self.above.written += u64::from(bio.sectors),
        }
        let owner = self.parents.add(Parent {
            bio: *bio,
            pending: 0,
            is_flushing: false,
            is_acknowledged: false,
        });
        if bio.operation == Operation::Flush || bio.flags.contains(Flags::PREFLUSH) {
            self.start_flush(now, owner);
        } else {
            self.start(now, owner);
        }
    }

    fn next_event(&self) -> Ns {
        self.members.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<BioId>) {
        let mut finished = core::mem::take(&mut self.finished);
        self.members.advance(now, &mut finished);
        for one in finished.drain(..) {
            self.finish(now, one, done);
        }
        self.finished = finished;
    }

    fn age(&mut self) {
        self.members.each().for_each(|member| member.age());
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.members.each().for_each(|member| member.exited(now, process));
    }

    fn record_events(&mut self) {
        self.members.each().for_each(|member| member.record_events());
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        self.members.each().for_each(|member| member.take_events(events));
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let size = Sector::SIZE.0;
        let mut list: Vec<(String, f64)> = [
            ("read_bytes", self.above.read * size),
            ("write_bytes", self.above.written * size),
            ("copy_bytes", self.above.copied * size),
        ]
        .map(|(name, value)| (name.to_owned(), value as f64))
        .into();
        list.extend(self.members.counters());
        list
    }
}
