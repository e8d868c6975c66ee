//! Data of simulated files: the target that keeps them, and the memory that they may take.

use iolab_model::{Bytes, Error};
use iolab_sim::target::{SimTarget, Simulation};
use iolab_workload::Workload;
use iolab_workload::verify;

const GIB: u64 = 1 << 30;

/// Memory for the data of files: pages and the device may hold different ones, and both have a
/// table of their sectors.
const fn kept_bytes(data: u64) -> u64 {
    data.saturating_mul(2).saturating_add(data / 2)
}

/// Bytes in words, in whole GiB from one of them on.
const fn in_words(bytes: u64) -> Bytes {
    Bytes(if bytes < GIB { bytes } else { bytes / GIB * GIB })
}

/// A target that keeps the data of files where a workload verifies them.
pub fn target_of(
    simulation: Simulation,
    facts: Vec<(String, String)>,
    workload: &Workload,
) -> Result<SimTarget, Error> {
    let target = SimTarget::new(simulation, facts);
    if !workload.verification().is_on() {
        return Ok(target);
    }
    let data = verify::bytes_of_files(workload);
    let (needed, allowed) = (kept_bytes(data.0), allowed_bytes());
    if needed > allowed {
        let problem = format!(
            "verify: a simulation keeps the data of all files in memory: {data} of them may need \
             {}, and it takes at most half of the free memory, {}",
            in_words(needed),
            in_words(allowed)
        );
        let remedy = "use smaller files, verify none, or a testbed on the running kernel";
        return Err(Error::BadWorkload { problem, remedy: remedy.into() });
    }
    Ok(target.keeping_data())
}

/// Half of what the kernel could give without swapping (proc(5), `MemAvailable`).
pub fn allowed_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024 / 2)
}
