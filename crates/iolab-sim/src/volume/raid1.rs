//! RAID 1: a copy on every member.
//!
//! A write goes to all members and is done with the last copy (with `write_behind`: the first). A
//! read goes to one member ([`super::mirror`]). Left out: resynchronising a returned member, the
//! write-intent bitmap.
//!
//! Source: Patterson, Gibson and Katz (SIGMOD 1988); Linux drivers/md/raid1.c (behaviour).

use core::ops::Range;

use iolab_model::Sector;

use super::fan_out::{FanOut, Ordered, Placement};
use super::list::Assemble;
use super::members::Members;
use super::mirror::Heads;
use super::parameters::VolumeParameters;
use super::transfer::{Transfer, Transfers};
use crate::api::bio::{Bio, Operation};
use crate::api::layer::Layer;
use crate::error::SimError;

/// Mirroring.
#[derive(Clone, Debug)]
pub struct Raid1 {
    capacity: Sector,
    copies: u16,
    heads: Heads,
    has_write_behind: bool,
}

impl Placement for Raid1 {
    const NAME: &'static str = "raid1";

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn place(&mut self, bio: &Bio, members: &Members<Ordered>, transfers: &mut Transfers) {
        let Bio { sector, sectors, .. } = *bio;
        if bio.operation == Operation::Read {
            let member = self.heads.choose(0..self.copies, sector, members);
            self.heads.note_read(member, bio.end());
            transfers.push(Transfer { member, sector, sectors });
            return;
        }
        for member in (0..self.copies).filter(|&member| members.is_present(member)) {
            self.heads.note_write(member, bio.end());
            transfers.push(Transfer { member, sector, sectors });
        }
    }

    fn is_done_with_first(&self) -> bool {
        self.has_write_behind
    }

    fn copies_of(&self, _: u16) -> Range<u16> {
        0..self.copies
    }
}

impl Assemble for Raid1 {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        parameters.need(members.len(), 2)?;
        parameters.refuse(&[("unit_bytes", parameters.unit_bytes.is_some())])?;
        parameters.refuse(&parameters.parity_options())?;
        let placement = Self {
            capacity: parameters.smallest(&members)?,
            copies: members.len() as u16,
            heads: Heads::new(members.len()),
            has_write_behind: parameters.write_behind.unwrap_or(false),
        };
        let lost = parameters.lost(members.len())?;
        let mut members = Members::new(members, parameters.transfer_max()?);
        members.lose(lost);
        Ok(Box::new(FanOut::new(placement, members)))
    }
}
