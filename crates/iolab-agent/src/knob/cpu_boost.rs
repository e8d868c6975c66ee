//! Clock rates above the nominal one, where the driver is not `intel_pstate`: 0 forbidden, 1 not.

use super::common::{CpuSwitch, Numbers};

/// The row.
pub const KNOB: CpuSwitch = CpuSwitch {
    file: "cpufreq/boost",
    help: "0 forbids clock rates above the nominal one (not intel_pstate)",
    numbers: Numbers { min: 0, max: 1, usual: 1, other: 0, are_codes: true },
    absence: "this machine's driver has no such switch; \
              intel_pstate has cpu.no_turbo, virtual machines mostly neither",
};
