//! Intel's clock rates above the nominal one: 0 allowed, 1 not.

use super::common::{CpuSwitch, Numbers};

/// The row.
pub const KNOB: CpuSwitch = CpuSwitch {
    file: "intel_pstate/no_turbo",
    help: "1 forbids clock rates above the nominal one (intel_pstate)",
    numbers: Numbers { min: 0, max: 1, usual: 0, other: 1, are_codes: true },
    absence: "it belongs to the driver intel_pstate, which does not run here; \
              other drivers have cpu.boost, virtual machines mostly neither",
};
