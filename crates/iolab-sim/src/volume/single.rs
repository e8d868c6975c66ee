//! single: members one after the other, as they are (concatenation, md `linear`, an LVM volume).
//!
//! A bio that crosses a border between two members becomes two. Members may differ in size.

use iolab_model::Sector;

use super::fan_out::{FanOut, Ordered, Placement};
use super::list::Assemble;
use super::members::Members;
use super::parameters::VolumeParameters;
use super::transfer::{Transfer, Transfers};
use crate::api::bio::Bio;
use crate::api::layer::Layer;
use crate::error::SimError;

/// Concatenation: the address arithmetic.
#[derive(Clone, Debug)]
pub struct Single {
    /// First address after each member; ascending.
    ends: Vec<u64>,
}

impl Single {
    /// Members of these sizes.
    pub fn new(sizes: impl IntoIterator<Item = Sector>) -> Self {
        let ends = sizes.into_iter().scan(0, |end, size| {
            *end += size.0;
            Some(*end)
        });
        Self { ends: ends.collect() }
    }

    /// Member and sector on it where an address lives.
    pub fn locate(&self, address: Sector) -> (u16, Sector) {
        let member = self.ends.partition_point(|&end| end <= address.0);
        (member as u16, Sector(address.0 - self.start(member)))
    }

    /// The address that lives at a member's sector.
    pub fn address(&self, member: u16, sector: Sector) -> Sector {
        Sector(self.start(usize::from(member)) + sector.0)
    }

    fn start(&self, member: usize) -> u64 {
        if member == 0 { 0 } else { self.ends[member - 1] }
    }
}

impl Placement for Single {
    const NAME: &'static str = "single";

    fn capacity(&self) -> Sector {
        Sector(self.ends.last().copied().unwrap_or(0))
    }

    fn place(&mut self, bio: &Bio, _: &Members<Ordered>, transfers: &mut Transfers) {
        let mut at = bio.sector;
        while at < bio.end() {
            let (member, sector) = self.locate(at);
            let end = self.ends[usize::from(member)].min(bio.end().0);
            let sectors = (end - at.0) as u32;
            transfers.push(Transfer { member, sector, sectors });
            at = Sector(end);
        }
    }
}

impl Assemble for Single {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        parameters.need(members.len(), 1)?;
        parameters.refuse(&[
            ("unit_bytes", parameters.unit_bytes.is_some()),
            ("lost_member", parameters.lost_member.is_some()),
            ("write_behind", parameters.write_behind.is_some()),
        ])?;
        parameters.refuse(&parameters.parity_options())?;
        let placement = Self::new(members.iter().map(|member| member.info().capacity));
        let members = Members::new(members, parameters.transfer_max()?);
        Ok(Box::new(FanOut::new(placement, members)))
    }
}
