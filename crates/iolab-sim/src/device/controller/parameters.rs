//! Parameters of a controller in a profile.

use crate::error::SimError;
use crate::profile::Profile;

/// Numbers of a controller; lengths are in 512-byte sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    /// Time to answer, beside the data.
    pub overhead: u64,
    /// Link time of a sector.
    pub link_sector: u64,
    /// Bios that it takes at once.
    pub depth: u32,
    /// Segments of the read cache; 0 is off.
    pub read_segments: usize,
    /// Length of a segment.
    pub segment_sectors: u64,
    /// Read ahead at a time for a sequential stream; 0 is off.
    pub read_ahead: u64,
    /// Protected write cache; 0 is off.
    pub write_cache: u64,
    /// Dirty sectors from which destaging does not wait for idle time.
    pub high_water: u64,
    /// Time without host bios after which destaging begins below the high water.
    pub idle_delay: u64,
    /// Destaging bios at once.
    pub destage_depth: u32,
    /// Longest destaging bio.
    pub destage_length: u64,
}

/// Reads and checks them.
pub(super) fn read(profile: &Profile) -> Result<Parameters, SimError> {
    let reader = profile.reader();
    let rate = reader.number("link_rate", "MB/s", (1.0, 1_000_000.0))?;
    let write_cache = reader.count("write_cache", "sectors", (0, 1 << 32))?;
    let high_water = reader.number("destage_high_water", "share", (0.0, 1.0))?;
    let parameters = Parameters {
        overhead: reader.duration("overhead", "ms")?.0,
        link_sector: (512e3 / rate).round() as u64,
        depth: reader.count("depth", "commands", (1, 65_536))? as u32,
        read_segments: reader.count("read_segments", "segments", (0, 65_536))? as usize,
        segment_sectors: reader.count("segment_length", "sectors", (1, 1 << 24))?,
        read_ahead: reader.count("read_ahead", "sectors", (0, 1 << 24))?,
        write_cache,
        high_water: ((write_cache as f64 * high_water) as u64).max(1),
        idle_delay: reader.duration("idle_delay", "ms")?.0,
        destage_depth: reader.count("destage_depth", "commands", (1, 65_536))? as u32,
        destage_length: reader.count("destage_length", "sectors", (1, 1 << 24))?,
    };
    reader.finish()?;
    if parameters.read_ahead > parameters.segment_sectors {
        return Err(SimError::Inconsistent {
            subject: format!("profile {}", profile.name),
            problem: format!(
                "`read_ahead` = {} is longer than a segment of {}",
                parameters.read_ahead, parameters.segment_sectors
            ),
            remedy: "read ahead at most one segment".to_owned(),
        });
    }
    Ok(parameters)
}
