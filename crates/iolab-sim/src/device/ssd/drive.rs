//! `Ssd`: the drive as a layer. State, construction, the event loop, counters.

use std::collections::VecDeque;

use iolab_model::seed::Stream;
use iolab_model::{Ns, Sector, Seed};

use super::cache::Cache;
use super::die::{Die, Owner, Server};
use super::ftl::Ftl;
use super::map_cache::MapCache;
use super::parameters::{CachePolicy, InitialState, Parameters};
use super::prefetch::Prefetch;
use crate::Calendar;
use crate::api::bio::{Bio, BioId, Ended, Operation};
use crate::api::layer::{Info, Layer, WriteCache};
use crate::error::SimError;
use crate::profile::Profile;

/// Event inside a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The controller has understood a command.
    Ready(u32),
    /// A plane (die times planes plus plane) has read a page.
    PlaneDone(u32),
    /// A die has ended what it did, unless that was suspended meanwhile.
    WorkDone { die: u32, generation: u32 },
    /// The data of the next program have reached the die.
    Loaded(u32),
    /// Data of a page are in the controller, corrected.
    Arrived(Owner, u32),
    /// The data of a write command are in the cache.
    Buffered(u32),
    /// The host may have been silent for long enough to fold.
    Idle,
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) bio: Bio,
    /// First unit touched.
    pub(super) first: u32,
    /// First unit after those touched.
    pub(super) end: u32,
    /// Things it waits for.
    pub(super) pending: u32,
    /// Time at which the last of its data have crossed the link.
    pub(super) delivered: Ns,
}

/// Counts besides those of the parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) commands: [u64; 4],
    pub(super) read_bytes: u64,
    pub(super) write_bytes: u64,
    pub(super) write_units: u64,
    pub(super) cache_hit_bytes: u64,
    pub(super) page_reads: u64,
    pub(super) flash_read_bytes: u64,
    pub(super) merge_reads: u64,
    pub(super) folded_bytes: u64,
    pub(super) slc_bytes: u64,
    pub(super) suspensions: u64,
    pub(super) read_retries: u64,
    pub(super) trimmed_units: u64,
}

/// A flash drive.
#[derive(Debug)]
pub struct Ssd {
    pub(super) parameters: Parameters,
    pub(super) ftl: Ftl,
    pub(super) cache: Cache,
    pub(super) map_cache: MapCache,
    pub(super) prefetch: Prefetch,
    pub(super) dies: Vec<Die>,
    pub(super) channels: Vec<Server>,
    pub(super) controller: Server,
    /// Reads and writes; SATA uses the first only.
    pub(super) links: [Server; 2],
    pub(super) commands: Vec<Command>,
    pub(super) unused_commands: Vec<u32>,
    /// Write commands that wait for room in the cache.
    pub(super) waiting: VecDeque<u32>,
    /// Rows of the current superpage batches that are still to be evicted.
    pub(super) eviction_rows: u32,
    /// Die that is offered the next row first.
    pub(super) next_die: u32,
    pub(super) slc_used: u64,
    pub(super) in_flight: u32,
    pub(super) idle_since: Ns,
    pub(super) is_idle: bool,
    pub(super) is_idle_planned: bool,
    pub(super) calendar: Calendar<Event>,
    pub(super) finishing: Calendar<BioId>,
    pub(super) counts: Counts,
    /// Draws the reads that have to be repeated.
    pub(super) retries: Stream,
}

impl Ssd {
    /// As a profile says; `instance` names the drive's random stream.
    pub fn from_profile(profile: &Profile, seed: Seed, instance: &str) -> Result<Self, SimError> {
        let parameters = Parameters::read(profile)?;
        let mut drive = Self::new(parameters, seed, instance);
        match parameters.initial {
            InitialState::Fresh => {}
            InitialState::Filled => drive.fill(1.0),
            InitialState::Steady => drive.precondition(),
        }
        Ok(drive)
    }

    /// A new drive, whatever the profile says about its content.
    pub fn new(parameters: Parameters, seed: Seed, instance: &str) -> Self {
        let geometry = parameters.geometry;
        let random = seed.stream(&format!("ssd/{instance}"), 0);
        let dies = geometry.dies();
        let (logical, page) = (geometry.logical_units, geometry.page_bytes());
        Self {
            parameters,
            ftl: Ftl::new(geometry, parameters.collection, random),
            cache: Cache::new(parameters.cache_units),
            map_cache: MapCache::new(parameters.map_pages, logical, page),
            prefetch: Prefetch::new(parameters.prefetch, geometry.superpage_units(), logical),
            dies: (0..dies).map(|_| Die::new(geometry.planes, geometry.row_units())).collect(),
            channels: vec![Server::default(); geometry.channels as usize],
            controller: Server::default(),
            links: [Server::default(); 2],
            commands: Vec::new(),
            unused_commands: Vec::new(),
            waiting: VecDeque::new(),
            eviction_rows: 0,
            next_die: 0,
            slc_used: 0,
            in_flight: 0,
            idle_since: Ns(0),
            is_idle: false,
            is_idle_planned: false,
            calendar: Calendar::default(),
            finishing: Calendar::default(),
            counts: Counts::default(),
            retries: seed.stream(&format!("ssd/{instance}"), 1),
        }
    }

    /// Bytes of memory that a drive of this profile will take once all of it has been written.
    pub fn memory_bytes(profile: &Profile) -> Result<u64, SimError> {
        Ok(Parameters::read(profile)?.memory_bytes())
    }

    /// Writes the first `share` of the capacity in order, as if no time passed. Before any bio.
    pub fn fill(&mut self, share: f64) {
        assert!(self.counts.commands == [0; 4], "a drive is prepared before it is used");
        let units = f64::from(self.parameters.geometry.logical_units);
        self.ftl.fill((units * share.clamp(0.0, 1.0)).floor() as u32);
        self.ftl.counts = super::ftl::FtlCounts::default();
    }

    /// Brings the drive into the state after long use, as if no time passed: fills it in order,
    /// then writes twice its capacity at random places. Before any bio.
    pub fn precondition(&mut self) {
        self.fill(1.0);
        self.ftl.overwrite(2 * u64::from(self.parameters.geometry.logical_units));
        self.ftl.counts = super::ftl::FtlCounts::default();
    }

    /// Checks that the map and the block states agree.
    pub fn check(&self) -> Result<(), String> {
        let dirty_and_done = u64::from(self.cache.dirty()) + self.ftl.counts.host_units;
        if self.counts.write_units != self.cache.absorbed_units + dirty_and_done {
            return Err("units written by the host got lost".to_owned());
        }
        self.ftl.check()
    }

    fn sectors_per_unit(&self) -> u64 {
        u64::from(self.parameters.geometry.unit_bytes) / Sector::SIZE.0
    }

    fn handle(&mut self, now: Ns, event: Event) {
        match event {
            Event::Ready(command) => self.begin(now, command),
            Event::PlaneDone(index) => self.plane_done(now, index),
            Event::WorkDone { die, generation } => {
                if self.dies[die as usize].generation == generation {
                    self.work_done(now, die);
                }
            }
            Event::Loaded(die) => self.poke(now, die),
            Event::Arrived(owner, bytes) => self.arrived(now, owner, bytes),
            Event::Buffered(command) => self.buffered(now, command),
            Event::Idle => self.maybe_idle(now),
        }
    }
}

impl Layer for Ssd {
    fn age(&mut self) {
        self.fill(1.0);
    }

    fn info(&self) -> Info {
        let geometry = &self.parameters.geometry;
        let per_unit = self.sectors_per_unit();
        // A SATA command counts sectors in 16 bits; a write must fit into half of the cache, with a
        // unit to spare where it is not aligned.
        let most = u64::from(self.parameters.cache_units / 2 - 1) * per_unit;
        Info {
            capacity: Sector(u64::from(geometry.logical_units) * per_unit),
            depth: self.parameters.host.depth,
            is_rotational: false,
            write_cache: match self.parameters.cache_policy {
                CachePolicy::Volatile => WriteCache::Back { has_fua: true },
                CachePolicy::Protected | CachePolicy::Through => WriteCache::Through,
            },
            max_sectors: most.min(65_535) as u32,
            chunk_sectors: 0,
            can_discard: true,
        }
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        let per_unit = self.sectors_per_unit();
        debug_assert!(bio.end() <= self.info().capacity, "a bio ends within the capacity");
        let command = Command {
            bio: *bio,
            first: (bio.sector.0 / per_unit) as u32,
            end: bio.end().0.div_ceil(per_unit) as u32,
            pending: 0,
            delivered: now,
        };
        let index = if let Some(index) = self.unused_commands.pop() {
            self.commands[index as usize] = command;
            index
        } else {
            self.commands.push(command);
            self.commands.len() as u32 - 1
        };
        self.in_flight += 1;
        self.is_idle = false;
        let host = &self.parameters.host;
        let kind = usize::from(bio.operation.is_write());
        let (busy, overhead) = match bio.operation {
            // The base time of a flush holds its overhead.
            Operation::Flush => (Ns(0), Ns(0)),
            _ => (host.controller[kind], host.overhead[kind]),
        };
        let understood = self.controller.occupy(now, busy) + overhead.since(busy);
        self.calendar.plan(understood, Event::Ready(index));
    }

    fn next_event(&self) -> Ns {
        self.calendar.next_event().min(self.finishing.next_event())
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let before = done.len();
        while let Some((_, id)) = self.finishing.take_due(now) {
            done.push(Ended::ok(id));
        }
        if done.len() > before {
            return;
        }
        while let Some((at, event)) = self.calendar.take_due(now) {
            self.handle(at, event);
        }
    }

    fn counters(&self) -> Vec<(String, f64)> {
        self.counter_values().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Ssd {
    fn counter_values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let counts = &self.counts;
        let flash = &self.ftl.counts;
        let unit = u64::from(self.parameters.geometry.unit_bytes);
        let folded = counts.folded_bytes;
        let programmed = (flash.host_units + flash.moved_units) * unit + folded;
        let written = counts.write_units * unit;
        let all = programmed + flash.padding_units * unit;
        let amplification = if written == 0 { 0.0 } else { all as f64 / written as f64 };
        let busiest = self.dies.iter().map(|die| die.busy.0).max().unwrap_or(0);
        let channel_busy: u64 = self.channels.iter().map(|channel| channel.busy.0).sum();
        [
            ("host_read_bytes", counts.read_bytes as f64),
            ("host_write_bytes", counts.write_bytes as f64),
            ("host_written_unit_bytes", written as f64),
            ("commands_read", counts.commands[0] as f64),
            ("commands_write", counts.commands[1] as f64),
            ("commands_discard", counts.commands[2] as f64),
            ("commands_flush", counts.commands[3] as f64),
            ("cache_read_hit_bytes", counts.cache_hit_bytes as f64),
            ("cache_absorbed_bytes", (self.cache.absorbed_units * unit) as f64),
            ("cache_dirty_bytes", (u64::from(self.cache.dirty()) * unit) as f64),
            ("flash_host_bytes", (flash.host_units * unit) as f64),
            ("flash_programmed_bytes", programmed as f64),
            ("flash_padding_bytes", (flash.padding_units * unit) as f64),
            ("flash_read_bytes", counts.flash_read_bytes as f64),
            ("flash_page_reads", counts.page_reads as f64),
            ("flash_slc_bytes", counts.slc_bytes as f64),
            ("flash_folded_bytes", folded as f64),
            ("gc_moved_bytes", (flash.moved_units * unit) as f64),
            ("gc_rows_read", flash.collect_rows as f64),
            ("erases", flash.erases as f64),
            ("suspensions", counts.suspensions as f64),
            ("read_retries", counts.read_retries as f64),
            ("merge_reads", counts.merge_reads as f64),
            ("trimmed_bytes", (counts.trimmed_units * unit) as f64),
            ("prefetch_hits", self.prefetch.hits as f64),
            ("map_cache_hits", self.map_cache.hits as f64),
            ("map_cache_misses", self.map_cache.misses as f64),
            ("write_amplification", amplification),
            ("die_busy_ns_max", busiest as f64),
            ("channel_busy_ns_sum", channel_busy as f64),
            ("link_busy_ns_sum", (self.links[0].busy.0 + self.links[1].busy.0) as f64),
            ("controller_busy_ns", self.controller.busy.0 as f64),
        ]
        .into_iter()
    }
}
