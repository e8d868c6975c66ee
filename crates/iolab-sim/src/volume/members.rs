//! The members of a volume: what goes down to them, what waits for a place, what came back.
//!
//! Cuts transfers to what a member takes in one command (`max_transfer`, the member's own limits),
//! keeps to its depth, and counts. Within an instant members are served in the order of their
//! numbers. Left out: if one member finishes something at the very instant at which another has a
//! timer, the timer's work is not held back until the layer above has reacted.

use std::collections::VecDeque;

use iolab_model::error::Errno;
use iolab_model::{Ns, Sector};

use super::slots::Slots;
use super::transfer::Transfer;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, Status, Submitter};
use crate::api::layer::{Incident, Info, Layer, WriteCache, reason};

/// Command of a transfer, with its owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// Read, write or discard.
    pub(super) operation: Operation,
    /// Hints and promises, passed down.
    pub(super) flags: Flags,
    /// Submitter, passed down.
    pub(super) submitter: Submitter,
    /// Pieces of memory of so many sectors, as the bio has them.
    pub(super) memory: (u32, u32),
}

impl Command {
    /// The same as the bio's, without a flush in front: that is the volume's own step.
    pub(super) const fn of(bio: &Bio) -> Self {
        Self {
            operation: bio.operation,
            flags: bio.flags.without(Flags::PREFLUSH),
            submitter: bio.submitter,
            memory: (bio.segments, bio.sectors),
        }
    }

    /// A read on behalf of the same submitter; durability means nothing to it.
    pub(super) const fn to_read(self) -> Self {
        Self {
            operation: Operation::Read,
            flags: self.flags.without(Flags::FUA),
            submitter: self.submitter,
            memory: self.memory,
        }
    }
}

/// A command that has ended at a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished<O> {
    /// Owner of the command.
    pub(super) owner: O,
    /// Place of the transfer; no sectors for a flush.
    pub(super) place: Transfer,
    /// Result of the command.
    pub(super) status: Status,
}

/// Presence of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Present,
    /// A write failed there: nothing new is sent, commands on their way still end.
    Failed,
    /// Lost since before the beginning.
    Absent,
}

/// A member that was lost while it was in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    at: Ns,
    member: u16,
    errno: Errno,
}

#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    commands: u64,
    sectors: u64,
}

struct Member {
    layer: Box<dyn Layer>,
    info: Info,
    presence: Presence,
    in_flight: u32,
    waiting: VecDeque<Bio>,
    reads: Traffic,
    writes: Traffic,
    flushes: u64,
}

/// All members; `O` names who waits for a command.
pub(super) struct Members<O> {
    list: Vec<Member>,
    sent: Slots<(O, Transfer)>,
    losses: Vec<Loss>,
    /// Reads that failed and were answered by others: how many, and when the first was.
    repaired: (u64, Ns),
    due: Vec<Ns>,
    next: Ns,
    transfer_max: u32,
    scratch: Vec<Ended>,
}

impl<O: Copy> Members<O> {
    /// Every member, to be told something.
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Box<dyn Layer>> {
        self.list.iter_mut().map(|member| &mut member.layer)
    }

    /// Takes the members; commands are at most `transfer_max` sectors long.
    pub(super) fn new(layers: Vec<Box<dyn Layer>>, transfer_max: u32) -> Self {
        let due: Vec<Ns> = layers.iter().map(|layer| layer.next_event()).collect();
        let next = due.iter().copied().min().unwrap_or(Ns::MAX);
        let list = layers.into_iter().map(Member::new).collect();
        Self {
            list,
            sent: Slots::default(),
            losses: Vec::new(),
            repaired: (0, Ns(0)),
            due,
            next,
            transfer_max,
            scratch: Vec::new(),
        }
    }

    /// Number of members, lost ones included.
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Declares a member lost: nothing may be sent there, flushes leave it out.
    pub(super) fn lose(&mut self, lost: Option<u16>) {
        if let Some(member) = lost {
            self.list[usize::from(member)].presence = Presence::Absent;
        }
    }

    /// A write has failed: from now on the member is left out, as md does with a faulty one.
    pub(super) fn fail(&mut self, at: Ns, member: u16, errno: Errno) {
        let presence = &mut self.list[usize::from(member)].presence;
        if *presence == Presence::Present {
            *presence = Presence::Failed;
            self.losses.push(Loss { at, member, errno });
        }
    }

    /// A read has failed, and what it asked for is found elsewhere.
    pub(super) const fn note_read_elsewhere(&mut self, now: Ns) {
        if self.repaired.0 == 0 {
            self.repaired.1 = now;
        }
        self.repaired.0 += 1;
    }

    /// Losses and repaired reads, told by the volume called `layout`; then those of the members.
    pub(super) fn incidents(&self, layout: &str, list: &mut Vec<Incident>) {
        list.extend(self.losses.iter().map(|&Loss { at, member, errno }| Incident {
            code: "member_lost",
            at,
            message: format!(
                "member {member} of the {layout} volume failed a write ({}) and was dropped: the \
                 volume runs degraded from then on",
                reason(errno)
            ),
            hint: "what follows is measured on a degraded volume",
        }));
        let (count, at) = self.repaired;
        if count > 0 {
            let reads = if count == 1 { "read that failed was" } else { "reads that failed were" };
            list.push(Incident {
                code: "reads_repaired",
                at,
                message: format!(
                    "{count} {reads} answered by other members of the {layout} volume"
                ),
                hint: "such a read took the time of several",
            });
        }
        self.list.iter().for_each(|member| member.layer.incidents(list));
    }

    /// Tell whether the member can be used.
    pub(super) fn is_present(&self, member: u16) -> bool {
        self.list[usize::from(member)].presence == Presence::Present
    }

    /// Tell whether the member has a head that must travel.
    pub(super) fn is_rotational(&self, member: u16) -> bool {
        self.list[usize::from(member)].info.is_rotational
    }

    /// Commands at the member or waiting for it.
    pub(super) fn load(&self, member: u16) -> usize {
        let member = &self.list[usize::from(member)];
        member.in_flight as usize + member.waiting.len()
    }

    /// Promises of the volume as a whole, given its capacity.
    pub(super) fn info(&self, capacity: Sector) -> Info {
        let infos = || self.list.iter().map(|member| member.info);
        Info {
            capacity,
            depth: u32::MAX,
            is_rotational: infos().any(|info| info.is_rotational),
            write_cache: infos().map(|info| info.write_cache).fold(WriteCache::Through, weaker),
            max_sectors: u32::MAX,
            chunk_sectors: 0,
            can_discard: infos().all(|info| info.can_discard),
        }
    }

    /// Sends a transfer; answers with the number of commands, each of which ends once.
    pub(super) fn send(&mut self, now: Ns, transfer: Transfer, command: Command, owner: O) -> u32 {
        let presence = self.list[usize::from(transfer.member)].presence;
        debug_assert!(presence != Presence::Absent, "member {} is lost", transfer.member);
        let mut sector = transfer.sector;
        let mut commands = 0;
        while sector < transfer.end() {
            let info = &self.list[usize::from(transfer.member)].info;
            let left = (transfer.end().0 - sector.0) as u32;
            let sectors = left.min(self.transfer_max).min(room_at(info, sector));
            let segments = command.segments_of(sectors);
            let bio = Bio { sectors, segments, ..command.bio(sector) };
            self.submit(now, transfer.member, bio, owner);
            sector.0 += u64::from(sectors);
            commands += 1;
        }
        commands
    }

    /// Sends a flush to every present member; answers with their number.
    pub(super) fn flush(&mut self, now: Ns, submitter: Submitter, owner: O) -> u32 {
        let (operation, memory) = (Operation::Flush, (0, 0));
        let command = Command { operation, flags: Flags::SYNC, submitter, memory };
        let mut commands = 0;
        for member in 0..self.list.len() as u16 {
            if self.is_present(member) {
                self.submit(now, member, command.bio(Sector(0)), owner);
                commands += 1;
            }
        }
        commands
    }

    fn submit(&mut self, now: Ns, index: u16, mut bio: Bio, owner: O) {
        let place = Transfer { member: index, sector: bio.sector, sectors: bio.sectors };
        bio.id = BioId(self.sent.add((owner, place)));
        let member = &mut self.list[usize::from(index)];
        member.count(&bio);
        if member.in_flight < member.info.depth && member.waiting.is_empty() {
            member.in_flight += 1;
            member.layer.submit(now, &bio);
            self.note_due(index);
        } else {
            member.waiting.push_back(bio);
        }
    }

    fn note_due(&mut self, index: u16) {
        let due = self.list[usize::from(index)].layer.next_event();
        self.due[usize::from(index)] = due;
        self.next = self.due.iter().copied().min().unwrap_or(Ns::MAX);
    }

    /// Time of a member's next event.
    pub(super) const fn next_event(&self) -> Ns {
        self.next
    }

    /// Lets every member that is due do its work; appends what has ended.
    pub(super) fn advance(&mut self, now: Ns, finished: &mut Vec<Finished<O>>) {
        if self.next > now {
            return;
        }
        for index in 0..self.list.len() as u16 {
            if self.due[usize::from(index)] > now {
                continue;
            }
            let member = &mut self.list[usize::from(index)];
            member.layer.advance(now, &mut self.scratch);
            member.in_flight -= self.scratch.len() as u32;
            for Ended { id, status } in self.scratch.drain(..) {
                let (owner, place) = self.sent[id.0];
                finished.push(Finished { owner, place, status });
                self.sent.remove(id.0);
            }
            member.fill(now);
            self.note_due(index);
        }
    }

    /// Commands and bytes of each member, and what the members counted themselves.
    pub(super) fn counters(&self) -> Vec<(String, f64)> {
        let size = Sector::SIZE.0;
        let mut counted = Vec::new();
        for (index, member) in self.list.iter().enumerate() {
            let own = [
                ("reads", member.reads.commands),
                ("writes", member.writes.commands),
                ("read_bytes", member.reads.sectors * size),
                ("write_bytes", member.writes.sectors * size),
                ("flushes", member.flushes),
            ];
            counted
                .extend(own.map(|(name, value)| (format!("member.{index}.{name}"), value as f64)));
            let below = member.layer.counters().into_iter();
            counted.extend(below.map(|(name, value)| (format!("member.{index}.{name}"), value)));
        }
        counted
    }
}

impl Member {
    fn new(layer: Box<dyn Layer>) -> Self {
        Self {
            info: layer.info(),
            layer,
            presence: Presence::Present,
            in_flight: 0,
            waiting: VecDeque::new(),
            reads: Traffic::default(),
            writes: Traffic::default(),
            flushes: 0,
        }
    }

    fn count(&mut self, bio: &Bio) {
        let traffic = match bio.operation {
            Operation::Read => &mut self.reads,
            Operation::Write | Operation::Discard => &mut self.writes,
            Operation::Flush => {
                self.flushes += 1;
                return;
            }
        };
        traffic.commands += 1;
        traffic.sectors += u64::from(bio.sectors);
    }

    /// Starts what waited for a place, first come first served.
    fn fill(&mut self, now: Ns) {
        while self.in_flight < self.info.depth {
            let Some(bio) = self.waiting.pop_front() else { return };
            self.in_flight += 1;
            self.layer.submit(now, &bio);
        }
    }
}

impl Command {
    /// Pieces of memory of a part; 0: one for each page.
    const fn segments_of(self, sectors: u32) -> u32 {
        let (segments, of) = self.memory;
        if segments == 0 || of == 0 {
            return 0;
        }
        (sectors as u64 * segments as u64).div_ceil(of as u64) as u32
    }

    const fn bio(self, sector: Sector) -> Bio {
        let Self { operation, flags, submitter, .. } = self;
        Bio { id: BioId(0), operation, sector, sectors: 0, flags, submitter, segments: 0 }
    }
}

/// Sectors from here that fit one command of a layer.
fn room_at(info: &Info, sector: Sector) -> u32 {
    match info.chunk_sectors {
        0 => info.max_sectors,
        chunk => info.max_sectors.min(chunk - (sector.0 % u64::from(chunk)) as u32),
    }
}

/// Promise that holds when both are below.
const fn weaker(a: WriteCache, b: WriteCache) -> WriteCache {
    match (a, b) {
        (WriteCache::Through, other) | (other, WriteCache::Through) => other,
        (WriteCache::Back { has_fua: a }, WriteCache::Back { has_fua: b }) => {
            WriteCache::Back { has_fua: a && b }
        }
    }
}
