//! RAID 1+0: units in turn over mirrored pairs; members 2i and 2i + 1 hold the same.
//!
//! The same as Linux md's "near-2" layout with an even number of members. 0+1 (a mirror of two
//! stripes) moves the same data and differs only in which two failures lose it: build it as RAID 1
//! over two RAID 0. Left out: odd numbers of members, the "far" and "offset" layouts.
//!
//! Source: Linux drivers/md/raid10.c (behaviour).

use core::ops::Range;

use iolab_model::Sector;

use super::fan_out::{FanOut, Ordered, Placement};
use super::list::Assemble;
use super::members::Members;
use super::mirror::Heads;
use super::parameters::VolumeParameters;
use super::stripe::Stripe;
use super::transfer::{Transfer, Transfers};
use crate::api::bio::{Bio, Operation};
use crate::api::layer::Layer;
use crate::error::SimError;

/// Striping over mirrored pairs.
#[derive(Debug)]
pub struct Raid10 {
    stripe: Stripe,
    capacity: Sector,
    heads: Heads,
    columns: Transfers,
}

impl Placement for Raid10 {
    const NAME: &'static str = "raid10";

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn place(&mut self, bio: &Bio, members: &Members<Ordered>, transfers: &mut Transfers) {
        self.columns.clear();
        self.stripe.pieces(bio.sector, bio.sectors, |member, sector, sectors| {
            self.columns.push(Transfer { member, sector, sectors });
        });
        for &column in self.columns.as_slice() {
            let pair = 2 * column.member..2 * column.member + 2;
            if bio.operation == Operation::Read {
                let member = self.heads.choose(pair, column.sector, members);
                self.heads.note_read(member, column.end());
                transfers.push(Transfer { member, ..column });
                continue;
            }
            for member in pair.filter(|&member| members.is_present(member)) {
                self.heads.note_write(member, column.end());
                transfers.push(Transfer { member, ..column });
            }
        }
    }

    fn copies_of(&self, member: u16) -> Range<u16> {
        let first = member / 2 * 2;
        first..first + 2
    }
}

impl Assemble for Raid10 {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        parameters.need(members.len(), 4)?;
        if !members.len().is_multiple_of(2) {
            let problem = format!("{} members do not form pairs", members.len());
            return Err(parameters.wrong(problem, "give an even number of members"));
        }
        parameters.refuse(&[("write_behind", parameters.write_behind.is_some())])?;
        parameters.refuse(&parameters.parity_options())?;
        let stripe = Stripe { disks: members.len() as u16 / 2, unit: parameters.unit_sectors()? };
        let placement = Self {
            stripe,
            capacity: stripe.capacity(parameters.smallest(&members)?),
            heads: Heads::new(members.len()),
            columns: Transfers::default(),
        };
        let lost = parameters.lost(members.len())?;
        let mut members = Members::new(members, parameters.transfer_max()?);
        members.lose(lost);
        Ok(Box::new(FanOut::new(placement, members)))
    }
}
