//! Filling a replacement: window by window, throttled between a least and a greatest speed.
//!
//! A window is some whole rows; they are locked while their lost unit is read from the others,
//! computed and written. The next window starts one window length later at the greatest speed, or
//! at the least speed if a request came from above in the meantime.
//!
//! Source: Linux md(4), `speed_limit_min` and `speed_limit_max` (behaviour).

use core::ops::Range;

use iolab_model::{Ns, Sector};

use super::array::{Array, Owner, Timer};
use super::geometry::{Geometry, Role};
use super::rows::Phase;
use crate::api::bio::{Flags, Operation, Priority, PriorityClass, ProcessId, Submitter};
use crate::error::SimError;
use crate::volume::members::Command;
use crate::volume::parameters::VolumeParameters;
use crate::volume::transfer::Transfer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing is locked; a timer is planned.
    Pausing,
    /// The window is locked, writes in it have to end first.
    Blocked,
    Reading,
    Computing,
    Writing,
}

/// State of a rebuild.
#[derive(Debug)]
pub(super) struct Rebuild {
    window: Range<u64>,
    rows: u64,
    window_rows: u64,
    /// Shortest and longest time from one window to the next.
    pace: (Ns, Ns),
    step: Step,
    started: Ns,
    pending: u32,
    has_activity: bool,
}

/// The kernel thread that rebuilds: a process of its own, of everybody's priority.
const REBUILD_SUBMITTER: Submitter = Submitter {
    process: ProcessId(u32::MAX),
    priority: Priority { class: PriorityClass::BestEffort, level: 4 },
    cpu: 0,
};

const fn rebuild_command(operation: Operation) -> Command {
    Command { operation, flags: Flags::NONE, submitter: REBUILD_SUBMITTER, memory: (0, 0) }
}

/// Time to move `sectors` at a speed.
const fn time_at(sectors: u64, kib_per_second: u64) -> Ns {
    Ns(sectors * Sector::SIZE.0 * 1_000_000_000 / (kib_per_second * 1024))
}

impl Rebuild {
    /// As described; nothing if there is nothing to rebuild.
    pub(super) fn new(
        parameters: &VolumeParameters,
        geometry: Geometry,
        disk: Sector,
    ) -> Result<Option<Self>, SimError> {
        let unit = u64::from(geometry.unit);
        let speeds = parameters.rebuild_speeds()?;
        let window_rows = (u64::from(parameters.rebuild_window_sectors()?) / unit).max(1);
        if !parameters.rebuild.unwrap_or(false) {
            return Ok(None);
        }
        if parameters.lost_member.is_none() {
            let problem = "rebuild is set, but no member is lost".to_owned();
            return Err(parameters.wrong(problem, "give lost_member or leave rebuild out"));
        }
        let pace = |speed| time_at(window_rows * unit, speed);
        Ok(Some(Self {
            window: 0..0,
            rows: disk.0 / unit,
            window_rows,
            pace: (pace(speeds.1), pace(speeds.0)),
            step: Step::Pausing,
            started: Ns(0),
            pending: 0,
            has_activity: false,
        }))
    }

    /// First row that has not been rebuilt.
    pub(super) const fn position(&self) -> u64 {
        if matches!(self.step, Step::Pausing) { self.window.end } else { self.window.start }
    }

    /// Tell whether the row is locked by the rebuild.
    pub(super) fn holds(&self, row: u64) -> bool {
        self.step != Step::Pausing && self.window.contains(&row)
    }

    /// Note that the volume is in use.
    pub(super) const fn note_activity(&mut self) {
        self.has_activity = true;
    }
}

impl Array {
    /// The rebuild goes on: with the next window, or with writing the computed one.
    pub(super) fn rebuild_timer(&mut self, now: Ns) {
        let Some(rebuild) = &mut self.rebuild else { return };
        if rebuild.step == Step::Computing {
            self.write_window(now);
            return;
        }
        let start = rebuild.window.end;
        rebuild.window = start..(start + rebuild.window_rows).min(rebuild.rows);
        rebuild.started = now;
        rebuild.has_activity = false;
        rebuild.step = Step::Blocked;
        self.rebuild_unblock(now);
    }

    /// Reads the window as soon as no row in it is being written.
    pub(super) fn rebuild_unblock(&mut self, now: Ns) {
        let Some(rebuild) = &self.rebuild else { return };
        let mut slots = self.rows.within(rebuild.window.clone());
        let is_busy = slots.any(|slot| self.rows[slot].phase != Phase::Idle);
        if rebuild.step == Step::Blocked && !is_busy {
            drop(slots);
            self.read_window(now);
        }
    }

    fn read_window(&mut self, now: Ns) {
        let (Some(rebuild), Some(lost)) = (&mut self.rebuild, self.lost) else { return };
        let (geometry, unit) = (self.geometry, u64::from(self.geometry.unit));
        self.transfers.clear();
        for row in rebuild.window.clone() {
            let needs_p = matches!(geometry.role(row, lost), Role::Data(_));
            let data = (0..geometry.data()).map(Role::Data);
            for role in data.chain(needs_p.then_some(Role::P)) {
                if geometry.disk(row, role) != lost {
                    self.transfers.push(geometry.transfer(row, role, 0, unit));
                }
            }
        }
        let command = rebuild_command(Operation::Read);
        rebuild.step = Step::Reading;
        rebuild.pending = 0;
        self.counts.rebuild_read += self.transfers.sectors();
        for &read in self.transfers.as_slice() {
            rebuild.pending += self.members.send(now, read, command, Owner::Rebuild);
        }
    }

    fn write_window(&mut self, now: Ns) {
        let (Some(rebuild), Some(lost)) = (&mut self.rebuild, self.lost) else { return };
        let unit = u64::from(self.geometry.unit);
        let write = Transfer {
            member: lost,
            sector: Sector(rebuild.window.start * unit),
            sectors: ((rebuild.window.end - rebuild.window.start) * unit) as u32,
        };
        self.counts.rebuild_written += u64::from(write.sectors);
        rebuild.step = Step::Writing;
        let command = rebuild_command(Operation::Write);
        rebuild.pending = self.members.send(now, write, command, Owner::Rebuild);
    }

    /// A command of the rebuild has ended.
    pub(super) fn rebuild_command_ended(&mut self, now: Ns) {
        let Some(rebuild) = &mut self.rebuild else { return };
        rebuild.pending -= 1;
        if rebuild.pending > 0 {
            return;
        }
        if rebuild.step == Step::Reading {
            rebuild.step = Step::Computing;
            let rows = rebuild.window.end - rebuild.window.start;
            let inputs = u64::from(self.geometry.data()) + 1;
            let time = self.xor_time(rows * inputs * u64::from(self.geometry.unit));
            self.timers.plan(now + time, Timer::Rebuild);
        } else {
            self.finish_window(now);
        }
    }

    fn finish_window(&mut self, now: Ns) {
        let Some(rebuild) = &mut self.rebuild else { return };
        rebuild.step = Step::Pausing;
        let window = rebuild.window.clone();
        let pace = if rebuild.has_activity { rebuild.pace.1 } else { rebuild.pace.0 };
        let next = now.max(rebuild.started + pace);
        if window.end < rebuild.rows {
            self.timers.plan(next, Timer::Rebuild);
        } else {
            (self.rebuild, self.lost) = (None, None);
        }
        let waiting: Vec<u32> = self.rows.within(window).collect();
        for slot in waiting {
            if self.nvram.is_some() {
                self.price(slot);
                self.note_ready(now);
            } else {
                self.make_ready(now, slot);
            }
        }
    }
}
