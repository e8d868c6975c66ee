//! The state machine of RAID 5 and RAID 6: a row is locked, read, computed, written, unlocked.
//!
//! Writes gather per row until the end of the instant, or for `batch_delay`, or while the row is
//! locked; what has gathered is written together (the stripe cache). With NVRAM a write is done
//! when it is stored there and rows are written later ([`super::destage`]). A lost member is
//! computed from the others ([`super::reads`]) and may be filled again ([`super::rebuild`]).
//!
//! A read that fails is computed from the other members, a write that fails costs the member
//! ([`super::errors`]).
//!
//! Left out: a second loss (what needs it fails with EIO, in RAID 6 too), reading through the
//! stripe cache, journals and partial parity logs, bad blocks, discards (not advertised, as with
//! md's default `devices_handle_discard_safely` = 0 in Linux drivers/md/raid5.c; ignored and
//! counted), and that md locks single pages of a row rather than the row.
//!
//! Sources: Chen et al. (1994); Linux drivers/md/raid5.c (behaviour).

use std::collections::VecDeque;

use iolab_model::{Ns, Sector, TraceEvent};

use super::destage::Nvram;
use super::geometry::{Geometry, Role};
use super::plan::{Method, RowPlan, Rule};
use super::rebuild::Rebuild;
use super::rows::{COLUMN_SECTORS, Rows};
use crate::Calendar;
use crate::api::bio::{Bio, Ended, Flags, Operation, ProcessId, Status};
use crate::api::layer::{Incident, Info, Layer};
use crate::error::SimError;
use crate::volume::members::{Finished, Members};
use crate::volume::parameters::{ParityLayout, Tie, VolumeParameters, WriteRule};
use crate::volume::ranges::Ranges;
use crate::volume::slots::Slots;
use crate::volume::transfer::Transfers;

/// Owner that waits for a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    /// A bio from above.
    Parent(u32),
    /// A bio from above, for a part of another member that could not be read.
    Retry(u32),
    /// A row that is being written.
    Row(u32),
    /// The rebuild.
    Rebuild,
}

/// Timer that is planned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// A row's parity has been computed.
    Computed(u32),
    /// A row may have waited long enough for more; by number.
    Batched(u64),
    /// The host may have been idle long enough.
    Idle,
    /// The rebuild may go on.
    Rebuild,
}

/// A bio from above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    pub(super) bio: Bio,
    /// Commands, or rows, that it waits for.
    pub(super) pending: u32,
    pub(super) is_flushing: bool,
    /// Sectors to be computed when all has been read.
    pub(super) xor_sectors: u64,
    /// The first failure that redundancy did not make good.
    pub(super) status: Status,
}

/// Sectors and rows, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) parity: u64,
    pub(super) modify_read: u64,
    pub(super) recover_read: u64,
    pub(super) lost: u64,
    pub(super) absorbed: u64,
    pub(super) cache_hit: u64,
    pub(super) rebuild_read: u64,
    pub(super) rebuild_written: u64,
    pub(super) discards_ignored: u64,
    pub(super) rows_full: u64,
    pub(super) rows_rmw: u64,
    pub(super) rows_rcw: u64,
    pub(super) rows_recover: u64,
    pub(super) rows_data_only: u64,
    pub(super) rows_at_risk_max: u64,
}

/// A volume with parity.
pub(in crate::volume) struct Array {
    pub(super) geometry: Geometry,
    pub(super) rule: Rule,
    pub(super) lost: Option<u16>,
    pub(super) xor_ns_per_kib: u64,
    pub(super) batch_delay: Ns,
    /// Stripe cache, in columns.
    pub(super) columns_max: u64,
    pub(super) columns_used: u64,
    pub(super) info: Info,
    pub(super) members: Members<Owner>,
    pub(super) parents: Slots<Parent>,
    pub(super) rows: Rows,
    /// Writes that wait for a place in the cache.
    pub(super) backlog: VecDeque<u32>,
    pub(super) ready: VecDeque<u32>,
    /// Time since which there was something to start; `Ns::MAX` if there is nothing.
    pub(super) ready_since: Ns,
    pub(super) timers: Calendar<Timer>,
    pub(super) finishing: Calendar<u32>,
    pub(super) nvram: Option<Nvram>,
    pub(super) rebuild: Option<Rebuild>,
    pub(super) counts: Counts,
    pub(super) transfers: Transfers,
    pub(super) wanted: Vec<Ranges>,
    pub(super) cost_plan: RowPlan,
    /// Rows whose data and parity would not match if the power failed now.
    pub(super) rows_at_risk: u64,
    finished: Vec<Finished<Owner>>,
}

impl Array {
    /// An array with `parities` parity units per row.
    pub(in crate::volume) fn new(
        layers: Vec<Box<dyn Layer>>,
        parities: u16,
        parameters: &VolumeParameters,
    ) -> Result<Self, SimError> {
        parameters.need(layers.len(), usize::from(parities) + 2)?;
        parameters.refuse(&[("write_behind", parameters.write_behind.is_some())])?;
        if parities == 1 {
            parameters.refuse(&[("raid6_rmw", parameters.raid6_rmw.is_some())])?;
        }
        let geometry = Geometry {
            disks: layers.len() as u16,
            parities,
            unit: parameters.unit_sectors()?,
            layout: parameters.parity_layout.unwrap_or(ParityLayout::LeftSymmetric),
        };
        let rule = Rule {
            write_rule: parameters.write_rule.unwrap_or(WriteRule::ReadCount),
            tie: parameters.tie.unwrap_or(Tie::Reconstruct),
            granularity: parameters.granularity_sectors()?,
            raid6_rmw: parameters.raid6_rmw.unwrap_or(true),
        };
        let smallest = parameters.smallest(&layers)?;
        let lost = parameters.lost(layers.len())?;
        let rebuild = Rebuild::new(parameters, geometry, smallest)?;
        let mut members = Members::new(layers, parameters.transfer_max()?);
        if rebuild.is_none() {
            members.lose(lost);
        }
        let mut timers = Calendar::default();
        if rebuild.is_some() {
            timers.plan(Ns(0), Timer::Rebuild);
        }
        let mut info = members.info(geometry.capacity(smallest));
        info.can_discard = false;
        Ok(Self {
            geometry,
            rule,
            lost,
            xor_ns_per_kib: parameters.xor_ns_per_kib(),
            batch_delay: Ns::from_us(parameters.batch_delay_us()),
            columns_max: parameters.stripe_cache_sectors() / COLUMN_SECTORS,
            columns_used: 0,
            info,
            members,
            parents: Slots::default(),
            rows: Rows::new(geometry.data()),
            backlog: VecDeque::new(),
            ready: VecDeque::new(),
            ready_since: Ns::MAX,
            timers,
            finishing: Calendar::default(),
            nvram: Nvram::new(parameters)?,
            rebuild,
            counts: Counts::default(),
            transfers: Transfers::default(),
            wanted: vec![Ranges::default(); usize::from(geometry.disks)],
            cost_plan: RowPlan::default(),
            rows_at_risk: 0,
            finished: Vec::new(),
        })
    }

    /// Role of the lost member in a row, unless the row has been rebuilt.
    pub(super) fn lost_role(&self, row: u64) -> Option<Role> {
        let is_rebuilt = self.rebuild.as_ref().is_some_and(|rebuild| row < rebuild.position());
        let lost = self.lost.filter(|_| !is_rebuilt)?;
        Some(self.geometry.role(row, lost))
    }

    /// Time to compute over so many sectors.
    pub(super) const fn xor_time(&self, sectors: u64) -> Ns {
        Ns(sectors * Sector::SIZE.0 * self.xor_ns_per_kib / 1024)
    }

    /// Note that there is something to start at this instant, after the layer above has reacted.
    pub(super) fn note_ready(&mut self, now: Ns) {
        self.ready_since = self.ready_since.min(now);
    }

    pub(super) const fn count_method(&mut self, method: Option<Method>) {
        let Some(method) = method else { return };
        *match method {
            Method::FullStripe => &mut self.counts.rows_full,
            Method::ReadModify => &mut self.counts.rows_rmw,
            Method::Reconstruct => &mut self.counts.rows_rcw,
            Method::Recover => &mut self.counts.rows_recover,
            Method::DataOnly => &mut self.counts.rows_data_only,
        } += 1;
    }

    fn start(&mut self, now: Ns, owner: u32) {
        self.parents[owner].is_flushing = false;
        match self.parents[owner].bio.operation {
            Operation::Read => self.start_read(now, owner),
            Operation::Write => self.start_write(now, owner),
            Operation::Discard => {
                self.counts.discards_ignored += 1;
                self.finishing.plan(now, owner);
            }
            Operation::Flush => unreachable!("a flush has no second step"),
        }
    }

    /// One thing that a parent waited for has ended.
    pub(super) fn release(&mut self, now: Ns, owner: u32, done: &mut Vec<Ended>) {
        let parent = &mut self.parents[owner];
        parent.pending -= 1;
        if parent.pending > 0 {
            return;
        }
        if parent.is_flushing && parent.bio.sectors > 0 {
            self.start(now, owner);
        } else if parent.xor_sectors > 0 {
            let at = now + self.xor_time(self.parents[owner].xor_sectors);
            self.finishing.plan(at, owner);
        } else {
            self.complete(owner, done);
        }
    }

    fn complete(&mut self, owner: u32, done: &mut Vec<Ended>) {
        let Parent { bio, status, .. } = self.parents[owner];
        done.push(Ended { id: bio.id, status });
        self.parents.remove(owner);
    }

    fn command_ended(&mut self, now: Ns, one: Finished<Owner>, done: &mut Vec<Ended>) {
        if let Err(errno) = one.status {
            self.command_failed(now, one, errno);
        }
        match one.owner {
            Owner::Parent(parent) | Owner::Retry(parent) => self.release(now, parent, done),
            Owner::Row(row) => self.row_command_ended(now, row, done),
            Owner::Rebuild => self.rebuild_command_ended(now),
        }
    }

    fn timer(&mut self, now: Ns, timer: Timer) {
        match timer {
            Timer::Computed(row) => self.write_row(now, row),
            Timer::Batched(number) => self.batch_ended(now, number),
            Timer::Idle => self.idle_timer(now),
            Timer::Rebuild => self.rebuild_timer(now),
        }
    }
}

impl Layer for Array {
    fn info(&self) -> Info {
        self.info
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        debug_assert!(bio.end() <= self.info.capacity, "{bio:?} is beyond the end");
        self.note_activity(now);
        let parent =
            Parent { bio: *bio, pending: 0, is_flushing: false, xor_sectors: 0, status: Ok(()) };
        let owner = self.parents.add(parent);
        if bio.operation == Operation::Flush || bio.flags.contains(Flags::PREFLUSH) {
            self.parents[owner].is_flushing = true;
            let pending = self.members.flush(now, bio.submitter, Owner::Parent(owner));
            self.parents[owner].pending = pending;
        } else {
            self.start(now, owner);
        }
    }

    fn next_event(&self) -> Ns {
        let planned = self.timers.next_event().min(self.finishing.next_event());
        self.members.next_event().min(planned).min(self.ready_since)
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let mut finished = core::mem::take(&mut self.finished);
        self.members.advance(now, &mut finished);
        let mut has_ended = !finished.is_empty();
        for one in finished.drain(..) {
            self.command_ended(now, one, done);
        }
        self.finished = finished;
        while let Some((_, owner)) = self.finishing.take_due(now) {
            self.complete(owner, done);
            has_ended = true;
        }
        if has_ended {
            return;
        }
        while let Some((_, timer)) = self.timers.take_due(now) {
            self.timer(now, timer);
        }
        if self.ready_since <= now {
            self.ready_since = Ns::MAX;
            self.start_ready(now);
        }
    }

    fn incidents(&self, list: &mut Vec<Incident>) {
        self.members.incidents(if self.geometry.parities == 2 { "raid6" } else { "raid5" }, list);
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

    fn counters(&self) -> Vec<(String, f64)> {
        let counts = &self.counts;
        let bytes = |sectors: u64| sectors * Sector::SIZE.0;
        let own = [
            ("read_bytes", bytes(counts.read)),
            ("write_bytes", bytes(counts.written)),
            ("parity_bytes", bytes(counts.parity)),
            ("modify_read_bytes", bytes(counts.modify_read)),
            ("recover_read_bytes", bytes(counts.recover_read)),
            ("lost_bytes", bytes(counts.lost)),
            ("absorbed_bytes", bytes(counts.absorbed)),
            ("cache_hit_bytes", bytes(counts.cache_hit)),
            ("rebuild_read_bytes", bytes(counts.rebuild_read)),
            ("rebuild_write_bytes", bytes(counts.rebuild_written)),
            ("discards_ignored", counts.discards_ignored),
            ("rows_full", counts.rows_full),
            ("rows_rmw", counts.rows_rmw),
            ("rows_rcw", counts.rows_rcw),
            ("rows_recover", counts.rows_recover),
            ("rows_data_only", counts.rows_data_only),
            ("rows_at_risk", self.rows_at_risk),
            ("rows_at_risk_max", counts.rows_at_risk_max),
            ("nvram_dirty_bytes", bytes(self.nvram.as_ref().map_or(0, |nvram| nvram.dirty))),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value as f64));
        own.into_iter().chain(self.members.counters()).collect()
    }
}
