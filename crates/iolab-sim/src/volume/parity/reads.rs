//! Reading: from the disk that holds the data, from the cache, or from all others if it is lost.

use iolab_model::{Ns, Sector};

use super::array::{Array, Owner};
use super::geometry::{Place, Role};
use crate::volume::members::Command;
use crate::volume::transfer::Transfer;

impl Array {
    /// A read arrives.
    pub(super) fn start_read(&mut self, now: Ns, owner: u32) {
        let bio = self.parents[owner].bio;
        self.counts.read += u64::from(bio.sectors);
        let geometry = self.geometry;
        let mut transfers = core::mem::take(&mut self.transfers);
        transfers.clear();
        let mut hits = 0;
        let mut xor_sectors = 0;
        geometry.pieces(bio.sector, bio.sectors, |place, sectors| {
            let end = u64::from(place.offset) + u64::from(sectors);
            if self.lost.is_none() && self.nvram.is_none() {
                let from = u64::from(place.offset);
                let role = Role::Data(place.index);
                transfers.push(geometry.transfer(place.row, role, from, end));
                return;
            }
            let (hit, xor) = self.want(place, end);
            hits += hit;
            xor_sectors += xor;
        });
        for (member, wanted) in (0..).zip(&mut self.wanted) {
            for (from, to) in wanted.iter() {
                let sectors = (to - from) as u32;
                transfers.push(Transfer { member, sector: Sector(from), sectors });
            }
            wanted.clear();
        }
        self.counts.cache_hit += hits;
        self.counts.recover_read += transfers.sectors() + hits - u64::from(bio.sectors);
        self.parents[owner].xor_sectors = xor_sectors;
        for &transfer in transfers.as_slice() {
            let command = Command::of(&bio);
            let commands = self.members.send(now, transfer, command, Owner::Parent(owner));
            self.parents[owner].pending += commands;
        }
        if transfers.is_empty() {
            let nvram = self.nvram.as_mut();
            let end = nvram.map_or(now, |nvram| nvram.transfer(now, bio.sectors));
            self.finishing.plan(end, owner);
        }
        self.transfers = transfers;
    }

    /// Notes what has to be read for a part of a unit; answers with the sectors that the cache
    /// has, and those that enter a computation.
    fn want(&mut self, place: Place, end: u64) -> (u64, u64) {
        let from = u64::from(place.offset);
        let row = self.rows.find(place.row).filter(|_| self.nvram.is_some());
        let lost = self.lost_role(place.row);
        let geometry = self.geometry;
        let (mut missed, mut xor_sectors) = (0, 0);
        let mut miss = |a: u64, b: u64| {
            missed += b - a;
            let mut add = |role| {
                let transfer = geometry.transfer(place.row, role, a, b);
                self.wanted[usize::from(transfer.member)].add(transfer.sector.0, transfer.end().0);
            };
            if lost == Some(Role::Data(place.index)) {
                let others = (0..geometry.data()).filter(|&index| index != place.index);
                others.map(Role::Data).chain([Role::P]).for_each(&mut add);
                xor_sectors += (b - a) * (u64::from(geometry.data()) + 1);
            } else {
                add(Role::Data(place.index));
            }
        };
        match row {
            None => miss(from, end),
            Some(row) => {
                let index = usize::from(place.index);
                for (a, b) in row.gathered.touched[index].missing(from, end) {
                    row.active.touched[index].missing(a, b).for_each(|(a, b)| miss(a, b));
                }
            }
        }
        (end - from - missed, xor_sectors)
    }
}
