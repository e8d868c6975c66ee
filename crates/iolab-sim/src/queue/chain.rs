//! Bios that a request carries, and bios that were split into several pieces.

use crate::api::bio::{BioId, Ended, Status};
use crate::api::request::RequestId;

/// Owner that is told when a piece of work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A whole bio.
    Bio(BioId),
    /// A piece of a split bio: index into the table of splits.
    Split(u32),
    /// The data step of a flush sequence: index into the table of sequences.
    Flush(u32),
}

const END: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    owner: Owner,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Split {
    bio: BioId,
    pieces: u32,
    /// Result of the first piece that failed, if one did.
    status: Status,
}

/// The owners of every request, as singly linked lists in one table.
#[derive(Debug, Default)]
pub struct Chains {
    ends: Vec<Ends>,
    links: Vec<Link>,
    free_links: Vec<u32>,
    splits: Vec<Split>,
    free_splits: Vec<u32>,
}

impl Chains {
    /// Starts a request's list with its first owner.
    pub fn start(&mut self, id: RequestId, owner: Owner) {
        let link = self.link(owner);
        if self.ends.len() <= id.index() {
            self.ends.resize(id.index() + 1, Ends { head: END, tail: END });
        }
        self.ends[id.index()] = Ends { head: link, tail: link };
    }

    fn link(&mut self, owner: Owner) -> u32 {
        let link = Link { owner, next: END };
        if let Some(index) = self.free_links.pop() {
            self.links[index as usize] = link;
            return index;
        }
        self.links.push(link);
        self.links.len() as u32 - 1
    }

    /// Adds an owner to a request.
    pub fn add(&mut self, id: RequestId, owner: Owner) {
        let link = self.link(owner);
        let ends = &mut self.ends[id.index()];
        self.links[ends.tail as usize].next = link;
        ends.tail = link;
    }

    /// Moves all owners of `absorbed` to `survivor`.
    pub fn join(&mut self, survivor: RequestId, absorbed: RequestId) {
        let lost = self.ends[absorbed.index()];
        let ends = &mut self.ends[survivor.index()];
        self.links[ends.tail as usize].next = lost.head;
        ends.tail = lost.tail;
    }

    /// Takes a request's next owner; the list ends with `None`.
    pub fn take(&mut self, id: RequestId) -> Option<Owner> {
        let ends = &mut self.ends[id.index()];
        if ends.head == END {
            return None;
        }
        let index = ends.head;
        let Link { owner, next } = self.links[index as usize];
        ends.head = next;
        self.free_links.push(index);
        Some(owner)
    }

    /// The first owner of a request.
    pub fn first(&self, id: RequestId) -> Option<Owner> {
        self.links.get(self.ends[id.index()].head as usize).map(|link| link.owner)
    }

    /// The owners of a request, the first one first.
    pub fn owners(&self, id: RequestId) -> impl Iterator<Item = Owner> {
        let mut at = self.ends[id.index()].head;
        core::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            at = link.next;
            Some(link.owner)
        })
    }

    /// Notes that a bio was cut into pieces.
    pub fn split(&mut self, bio: BioId, pieces: u32) -> Owner {
        let split = Split { bio, pieces, status: Ok(()) };
        if let Some(index) = self.free_splits.pop() {
            self.splits[index as usize] = split;
            return Owner::Split(index);
        }
        self.splits.push(split);
        Owner::Split(self.splits.len() as u32 - 1)
    }

    /// One piece of a split bio is done; answers with the bio when it was the last.
    pub fn piece_done(&mut self, index: u32, status: Status) -> Option<Ended> {
        let split = &mut self.splits[index as usize];
        split.pieces -= 1;
        split.status = split.status.and(status);
        if split.pieces > 0 {
            return None;
        }
        let Split { bio: id, status, .. } = *split;
        self.free_splits.push(index);
        Some(Ended { id, status })
    }
}
