//! RAID 6: two parity units per row, P (XOR) and Q (Reed-Solomon), which move from disk to disk.
//!
//! Any two members may be lost in reality; one in this model. What it does is in
//! [`super::parity`]: the addresses in `geometry`, the reads and writes of a row in `plan`.
//!
//! Sources: Patterson, Gibson and Katz (SIGMOD 1988); Chen et al. (1994).

use super::list::Assemble;
use super::parameters::VolumeParameters;
use super::parity::array::Array;
use crate::api::layer::Layer;
use crate::error::SimError;

/// The row of the list.
#[derive(Debug)]
pub struct Raid6;

impl Assemble for Raid6 {
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError> {
        Ok(Box::new(Array::new(members, 2, parameters)?))
    }
}
