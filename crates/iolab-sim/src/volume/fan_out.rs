//! The state machine of volumes without parity: map a bio, send the pieces, wait for the last.
//!
//! A write that asks for a flush in front first flushes all members, then writes, as Linux md does;
//! a flush goes to all members. What differs between layouts is where pieces go ([`Placement`]).
//!
//! Source: Linux drivers/md/md.c, raid0.c, raid1.c (behaviour).

use core::ops::Range;

use iolab_model::error::Errno;
use iolab_model::{Ns, Sector, TraceEvent};

use super::members::{Command, Finished, Members};
use super::slots::Slots;
use super::transfer::{Transfer, Transfers};
use crate::api::bio::{Bio, Ended, Flags, Operation, ProcessId, Status};
use crate::api::layer::{Incident, Info, Layer};

/// Targets of the pieces of a bio: what a layout decides.
pub(super) trait Placement {
    /// Name of the layout, for messages.
    const NAME: &'static str;

    /// Size of the volume.
    fn capacity(&self) -> Sector;

    /// Appends the transfers of a read, write or discard.
    fn place(&mut self, bio: &Bio, members: &Members<Ordered>, transfers: &mut Transfers);

    /// Tell whether a write is done with the first member that has finished its part.
    fn is_done_with_first(&self) -> bool {
        false
    }

    /// Places that one of a member is computed from; absent: there is no parity, or too little is
    /// left.
    fn computed_from(&self, place: Transfer, members: &Members<Ordered>) -> Option<Vec<Transfer>> {
        let _ = (place, members);
        None
    }

    /// Members that hold the same as this one, itself included.
    fn copies_of(&self, member: u16) -> Range<u16> {
        member..member + 1
    }
}

/// A command as its parent knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    parent: u32,
    /// Copies that were asked for the same sectors before.
    tries: u16,
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    bio: Bio,
    pending: u32,
    is_flushing: bool,
    is_acknowledged: bool,
    /// The first failure that no copy made good.
    status: Status,
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
    members: Members<Ordered>,
    parents: Slots<Parent>,
    /// Commands still out per parent and member; used when the first member decides.
    left: Vec<u32>,
    transfers: Transfers,
    finished: Vec<Finished<Ordered>>,
    above: Above,
}

impl<P: Placement> FanOut<P> {
    /// A volume that places as told.
    pub(super) fn new(placement: P, members: Members<Ordered>) -> Self {
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
            let ordered = Ordered { parent: owner, tries: 0 };
            let commands = self.members.send(now, transfer, Command::of(&bio), ordered);
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
        let ordered = Ordered { parent: owner, tries: 0 };
        let pending = self.members.flush(now, submitter, ordered);
        let parent = &mut self.parents[owner];
        (parent.pending, parent.is_flushing) = (pending, true);
    }

    /// A command has failed: reads try another copy, a failed write costs a mirror its member.
    ///
    /// Answers with the errno that the parent has to take, if no copy makes it good. Source: Linux
    /// drivers/md/raid1.c, `raid1_end_read_request`, `raid1_end_write_request`, `raid1_error` (the
    /// last member of a mirror is never dropped; what fails there is told as EIO); raid0.c hands
    /// the status on. Left out: rewriting a bad sector from the other copy, lists of bad blocks.
    fn failed(&mut self, now: Ns, command: Finished<Ordered>, errno: Errno) -> Status {
        let Ordered { parent, tries } = command.owner;
        let (bio, member) = (self.parents[parent].bio, command.place.member);
        let copies = self.placement.copies_of(member);
        let is_other = |&copy: &u16| copy != member && self.members.is_present(copy);
        if let Some(others) = self.placement.computed_from(command.place, &self.members) {
            return self.computed(now, command, others);
        }
        if copies.len() == 1 {
            return Err(errno);
        }
        let Some(other) = (member..copies.end).chain(copies.start..member).find(is_other) else {
            return Err(Errno::EIO);
        };
        match bio.operation {
            // md chains a flush to all members and hands any failure on.
            _ if command.place.sectors == 0 => Err(errno),
            Operation::Read if usize::from(tries) + 1 < copies.len() => {
                self.members.note_read_elsewhere(now);
                let place = Transfer { member: other, ..command.place };
                let ordered = Ordered { parent, tries: tries + 1 };
                let commands = self.members.send(now, place, Command::of(&bio), ordered);
                self.parents[parent].pending += commands;
                Ok(())
            }
            Operation::Read => Err(Errno::EIO),
            Operation::Write => {
                self.members.fail(now, member, errno);
                Ok(())
            }
            // A discard is a hint.
            Operation::Discard | Operation::Flush => Ok(()),
        }
    }

    /// A command of a member has failed whose part others have parity of: a read asks them, after a
    /// failed write the member is left out.
    fn computed(&mut self, now: Ns, command: Finished<Ordered>, others: Vec<Transfer>) -> Status {
        let Ordered { parent, tries } = command.owner;
        let bio = self.parents[parent].bio;
        let errno = command.status.err().unwrap_or(Errno::EIO);
        match bio.operation {
            _ if command.place.sectors == 0 => Err(errno),
            Operation::Read if tries > 0 => Err(Errno::EIO),
            Operation::Read => {
                self.members.note_read_elsewhere(now);
                for place in others {
                    let ordered = Ordered { parent, tries: 1 };
                    let commands = self.members.send(now, place, Command::of(&bio), ordered);
                    self.parents[parent].pending += commands;
                }
                Ok(())
            }
            Operation::Write => {
                self.members.fail(now, command.place.member, errno);
                Ok(())
            }
            Operation::Discard | Operation::Flush => Ok(()),
        }
    }

    fn finish(&mut self, now: Ns, finished: Finished<Ordered>, done: &mut Vec<Ended>) {
        let owner = finished.owner.parent;
        if let Err(errno) = finished.status {
            let status = self.failed(now, finished, errno);
            let parent = &mut self.parents[owner];
            parent.status = parent.status.and(status);
        }
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
                let index =
                    owner as usize * self.members.len() + usize::from(finished.place.member);
                self.left[index] -= 1;
                self.left[index] == 0 && finished.status.is_ok()
            };
        if is_enough && !parent.is_acknowledged {
            parent.is_acknowledged = true;
            done.push(Ended { id: parent.bio.id, status: parent.status });
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
            status: Ok(()),
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

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
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

    fn record_events(&mut self, queues: &mut u16) {
        self.members.each().for_each(|member| member.record_events(queues));
    }

    fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        self.members.each().for_each(|member| member.take_events(events));
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        self.members.incidents(P::NAME, list);
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
