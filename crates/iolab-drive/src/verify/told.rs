//! Caveats about the comparison of data: that there was one, and which blocks came back wrong.

use iolab_workload::verify::{Mismatch, Verify};

use crate::record::{PhaseRecord, Warning};

/// Code of the warnings that say what came back wrong; the front end's exit code follows from it.
const VERIFY_FAILED: &str = "verify_failed";
/// Mismatches of a phase that become warnings; all that were described are in the record.
const MISMATCHES_MAX: usize = 8;

/// Warning about phases whose data are compared.
pub fn verifying(verify: Verify, is_simulated: bool) -> Option<Warning> {
    let what = match verify {
        Verify::None => return None,
        Verify::Headers => "headers of all blocks were written and checked",
        Verify::Full => "all bytes were made anew for each write and compared after each read",
    };
    let (cost, hint) = if is_simulated {
        ("that takes no simulated time", "the numbers are those of a run without it")
    } else {
        (
            "throughput includes that work, times of operations do not",
            "compare it only with runs of the same verify setting; for speed use verify none",
        )
    };
    Some(Warning::new("verifying", format!("{what}; {cost}"), hint))
}

/// Cause of data that came back wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// A device of this machine, or what lies above it.
    Storage,
    /// A model.
    Simulator,
    /// A model whose stack file asks for failures.
    InjectedFaults,
}

/// One warning for each block that came back wrong, as far as they were described.
pub fn mismatches(record: &PhaseRecord, culprit: Culprit) -> Vec<Warning> {
    let workers = record.tenants.iter().flat_map(|tenant| &tenant.workers);
    let found = workers.flat_map(|worker| &worker.mismatches);
    let hint = match culprit {
        Culprit::Storage => {
            "keep the device out of use until you know why; see the how-to on verification"
        }
        Culprit::Simulator => {
            "the simulator has lost them: report this, with the study and the stack"
        }
        Culprit::InjectedFaults => "[[faults]] of the stack file have lost them",
    };
    let warning = |mismatch: &Mismatch| {
        Warning::new(VERIFY_FAILED, format!("{}: {}", record.name, mismatch.message), hint)
    };
    found.take(MISMATCHES_MAX).map(warning).collect()
}
