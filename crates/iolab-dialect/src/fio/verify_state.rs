//! State of a job that has written, in a file for a later run that verifies no more than that:
//! `verify_state_save` and `verify_state_load`.
//!
//! Facts: fio 3.33 as it behaves; `local-JOB-INDEX-verify.state` has the index of the clone in the
//! whole run. The content is iolab's own: workers write in an order that follows from the seed, so
//! that a number of writes and the seed say which blocks there are.

use iolab_model::Seed;
use iolab_workload::Workload;
use iolab_workload::spec::{Limit, Tenant};
use serde::{Deserialize, Serialize};

use super::geometry::Wrong;
use super::host::Host;
use super::job::Job;
use super::lower::{Places, Work};
use crate::diagnostic::Problem;

const VERSION: u32 = 1;

/// Content of a file of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FioVerifyState")]
pub struct VerifyState {
    /// Version of the content.
    pub iolab_verify_state: u32,
    /// Root of the random numbers of the run that wrote.
    pub seed: Seed,
    /// Bytes of each write.
    pub write_bytes: u64,
    /// Writes that have ended.
    pub writes: u64,
}

/// A file of state, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FioVerifyStateFile")]
pub struct StateShow {
    /// Its name.
    pub file: String,
    /// Ordinal of the phase that writes.
    pub phase: usize,
    /// Tenant of the phase.
    pub tenant: usize,
    /// Worker of the tenant.
    pub worker: usize,
    /// Most writes that are in flight at once: where one has failed, so many are not certain.
    pub depth: u32,
    /// Its content before anything is written.
    pub state: VerifyState,
}

/// Name of the file of clone `index` of the whole run, from 0 on.
fn file_name(job: &Job, index: u64) -> String {
    format!("local-{}-{index}-verify.state", job.name.replace('/', "-"))
}

/// Files of state that are written.
pub fn shown(
    jobs: &[Job],
    works: &[Work],
    places: &[Places],
    workload: &Workload,
) -> Vec<StateShow> {
    let (mut found, mut index) = (Vec::new(), 0);
    for (work, place) in works.iter().zip(places) {
        let job = &jobs[work.unit.job];
        for worker in 0..work.unit.clones {
            if job.verifying.is_state_saved && job.verify.is_some() && job.rw.writes() {
                let (phase, tenant) = place.work;
                let state = VerifyState {
                    iolab_verify_state: VERSION,
                    seed: workload.seed,
                    write_bytes: work.tenant.io_size_bytes.0,
                    writes: 0,
                };
                let (file, worker) = (file_name(job, index), worker as usize);
                let depth = work.tenant.depth;
                found.push(StateShow { file, phase, tenant, worker, depth, state });
            }
            index += 1;
        }
    }
    found
}

/// State that clone `index` of the run begins with; absent: it asks for none.
///
/// # Errors
///
/// There is no such state, or it is of something else.
pub fn loaded(
    job: &Job,
    index: u64,
    tenant: &Tenant,
    host: &impl Host,
) -> Result<Option<VerifyState>, Wrong> {
    if !job.verifying.is_state_loaded || job.verify.is_none() {
        return Ok(None);
    }
    let wrong = |what: String, remedy: &str| Err(("verify_state_load", Problem::new(what, remedy)));
    if job.rw.writes() {
        let what = "verify_state_load is for jobs that only read".to_owned();
        return wrong(what, "write verify_only as well, or rw=read");
    }
    let file = file_name(job, index);
    let text = match host.text(&file) {
        Ok(text) => text,
        Err(why) => {
            let remedy = "write with verify_state_save=1 first, with the same names of jobs";
            return wrong(format!("the state {file} cannot be read: {why}"), remedy);
        }
    };
    let state = serde_json::from_str::<VerifyState>(&text).ok();
    let Some(state) = state.filter(|state| state.iolab_verify_state == VERSION) else {
        let what = format!("{file} is no state that iolab has saved");
        return wrong(what, "write with `iolab fio` and verify_state_save=1 first");
    };
    if state.write_bytes != tenant.io_size_bytes.0 {
        let what = format!("{file} was saved by a job with writes of {} bytes", state.write_bytes);
        return wrong(what, "write the same bs");
    }
    Ok(Some(state))
}

/// `tenant` as it reads no more than `state` says.
pub fn limited(tenant: Tenant, state: &VerifyState) -> Tenant {
    let (own, within_ns) = match tenant.limit {
        Limit::Once => (tenant.ops_of_a_pass(), None),
        Limit::Ops { ops, within_ns } => (ops, within_ns),
        Limit::Time { duration_ns } => (u64::MAX, Some(duration_ns)),
    };
    Tenant { limit: Limit::Ops { ops: own.min(state.writes), within_ns }, ..tenant }
}
