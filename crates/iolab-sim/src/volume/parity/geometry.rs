//! Places of data and parity of RAID 5 and 6: a bijection, no state.
//!
//! RAID 6 is Linux md's: Q follows P, data follow Q (symmetric) or keep the order of the disks
//! (asymmetric). Left out: md's layouts with Q fixed on the last disk, RAID 4.
//!
//! Sources: Lee and Katz (1991) for the names and the effect of parity placement; Linux
//! drivers/md/raid5.c (behaviour).

use iolab_model::Sector;

use crate::volume::parameters::ParityLayout;
use crate::volume::transfer::Transfer;

/// An arrangement of units and parities on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of disks.
    pub disks: u16,
    /// Parity units per row: 1 (RAID 5) or 2 (RAID 6).
    pub parities: u16,
    /// Unit in sectors.
    pub unit: u32,
    /// Rotation.
    pub layout: ParityLayout,
}

/// Role of a unit of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Data unit number j of its row.
    Data(u16),
    /// The first parity (XOR).
    P,
    /// The second parity (Reed-Solomon).
    Q,
}

/// Place of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Row.
    pub row: u64,
    /// Data unit in the row.
    pub index: u16,
    /// Sector in the unit.
    pub offset: u32,
}

impl Geometry {
    /// Data units per row.
    pub const fn data(self) -> u16 {
        self.disks - self.parities
    }

    /// Size of the whole for disks of `disk_sectors`: whole rows only.
    pub const fn capacity(self, disk_sectors: Sector) -> Sector {
        Sector(disk_sectors.0 / self.unit as u64 * self.row_sectors())
    }

    /// Data sectors in a row.
    pub const fn row_sectors(self) -> u64 {
        self.data() as u64 * self.unit as u64
    }

    /// Disk that holds a role in a row.
    pub const fn disk(self, row: u64, role: Role) -> u16 {
        let turn = (row % self.disks as u64) as u16;
        let p = match self.layout {
            ParityLayout::LeftSymmetric | ParityLayout::LeftAsymmetric => self.disks - 1 - turn,
            ParityLayout::RightSymmetric | ParityLayout::RightAsymmetric => turn,
        };
        match role {
            Role::P => p,
            Role::Q => (p + 1) % self.disks,
            Role::Data(index) => self.data_disk(p, index),
        }
    }

    const fn data_disk(self, p: u16, index: u16) -> u16 {
        match self.layout {
            ParityLayout::LeftSymmetric | ParityLayout::RightSymmetric => {
                (p + self.parities + index) % self.disks
            }
            // Q wraps to disk 0 when P is on the last one.
            _ if self.parities == 2 && p == self.disks - 1 => index + 1,
            _ if index < p => index,
            _ => index + self.parities,
        }
    }

    /// Role of a disk in a row.
    pub fn role(self, row: u64, disk: u16) -> Role {
        if disk == self.disk(row, Role::P) {
            return Role::P;
        }
        if self.parities == 2 && disk == self.disk(row, Role::Q) {
            return Role::Q;
        }
        let holds = |&index: &u16| self.disk(row, Role::Data(index)) == disk;
        Role::Data((0..self.data()).find(holds).expect("every disk has a role in every row"))
    }

    /// Row, unit and offset of an address.
    pub const fn locate(self, address: Sector) -> Place {
        let unit = self.unit as u64;
        let k = address.0 / unit;
        let data = self.data() as u64;
        let offset = (address.0 % unit) as u32;
        Place { row: k / data, index: (k % data) as u16, offset }
    }

    /// The address at a place.
    pub const fn address(self, place: Place) -> Sector {
        let k = place.row * self.data() as u64 + place.index as u64;
        Sector(k * self.unit as u64 + place.offset as u64)
    }

    /// A part of the unit that holds a role in a row, as sectors of its disk.
    pub const fn transfer(self, row: u64, role: Role, from: u64, to: u64) -> Transfer {
        let sector = Sector(row * self.unit as u64 + from);
        Transfer { member: self.disk(row, role), sector, sectors: (to - from) as u32 }
    }

    /// Calls `piece(place, sectors)` for each unit, or part of one, of a range.
    pub fn pieces(self, from: Sector, sectors: u32, mut piece: impl FnMut(Place, u32)) {
        let end = from.0 + u64::from(sectors);
        let mut at = from.0;
        while at < end {
            let place = self.locate(Sector(at));
            let length = u64::from(self.unit - place.offset).min(end - at);
            piece(place, length as u32);
            at += length;
        }
    }
}
