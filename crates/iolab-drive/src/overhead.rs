//! Cost of the harness itself per op: the same worker, recorder and pump on the null target.

use iolab_model::op::Access;
use iolab_model::{Error, Ns};
use iolab_workload::spec::{Flush, Limit, LockPolicy, Manner, Opening, Phase, Tenant, Workload};
use iolab_workload::verify::Verify;

use crate::coordinate::NoObserver;
use crate::pump::{Workplace, run_threads};

/// Ops of one measurement: about a millisecond, and far more than the clock's resolution.
const OPS: u64 = 16_384;

/// Nanoseconds of harness per op of `tenant` on lanes as those of `target`: the best of three,
/// because a disturbance only adds.
///
/// The null target does nothing, so this is the cost of choosing the op, of both clock readings
/// and of recording; the cost of memory traffic is the device's.
pub fn harness_ns_per_op(
    target: &dyn Workplace,
    workload: &Workload,
    tenant: &Tenant,
) -> Result<f64, Error> {
    let null = target.null_alike();
    let tenant = Tenant {
        workers: 1,
        opening: Opening::Existing,
        primes_first_record: false,
        rate_ops_per_s: None,
        share: None,
        think_ns: Ns(0),
        begins_ns: Ns(0),
        access: Access::Plain,
        lock: LockPolicy::None,
        is_preallocated: false,
        flush: Flush::Fsync,
        limit: Limit::Ops { ops: OPS, within_ns: None },
        file_set: None,
        program: None,
        kv: None,
        manner: Manner::default(),
        draws: None,
        ..tenant.clone()
    };
    let phase = Phase {
        name: "harness".into(),
        is_stonewalled: false,
        keeps_files: true,
        engine: None,
        ignores: Vec::new(),
        records_per_op: 1,
        cuts_ns: Vec::new(),
        pause_after_ns: Ns(0),
        tenants: vec![tenant],
    };
    // Nothing comes back from the null target: what checking costs is a caveat of its own.
    let workload = &Workload { verify: Verify::None, ..workload.clone() };
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let directory = std::path::Path::new("/");
        let outcome = run_threads(null, (workload, &phase), directory, |_| {}, &mut NoObserver)?;
        let worker = &outcome.tenants[0].workers[0];
        best = best.min(worker.elapsed_ns as f64 / worker.ops.max(1) as f64);
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::target::{Memory, Null};

    /// A lane that is asked op by op costs more than one that is left alone with a run: a harness
    /// that took the one for the other would promise what it cannot keep.
    #[test]
    fn the_cost_is_that_of_lanes_of_the_same_kind() {
        let workload: Workload = serde_json::from_value(json!({
            "version": 1, "name": "w", "engine": "psync", "seed": 1, "phases": [{
                "name": "p", "keeps_files": true, "tenants": [{
                    "name": "t", "workers": 1, "is_file_shared": true, "file": "f",
                    "file_bytes": 1 << 26, "io_size_bytes": 4096, "opening": "existing",
                    "pattern": {"kind": "sequential"}, "direction": {"kind": "read"}, "depth": 1,
                    "limit": {"kind": "ops", "ops": 1},
                }],
            }],
        }))
        .unwrap();
        let tenant = &workload.phases[0].tenants[0];
        let in_runs = harness_ns_per_op(&Null, &workload, tenant).unwrap();
        let in_batches = harness_ns_per_op(&Memory::default(), &workload, tenant).unwrap();
        assert!(in_runs > 0.0 && in_runs < in_batches, "{in_runs} {in_batches}");
    }
}
