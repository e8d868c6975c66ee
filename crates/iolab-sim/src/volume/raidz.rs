//! raidz1, raidz2, raidz3: ZFS's parity, whose width follows each block, so that nothing is ever
//! read in order to write.
//!
//! All that is written in one go is one block: its sectors go over the disks row by row, and each
//! row that it touches has parity of its own, also where it is not full. A read asks for its data
//! alone; where one of them lies on a lost member, for the rest of the row and one parity. A read
//! that fails asks as many others as there are data in a row, at the same place; after a failed
//! write the member is left out. The disks with the parity are the same for as many rows as a large
//! block has, and then move on, as those of blocks do that begin elsewhere. Left out: space that
//! parity of short rows and the padding to a multiple of 1 + parity sectors take (a block of one
//! sector stores twice its size on raidz1), a row for each block where several share one, filling a
//! replaced member.
//!
//! Source: `OpenZFS` `module/zfs/vdev_raidz.c`, `vdev_raidz_map_alloc`, `vdev_raidz_asize`
//! (behaviour); Bonwick, "RAID-Z" (2005).

use iolab_model::Sector;

use super::fan_out::{FanOut, Ordered, Placement};
use super::list::Assemble;
use super::members::Members;
use super::parameters::VolumeParameters;
use super::transfer::{Transfer, Transfers};
use crate::api::bio::{Bio, Operation};
use crate::api::layer::Layer;
use crate::error::SimError;

/// Rows after which other disks have the parity: 128 KiB of each disk at sectors of 4 KiB.
/// [assume]
const ROWS: u64 = 32;

/// ZFS's parity with `P` disks of it.
#[derive(Clone, Debug)]
pub struct Raidz<const P: u16> {
    disks: u16,
    /// Sector of the pool (`ashift`), in sectors of 512 bytes.
    unit: u32,
    capacity: Sector,
}

/// Part of a row that a bio touches, in units of the row.
#[derive(Clone, Copy)]
struct Touched {
    row: u64,
    first: u64,
    end: u64,
}

impl<const P: u16> Raidz<P> {
    /// Units of data in a row.
    fn columns(&self) -> u64 {
        u64::from(self.disks - P)
    }

    /// Member that holds a column of a row; those of parity come first.
    fn member(&self, row: u64, column: u64) -> u16 {
        ((row / ROWS + column) % u64::from(self.disks)) as u16
    }

    fn push(&self, transfers: &mut Transfers, (row, column): (u64, u64)) {
        let (member, unit) = (self.member(row, column), u64::from(self.unit));
        transfers.push(Transfer { member, sector: Sector(row * unit), sectors: self.unit });
    }

    /// Column of parity and data of a row that a bio needs.
    fn of_row(
        &self,
        operation: Operation,
        Touched { row, first, end }: Touched,
        members: &Members<Ordered>,
        transfers: &mut Transfers,
    ) {
        let parities = u64::from(P);
        let is_present = |column: &u64| members.is_present(self.member(row, *column));
        let data = parities + first..parities + end;
        let columns: Vec<u64> = match operation {
            Operation::Read if data.clone().all(|column| is_present(&column)) => data.collect(),
            Operation::Read => {
                // As many as there are data: what is left of them, and parity for what is not.
                let all = parities..parities + self.columns();
                let rest = all.chain(0..parities).filter(is_present);
                rest.take(self.columns() as usize).collect()
            }
            Operation::Write => (0..parities).chain(data).filter(is_present).collect(),
            Operation::Discard | Operation::Flush => data.filter(is_present).collect(),
        };
        for column in columns {
            self.push(transfers, (row, column));
        }
    }
}

impl<const P: u16> Placement for Raidz<P> {
    const NAME: &'static str = match P {
        1 => "raidz1",
        2 => "raidz2",
        _ => "raidz3",
    };

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn computed_from(&self, place: Transfer, members: &Members<Ordered>) -> Option<Vec<Transfer>> {
        let is_left = |member: &u16| *member != place.member && members.is_present(*member);
        let left = (0..self.disks).filter(is_left);
        let needed = usize::from(self.disks - P);
        let found: Vec<Transfer> =
            left.take(needed).map(|member| Transfer { member, ..place }).collect();
        (found.len() == needed).then_some(found)
    }

    fn place(&mut self, bio: &Bio, members: &Members<Ordered>, transfers: &mut Transfers) {
        let (unit, columns) = (u64::from(self.unit), self.columns());
        let (first, end) = (bio.sector.0 / unit, bio.end().0.div_ceil(unit));
        for row in first / columns..=(end - 1) / columns {
            let begin = row * columns;
            let touched = Touched {
                row,
                first: first.max(begin) - begin,
                end: end.min(begin + columns) - begin,
            };
            self.of_row(bio.operation, touched, members, transfers);
        }
    }
}

impl<const P: u16> Assemble for Raidz<P> {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        parameters.need(members.len(), usize::from(P) + 1)?;
        parameters.refuse(&[("write_behind", parameters.write_behind.is_some())])?;
        parameters.refuse(&parameters.parity_options())?;
        let unit = parameters.pool_sector()?;
        let rows = parameters.smallest(&members)?.0 / u64::from(unit);
        let disks = members.len() as u16;
        let capacity = Sector(rows * u64::from(unit) * u64::from(disks - P));
        let lost = parameters.lost(members.len())?;
        let mut members = Members::new(members, parameters.transfer_max()?);
        members.lose(lost);
        Ok(Box::new(FanOut::new(Self { disks, unit, capacity }, members)))
    }
}
