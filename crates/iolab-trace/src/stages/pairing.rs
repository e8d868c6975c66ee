//! Events that belong to one bio, found by device and sectors, and the times between them.
//!
//! Rules, after btt(1) with its source's behaviour observed on recorded traces:
//! - A bio is known from Q on. G, S, I, M and F belong to the bio that covers their first sector; D
//!   and C to all bios that lie within theirs. So a merged bio has the D and C of its request.
//! - A stage is counted when its later event comes. Events out of order give 1 ns.
//! - A device is looked at from its first Q or A on. Events without bytes (flushes) are counted,
//!   but have no stages; packet commands are left out.
//! - A request that is put back and issued again counts its wait for each issue; its time in the
//!   device is that of the last.
//!
//! [`Rules::Own`] departs from btt where that loses bios: a second bio for the same sectors is a
//! bio of its own, and a bio that is split becomes two, of which the second entered the queue when
//! the whole did. As long as a device has no Q (a trace of issues and completions), a request
//! begins with its D: it has its time in the device, and nothing is known of its wait. Flushes of
//! the device's cache, which have no bytes, are a stage of their own and keep the device busy; the
//! event that ends a write of a flush sequence once more is no second completion. What was under
//! way where events were lost is given up. [`Rules::Btt`] does none of this, so that its numbers
//! are btt's.

use std::collections::{BTreeMap, VecDeque};

use iolab_model::histogram::Histogram;

use super::activity::Activity;
use super::calls::Layers;
use super::counts::{Counts, is_flush};
use super::groups::{By, Group, Stage, direction_of, is_transfer, size_class_of};
use super::pending::{Bio, NEVER, Pending, Starts};
use super::periods::{Covered, Ranges};
use super::processes::Processes;
use super::seeks::Seeks;
use crate::error::Error;
use crate::event::{Action, Device, Event};
use crate::ring::tells_loss;
use crate::source::Source;

/// Devices that are told apart; events of others are counted as such.
const DEVICES_MAX: usize = 64;
/// Flushes of one device that are under way at once.
const FLUSHING_MAX: usize = 1024;
/// Groups over all devices; bios of further ones share the last.
const GROUPS_MAX: usize = 1024;
/// Bins of the time from queue to issue, in milliseconds: btt's histogram.
const Q2D_BINS_MS: [u64; 9] = [5, 10, 25, 50, 75, 100, 250, 500, 1000];

/// Program whose rules of counting hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// No bio is lost.
    Own,
    /// As btt, to the printed digit.
    Btt,
}

/// Plugs of one device, by btt's rules: one that is set twice is set once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plugs {
    since_ns: Option<u64>,
    /// Plugs taken away, and by a timer.
    pub count: [u64; 2],
    /// Requests in them.
    pub requests: [u64; 2],
    /// Time at which one was set.
    pub plugged_ns: u64,
}

/// One device.
pub struct OfDevice {
    /// The device.
    pub device: Device,
    /// Bios between queue and completion.
    pub(super) starts: Starts,
    /// Issues of flushes that are under way: time, and group.
    flushing: VecDeque<(u64, u32)>,
    is_begun: bool,
    /// Time of its first event, and of the last that counts.
    pub span_ns: (u64, u64),
    last_queued_ns: Option<u64>,
    /// Times between bios.
    pub between: Histogram,
    /// Groups by what the user asked for.
    pub groups: BTreeMap<u32, u32>,
    /// Counts of events.
    pub counts: Counts,
    /// Distances between bios that enter the queue.
    pub queue_seeks: Seeks,
    /// Distances between requests that are issued.
    pub issue_seeks: Seeks,
    /// Depths over time.
    pub activity: Activity,
    /// Time covered by requests in the device, by completed bios.
    pub covered: Covered,
    /// Bios that had entered the queue and were neither merged nor issued, and the sum of that over
    /// all that entered: btt's "active requests at Q".
    pub waiting: (u64, u64),
    /// Bios that entered, requeued ones again.
    pub entered: u64,
    /// Requests issued.
    pub issues: u64,
    /// Sectors of completions: smallest, largest, sum.
    pub sectors: Histogram,
    /// Times from queue to issue in btt's bins.
    pub q2d_bins: [u64; Q2D_BINS_MS.len() + 1],
    /// Plugs.
    pub plugs: Plugs,
    /// Periods in which bios entered, and in which something was completed.
    pub ranges: [Ranges; 2],
}

impl OfDevice {
    fn new(device: Device, now_ns: u64) -> Self {
        let mut activity = Activity::default();
        activity.advance(now_ns);
        Self {
            device,
            starts: Starts::new(),
            flushing: VecDeque::new(),
            is_begun: false,
            span_ns: (now_ns, now_ns),
            last_queued_ns: None,
            between: Histogram::new(),
            groups: BTreeMap::new(),
            counts: Counts::default(),
            queue_seeks: Seeks::default(),
            issue_seeks: Seeks::default(),
            activity,
            covered: Covered::default(),
            waiting: (0, 0),
            entered: 0,
            issues: 0,
            sectors: Histogram::new(),
            q2d_bins: [0; Q2D_BINS_MS.len() + 1],
            plugs: Plugs::default(),
            ranges: [Ranges::default(), Ranges::default()],
        }
    }

    /// Tell whether it only maps bios to other devices: major numbers of md and device mapper, and
    /// 254, as in btt.
    pub const fn is_mapper(&self) -> bool {
        matches!(self.device.major(), 9 | 253 | 254)
    }

    fn enter(&mut self) {
        self.entered += 1;
        self.waiting.1 += self.waiting.0;
        self.waiting.0 += 1;
    }
}

/// The whole state.
pub struct Pairing {
    rules: Rules,
    by: By,
    pending: Pending,
    found: Vec<u32>,
    latest: usize,
    /// Devices in the order in which they appeared.
    pub devices: Vec<OfDevice>,
    /// Groups of all devices.
    pub groups: Vec<Group>,
    /// Processes.
    pub processes: Processes,
    /// Events of other layers.
    pub layers: Layers,
    /// Times between bios of all devices: of those that do work, and of those that only map.
    pub between: [Histogram; 2],
    last_queued_ns: Option<u64>,
    /// Periods of all devices, see [`OfDevice::ranges`].
    pub ranges: [Ranges; 2],
    /// Time covered by requests on any device.
    pub covered: Covered,
    genesis: Option<u64>,
    /// Events that were no notes.
    pub events: u64,
    /// Packet commands, which have no stages.
    pub packets: u64,
    /// Events of devices that are too many.
    pub events_left_out: u64,
    /// Places where events were lost.
    pub gaps: u64,
    /// Events that were earlier than one before them.
    pub times_back: u64,
    /// Time of the latest event, from the first on.
    pub end_ns: u64,
}

fn between(from_ns: u64, to_ns: u64) -> u64 {
    if from_ns < to_ns { to_ns - from_ns } else { 1 }
}

impl Pairing {
    /// Nothing seen yet.
    pub fn new(rules: Rules, by: By) -> Self {
        Self {
            rules,
            by,
            pending: Pending::default(),
            found: Vec::new(),
            latest: 0,
            devices: Vec::new(),
            groups: Vec::new(),
            processes: Processes::default(),
            layers: Layers::default(),
            between: [Histogram::new(), Histogram::new()],
            last_queued_ns: None,
            ranges: [Ranges::default(), Ranges::default()],
            covered: Covered::default(),
            genesis: None,
            events: 0,
            packets: 0,
            events_left_out: 0,
            gaps: 0,
            times_back: 0,
            end_ns: 0,
        }
    }

    /// Takes all events of a source.
    ///
    /// # Errors
    /// The error of the source.
    pub fn of(source: &mut dyn Source, rules: Rules, by: By) -> Result<Self, Error> {
        let mut pairing = Self::new(rules, by);
        let mut event = Event::default();
        while source.next(&mut event)? {
            if pairing.genesis.is_none() && rules == Rules::Own {
                // The part that is asked for, also where nothing happened at its beginning.
                pairing.genesis = source.bounds_ns().map(|(begin_ns, _)| begin_ns);
            }
            pairing.add(&event);
        }
        if let Some((begin_ns, end_ns)) = source.bounds_ns().filter(|_| rules == Rules::Own) {
            pairing.end_ns = pairing.end_ns.max(end_ns.saturating_sub(begin_ns));
        }
        pairing.finish();
        Ok(pairing)
    }

    /// Property by which groups are told apart.
    pub const fn by(&self) -> By {
        self.by
    }

    /// Bios of a device that were not completed.
    pub fn unfinished<'a>(&'a self, device: &'a OfDevice) -> impl Iterator<Item = &'a Bio> {
        self.pending.all(&device.starts)
    }

    /// Takes one event.
    #[inline]
    pub fn add(&mut self, event: &Event) {
        match event.action {
            Action::NoteProcess => {
                return self.processes.learn(event, self.rules == Rules::Own);
            }
            Action::NoteTime => return,
            Action::Message if event.cgroup.is_some() => return,
            _ => {}
        }
        self.events += 1;
        let now_ns = event.time_ns.saturating_sub(*self.genesis.get_or_insert(event.time_ns));
        let latest_ns = self.genesis.unwrap_or(0).saturating_add(self.end_ns);
        self.times_back += u64::from(event.time_ns < latest_ns);
        self.end_ns = self.end_ns.max(now_ns);
        if event.action == Action::Message && self.rules == Rules::Own && tells_loss(&event.payload)
        {
            return self.give_up(now_ns);
        }
        if event.action == Action::Point {
            return self.layers.add(event);
        }
        if event.is_packet() {
            self.packets += 1;
            return;
        }
        if let Some(index) = self.device(event, now_ns) {
            self.take(event, index, now_ns);
        }
    }

    /// Events are missing from here on: what is under way may never be heard of again.
    fn give_up(&mut self, now_ns: u64) {
        self.gaps += 1;
        for device in &mut self.devices {
            device.activity.advance(now_ns);
            device.activity.give_up();
            device.flushing.clear();
            device.counts.forgotten += self.pending.clear(&mut device.starts);
        }
    }

    /// Number of the event's device; `None` if it is not looked at, or not yet.
    #[inline]
    fn device(&mut self, event: &Event, now_ns: u64) -> Option<usize> {
        let has_stages = match event.action {
            Action::Plugged | Action::Unplugged | Action::TimerUnplugged | Action::Split => None,
            Action::Message | Action::Requeued | Action::Remapped => Some(true),
            Action::Queued
            | Action::Got
            | Action::Slept
            | Action::Inserted
            | Action::BackMerged
            | Action::FrontMerged
            | Action::Issued
            | Action::Completed => Some(event.bytes > 0),
            _ => return None,
        };
        let known = match self.devices.get(self.latest) {
            Some(latest) if latest.device == event.device => Some(self.latest),
            _ => self.devices.iter().position(|known| known.device == event.device),
        };
        let index = match (known, has_stages) {
            (Some(index), _) => index,
            (None, Some(true)) if self.devices.len() < DEVICES_MAX => {
                self.devices.push(OfDevice::new(event.device, now_ns));
                self.devices.len() - 1
            }
            _ => {
                self.events_left_out += u64::from(self.devices.len() == DEVICES_MAX);
                return None;
            }
        };
        self.latest = index;
        let device = &mut self.devices[index];
        if has_stages == Some(true) {
            let begins = match event.action {
                Action::Queued | Action::Remapped => true,
                Action::Issued => self.rules == Rules::Own,
                _ => false,
            };
            device.is_begun |= begins;
            if device.is_begun {
                device.span_ns.1 = device.span_ns.1.max(now_ns);
            }
        }
        Some(index)
    }

    fn take(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        device.counts.add(event, self.rules);
        match event.action {
            Action::Plugged => {
                device.plugs.since_ns.get_or_insert(now_ns);
            }
            Action::Unplugged => unplug(device, now_ns, Some((0, event.number()))),
            Action::TimerUnplugged => unplug(device, now_ns, Some((1, event.number()))),
            _ if !device.is_begun => {}
            Action::Requeued => self.put_back(event, index, now_ns),
            // The kernel's trace point tells where, without a length.
            Action::Split if self.rules == Rules::Own => self.split(event, index, now_ns),
            Action::Issued | Action::Completed if is_flush(event) => {
                self.flush(event, index, now_ns);
            }
            _ if event.bytes == 0 => {}
            Action::Queued => self.queue(event, index, now_ns),
            Action::Completed => self.complete(event, index, now_ns),
            Action::Issued => self.issue(event, index, now_ns),
            Action::Remapped => self.remap(event, now_ns),
            Action::Got
            | Action::Slept
            | Action::Inserted
            | Action::BackMerged
            | Action::FrontMerged => self.step(event, index, now_ns),
            _ => {}
        }
    }

    fn queue(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        if self.rules == Rules::Btt && device.starts.contains_key(&event.sector) {
            return;
        }
        device.queue_seeks.add(event.sector, event.end());
        device.ranges[0].add(now_ns);
        self.ranges[0].add(now_ns);
        let kind = usize::from(device.is_mapper());
        if let Some(last) = device.last_queued_ns.replace(now_ns) {
            device.between.record(between(last, now_ns));
        }
        if let Some(last) = self.last_queued_ns.replace(now_ns) {
            self.between[kind].record(between(last, now_ns));
        }
        let number = self.processes.of(event.pid);
        let process = &mut self.processes.all[number as usize];
        process.queued.add(now_ns);
        if let Some(last) = process.last_queued_ns.replace(now_ns) {
            let histogram = process.between[kind].get_or_insert_with(Default::default);
            histogram.record(between(last, now_ns));
        }
        device.enter();
        let group = self.group(event, index, number);
        self.groups[group as usize].queued.add(event.bytes);
        let mut bio = Bio::new(event.sector, event.end(), now_ns);
        bio.bytes = event.bytes;
        (bio.device, bio.group, bio.process) = (index as u32, group, number);
        self.make_room();
        let device = &mut self.devices[index];
        device.activity.advance(now_ns);
        if self.pending.insert(bio, &mut device.starts) {
            device.activity.enter(1);
        } else {
            device.counts.forgotten += 1;
        }
    }

    /// Number of the group of a bio.
    #[inline]
    fn group(&mut self, event: &Event, index: usize, process: u32) -> u32 {
        let key = match self.by {
            By::Device => 0,
            By::Process => process,
            By::Direction => direction_of(event),
            By::Size => size_class_of(event.bytes),
        };
        let groups = &mut self.devices[index].groups;
        if let Some(group) = groups.get(&key) {
            return *group;
        }
        if self.groups.len() >= GROUPS_MAX {
            return (self.groups.len() - 1) as u32;
        }
        self.groups.push(Group::default());
        let group = (self.groups.len() - 1) as u32;
        groups.insert(key, group);
        group
    }

    /// Gives up the oldest bio if there is no place for another.
    fn make_room(&mut self) {
        if self.pending.is_full() {
            let at = self.pending.oldest();
            let bio = *self.pending.get(at);
            let device = &mut self.devices[bio.device as usize];
            self.pending.remove(at, &mut device.starts);
            device.counts.forgotten += 1;
            device.activity.forget(u64::from(bio.has_queued()));
            device.activity.put_back(u64::from(bio.is_head));
        }
    }

    /// G, S, I, M and F.
    fn step(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        let (action, sector) = (event.action, event.sector);
        let is_wanted = |bio: &Bio| match action {
            Action::Inserted => bio.inserted_ns == NEVER && bio.issued_ns == NEVER,
            _ => bio.got_ns == NEVER && bio.merged_ns == NEVER && bio.issued_ns == NEVER,
        };
        let found = self.pending.covering(&device.starts, sector, is_wanted);
        let is_merge = matches!(action, Action::BackMerged | Action::FrontMerged);
        if is_merge {
            device.waiting.0 = device.waiting.0.saturating_sub(1);
        }
        let Some(at) = found.filter(|at| self.pending.get(*at).has_queued()) else { return };
        let bio = self.pending.get(at);
        let stages = &mut self.groups[bio.group as usize].stages;
        match action {
            Action::Got => {
                bio.got_ns = now_ns;
                stages.record(Stage::Q2G, between(bio.queued_ns, now_ns));
                if bio.slept_ns != NEVER {
                    stages.record(Stage::S2G, between(bio.slept_ns, now_ns));
                }
            }
            Action::Slept => bio.slept_ns = now_ns,
            Action::Inserted => {
                bio.inserted_ns = now_ns;
                if bio.got_ns != NEVER {
                    stages.record(Stage::G2I, between(bio.got_ns, now_ns));
                }
            }
            _ => {
                bio.merged_ns = now_ns;
                stages.record(Stage::Q2M, between(bio.queued_ns, now_ns));
            }
        }
    }

    /// Bios of a request: those within its sectors, and of these those for which `is_wanted`
    /// holds, if there are any.
    #[inline]
    fn within(
        &mut self,
        event: &Event,
        index: usize,
        is_wanted: impl Fn(&Bio) -> bool,
    ) -> Vec<u32> {
        let mut found = std::mem::take(&mut self.found);
        let range = (event.sector, event.end());
        self.pending.within(&self.devices[index].starts, range, &is_wanted, &mut found);
        if self.rules == Rules::Own && found.len() > 1 {
            let has_wanted = found.iter().any(|at| is_wanted(self.pending.get(*at)));
            if has_wanted {
                found.retain(|at| is_wanted(self.pending.get(*at)));
            }
        }
        found
    }

    fn issue(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        device.waiting.0 = device.waiting.0.saturating_sub(1);
        device.issue_seeks.add(event.sector, event.end());
        device.issues += 1;
        device.activity.advance(now_ns);
        let found = self.within(event, index, |bio| bio.issued_ns == NEVER);
        let device = &mut self.devices[index];
        let mut has_head = false;
        for at in &found {
            let bio = self.pending.get(*at);
            let stages = &mut self.groups[bio.group as usize].stages;
            if bio.inserted_ns != NEVER {
                stages.record(Stage::I2D, between(bio.inserted_ns, now_ns));
            } else if bio.merged_ns != NEVER {
                stages.record(Stage::M2D, between(bio.merged_ns, now_ns));
            }
            if bio.has_queued() {
                let waited = now_ns.saturating_sub(bio.queued_ns);
                stages.record(Stage::Q2D, waited);
                let ms = waited / 1_000_000;
                device.q2d_bins[Q2D_BINS_MS.partition_point(|end| *end <= ms)] += 1;
            }
            bio.issued_ns = now_ns;
            has_head |= bio.is_head;
        }
        if let (false, Some(first)) = (has_head, found.first()) {
            self.pending.get(*first).is_head = true;
            device.activity.issue();
        }
        let is_alone = found.is_empty() && device.last_queued_ns.is_none();
        self.found = found;
        if is_alone && self.rules == Rules::Own {
            self.issue_alone(event, index, now_ns);
        }
    }

    /// A request of which nothing was heard before.
    fn issue_alone(&mut self, event: &Event, index: usize, now_ns: u64) {
        let process = self.processes.of(event.pid);
        let group = self.group(event, index, process);
        let mut bio = Bio::new(event.sector, event.end(), NEVER);
        (bio.device, bio.group, bio.process) = (index as u32, group, process);
        (bio.bytes, bio.issued_ns, bio.is_head) = (event.bytes, now_ns, true);
        self.make_room();
        let device = &mut self.devices[index];
        if self.pending.insert(bio, &mut device.starts) {
            device.activity.issue();
        } else {
            device.counts.forgotten += 1;
        }
    }

    fn complete(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        device.sectors.record(u64::from(event.sectors()));
        device.ranges[1].add(now_ns);
        self.ranges[1].add(now_ns);
        let number = self.processes.of(event.pid);
        self.processes.all[number as usize].completed.add(now_ns);
        device.activity.advance(now_ns);
        let found = self.within(event, index, |bio| bio.issued_ns != NEVER);
        let device = &mut self.devices[index];
        let (mut entered, mut requests, mut bytes) = (0, 0, 0);
        let is_transfer = is_transfer(event);
        for at in &found {
            let bio = *self.pending.get(*at);
            let group = &mut self.groups[bio.group as usize];
            if bio.has_queued() {
                entered += 1;
                group.stages.record(Stage::Q2C, between(bio.queued_ns, now_ns));
            }
            group.completed.add(bio.bytes);
            group.transferred_bytes += if is_transfer { u64::from(bio.bytes) } else { 0 };
            bytes += u64::from(bio.bytes);
            if bio.issued_ns != NEVER {
                device.covered.add(bio.issued_ns, now_ns);
                self.covered.add(bio.issued_ns, now_ns);
                group.stages.record(Stage::D2C, between(bio.issued_ns, now_ns));
            }
            requests += u64::from(bio.is_head);
            self.pending.remove(*at, &mut device.starts);
        }
        device.activity.complete([found.len() as u64, entered, requests], bytes);
        device.counts.completed_unknown += u64::from(found.is_empty());
        self.found = found;
    }

    /// A flush of the device's cache begins or ends; they end in their order.
    fn flush(&mut self, event: &Event, index: usize, now_ns: u64) {
        if self.rules == Rules::Btt {
            return;
        }
        if event.action == Action::Issued {
            let process = self.processes.of(event.pid);
            let group = self.group(event, index, process);
            let device = &mut self.devices[index];
            device.activity.advance(now_ns);
            if device.flushing.len() < FLUSHING_MAX {
                device.flushing.push_back((now_ns, group));
                device.activity.issue();
            }
            return;
        }
        let device = &mut self.devices[index];
        device.activity.advance(now_ns);
        if let Some((begin_ns, group)) = device.flushing.pop_front() {
            device.activity.put_back(1);
            self.groups[group as usize].stages.record(Stage::Flush, between(begin_ns, now_ns));
        }
    }

    fn put_back(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        device.enter();
        device.activity.advance(now_ns);
        if self.rules == Rules::Own && is_flush(event) {
            device.activity.put_back(u64::from(device.flushing.pop_back().is_some()));
            return;
        }
        let found = self.within(event, index, |bio| bio.issued_ns != NEVER);
        let device = &mut self.devices[index];
        for at in &found {
            let bio = self.pending.get(*at);
            if self.rules == Rules::Own {
                bio.issued_ns = NEVER;
            }
            if std::mem::take(&mut bio.is_head) {
                device.activity.put_back(1);
            }
        }
        self.found = found;
    }

    /// The part of a bio behind the split becomes a bio of its own.
    fn split(&mut self, event: &Event, index: usize, now_ns: u64) {
        let device = &mut self.devices[index];
        let (start, at_sector) = (event.sector, event.number());
        let is_whole = |bio: &Bio| bio.start == start && bio.issued_ns == NEVER;
        let Some(at) = self.pending.covering(&device.starts, start, is_whole) else { return };
        let whole = self.pending.get(at);
        let has_rest = whole.has_queued() && whole.start < at_sector && at_sector < whole.end;
        if !has_rest {
            return;
        }
        let mut rest = *whole;
        let sectors = at_sector - whole.start;
        let first_bytes = u32::try_from(sectors.saturating_mul(512)).unwrap_or(u32::MAX);
        whole.end = at_sector;
        rest.bytes = whole.bytes.saturating_sub(first_bytes);
        whole.bytes = whole.bytes.min(first_bytes);
        let mut fresh = Bio::new(at_sector, rest.end, rest.queued_ns);
        fresh.bytes = rest.bytes;
        (fresh.device, fresh.group, fresh.process) = (rest.device, rest.group, rest.process);
        rest = fresh;
        self.make_room();
        let device = &mut self.devices[index];
        device.activity.advance(now_ns);
        if self.pending.insert(rest, &mut device.starts) {
            device.activity.enter_late(rest.queued_ns);
        } else {
            device.counts.forgotten += 1;
        }
    }

    fn remap(&mut self, event: &Event, now_ns: u64) {
        let Some(from) = event.remap() else { return };
        let Some(source) = self.devices.iter().find(|known| known.device == from.device) else {
            return;
        };
        let found = self.pending.covering(&source.starts, from.sector, |_| true);
        if let Some(at) = found.filter(|at| self.pending.get(*at).has_queued()) {
            let bio = self.pending.get(at);
            let stages = &mut self.groups[bio.group as usize].stages;
            stages.record(Stage::Q2A, between(bio.queued_ns, now_ns));
        }
    }

    /// Ends what is still open at the last event.
    pub fn finish(&mut self) {
        for device in &mut self.devices {
            let end_ns = device.span_ns.1;
            unplug(device, end_ns, None);
            device.activity.advance(self.end_ns);
        }
    }
}

/// Takes a plug away: by a request (0) or a timer (1) with so many requests, or at the end.
fn unplug(device: &mut OfDevice, now_ns: u64, by: Option<(usize, u64)>) {
    let plugs = &mut device.plugs;
    if let Some(since) = plugs.since_ns.take() {
        let (kind, requests) = by.unwrap_or((0, 0));
        plugs.count[kind] += 1;
        plugs.requests[kind] = plugs.requests[kind].saturating_add(requests);
        plugs.plugged_ns += now_ns.saturating_sub(since);
    }
}
