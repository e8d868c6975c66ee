//! RAID 5: one parity unit per row, which moves from disk to disk.
//!
//! Any one member may be lost. What it does is in [`super::parity`]: the addresses in `geometry`,
//! the reads and writes of a row in `plan`.
//!
//! Sources: Patterson, Gibson and Katz (SIGMOD 1988); Chen et al. (1994).

use super::list::Assemble;
use super::parameters::VolumeParameters;
use super::parity::array::Array;
use crate::api::layer::Layer;
use crate::error::SimError;

/// The row of the list.
#[derive(Debug)]
pub struct Raid5;

impl Assemble for Raid5 {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        Ok(Box::new(Array::new(members, 1, parameters)?))
    }
}
