//! Commands of a parity array that fail.
//!
//! A read that fails is computed from the other members and their parity; a write that fails costs
//! the member, and the array runs degraded. With a member lost already there is nothing to compute
//! from: the bio fails with EIO, in RAID 6 too, which could stand a second loss.
//!
//! Left out: rewriting what could not be read, the number of read errors after which a member is
//! dropped, a replacement that fails (the rebuild goes on). Source: Linux drivers/md/raid5.c,
//! `raid5_end_read_request`, `raid5_end_write_request`, `handle_failed_stripe` (behaviour).

use iolab_model::Ns;
use iolab_model::error::Errno;

use super::array::{Array, Owner};
use super::geometry::Role;
use super::plan::RowWrite;
use super::rows::Phase;
use crate::api::bio::{Operation, Status};
use crate::volume::members::{Command, Finished};
use crate::volume::transfer::Transfer;

impl Array {
    /// A command has failed; whoever waits for it is released afterwards, as after any end.
    pub(super) fn command_failed(&mut self, now: Ns, one: Finished<Owner>, errno: Errno) {
        match one.owner {
            Owner::Parent(parent) if self.is_reading(parent) => {
                let status = self.read_elsewhere(now, parent, one.place);
                self.note(parent, status);
            }
            Owner::Parent(parent) => self.note(parent, Err(errno)),
            Owner::Retry(parent) => self.note(parent, Err(Errno::EIO)),
            Owner::Row(slot) if self.rows[slot].phase == Phase::Reading => {
                self.row_unread(slot, one.place.member);
            }
            Owner::Row(slot) => {
                let status = self.member_failed(now, one.place.member, errno);
                let row = &mut self.rows[slot];
                row.status = row.status.and(status);
            }
            Owner::Rebuild => {}
        }
    }

    fn is_reading(&self, parent: u32) -> bool {
        let parent = &self.parents[parent];
        parent.bio.operation == Operation::Read && !parent.is_flushing
    }

    fn note(&mut self, parent: u32, status: Status) {
        let parent = &mut self.parents[parent];
        parent.status = parent.status.and(status);
    }

    /// Reads what belongs to the same places of all others, to compute what is missing.
    fn read_elsewhere(&mut self, now: Ns, parent: u32, missing: Transfer) -> Status {
        let unit = u64::from(self.geometry.unit);
        let (geometry, command) = (self.geometry, Command::of(&self.parents[parent].bio));
        let mut at = missing.sector.0;
        while at < missing.end().0 {
            let row = at / unit;
            if self.lost_role(row).is_some() {
                return Err(Errno::EIO);
            }
            let end = missing.end().0.min((row + 1) * unit);
            let roles = (0..geometry.data()).map(Role::Data).chain([Role::P]);
            for role in roles.filter(|&role| geometry.disk(row, role) != missing.member) {
                let other = geometry.transfer(row, role, at - row * unit, end - row * unit);
                self.counts.recover_read += u64::from(other.sectors);
                let commands = self.members.send(now, other, command, Owner::Retry(parent));
                self.parents[parent].pending += commands;
            }
            self.parents[parent].xor_sectors += (end - at) * (u64::from(geometry.data()) + 1);
            at = end;
        }
        self.members.note_read_elsewhere(now);
        Ok(())
    }

    /// Old data or parity of a row could not be read: the row is planned again without them.
    fn row_unread(&mut self, slot: u32, member: u16) {
        let is_hopeless = self.lost_role(self.rows[slot].number).is_some();
        let row = &mut self.rows[slot];
        if is_hopeless || row.is_second_plan || row.unread.is_some_and(|other| other != member) {
            row.status = Err(Errno::EIO);
        }
        row.unread = Some(member);
    }

    /// Plans a row as if the member that could not be read were lost, and reads again.
    pub(super) fn plan_again(&mut self, now: Ns, slot: u32) {
        let row = &mut self.rows[slot];
        let Some(member) = row.unread else { return };
        row.is_second_plan = true;
        let lost = Some(self.geometry.role(row.number, member));
        let (geometry, touched) = (self.geometry, &row.active.touched);
        row.plan.make(self.rule, RowWrite { geometry, row: row.number, touched, lost });
        self.counts.modify_read += row.plan.reads.sectors();
        self.members.note_read_elsewhere(now);
        self.read_row(now, slot);
    }

    /// A write has failed: the member is lost, unless another is.
    fn member_failed(&mut self, now: Ns, member: u16, errno: Errno) -> Status {
        match self.lost {
            Some(lost) if lost != member => Err(Errno::EIO),
            Some(_) => Ok(()),
            None => {
                self.lost = Some(member);
                self.members.fail(now, member, errno);
                Ok(())
            }
        }
    }
}
