//! Probing a device as if it were a stranger: sweeps over size, depth and distance in virtual time.
//!
//! What a probe of a real device would measure, it measures of a simulated one, so that the fits can
//! be judged by what was put in. The read cache is off where the profile has one. Left out: the
//! phases on write caches and on the host's overhead. The address map of a disk is taken from its
//! profile (of a real disk it would be measured zone by zone).
//!
//! Source: models specification 8.1, steps 1 to 4.

mod closed_loop;
mod depth;
mod seek;
mod size;

use std::collections::BTreeMap;

use iolab_model::Seed;
use serde::Serialize;

use crate::api::layer::Layer;
use crate::device;
use crate::device::disk::parameters;
use crate::error::SimError;
use crate::profile::{Profile, Value};

pub use depth::{DepthPoint, DepthSweep};
pub use seek::{SeekPoint, SeekSweep};
pub use size::{SizePoint, SizeSweep};

/// What was found out.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The profile.
    pub profile: String,
    /// Time over size: random and sequential reads and writes.
    pub sizes: Vec<SizeSweep>,
    /// Rate over depth.
    pub depth: DepthSweep,
    /// Time over distance, of disks.
    pub seek: Option<SeekSweep>,
}

/// Makes fresh devices of one profile.
pub(crate) struct Bench {
    profile: Profile,
    seed: Seed,
}

impl Bench {
    /// A bench for a profile, its read cache off.
    pub(crate) fn new(mut profile: Profile, seed: Seed) -> Result<Self, SimError> {
        if profile.parameters.contains_key("read_segments") {
            let off = BTreeMap::from([("read_segments".to_owned(), Value::Number(0.0))]);
            profile.override_with(&off)?;
        }
        Ok(Self { profile, seed })
    }

    fn device(&self) -> Result<Box<dyn Layer>, SimError> {
        device::build(&self.profile, self.seed, "probed")
    }
}

/// Probes a device.
pub fn probe(profile: &Profile, seed: Seed) -> Result<Findings, SimError> {
    let bench = Bench::new(profile.clone(), seed)?;
    let is_disk = profile.kind == "disk";
    let seek = if is_disk {
        let (_, mechanism) = parameters::read(&bench.profile)?;
        Some(seek::sweep(&bench, &mechanism.geometry)?)
    } else {
        None
    };
    Ok(Findings {
        profile: profile.name.clone(),
        sizes: size::sweeps(&bench)?,
        depth: depth::sweep(&bench)?,
        seek,
    })
}

#[cfg(test)]
mod tests;
