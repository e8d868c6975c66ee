//! The drive: takes commands, runs the mechanism and the caches.
//!
//! Two servers: the mechanism (one media operation at a time) and the electronics (cache hits and
//! writes into the cache, one after the other on the bus). The mechanism is free again when its
//! command is complete, so the next one is picked after the host has had its chance to react.
//! Read-ahead is not an event: what has passed under the head is worked out when it matters.

mod media;

use std::collections::VecDeque;

use iolab_model::seed::Stream as Random;
use iolab_model::{Ns, Sector, Seed};

use super::mechanism::{Mechanism, Pass};
use super::parameters::{self, Parameters};
use super::queue::{Before, Command, Free, Queue};
use super::read_cache::{Lookup, ReadCache};
use super::statistics::{Service, Statistics};
use super::write_cache::{Extent, WriteCache};
use crate::Calendar;
use crate::api::bio::{Bio, BioId, Ended, Flags, Operation};
use crate::api::layer::{Info, Layer, WriteCache as Durability};
use crate::error::SimError;
use crate::profile::Profile;

/// Longest destaging operation in 512-byte sectors, 1 MiB: a read does not wait for longer. Our
/// choice.
const DESTAGE_SECTORS: u64 = 2_048;

/// Read-ahead under way.
#[derive(Clone, Copy, Debug)]
struct ReadAhead {
    segment: usize,
    pass: Pass,
    limit: u64,
    /// No other command is begun before this sector has been read.
    least: u64,
}

/// Arrival of the data of a write.
#[derive(Clone, Copy, Debug)]
struct Feed {
    /// As many as have to be there before the media may be written.
    filled: Ns,
    /// All of them.
    all: Ns,
}

/// Task of the mechanism.
#[derive(Clone, Copy, Debug)]
enum Task {
    Read(BioId),
    Write(BioId, u64),
    Destage(Extent),
}

/// Request that the electronics finish.
#[derive(Clone, Copy, Debug)]
enum Electronic {
    Done(BioId),
    Cached(BioId, Extent),
}

/// Entry that waits for the write cache, in order of arrival.
#[derive(Clone, Copy, Debug)]
enum Held {
    Flush(BioId),
    Write { command: Command, after_flush: bool, is_through: bool },
}

/// A hard disk.
#[derive(Debug)]
pub struct Disk {
    parameters: Parameters,
    mechanism: Mechanism,
    queue: Queue,
    task: Option<(Ns, Task)>,
    electronics: Calendar<Electronic>,
    electronics_free: Ns,
    /// End of the last data of the electronics on the bus.
    bus_free: Ns,
    /// Time for which the bus is promised to the read that the mechanism does.
    bus_taken: (Ns, Ns),
    read_cache: ReadCache,
    read_ahead: Option<ReadAhead>,
    write_cache: WriteCache,
    held: VecDeque<Held>,
    /// End and time of the last media write of a command.
    last_write: Option<(u64, Ns)>,
    losses: Random,
    wake: Ns,
    sequence: u64,
    /// End of the write that came last; nothing after a read.
    write_end: Option<u64>,
    statistics: Statistics,
}

impl Disk {
    /// A drive as its profile says; `instance` separates its random numbers from those of others.
    pub fn from_profile(profile: &Profile, seed: Seed, instance: &str) -> Result<Self, SimError> {
        let (parameters, mut mechanism) = parameters::read(profile)?;
        let period = mechanism.geometry.period().0;
        mechanism.phase = seed.stream(instance, 0).below(period);
        Ok(Self {
            queue: Queue::default(),
            task: None,
            electronics: Calendar::default(),
            electronics_free: Ns(0),
            bus_free: Ns(0),
            bus_taken: (Ns(0), Ns(0)),
            read_cache: ReadCache::new(parameters.read_segments, parameters.segment_sectors),
            read_ahead: None,
            write_cache: WriteCache::new(parameters.write_cache, parameters.write_extents)
                .with_window(parameters.destage_window),
            held: VecDeque::new(),
            last_write: None,
            losses: seed.stream(instance, 1),
            wake: Ns::MAX,
            sequence: 0,
            write_end: None,
            statistics: Statistics::default(),
            parameters,
            mechanism,
        })
    }

    /// Arm, heads and platters, for reports and tests.
    pub const fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    fn has_write_cache(&self) -> bool {
        self.write_cache.room() > 0
    }

    fn command(&mut self, now: Ns, bio: &Bio) -> Command {
        let start = bio.sector.0 * self.parameters.media_per_sector;
        let place = self.mechanism.geometry.place(start);
        self.sequence += 1;
        let end = start + u64::from(bio.sectors) * self.parameters.media_per_sector;
        let is_write = bio.operation.is_write();
        let before = match self.write_end {
            None => Before::Read,
            Some(write_end) if is_write && write_end == start => Before::Continued,
            Some(_) => Before::Write,
        };
        self.write_end = is_write.then_some(end);
        Command {
            id: bio.id,
            is_write,
            start,
            end,
            arrived: now,
            place,
            angle: self.mechanism.geometry.angle_of(&place),
            sequence: self.sequence,
            before,
        }
    }

    /// Plans something on the electronics, which do one thing after the other: time before the
    /// data, on the bus, and after.
    fn electronic(&mut self, now: Ns, [before, bus, after]: [u64; 3], what: Electronic) {
        let start = now.max(self.electronics_free);
        let mut end = start + Ns(before);
        if bus > 0 {
            let (from, to) = self.bus_taken;
            let begin = end.max(self.bus_free);
            let is_crossing = begin < to && begin + Ns(bus) > from;
            end = if is_crossing { to } else { begin } + Ns(bus);
            self.bus_free = end;
        }
        self.electronics_free = end + Ns(after);
        self.statistics.electronics_busy += self.electronics_free.since(start).0;
        self.electronics.plan(self.electronics_free, what);
    }

    fn submit_read(&mut self, now: Ns, command: Command) {
        self.statistics.commands[0] += 1;
        self.statistics.read += command.end - command.start;
        if !self.answer_from_cache(now, &command) {
            self.queue.push(command);
        }
    }

    /// Answers a read from the caches if all is there.
    fn answer_from_cache(&mut self, now: Ns, command: &Command) -> bool {
        let extent = Extent { start: command.start, end: command.end };
        self.update_read_ahead(now);
        let sectors = extent.end - extent.start;
        if let Lookup::Full(index) = self.read_cache.lookup(extent.start, extent.end) {
            self.read_cache.touch(index);
            let limit = self.read_cache.limit(extent.start, extent.end);
            let end = self.mechanism.geometry.sectors();
            match &mut self.read_ahead {
                Some(ahead) if ahead.segment == index && ahead.pass.sector < ahead.limit => {
                    ahead.limit = ahead.limit.max(limit.min(end));
                }
                _ => {}
            }
        } else if !self.write_cache.holds(extent) {
            return false;
        }
        self.statistics.hit += sectors;
        self.statistics.full_hits += 1;
        let overhead = self.parameters.overhead_hit[command.before.hit()];
        let data = sectors * self.parameters.bus_sector;
        let times = [overhead, data, self.parameters.completion_read];
        self.electronic(now, times, Electronic::Done(command.id));
        true
    }

    fn submit_write(&mut self, now: Ns, command: Command, flags: Flags) {
        self.statistics.commands[1] += 1;
        self.statistics.written += command.end - command.start;
        if !self.has_write_cache() {
            return self.write_through(now, command);
        }
        let is_large = command.end - command.start > self.write_cache.room();
        let is_through = flags.contains(Flags::FUA) || is_large;
        let after_flush = flags.contains(Flags::PREFLUSH);
        self.held.push_back(Held::Write { command, after_flush, is_through });
        self.admit(now);
        if !self.held.is_empty() {
            self.statistics.held_writes += 1;
        }
    }

    /// A write that ends when it is on the media.
    fn write_through(&mut self, now: Ns, command: Command) {
        let extent = Extent { start: command.start, end: command.end };
        self.invalidate(now, extent);
        self.statistics.absorbed += self.write_cache.forget(extent);
        self.queue.push(command);
    }

    /// Lets into the cache what waits for it, as far as it may.
    fn admit(&mut self, now: Ns) {
        while let Some(&held) = self.held.front() {
            match held {
                Held::Flush(id) => {
                    if !self.write_cache.is_clean() {
                        return;
                    }
                    let times = [self.parameters.overhead_write[0], 0, 0];
                    self.electronic(now, times, Electronic::Done(id));
                }
                Held::Write { command, after_flush, is_through } => {
                    let extent = Extent { start: command.start, end: command.end };
                    if after_flush && !self.write_cache.is_clean() {
                        return;
                    }
                    if is_through {
                        self.write_through(now, command);
                    } else if self.write_cache.fits(extent) {
                        self.write_cache.reserve(extent);
                        self.invalidate(now, extent);
                        let bus = (extent.end - extent.start) * self.parameters.bus_sector_write;
                        let overhead = self.parameters.overhead_write[command.before.write()];
                        let cached = Electronic::Cached(command.id, extent);
                        self.electronic(now, [overhead, bus, 0], cached);
                    } else {
                        return;
                    }
                }
            }
            self.held.pop_front();
        }
    }

    /// Picks what the mechanism does next.
    fn dispatch(&mut self, now: Ns) {
        self.update_read_ahead(now);
        while self.task.is_none() {
            let write = self.last_write.filter(|&(_, end)| end == now);
            let free = Free { stream: self.stream(), write };
            let next = self.queue.pick(&self.parameters, &self.mechanism, &free, now);
            if self.destages_instead_of(now, next.map(|(_, cost)| cost)) {
                return;
            }
            let Some((index, _)) = next else { return };
            if self.reads_on(now, index, &free) {
                return;
            }
            let command = self.queue.take(index);
            if command.is_write {
                self.start_write(now, &command);
            } else if !self.answer_from_cache(now, &command) {
                self.start_read(now, &command, free.stream);
            }
        }
    }

    /// Tell whether the read-ahead goes on for a while before another command is begun; wakes then.
    fn reads_on(&mut self, now: Ns, index: usize, free: &Free) -> bool {
        let Some(ahead) = &self.read_ahead else { return false };
        if ahead.pass.sector >= ahead.least || self.queue.is_free(index, free) {
            return false;
        }
        let mut pass = ahead.pass;
        self.mechanism.run_to(&mut pass, ahead.least);
        self.wake = pass.time;
        pass.time > now
    }

    /// Starts destaging if that comes before the best command; `cost` is the command's.
    fn destages_instead_of(&mut self, now: Ns, cost: Option<i64>) -> bool {
        if !self.write_cache.can_destage() {
            return false;
        }
        let is_urgent =
            !self.held.is_empty() || self.write_cache.dirty() >= self.parameters.high_water;
        if !is_urgent {
            if cost.is_some() {
                return false;
            }
            if let Some(ahead) = &self.read_ahead {
                // The read-ahead runs to its end first.
                let mut pass = ahead.pass;
                self.mechanism.run_to(&mut pass, ahead.limit);
                if pass.time > now {
                    self.wake = pass.time;
                    return false;
                }
            }
        }
        self.stop_read_ahead(now);
        let Some((start, time)) = self.write_cache.nearest(&self.mechanism, now) else {
            return false;
        };
        if cost.is_some_and(|cost| cost < time as i64) {
            return false;
        }
        let most = DESTAGE_SECTORS * self.parameters.media_per_sector;
        let extent = self.write_cache.begin(start, most);
        self.statistics.destages += 1;
        let mut service = Service::default();
        self.write_media(now, &mut service, extent, Feed { filled: now, all: now });
        self.run(now, &service, Task::Destage(extent));
        true
    }

    /// Occupies the mechanism.
    fn run(&mut self, now: Ns, service: &Service, task: Task) {
        self.statistics.add(service);
        self.task = Some((now + service.total(), task));
    }

    /// The mechanism has finished.
    fn finish_task(&mut self, task: Task, done: &mut Vec<Ended>) {
        match task {
            Task::Read(id) => done.push(Ended::ok(id)),
            Task::Write(id, sectors) => {
                self.statistics.media_written += sectors;
                done.push(Ended::ok(id));
            }
            Task::Destage(extent) => {
                self.write_cache.finish(extent);
                self.statistics.media_written += extent.end - extent.start;
            }
        }
    }
}

impl Layer for Disk {
    fn info(&self) -> Info {
        let sectors = self.mechanism.geometry.sectors() / self.parameters.media_per_sector;
        Info {
            capacity: Sector(sectors),
            depth: self.parameters.depth,
            is_rotational: true,
            write_cache: if self.has_write_cache() {
                Durability::Back { has_fua: true }
            } else {
                Durability::Through
            },
            max_sectors: self.parameters.max_sectors,
            chunk_sectors: 0,
            can_discard: false,
        }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let is_flush = bio.operation == Operation::Flush || bio.sectors == 0;
        if is_flush {
            self.statistics.commands[2] += 1;
            self.held.push_back(Held::Flush(bio.id));
            self.admit(now);
        } else if bio.operation == Operation::Discard {
            // Nothing to do on a disk; the layer above should not have asked.
            let times = [self.parameters.overhead_write[0], 0, 0];
            self.electronic(now, times, Electronic::Done(bio.id));
        } else {
            let command = self.command(now, bio);
            if command.is_write {
                self.submit_write(now, command, bio.flags);
            } else {
                self.submit_read(now, command);
            }
        }
        if self.task.is_none() {
            self.wake = self.wake.min(now);
        }
    }

    fn next_event(&self) -> Ns {
        let task = self.task.map_or(Ns::MAX, |(end, _)| end);
        task.min(self.electronics.next_event()).min(self.wake)
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        while let Some((_, event)) = self.electronics.take_due(now) {
            match event {
                Electronic::Done(id) => done.push(Ended::ok(id)),
                Electronic::Cached(id, extent) => {
                    self.statistics.absorbed += self.write_cache.insert(extent);
                    done.push(Ended::ok(id));
                }
            }
        }
        if let Some((_, task)) = self.task.take_if(|(end, _)| *end <= now) {
            self.finish_task(task, done);
        }
        if !self.held.is_empty() {
            self.admit(now);
        }
        self.wake = Ns::MAX;
        if self.task.is_some() {
            return;
        }
        if done.len() > before {
            let has_work = !self.queue.is_empty() || self.write_cache.can_destage();
            self.wake = if has_work { now } else { Ns::MAX };
            return;
        }
        self.dispatch(now);
    }

    fn counters(&self) -> Vec<(String, f64)> {
        let media_sector = 512 / self.parameters.media_per_sector;
        self.statistics.list(media_sector, self.write_cache.dirty())
    }
}
