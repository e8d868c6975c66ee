//! The flash side of a drive: what each die does next.
//!
//! Order of a die that is free: reads of the host; the row that is loaded; an erase; a read for
//! collection; folding. After a number of reads in a row (`read_burst`) other work goes first once,
//! so that writes do not starve. Reads suspend an erase or a program where the drive can do that.

use iolab_model::Ns;

use super::collect::Step;
use super::die::{PageRead, Row, Work, transfer};
use super::drive::{Event, Ssd};

/// Waiting reads that a die looks at to find some for its other planes.
const LOOK_AHEAD: usize = 32;

impl Ssd {
    /// Queues the read of a page.
    pub(super) fn read_page(&mut self, now: Ns, read: PageRead) {
        let die = self.parameters.geometry.die_of_page(read.page);
        self.dies[die as usize].reads.push_back(read);
        self.suspend(now, die);
        self.poke(now, die);
    }

    /// Stops an erase or a program for reads, if that can be done and pays.
    fn suspend(&mut self, now: Ns, index: u32) {
        let die = &mut self.dies[index as usize];
        let latency = match die.work {
            Work::Erasing(_) => self.parameters.flash.erase_suspend,
            Work::Programming => self.parameters.flash.program_suspend,
            _ => None,
        };
        let Some(latency) = latency else { return };
        let left = die.work_end.since(now);
        if !die.may_suspend || left <= latency {
            return;
        }
        die.suspended = Some((die.work, left));
        die.set_work(now, Work::Suspending);
        self.counts.suspensions += 1;
        self.plan_work_end(now + latency, index);
    }

    fn plan_work_end(&mut self, at: Ns, index: u32) {
        let die = &mut self.dies[index as usize];
        die.generation = die.generation.wrapping_add(1);
        die.work_end = at;
        let event = Event::WorkDone { die: index, generation: die.generation };
        self.calendar.plan(at, event);
    }

    /// Lets a die load and start what it can.
    pub(super) fn poke(&mut self, now: Ns, index: u32) {
        // Commands first: they are short, and would wait behind the data of a row.
        if matches!(self.dies[index as usize].work, Work::Idle | Work::Reading) {
            self.start(now, index);
        }
        self.load(now, index);
        if self.dies[index as usize].work == Work::Idle {
            self.start(now, index);
        }
    }

    fn start(&mut self, now: Ns, index: u32) {
        let is_reading_wanted = !self.dies[index as usize].reads.is_empty();
        let must_yield = is_reading_wanted
            && self.dies[index as usize].passed >= self.parameters.read_burst
            && self.has_other_work(now, index);
        if is_reading_wanted && !must_yield {
            self.start_reads(now, index);
        }
        let die = &mut self.dies[index as usize];
        if die.work == Work::Reading {
            return;
        }
        if let Some((work, left)) = die.suspended.take() {
            // Work that had to be insisted on is not stopped again.
            die.may_suspend = !must_yield;
            die.passed = 0;
            die.set_work(now, work);
            self.plan_work_end(now + left, index);
        } else if die.loaded.is_some_and(|row| row.ready <= now) {
            self.start_program(now, index);
        } else {
            self.start_background(now, index);
        }
        if must_yield && self.dies[index as usize].work == Work::Idle {
            // The other work could not begin after all (nothing to win by collection).
            self.start_reads(now, index);
        }
    }

    fn has_other_work(&self, now: Ns, index: u32) -> bool {
        let die = &self.dies[index as usize];
        die.suspended.is_some()
            || die.loaded.is_some_and(|row| row.ready <= now)
            || !self.ftl.host_may_write(index)
    }

    fn start_reads(&mut self, now: Ns, index: u32) {
        let geometry = self.parameters.geometry;
        let is_independent = self.parameters.has_independent_reads;
        if !is_independent && self.dies[index as usize].reading > 0 {
            return;
        }
        let channel = geometry.channel_of(index) as usize;
        let mut row = None;
        let mut at = 0;
        while at < self.dies[index as usize].reads.len().min(LOOK_AHEAD) {
            let die = &mut self.dies[index as usize];
            let read = die.reads[at];
            let plane = geometry.plane_of_page(read.page);
            let read_row = geometry.row_of_page(read.page);
            let fits = is_independent || row.is_none_or(|row| row == read_row);
            if !fits || die.planes[plane as usize].is_some() {
                at += 1;
                continue;
            }
            row = Some(read_row);
            die.reads.remove(at);
            die.planes[plane as usize] = Some(read);
            die.reading += 1;
            die.passed = die.passed.saturating_add(1);
            die.set_work(now, Work::Reading);
            self.counts.page_reads += 1;
            self.counts.flash_read_bytes += u64::from(read.bytes);
            let asked = self.channels[channel].occupy(now, self.parameters.flash.command);
            let event = Event::PlaneDone(index * geometry.planes + plane);
            let time = self.read_time(read_row);
            self.calendar.plan(asked + time, event);
            if self.dies[index as usize].reading == geometry.planes {
                break;
            }
        }
    }

    /// Array time of a page, repetitions with shifted thresholds included.
    fn read_time(&mut self, row: u32) -> Ns {
        let flash = &self.parameters.flash;
        let once = flash.spread.of(row % self.parameters.geometry.rows, flash.read);
        let mut time = once;
        while flash.retry_share > 0 && self.retries.below(1 << 20) < flash.retry_share {
            self.counts.read_retries += 1;
            time += once;
        }
        time
    }

    /// A plane has read its page: the data go over the channel.
    pub(super) fn plane_done(&mut self, now: Ns, plane: u32) {
        let planes = self.parameters.geometry.planes;
        let index = plane / planes;
        let die = &mut self.dies[index as usize];
        let read = die.planes[(plane % planes) as usize].take().expect("the plane was reading");
        die.reading -= 1;
        if die.reading == 0 {
            die.set_work(now, Work::Idle);
        }
        let end = self.use_channel(now, index, u64::from(read.bytes));
        let event = Event::Arrived(read.owner, read.bytes);
        self.calendar.plan(end + self.parameters.flash.correction, event);
        self.poke(now, index);
    }

    fn use_channel(&mut self, now: Ns, die: u32, bytes: u64) -> Ns {
        let channel = self.parameters.geometry.channel_of(die) as usize;
        self.channels[channel].occupy(now, transfer(bytes, self.parameters.flash.channel_rate))
    }

    fn start_program(&mut self, now: Ns, index: u32) {
        let die = &mut self.dies[index as usize];
        die.running = die.loaded.take();
        std::mem::swap(&mut die.running_slots, &mut die.loaded_slots);
        let is_slc = die.running.is_some_and(|row| row.is_slc);
        let times = &self.parameters.flash;
        let time = if is_slc { times.slc_program } else { times.program };
        self.start_work(now, index, (Work::Programming, time));
        self.load(now, index);
    }

    fn start_work(&mut self, now: Ns, index: u32, (work, time): (Work, Ns)) {
        let die = &mut self.dies[index as usize];
        die.passed = 0;
        die.may_suspend = true;
        die.set_work(now, work);
        self.plan_work_end(now + time, index);
    }

    /// Erases, reads for collection, or folds, if any of that is due.
    fn start_background(&mut self, now: Ns, index: u32) {
        loop {
            if let Some(block) = self.ftl.erasable(index) {
                self.start_erase(now, index, block);
                return;
            }
            // While the next row is on its way, the die would have nothing to do.
            let is_row_coming =
                self.dies[index as usize].loaded.is_some() || self.ftl.has_gathered_row(index);
            let can_read_on = is_row_coming && self.ftl.can_read_on(index);
            if !can_read_on && self.ftl.host_may_write(index) {
                // A victim whose last rows were void may have opened the way for the host.
                self.load(now, index);
                break;
            }
            let step = if can_read_on { Step::Read } else { self.ftl.next_step(index) };
            match step {
                Step::Nothing => break,
                // Seen in the next round.
                Step::Erase(_) => {}
                Step::Program => {
                    // Either the loading place is taken, or the last few units are loaded now.
                    if self.dies[index as usize].loaded.is_none() {
                        self.load_gathered(now, index);
                    }
                    return;
                }
                Step::Read => {
                    let Some((_, units)) = self.ftl.gather(index) else { continue };
                    let command = self.parameters.flash.command;
                    let channel = self.parameters.geometry.channel_of(index) as usize;
                    let asked = self.channels[channel].occupy(now, command);
                    let time = asked.since(now) + self.parameters.flash.read;
                    self.start_work(now, index, (Work::Collecting(units), time));
                    return;
                }
            }
        }
        let row = self.parameters.geometry.row_bytes();
        if self.is_idle && self.slc_used > 0 {
            self.slc_used = self.slc_used.saturating_sub(row);
            self.counts.folded_bytes += row;
            let time = self.parameters.flash.read + self.parameters.flash.program;
            self.start_work(now, index, (Work::Folding, time));
        }
    }

    fn start_erase(&mut self, now: Ns, index: u32, block: u32) {
        self.ftl.begin_erase(block);
        self.start_work(now, index, (Work::Erasing(block), self.parameters.flash.erase));
    }

    /// A die has ended what it did.
    pub(super) fn work_done(&mut self, now: Ns, index: u32) {
        let work = self.dies[index as usize].work;
        self.dies[index as usize].set_work(now, Work::Idle);
        match work {
            Work::Programming => self.programmed(now, index),
            Work::Erasing(block) => self.ftl.end_erase(block),
            Work::Collecting(units) => {
                let bytes = u64::from(units) * u64::from(self.parameters.geometry.unit_bytes);
                self.counts.flash_read_bytes += bytes;
                self.use_channel(now, index, bytes);
            }
            Work::Idle | Work::Reading | Work::Folding | Work::Suspending => {}
        }
        self.poke(now, index);
    }

    fn programmed(&mut self, now: Ns, index: u32) {
        let die = &mut self.dies[index as usize];
        let row = die.running.take().expect("a row was being programmed");
        let mut slots = std::mem::take(&mut die.running_slots);
        for slot in slots.drain(..) {
            if let Some((logical, unit)) = self.cache.programmed(slot) {
                self.ftl.settle(logical, unit);
            }
        }
        self.dies[index as usize].running_slots = slots;
        self.ftl.row_done(row.first);
        self.finish_drained(now);
        self.admit_waiting(now);
    }

    /// Starts another superpage batch when enough is dirty.
    pub(super) fn plan_eviction(&mut self) {
        let geometry = &self.parameters.geometry;
        let planned = self.eviction_rows * geometry.row_units() + self.parameters.resident_units;
        if self.cache.dirty() >= planned + geometry.superpage_units() {
            self.eviction_rows += geometry.dies();
        }
    }

    /// Tell whether a row should leave the cache now.
    fn wants_eviction(&self) -> bool {
        let dirty = self.cache.dirty();
        let is_room_needed =
            !self.waiting.is_empty() && dirty >= self.parameters.geometry.row_units();
        dirty > 0 && (self.eviction_rows > 0 || is_room_needed || self.cache.must_drain())
    }

    /// Offers the rows to be evicted to the dies, channel first.
    pub(super) fn offer_rows(&mut self, now: Ns) {
        let dies = self.parameters.geometry.dies();
        let first = self.next_die;
        for offset in 0..dies {
            if !self.wants_eviction() {
                return;
            }
            let index = (first + offset) % dies;
            if self.dies[index as usize].loaded.is_none() {
                self.poke(now, index);
            }
        }
    }

    /// Gives a die its next row, of collection first.
    fn load(&mut self, now: Ns, index: u32) {
        let is_taken = self.dies[index as usize].loaded.is_some();
        if is_taken || self.ftl.erasable(index).is_some() {
            return;
        }
        if self.ftl.has_gathered_row(index) {
            self.load_gathered(now, index);
        } else if self.wants_eviction() && self.ftl.host_may_write(index) {
            self.load_host_row(now, index);
        }
    }

    fn load_gathered(&mut self, now: Ns, index: u32) {
        let (first, units) = self.ftl.rewrite_gathered(index);
        if units > 0 {
            self.send_row(now, index, (first, units, false));
        }
    }

    fn load_host_row(&mut self, now: Ns, index: u32) {
        let geometry = self.parameters.geometry;
        self.eviction_rows = self.eviction_rows.saturating_sub(1);
        self.next_die = (index + 1) % geometry.dies();
        let row = geometry.row_units();
        let first = self.ftl.start_row(index);
        let mut slots = std::mem::take(&mut self.dies[index as usize].loaded_slots);
        debug_assert!(slots.is_empty(), "the loading place was free");
        for unit in first..first + row {
            let Some((slot, logical)) = self.cache.evict(unit) else { break };
            self.ftl.put(unit, logical);
            slots.push(slot);
        }
        self.cache.sweep();
        let units = slots.len() as u32;
        self.dies[index as usize].loaded_slots = slots;
        self.ftl.counts.host_units += u64::from(units);
        self.ftl.counts.padding_units += u64::from(row - units);
        let is_slc = self.slc_used + geometry.row_bytes() <= self.parameters.slc_bytes;
        if is_slc {
            self.slc_used += geometry.row_bytes();
            self.counts.slc_bytes += geometry.row_bytes();
        }
        self.send_row(now, index, (first, units, is_slc));
    }

    /// Sends the data of a row to its die.
    fn send_row(&mut self, now: Ns, index: u32, (first, units, is_slc): (u32, u32, bool)) {
        let bytes = u64::from(units) * u64::from(self.parameters.geometry.unit_bytes);
        let command = self.parameters.flash.command;
        let channel = self.parameters.geometry.channel_of(index) as usize;
        self.channels[channel].occupy(now, command);
        let ready = self.use_channel(now, index, bytes);
        self.dies[index as usize].loaded = Some(Row { first, is_slc, ready });
        self.calendar.plan(ready, Event::Loaded(index));
    }
}
