//! All sweeps over one device, and fresh devices for each of them.

use std::collections::BTreeMap;

use iolab_model::Seed;
use serde::Serialize;

use super::{DepthSweep, SeekSweep, SizeSweep, depth, seek, size};
use crate::api::layer::Layer;
use crate::device;
use crate::device::disk::parameters;
use crate::error::SimError;
use crate::profile::{Profile, Value};

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

/// Flash drives are probed at most this large: their times do not depend on it, their tables do.
const FLASH_BYTES: f64 = 32_768_000_000.0;

/// Makes fresh devices of one profile.
pub(crate) struct Bench {
    pub(super) profile: Profile,
    pub(super) seed: Seed,
}

impl Bench {
    /// A bench for a profile, its read cache off.
    pub(crate) fn new(mut profile: Profile, seed: Seed) -> Result<Self, SimError> {
        if profile.parameters.contains_key("read_segments") {
            let off = BTreeMap::from([("read_segments".to_owned(), Value::Number(0.0))]);
            profile.override_with(&off)?;
        }
        let capacity = profile.parameters.get("logical_capacity").map(|p| p.value.clone());
        if let Some(Value::Number(bytes)) = capacity
            && bytes > FLASH_BYTES
        {
            let small =
                BTreeMap::from([("logical_capacity".to_owned(), Value::Number(FLASH_BYTES))]);
            profile.override_with(&small)?;
        }
        Ok(Self { profile, seed })
    }

    pub(super) fn device(&self) -> Result<Box<dyn Layer>, SimError> {
        let mut device = device::build(&self.profile, self.seed, "probed")?;
        device.age();
        Ok(device)
    }
}

/// Probes a device.
pub fn probe(profile: &Profile, seed: Seed) -> Result<Findings, SimError> {
    let bench = Bench::new(profile.clone(), seed)?;
    let is_disk = profile.kind == "disk";
    let distances = if is_disk {
        let (_, mechanism) = parameters::read(&bench.profile)?;
        Some(seek::sweep(&bench, &mechanism.geometry)?)
    } else {
        None
    };
    Ok(Findings {
        profile: profile.name.clone(),
        sizes: size::sweeps(&bench)?,
        depth: depth::sweep(&bench)?,
        seek: distances,
    })
}
