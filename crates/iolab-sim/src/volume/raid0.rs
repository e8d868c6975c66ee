//! RAID 0: units over all members in turn, no redundancy.
//!
//! A bio is cut at unit boundaries; consecutive units of one member are adjacent there, so a long
//! bio costs each member one contiguous transfer. Members of different sizes count as the smallest
//! (Linux md would lay further, narrower zones over what is left: left out).
//!
//! Source: Patterson, Gibson and Katz (SIGMOD 1988); Linux drivers/md/raid0.c (behaviour).

use iolab_model::Sector;

use super::fan_out::{FanOut, Ordered, Placement};
use super::list::Assemble;
use super::members::Members;
use super::parameters::VolumeParameters;
use super::stripe::Stripe;
use super::transfer::{Transfer, Transfers};
use crate::api::bio::Bio;
use crate::api::layer::Layer;
use crate::error::SimError;

/// Striping.
#[derive(Clone, Debug)]
pub struct Raid0 {
    stripe: Stripe,
    capacity: Sector,
}

impl Placement for Raid0 {
    const NAME: &'static str = "raid0";

    fn capacity(&self) -> Sector {
        self.capacity
    }

    fn place(&mut self, bio: &Bio, _: &Members<Ordered>, transfers: &mut Transfers) {
        self.stripe.pieces(bio.sector, bio.sectors, |member, sector, sectors| {
            transfers.push(Transfer { member, sector, sectors });
        });
    }
}

impl Assemble for Raid0 {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        parameters.need(members.len(), 2)?;
        parameters.refuse(&[
            ("lost_member", parameters.lost_member.is_some()),
            ("write_behind", parameters.write_behind.is_some()),
        ])?;
        parameters.refuse(&parameters.parity_options())?;
        let stripe = Stripe { disks: members.len() as u16, unit: parameters.unit_sectors()? };
        let capacity = stripe.capacity(parameters.smallest(&members)?);
        let members = Members::new(members, parameters.transfer_max()?);
        Ok(Box::new(FanOut::new(Self { stripe, capacity }, members)))
    }
}
