//! The host side of a drive: what becomes of a command.
//!
//! ```text
//! read  : controller -> (map) -> cache, read-ahead or flash -> link -> done
//! write : controller -> room in the cache -> link -> cache -> done (or, forced, when on flash)
//! flush : everything written before it is on flash -> base time -> done
//! ```
//!
//! The bytes of each page cross the link as soon as they are there. A read-modify-write (a write
//! that covers a part of a mapping unit that is on flash) costs a page read that nobody waits for.

use iolab_model::Ns;

use super::die::{Owner, PageRead, transfer};
use super::drive::{Event, Ssd};
use super::ftl::Place;
use super::parameters::CachePolicy;
use crate::api::bio::{Flags, Operation};

impl Ssd {
    /// The controller has understood a command.
    pub(super) fn begin(&mut self, now: Ns, index: u32) {
        let bio = self.commands[index as usize].bio;
        debug_assert!(
            bio.operation != Operation::Write || !bio.flags.contains(Flags::PREFLUSH),
            "the queue above turns a flush before a write into a bio of its own"
        );
        let bytes = u64::from(bio.sectors) * 512;
        match bio.operation {
            Operation::Read => {
                self.counts.commands[0] += 1;
                self.counts.read_bytes += bytes;
                if self.look_up_map(now, index, true) {
                    self.read_data(now, index);
                }
            }
            Operation::Write => {
                self.counts.commands[1] += 1;
                self.counts.write_bytes += bytes;
                self.look_up_map(now, index, false);
                self.waiting.push_back(index);
                self.admit_waiting(now);
                // A writer that found no room makes eviction urgent.
                if !self.waiting.is_empty() {
                    self.offer_rows(now);
                }
            }
            Operation::Discard => {
                self.counts.commands[2] += 1;
                self.trim(now, index);
                self.finish(index, now);
            }
            Operation::Flush => {
                self.counts.commands[3] += 1;
                if self.parameters.cache_policy == CachePolicy::Protected {
                    self.finish(index, now + self.parameters.host.flush);
                } else {
                    self.drain_for(now, index);
                }
            }
        }
    }

    /// Looks up the map pages of a command; misses are read from flash. True if none is missing.
    fn look_up_map(&mut self, now: Ns, index: u32, must_wait: bool) -> bool {
        if !self.map_cache.is_partial() {
            return true;
        }
        let command = self.commands[index as usize];
        let geometry = self.parameters.geometry;
        let pages = self.map_cache.page_of(command.first)..=self.map_cache.page_of(command.end - 1);
        let mut missing = 0;
        for page in pages {
            if self.map_cache.touch(page) {
                continue;
            }
            missing += 1;
            // Map pages are spread over dies and planes; which block they are in does not matter.
            let die = page % geometry.dies();
            let plane = page / geometry.dies() % geometry.planes;
            let read = PageRead {
                page: die * geometry.blocks * geometry.rows * geometry.planes + plane,
                bytes: geometry.page_bytes() as u32,
                owner: if must_wait { Owner::Map(index) } else { Owner::Nobody },
            };
            self.commands[index as usize].pending += u32::from(must_wait);
            self.read_page(now, read);
        }
        missing == 0
    }

    /// Finds the data of a read command and has them delivered.
    fn read_data(&mut self, now: Ns, index: u32) {
        let command = self.commands[index as usize];
        let reader = self.prefetch.observe(command.first, command.end);
        // One for this function itself, so that nothing finishes before all is asked for.
        self.commands[index as usize].pending = 1;
        let mut at_hand = 0;
        let mut unit = command.first;
        while unit < command.end {
            let start = unit;
            if let Some(found) = self.prefetch.find(unit) {
                let segment = self.prefetch.segment(found);
                unit = command.end.min(segment.end);
                let bytes = self.overlap(index, (start, unit));
                let segment = self.prefetch.segment(found);
                if segment.pending == 0 {
                    at_hand += bytes;
                } else {
                    segment.waiters.push((index, bytes));
                    self.commands[index as usize].pending += 1;
                }
                self.prefetch.hits += 1;
                continue;
            }
            unit += 1;
            let Place::Flash(first) = self.ftl.place(start) else {
                at_hand += self.overlap(index, (start, unit));
                continue;
            };
            let page = self.parameters.geometry.page_of(first);
            unit = self.end_of_page_run(page, unit, command.end);
            let bytes = self.overlap(index, (start, unit));
            self.commands[index as usize].pending += 1;
            self.read_page(now, PageRead { page, bytes, owner: Owner::Command(index) });
        }
        self.counts.cache_hit_bytes += u64::from(at_hand);
        self.deliver(now, index, at_hand);
        if let Some(reader) = reader {
            self.read_ahead(now, reader);
        }
    }

    /// First unit from `unit` on that is not in this page.
    fn end_of_page_run(&self, page: u32, mut unit: u32, end: u32) -> u32 {
        let geometry = &self.parameters.geometry;
        while unit < end {
            match self.ftl.place(unit) {
                Place::Flash(other) if geometry.page_of(other) == page => unit += 1,
                _ => break,
            }
        }
        unit
    }

    /// Fetches what a sequential reader will ask for.
    fn read_ahead(&mut self, now: Ns, reader: usize) {
        while let Some(index) = self.prefetch.extend(reader) {
            let segment = self.prefetch.segment(index);
            let (mut unit, end) = (segment.start, segment.end);
            while unit < end {
                let start = unit;
                unit += 1;
                let Place::Flash(first) = self.ftl.place(start) else { continue };
                let page = self.parameters.geometry.page_of(first);
                unit = self.end_of_page_run(page, unit, end);
                let bytes = (unit - start) * self.parameters.geometry.unit_bytes;
                self.prefetch.segment(index).pending += 1;
                self.read_page(now, PageRead { page, bytes, owner: Owner::Segment(index as u32) });
            }
        }
    }

    /// Bytes of a command within some units.
    fn overlap(&self, index: u32, (start, end): (u32, u32)) -> u32 {
        let bio = &self.commands[index as usize].bio;
        let unit = u64::from(self.parameters.geometry.unit_bytes);
        let first = (bio.sector.0 * 512).max(u64::from(start) * unit);
        let last = (bio.end().0 * 512).min(u64::from(end) * unit);
        (last - first) as u32
    }

    /// Data of a page are there.
    pub(super) fn arrived(&mut self, now: Ns, owner: Owner, bytes: u32) {
        match owner {
            Owner::Command(index) => self.deliver(now, index, bytes),
            Owner::Map(index) => {
                let command = &mut self.commands[index as usize];
                command.pending -= 1;
                if command.pending == 0 {
                    self.read_data(now, index);
                }
            }
            Owner::Segment(index) => {
                let index = index as usize;
                if !self.prefetch.arrived(index) {
                    return;
                }
                let mut waiters = std::mem::take(&mut self.prefetch.segment(index).waiters);
                for (command, bytes) in waiters.drain(..) {
                    self.deliver(now, command, bytes);
                }
                self.prefetch.segment(index).waiters = waiters;
                self.prefetch.settle(index);
            }
            Owner::Nobody => {}
        }
    }

    /// Sends a part of the data of a read over the link; the last part finishes the command.
    fn deliver(&mut self, now: Ns, index: u32, bytes: u32) {
        let end = if bytes == 0 {
            now
        } else {
            self.links[0].occupy(now, transfer(u64::from(bytes), self.parameters.host.rate))
        };
        let command = &mut self.commands[index as usize];
        command.delivered = command.delivered.max(end);
        command.pending -= 1;
        if command.pending == 0 {
            let at = command.delivered;
            self.finish(index, at);
        }
    }

    /// Starts the transfer of writes for which there is room in the cache, in order.
    pub(super) fn admit_waiting(&mut self, now: Ns) {
        let link = usize::from(self.parameters.host.is_full_duplex);
        while let Some(&index) = self.waiting.front() {
            let command = self.commands[index as usize];
            if !self.cache.reserve(command.end - command.first) {
                break;
            }
            self.waiting.pop_front();
            let bytes = u64::from(command.bio.sectors) * 512;
            let time = transfer(bytes, self.parameters.host.rate);
            let end = self.links[link].occupy(now, time);
            self.calendar.plan(end, Event::Buffered(index));
        }
    }

    /// The data of a write command are in the cache.
    pub(super) fn buffered(&mut self, now: Ns, index: u32) {
        let command = self.commands[index as usize];
        self.counts.write_units += u64::from(command.end - command.first);
        self.prefetch.invalidate(command.first, command.end);
        for logical in command.first..command.end {
            let place = self.ftl.place(logical);
            match place {
                Place::Cache(slot) => match self.cache.overwrite(slot) {
                    None => {
                        self.cache.release(1);
                        continue;
                    }
                    Some(unit) => self.ftl.drop_unit(unit),
                },
                Place::Flash(unit) => self.merge(now, index, (logical, unit)),
                Place::Nowhere => {}
            }
            let slot = self.cache.insert(logical);
            self.ftl.set_cached(logical, slot);
        }
        let is_forced = match self.parameters.cache_policy {
            CachePolicy::Volatile => command.bio.flags.contains(Flags::FUA),
            CachePolicy::Protected => false,
            CachePolicy::Through => true,
        };
        // Absorbed writes have left room.
        self.admit_waiting(now);
        if is_forced {
            self.drain_for(now, index);
        } else {
            self.finish(index, now);
        }
        self.plan_eviction();
        self.offer_rows(now);
    }

    /// Reads the rest of a unit that is written in part.
    fn merge(&mut self, now: Ns, index: u32, (logical, unit): (u32, u32)) {
        let whole = self.parameters.geometry.unit_bytes;
        let written = self.overlap(index, (logical, logical + 1));
        if written < whole {
            self.counts.merge_reads += 1;
            let page = self.parameters.geometry.page_of(unit);
            let read = PageRead { page, bytes: whole - written, owner: Owner::Nobody };
            self.read_page(now, read);
        }
    }

    /// The command finishes when everything that is in the cache now is on flash.
    fn drain_for(&mut self, now: Ns, index: u32) {
        self.cache.close_epoch(index);
        self.offer_rows(now);
        self.finish_drained(now);
    }

    /// Finishes the commands that waited for what is on flash now.
    pub(super) fn finish_drained(&mut self, now: Ns) {
        while let Some(index) = self.cache.take_drained() {
            let is_flush = self.commands[index as usize].bio.operation == Operation::Flush;
            let base = if is_flush { self.parameters.host.flush } else { Ns(0) };
            self.finish(index, now + base);
        }
    }

    /// Marks the units that lie wholly in the command as holding nothing.
    fn trim(&mut self, now: Ns, index: u32) {
        let command = self.commands[index as usize];
        self.prefetch.invalidate(command.first, command.end);
        let unit_bytes = self.parameters.geometry.unit_bytes;
        for logical in command.first..command.end {
            if self.overlap(index, (logical, logical + 1)) < unit_bytes {
                continue;
            }
            if let Place::Cache(slot) = self.ftl.place(logical)
                && let Some(unit) = self.cache.forget(slot)
            {
                self.ftl.drop_unit(unit);
            }
            self.ftl.forget(logical);
            self.counts.trimmed_units += 1;
        }
        self.cache.sweep();
        self.admit_waiting(now);
        self.finish_drained(now);
    }

    fn finish(&mut self, index: u32, at: Ns) {
        let id = self.commands[index as usize].bio.id;
        self.finishing.plan(at, id);
        self.unused_commands.push(index);
        self.in_flight -= 1;
        self.idle_since = self.idle_since.max(at);
        if self.in_flight == 0 && self.slc_used > 0 && !self.is_idle_planned {
            self.is_idle_planned = true;
            self.calendar.plan(self.idle_since + self.parameters.slc_idle, Event::Idle);
        }
    }

    /// Lets the dies fold if the host has been silent for long enough.
    pub(super) fn maybe_idle(&mut self, now: Ns) {
        self.is_idle_planned = false;
        if self.in_flight > 0 {
            return;
        }
        let due = self.idle_since + self.parameters.slc_idle;
        if now < due {
            self.is_idle_planned = true;
            self.calendar.plan(due, Event::Idle);
            return;
        }
        self.is_idle = true;
        for die in 0..self.parameters.geometry.dies() {
            self.poke(now, die);
        }
    }
}
