//! Engines whose submissions wait: what was asked to be in flight, and what is.

use std::borrow::Cow;

use iolab_model::op::Access;
use iolab_workload::spec::{Phase, Tenant, Workload};

use crate::record::Warning;

/// Engine whose `io_submit(2)` returns after the transfer, unless it is direct.
const WAITS_WHERE_BUFFERED: &str = "libaio";

fn waits(workload: &Workload, phase: &Phase, tenant: &Tenant) -> bool {
    let engine = workload.engine_of_tenant(phase, tenant);
    engine == WAITS_WHERE_BUFFERED && !tenant.is_direct()
}

/// Warning about the first tenant of which each call waited.
#[must_use]
pub fn waiting(workload: &Workload, phase: &Phase) -> Option<Warning> {
    let tenant = phase.tenants.iter().find(|tenant| waits(workload, phase, tenant))?;
    Some(Warning::new(
        "libaio_buffered",
        format!("{}: libaio is asynchronous with direct I/O only; each call waited", tenant.name),
        "use --direct, or --engine io_uring",
    ))
}

/// Way to files that nobody asks to be anything else: that of the engine, if all tenants have the
/// same.
#[must_use]
pub fn default_access(workload: &Workload, phase: &Phase) -> Access {
    let mut ways = workload.engines_of(phase).into_iter().map(Access::of_engine);
    let first = ways.next().unwrap_or_default();
    if ways.all(|way| way == first) { first } else { Access::Plain }
}

/// A phase with the ways to the files of its engines, where these have different ones.
#[must_use]
pub fn with_accesses<'a>(workload: &Workload, phase: &'a Phase) -> Cow<'a, Phase> {
    let default = default_access(workload, phase);
    let own = |tenant: &Tenant| Access::of_engine(workload.engine_of_tenant(phase, tenant));
    if phase.tenants.iter().all(|tenant| own(tenant) == default) {
        return Cow::Borrowed(phase);
    }
    let mut changed = phase.clone();
    for tenant in changed.tenants.iter_mut().filter(|tenant| tenant.access == Access::Plain) {
        tenant.access = own(tenant);
    }
    Cow::Owned(changed)
}

/// A phase with one transfer under way where the engine allows no more: what a model has to run.
#[must_use]
pub fn as_submitted<'a>(workload: &Workload, phase: &'a Phase) -> Cow<'a, Phase> {
    let is_deep = |tenant: &Tenant| tenant.depth > 1 && waits(workload, phase, tenant);
    let mut changed = with_accesses(workload, phase);
    if phase.tenants.iter().any(is_deep) {
        for tenant in changed.to_mut().tenants.iter_mut().filter(|tenant| is_deep(tenant)) {
            tenant.depth = 1;
        }
    }
    changed
}
