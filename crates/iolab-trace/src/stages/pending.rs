//! Bios between queue and completion, found by the sectors that they cover.

use std::collections::BTreeMap;

/// Time of a step that has not been seen.
pub const NEVER: u64 = u64::MAX;
/// End of a chain.
const NONE: u32 = u32::MAX;
/// Bios that are remembered at once, over all devices; the oldest places are given up first.
pub const PENDING_MAX: usize = 1 << 15;
/// Bios that begin at one sector.
const CHAIN_MAX: usize = 64;
/// Bios of one request that are looked at; a request of 4 MiB has 1024 pages.
const BIOS_MAX: usize = 2048;

/// One bio.
#[derive(Clone, Copy)]
pub struct Bio {
    /// First sector.
    pub start: u64,
    /// First sector behind it.
    pub end: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Device, by its number in the pairing.
    pub device: u32,
    /// Group, by its number in the pairing.
    pub group: u32,
    /// Process, by its number in the pairing.
    pub process: u32,
    /// Time at which it entered the queue; [`NEVER`] where the trace begins with its issue.
    pub queued_ns: u64,
    /// Time at which its process began to wait for a request.
    pub slept_ns: u64,
    /// Time at which it got a request.
    pub got_ns: u64,
    /// Time at which that was inserted into the scheduler.
    pub inserted_ns: u64,
    /// Time at which it was merged.
    pub merged_ns: u64,
    /// Time at which its request was issued last.
    pub issued_ns: u64,
    /// True if it stands for its request in the count of those in flight.
    pub is_head: bool,
    next: u32,
}

impl Bio {
    /// Bio that enters the queue.
    pub const fn new(start: u64, end: u64, queued_ns: u64) -> Self {
        Self {
            start,
            end,
            bytes: 0,
            device: 0,
            group: 0,
            process: 0,
            queued_ns,
            slept_ns: NEVER,
            got_ns: NEVER,
            inserted_ns: NEVER,
            merged_ns: NEVER,
            issued_ns: NEVER,
            is_head: false,
            next: NONE,
        }
    }

    /// Tell whether it was seen to enter the queue.
    pub const fn has_queued(&self) -> bool {
        self.queued_ns != NEVER
    }
}

/// The places of all bios.
#[derive(Default)]
pub struct Pending {
    bios: Vec<Bio>,
    free: Vec<u32>,
    cursor: usize,
}

/// First bio at each sector of one device.
pub type Starts = BTreeMap<u64, u32>;

impl Pending {
    /// The bio at a place.
    #[inline]
    pub fn get(&mut self, at: u32) -> &mut Bio {
        &mut self.bios[at as usize]
    }

    /// All bios of a device.
    pub fn all<'a>(&'a self, starts: &'a Starts) -> impl Iterator<Item = &'a Bio> {
        starts.values().flat_map(|first| self.chain(*first)).map(|at| &self.bios[at as usize])
    }

    /// Tell whether nothing can be added before something is given up.
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.bios.len() == PENDING_MAX
    }

    /// The place to give up next, which is among the oldest.
    pub fn oldest(&mut self) -> u32 {
        let at = self.cursor;
        self.cursor = (at + 1) % self.bios.len().max(1);
        at as u32
    }

    /// Adds a bio behind those that begin at the same sector; false if those are too many.
    #[inline]
    pub fn insert(&mut self, bio: Bio, starts: &mut Starts) -> bool {
        let at = self.free.pop().unwrap_or(self.bios.len() as u32);
        if at as usize == self.bios.len() {
            self.bios.push(bio);
        } else {
            self.bios[at as usize] = bio;
        }
        let first = *starts.entry(bio.start).or_insert(at);
        if first == at {
            return true;
        }
        let (length, last) = self.chain(first).fold((0, first), |(n, _), link| (n + 1, link));
        if length >= CHAIN_MAX {
            self.free.push(at);
            return false;
        }
        self.bios[last as usize].next = at;
        true
    }

    /// Takes a bio out.
    #[inline]
    pub fn remove(&mut self, at: u32, starts: &mut Starts) {
        let Bio { start, next, .. } = self.bios[at as usize];
        self.free.push(at);
        let Some(first) = starts.get_mut(&start) else { return };
        if *first == at {
            if next == NONE {
                starts.remove(&start);
            } else {
                *first = next;
            }
            return;
        }
        let first = *first;
        let before = self.chain(first).find(|before| self.bios[*before as usize].next == at);
        if let Some(before) = before {
            self.bios[before as usize].next = next;
        }
    }

    /// Takes all bios of a device out; how many these were.
    pub fn clear(&mut self, starts: &mut Starts) -> u64 {
        let firsts: Vec<u32> = std::mem::take(starts).into_values().collect();
        let before = self.free.len();
        for first in firsts {
            let chain: Vec<u32> = self.chain(first).collect();
            self.free.extend(chain);
        }
        (self.free.len() - before) as u64
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |at: &u32| Some(self.bios[*at as usize].next).filter(|next| *next != NONE);
        std::iter::successors(Some(first), next).take(CHAIN_MAX)
    }

    /// The first bio that covers a sector and for which `is_wanted` holds, if one does; otherwise
    /// the first that covers it.
    #[inline]
    pub fn covering(
        &self,
        starts: &Starts,
        sector: u64,
        is_wanted: impl Fn(&Bio) -> bool,
    ) -> Option<u32> {
        let (_, first) = starts.range(..=sector).next_back()?;
        let covers = |at: &u32| {
            let bio = &self.bios[*at as usize];
            bio.start == sector || sector < bio.end
        };
        let wanted =
            self.chain(*first).filter(covers).find(|at| is_wanted(&self.bios[*at as usize]));
        wanted.or_else(|| self.chain(*first).find(covers))
    }

    /// The bios that lie within a range of sectors, at most one per sector in which they begin: of
    /// those that begin together the first for which `is_wanted` holds, or the first.
    #[inline]
    pub fn within(
        &self,
        starts: &Starts,
        (start, end): (u64, u64),
        is_wanted: impl Fn(&Bio) -> bool,
        found: &mut Vec<u32>,
    ) {
        found.clear();
        for (_, first) in starts.range(start..end.max(start)).take(BIOS_MAX) {
            let bio = &self.bios[*first as usize];
            if bio.next == NONE {
                if bio.end <= end {
                    found.push(*first);
                }
                continue;
            }
            let fits = |at: &u32| self.bios[*at as usize].end <= end;
            let wanted =
                self.chain(*first).filter(fits).find(|at| is_wanted(&self.bios[*at as usize]));
            found.extend(wanted.or_else(|| self.chain(*first).find(fits)));
        }
    }
}
