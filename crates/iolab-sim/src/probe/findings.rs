//! All sweeps over one device, and fresh devices for each of them.

use iolab_model::Seed;
use serde::Serialize;

use super::{DepthSweep, SeekSweep, SizeSweep, depth, seek, size};
use crate::api::layer::Layer;
use crate::device::DeviceKind;
use crate::device::disk::mechanism::Mechanism;
use crate::device::disk::parameters;
use crate::error::SimError;
use crate::stack::Stack;

/// Findings of the probes.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[schemars(rename = "ProbeFindings")]
pub struct Findings {
    /// The profile or stack.
    pub profile: String,
    /// Time over size: random and sequential reads and writes.
    pub sizes: Vec<SizeSweep>,
    /// Rate over depth.
    pub depth: DepthSweep,
    /// Time over distance, of disks.
    pub seek: Option<SeekSweep>,
}

/// Makes fresh devices of one description.
pub(crate) struct Bench {
    stack: Stack,
    pub(super) seed: Seed,
}

impl Bench {
    /// A bench for what a stack has below its first queue, read caches off.
    pub(crate) const fn new(stack: Stack, seed: Seed) -> Self {
        Self { stack, seed }
    }

    pub(super) fn device(&self) -> Result<Box<dyn Layer>, SimError> {
        let mut device = self.stack.bare(self.seed)?;
        device.age();
        Ok(device)
    }

    /// Arm and platters, if it is a single disk.
    pub(super) fn mechanism(&self) -> Result<Option<Mechanism>, SimError> {
        let Some(device) = &self.stack.device else { return Ok(None) };
        let profile = device.resolve()?;
        if profile.kind != DeviceKind::Disk.name() {
            return Ok(None);
        }
        parameters::read(&profile).map(|(_, mechanism)| Some(mechanism))
    }
}

/// Probes a device, or a volume as a whole.
pub fn probe(stack: &Stack, seed: Seed) -> Result<Findings, SimError> {
    let bench = Bench::new(stack.clone(), seed);
    let mechanism = bench.mechanism()?;
    Ok(Findings {
        profile: stack.name.clone(),
        sizes: size::sweeps(&bench)?,
        depth: depth::sweep(&bench)?,
        seek: mechanism.map(|found| seek::sweep(&bench, &found.geometry)).transpose()?,
    })
}
