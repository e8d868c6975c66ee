//! Engines whose submissions wait: what was asked to be in flight, and what is.

use std::borrow::Cow;

use iolab_model::op::Access;
use iolab_workload::spec::{Phase, Tenant};

use crate::record::Warning;

/// Engine whose `io_submit(2)` returns after the transfer, unless it is direct.
const WAITS_WHERE_BUFFERED: &str = "libaio";

fn waits(engine: &str, tenant: &Tenant) -> bool {
    engine == WAITS_WHERE_BUFFERED && tenant.access != Access::Direct
}

/// Warning about the first tenant of which each call waited.
#[must_use]
pub fn waiting(engine: &str, phase: &Phase) -> Option<Warning> {
    let tenant = phase.tenants.iter().find(|tenant| waits(engine, tenant))?;
    Some(Warning::new(
        "libaio_buffered",
        format!("{}: libaio is asynchronous with direct I/O only; each call waited", tenant.name),
        "use --direct, or --engine io_uring",
    ))
}

/// A phase with one transfer under way where the engine allows no more: what a model has to run.
#[must_use]
pub fn as_submitted<'a>(engine: &str, phase: &'a Phase) -> Cow<'a, Phase> {
    let is_deep = |tenant: &Tenant| tenant.depth > 1 && waits(engine, tenant);
    if !phase.tenants.iter().any(is_deep) {
        return Cow::Borrowed(phase);
    }
    let mut phase = phase.clone();
    for tenant in phase.tenants.iter_mut().filter(|tenant| is_deep(tenant)) {
        tenant.depth = 1;
    }
    Cow::Owned(phase)
}
