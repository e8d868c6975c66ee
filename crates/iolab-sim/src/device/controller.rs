//! A storage controller's own caches in front of any layer: read-ahead and a write cache that
//! survives a power cut.
//!
//! Modelled: time to answer from memory, the host link, read segments with read-ahead for
//! sequential streams, protected write cache with coalescing and destaging in sector order.
//! Left out: mirroring between two controllers, battery learning, adaptive cache partitions, and
//! the time that the controller's processor needs beside the fixed overhead. The layer below is
//! taken to be without a volatile write cache: it is never flushed while the write cache is on.
//!
//! Source: iolab models specification 5.2 (NVRAM: destage when idle or above 80 % full); Menon and
//! Cortney, "The architecture of a fault-tolerant cached RAID controller" (ISCA 1993), for the
//! mechanism.

mod parameters;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use iolab_model::{Ns, Sector};

use self::parameters::Parameters;
use super::disk::read_cache::{Lookup, ReadCache};
use super::disk::write_cache::{Extent, WriteCache};
use crate::Calendar;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation, ProcessId, Submitter};
use crate::api::layer::{Info, Layer, WriteCache as Durability};
use crate::error::SimError;
use crate::profile::Profile;

/// Reason why a bio was sent below.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// The host's own bio.
    Host(Bio),
    /// Read-ahead for a segment.
    Ahead { segment: usize, extent: Extent },
    /// Dirty data.
    Destage(Extent),
}

/// Request that the controller finishes by itself.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Done(BioId),
    Cached(BioId, Extent),
}

/// Sectors and events counted.
#[derive(Clone, Debug, Default)]
struct Statistics {
    read: u64,
    written: u64,
    hit: u64,
    fetched: u64,
    ahead: u64,
    destaged: u64,
    through: u64,
    absorbed: u64,
    hits: u64,
    destages: u64,
    held_writes: u64,
}

/// Caches in front of a layer.
pub struct Controller {
    parameters: Parameters,
    below: Box<dyn Layer>,
    below_info: Info,
    finished_below: Vec<Ended>,
    sent: Vec<Purpose>,
    free: Vec<u32>,
    /// Reads and writes of the host below, all bios below.
    host_below: u32,
    all_below: u32,
    backlog: VecDeque<Purpose>,
    answers: Calendar<Answer>,
    link_free: Ns,
    read_cache: ReadCache,
    /// Per segment: where the stream's next read would start.
    expected: Vec<u64>,
    /// Per segment: a read-ahead is under way.
    is_filling: Vec<bool>,
    /// Reads that wait for a read-ahead.
    waiting: Vec<(usize, Bio)>,
    write_cache: WriteCache,
    held: VecDeque<Bio>,
    elevator: u64,
    destages_below: u32,
    last_host: Ns,
    wake: Ns,
    statistics: Statistics,
}

impl core::fmt::Debug for Controller {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Controller")
            .field("parameters", &self.parameters)
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}

fn extent_of(bio: &Bio) -> Extent {
    Extent { start: bio.sector.0, end: bio.end().0 }
}

impl Controller {
    /// A controller as its profile says, in front of `below`.
    pub fn from_profile(profile: &Profile, below: Box<dyn Layer>) -> Result<Self, SimError> {
        let parameters = parameters::read(profile)?;
        let below_info = below.info();
        Ok(Self {
            finished_below: Vec::new(),
            sent: Vec::new(),
            free: Vec::new(),
            host_below: 0,
            all_below: 0,
            backlog: VecDeque::new(),
            answers: Calendar::default(),
            link_free: Ns(0),
            read_cache: ReadCache::new(parameters.read_segments, parameters.segment_sectors),
            expected: vec![u64::MAX; parameters.read_segments],
            is_filling: vec![false; parameters.read_segments],
            waiting: Vec::new(),
            write_cache: WriteCache::new(parameters.write_cache, usize::MAX),
            held: VecDeque::new(),
            elevator: 0,
            destages_below: 0,
            last_host: Ns(0),
            wake: Ns::MAX,
            statistics: Statistics::default(),
            parameters,
            below,
            below_info,
        })
    }

    const fn has_write_cache(&self) -> bool {
        self.write_cache.room() > 0
    }

    /// Answers the host: overhead, then the data over the link.
    fn answer(&mut self, now: Ns, sectors: u64, answer: Answer) {
        let begin = (now + Ns(self.parameters.overhead)).max(self.link_free);
        self.link_free = begin + Ns(sectors * self.parameters.link_sector);
        self.answers.plan(self.link_free, answer);
    }

    /// Sends a bio below, now or when there is room.
    fn send(&mut self, now: Ns, purpose: Purpose) {
        if self.all_below >= self.below_info.depth {
            self.backlog.push_back(purpose);
            return;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.sent.push(purpose);
            self.sent.len() as u32 - 1
        });
        self.sent[id as usize] = purpose;
        let make = |operation, extent: Extent| Bio {
            id: BioId(id),
            operation,
            sector: Sector(extent.start),
            sectors: (extent.end - extent.start) as u32,
            flags: Flags::NONE,
            submitter: Submitter::default(),
            segments: 0,
        };
        let bio = match purpose {
            Purpose::Host(bio) => Bio { id: BioId(id), ..bio },
            Purpose::Ahead { extent, .. } => make(Operation::Read, extent),
            Purpose::Destage(extent) => make(Operation::Write, extent),
        };
        self.all_below += 1;
        self.host_below += u32::from(matches!(purpose, Purpose::Host(_)));
        self.below.submit(now, &bio);
    }

    fn submit_read(&mut self, now: Ns, bio: &Bio) {
        let extent = extent_of(bio);
        self.statistics.read += u64::from(bio.sectors);
        if self.write_cache.holds(extent) {
            return self.hit(now, bio);
        }
        match self.read_cache.lookup(extent.start, extent.end) {
            Lookup::Full(segment) => {
                self.hit(now, bio);
                self.read_cache.touch(segment);
                self.follow(now, segment, extent);
            }
            Lookup::Partial(segment) if self.is_filling[segment] => {
                self.waiting.push((segment, *bio));
            }
            Lookup::Partial(_) => self.miss(now, bio),
            Lookup::Miss => match self.read_cache.continued(extent.start) {
                Some(segment) if self.is_filling[segment] => self.waiting.push((segment, *bio)),
                _ => self.miss(now, bio),
            },
        }
    }

    fn hit(&mut self, now: Ns, bio: &Bio) {
        self.statistics.hits += 1;
        self.statistics.hit += u64::from(bio.sectors);
        self.answer(now, u64::from(bio.sectors), Answer::Done(bio.id));
    }

    fn miss(&mut self, now: Ns, bio: &Bio) {
        self.statistics.fetched += u64::from(bio.sectors);
        self.send(now, Purpose::Host(*bio));
    }

    /// A read touched a segment: if it continues a stream, reads ahead of it.
    fn follow(&mut self, now: Ns, segment: usize, extent: Extent) {
        let is_sequential = self.expected[segment] == extent.start;
        self.expected[segment] = extent.end;
        let held = self.read_cache.segment(segment);
        let ahead = held.end.saturating_sub(extent.end);
        let length = self.parameters.read_ahead.min(u64::from(self.below_info.max_sectors));
        let end = (held.end + length).min(self.below_info.capacity.0);
        if is_sequential && !self.is_filling[segment] && ahead < length.div_ceil(2) {
            let extent = Extent { start: held.end, end };
            if extent.start < extent.end {
                self.is_filling[segment] = true;
                self.send(now, Purpose::Ahead { segment, extent });
            }
        }
    }

    /// Data that a read of the host has brought go into the cache.
    fn keep(&mut self, now: Ns, extent: Extent) {
        if !self.read_cache.is_on() {
            return;
        }
        let segment = if let Some(segment) = self.read_cache.continued(extent.start) {
            self.read_cache.extend(segment, extent.end);
            self.read_cache.touch(segment);
            segment
        } else {
            let segment = self.read_cache.allocate(extent.start, extent.end);
            self.expected[segment] = u64::MAX;
            self.is_filling[segment] = false;
            segment
        };
        self.follow(now, segment, extent);
    }

    /// Read-ahead has come; the segment may have been given away or invalidated meanwhile.
    fn filled(&mut self, now: Ns, segment: usize, extent: Extent) {
        self.statistics.ahead += extent.end - extent.start;
        if self.read_cache.segment(segment).end == extent.start {
            self.read_cache.extend(segment, extent.end);
        }
        self.is_filling[segment] = false;
        let mut index = 0;
        while index < self.waiting.len() {
            let (of, bio) = self.waiting[index];
            if of != segment {
                index += 1;
                continue;
            }
            self.waiting.remove(index);
            let wanted = extent_of(&bio);
            if let Lookup::Full(segment) = self.read_cache.lookup(wanted.start, wanted.end) {
                self.hit(now, &bio);
                self.follow(now, segment, wanted);
            } else {
                self.miss(now, &bio);
            }
        }
    }

    fn submit_write(&mut self, now: Ns, bio: &Bio) {
        self.statistics.written += u64::from(bio.sectors);
        let is_large = u64::from(bio.sectors) > self.write_cache.room();
        if !self.has_write_cache() {
            self.write_through(now, bio);
        } else if is_large {
            self.write_through(now, &Bio { flags: bio.flags.without(Flags::PREFLUSH), ..*bio });
        } else {
            self.held.push_back(*bio);
            self.admit(now);
            self.statistics.held_writes += u64::from(!self.held.is_empty());
        }
    }

    fn write_through(&mut self, now: Ns, bio: &Bio) {
        let extent = extent_of(bio);
        self.read_cache.invalidate(extent.start, extent.end);
        self.statistics.absorbed += self.write_cache.forget(extent);
        if bio.operation == Operation::Write {
            self.statistics.through += u64::from(bio.sectors);
        }
        self.send(now, Purpose::Host(*bio));
    }

    /// Takes writes into the cache while there is room.
    fn admit(&mut self, now: Ns) {
        while let Some(&bio) = self.held.front() {
            let extent = extent_of(&bio);
            if !self.write_cache.fits(extent) {
                return;
            }
            self.held.pop_front();
            self.write_cache.reserve(extent);
            self.read_cache.invalidate(extent.start, extent.end);
            self.answer(now, u64::from(bio.sectors), Answer::Cached(bio.id, extent));
        }
    }

    /// Starts destaging as far as it is time.
    fn destage(&mut self, now: Ns) {
        let is_urgent =
            !self.held.is_empty() || self.write_cache.dirty() >= self.parameters.high_water;
        let idle_from = self.last_host + Ns(self.parameters.idle_delay);
        if !is_urgent && (self.host_below > 0 || now < idle_from) {
            if self.host_below == 0 && self.write_cache.can_destage() {
                self.wake = self.wake.min(idle_from);
            }
            return;
        }
        let limit = self.parameters.destage_depth;
        while self.destages_below < limit && self.all_below < self.below_info.depth {
            let Some(start) = self.write_cache.next_from(self.elevator) else { return };
            let most = self.parameters.destage_length.min(u64::from(self.below_info.max_sectors));
            let extent = self.write_cache.begin(start, most);
            self.elevator = extent.end;
            self.destages_below += 1;
            self.send(now, Purpose::Destage(extent));
        }
    }

    /// Takes what the layer below has finished.
    fn take_finished(&mut self, now: Ns) {
        let mut finished = core::mem::take(&mut self.finished_below);
        self.below.advance(now, &mut finished);
        // Faults are injected around whole devices: what is inside a controller does not fail.
        for Ended { id, .. } in finished.drain(..) {
            let purpose = self.sent[id.0 as usize];
            self.free.push(id.0);
            self.all_below -= 1;
            match purpose {
                Purpose::Host(bio) => {
                    self.host_below -= 1;
                    self.last_host = now;
                    let is_read = bio.operation == Operation::Read;
                    let sectors = if is_read { u64::from(bio.sectors) } else { 0 };
                    self.answer(now, sectors, Answer::Done(bio.id));
                    if is_read {
                        self.keep(now, extent_of(&bio));
                    }
                }
                Purpose::Ahead { segment, extent } => self.filled(now, segment, extent),
                Purpose::Destage(extent) => {
                    self.destages_below -= 1;
                    self.statistics.destages += 1;
                    self.statistics.destaged += extent.end - extent.start;
                    self.write_cache.finish(extent);
                }
            }
        }
        self.finished_below = finished;
    }
}

impl Layer for Controller {
    fn info(&self) -> Info {
        let write_cache =
            if self.has_write_cache() { Durability::Through } else { self.below_info.write_cache };
        Info { write_cache, depth: self.parameters.depth, ..self.below_info }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.last_host = now;
        match bio.operation {
            Operation::Read => self.submit_read(now, bio),
            Operation::Write if bio.sectors > 0 => self.submit_write(now, bio),
            // A flush: what was acknowledged is safe already.
            Operation::Flush | Operation::Write if self.has_write_cache() => {
                self.answer(now, 0, Answer::Done(bio.id));
            }
            _ => self.write_through(now, bio),
        }
        self.wake = self.wake.min(now);
    }

    fn next_event(&self) -> Ns {
        self.below.next_event().min(self.answers.next_event()).min(self.wake)
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        if self.below.next_event() <= now {
            self.take_finished(now);
        }
        while let Some((_, answer)) = self.answers.take_due(now) {
            match answer {
                Answer::Done(id) => done.push(Ended::ok(id)),
                Answer::Cached(id, extent) => {
                    self.statistics.absorbed += self.write_cache.insert(extent);
                    done.push(Ended::ok(id));
                }
            }
        }
        if done.len() > before {
            self.wake = now;
            return;
        }
        self.wake = Ns::MAX;
        self.admit(now);
        while self.all_below < self.below_info.depth {
            let Some(purpose) = self.backlog.pop_front() else { break };
            self.send(now, purpose);
        }
        self.destage(now);
    }

    fn age(&mut self) {
        self.below.age();
    }

    fn exited(&mut self, now: Ns, process: ProcessId) {
        self.below.exited(now, process);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let s = &self.statistics;
        let bytes = |sectors: u64| (sectors * 512) as f64;
        let rows = [
            ("read_bytes", bytes(s.read)),
            ("written_bytes", bytes(s.written)),
            ("cache_hit_bytes", bytes(s.hit)),
            ("fetched_bytes", bytes(s.fetched)),
            ("read_ahead_bytes", bytes(s.ahead)),
            ("destaged_bytes", bytes(s.destaged)),
            ("written_through_bytes", bytes(s.through)),
            ("absorbed_bytes", bytes(s.absorbed)),
            ("dirty_bytes", bytes(self.write_cache.dirty())),
            ("cache_hits", s.hits as f64),
            ("destages", s.destages as f64),
            ("held_writes", s.held_writes as f64),
        ];
        let mut counters: Vec<(String, f64)> =
            rows.iter().map(|&(name, value)| (format!("controller_{name}"), value)).collect();
        counters.extend(self.below.counters());
        counters
    }
}
