//! Writing: parents give sectors to rows, rows are read, computed and written.

use iolab_model::Ns;

use super::array::{Array, Owner, Timer};
use super::plan::RowWrite;
use super::rows::Phase;
use crate::api::bio::Ended;
use crate::volume::members::Command;

impl Array {
    /// A write arrives; it may have to wait for a place in the cache.
    pub(super) fn start_write(&mut self, now: Ns, owner: u32) {
        self.counts.written += u64::from(self.parents[owner].bio.sectors);
        if self.backlog.is_empty() && self.has_room(owner) {
            self.admit(now, owner);
        } else {
            self.backlog.push_back(owner);
            self.note_ready(now);
        }
    }

    fn has_room(&self, owner: u32) -> bool {
        match &self.nvram {
            Some(nvram) => nvram.has_room(u64::from(self.parents[owner].bio.sectors)),
            None => self.columns_used == 0 || self.columns_used < self.columns_max,
        }
    }

    /// Gives a write's sectors to their rows.
    fn admit(&mut self, now: Ns, owner: u32) {
        let bio = self.parents[owner].bio;
        let row_sectors = self.geometry.row_sectors();
        let (first, last) = (bio.sector.0 / row_sectors, (bio.end().0 - 1) / row_sectors);
        let mut new_sectors = 0;
        for number in first..=last {
            let slot = self.rows.enter(number);
            let start = number * row_sectors;
            let from = bio.sector.0.max(start) - start;
            let to = bio.end().0.min(start + row_sectors) - start;
            new_sectors += self.gather(slot, from, to);
            let row = &mut self.rows[slot];
            let is_first = row.gathered.is_empty();
            row.gathered.join(Command::of(&bio));
            if self.nvram.is_none() {
                self.rows[slot].gathered.parents.push(owner);
                self.parents[owner].pending += 1;
                self.arm(now, slot, is_first);
            } else {
                self.price(slot);
            }
        }
        self.counts.absorbed += u64::from(bio.sectors) - new_sectors;
        if let Some(nvram) = &mut self.nvram {
            nvram.dirty += new_sectors;
            self.finishing.plan(nvram.transfer(now, bio.sectors), owner);
            self.note_ready(now);
        }
    }

    /// Adds sectors `from..to` of a row's data; answers with the number of new ones.
    fn gather(&mut self, slot: u32, from: u64, to: u64) -> u64 {
        let unit = u64::from(self.geometry.unit);
        let batch = &mut self.rows[slot].gathered;
        let mut new_sectors = 0;
        let mut at = from;
        while at < to {
            let index = at / unit;
            let end = to.min((index + 1) * unit);
            let (new, columns) = batch.add(index as u16, at - index * unit, end - index * unit);
            new_sectors += new;
            self.columns_used += columns;
            at = end;
        }
        new_sectors
    }

    /// Lets a row start now if it is full or need not wait, or later.
    fn arm(&mut self, now: Ns, slot: u32, is_first: bool) {
        let row = &mut self.rows[slot];
        if self.batch_delay == Ns(0) || row.is_full(u64::from(self.geometry.unit)) {
            self.make_ready(now, slot);
        } else if is_first {
            let at = now + self.batch_delay;
            row.deadline = at.0;
            self.timers.plan(at, Timer::Batched(row.number));
        }
    }

    /// The row starts in this instant, unless it is locked.
    pub(super) fn make_ready(&mut self, now: Ns, slot: u32) {
        let row = &mut self.rows[slot];
        if !row.is_ready {
            row.is_ready = true;
            self.ready.push_back(slot);
        }
        self.note_ready(now);
    }

    /// A row's time to wait for more may be over.
    pub(super) fn batch_ended(&mut self, now: Ns, number: u64) {
        let Some(row) = self.rows.find(number) else { return };
        if row.deadline == now.0 && !row.gathered.is_empty() {
            let slot = self.rows.enter(number);
            self.make_ready(now, slot);
        }
    }

    /// Starts whatever may start.
    pub(super) fn start_ready(&mut self, now: Ns) {
        while let Some(slot) = self.ready.pop_front() {
            self.rows[slot].is_ready = false;
            self.start_row(now, slot);
        }
        self.consider_destage(now);
    }

    /// Locks a row and starts writing what has gathered, unless somebody else has locked it.
    pub(super) fn start_row(&mut self, now: Ns, slot: u32) {
        let number = self.rows[slot].number;
        let is_rebuilding = self.rebuild.as_ref().is_some_and(|rebuild| rebuild.holds(number));
        let lost = self.lost_role(number);
        let row = &mut self.rows[slot];
        if row.phase != Phase::Idle || row.gathered.is_empty() || is_rebuilding {
            return;
        }
        core::mem::swap(&mut row.gathered, &mut row.active);
        let write =
            RowWrite { geometry: self.geometry, row: number, touched: &row.active.touched, lost };
        row.plan.make(self.rule, write);
        (row.unread, row.is_second_plan) = (None, false);
        let method = row.plan.method;
        self.counts.parity += row.plan.parity_sectors;
        self.counts.lost += row.plan.lost_sectors;
        self.counts.modify_read += row.plan.reads.sectors();
        self.count_method(method);
        self.read_row(now, slot);
    }

    pub(super) fn read_row(&mut self, now: Ns, slot: u32) {
        let row = &mut self.rows[slot];
        let command = row.active.command.expect("a started row has a bio").to_read();
        row.phase = Phase::Reading;
        let mut pending = 0;
        for &read in row.plan.reads.as_slice() {
            pending += self.members.send(now, read, command, Owner::Row(slot));
        }
        row.pending = pending;
        if pending == 0 {
            self.compute_row(now, slot);
        }
    }

    fn compute_row(&mut self, now: Ns, slot: u32) {
        self.rows[slot].phase = Phase::Computing;
        match self.xor_time(self.rows[slot].plan.xor_sectors) {
            Ns(0) => self.write_row(now, slot),
            time => self.timers.plan(now + time, Timer::Computed(slot)),
        }
    }

    /// Sends data and parity.
    pub(super) fn write_row(&mut self, now: Ns, slot: u32) {
        let row = &mut self.rows[slot];
        let command = row.active.command.expect("a started row has a bio");
        row.phase = Phase::Writing;
        let mut pending = 0;
        for &write in row.plan.writes.as_slice() {
            pending += self.members.send(now, write, command, Owner::Row(slot));
        }
        debug_assert!(pending > 0, "a row with one loss always has something to write");
        row.pending = pending;
        // One member's write happens or not; several may be torn apart, unless NVRAM repeats them.
        let writes = row.plan.writes.as_slice();
        row.is_at_risk =
            self.nvram.is_none() && writes.iter().any(|write| write.member != writes[0].member);
        self.rows_at_risk += u64::from(row.is_at_risk);
        self.counts.rows_at_risk_max = self.counts.rows_at_risk_max.max(self.rows_at_risk);
    }

    /// A command of a row has ended; after the last the row goes on, or is unlocked.
    pub(super) fn row_command_ended(&mut self, now: Ns, slot: u32, done: &mut Vec<Ended>) {
        let row = &mut self.rows[slot];
        row.pending -= 1;
        match row.phase {
            _ if row.pending > 0 => {}
            Phase::Reading if row.status.is_err() => self.finish_row(now, slot, done),
            Phase::Reading if row.unread.is_some() && !row.is_second_plan => {
                self.plan_again(now, slot);
            }
            Phase::Reading => self.compute_row(now, slot),
            Phase::Writing => self.finish_row(now, slot, done),
            Phase::Idle | Phase::Computing => unreachable!("no command is out in this phase"),
        }
    }

    fn finish_row(&mut self, now: Ns, slot: u32, done: &mut Vec<Ended>) {
        let status = core::mem::replace(&mut self.rows[slot].status, Ok(()));
        let mut parents = core::mem::take(&mut self.rows[slot].active.parents);
        for owner in parents.drain(..) {
            self.parents[owner].status = self.parents[owner].status.and(status);
            self.release(now, owner, done);
        }
        let row = &mut self.rows[slot];
        row.active.parents = parents;
        row.phase = Phase::Idle;
        self.rows_at_risk -= u64::from(core::mem::take(&mut row.is_at_risk));
        self.columns_used -= row.active.columns.sectors();
        if let Some(nvram) = &mut self.nvram {
            nvram.destaged(row.active.sectors());
        }
        row.active.clear();
        if row.gathered.is_empty() {
            self.rows.leave(slot);
        } else if self.nvram.is_some() {
            self.price(slot);
        } else if row.deadline <= now.0 || row.is_full(u64::from(self.geometry.unit)) {
            self.make_ready(now, slot);
        }
        self.rebuild_unblock(now);
        self.admit_backlog(now);
        if self.nvram.is_some() {
            self.note_ready(now);
        }
    }

    fn admit_backlog(&mut self, now: Ns) {
        while let Some(&owner) = self.backlog.front() {
            if !self.has_room(owner) {
                return;
            }
            self.backlog.pop_front();
            self.admit(now, owner);
        }
    }
}
