//! Verification of a job: its blocks, when they are read back, what is kept of wrong ones.
//!
//! Facts: fio 3.33 as it behaves. A `verify_interval` that does not divide the transfers is that of
//! a whole transfer. A job ends with its first wrong block, whatever `verify_fatal` says; with
//! `continue_on_error=verify` it goes on, unless `verify_fatal` is set.

use iolab_model::Bytes;
use iolab_model::op::Durability;
use iolab_workload::program::{Course, Deed, Node, Pace, Place, Program};
use iolab_workload::spec::rules::TenantRules;
use iolab_workload::spec::{Direction, FsyncPolicy, Limit, Manner, Opening, ReadingBack, Tenant};
use iolab_workload::verify::{HEADER_BYTES, VerifiedBlocks};

use super::buffers::verified_pattern;
use super::geometry::Wrong;
use super::job::{Job, Rw};
use super::program;
use crate::diagnostic::Problem;

/// Name of a verification that reads and compares nothing.
const NOTHING: &str = "null";
/// Smallest block that is verified as one.
const BLOCK_BYTES_MIN: u64 = 512;
/// Power of two of the largest one that nobody has asked for.
const BLOCK_POWER_MAX: u32 = 12;

/// Verification that a job asks for, beside its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `verify_interval`; 0: as large as the transfers allow.
    pub interval: u64,
    /// `verify_offset`.
    pub header_at: u64,
    /// `verify_backlog`; 0: everything is verified at the end.
    pub backlog: u64,
    /// `verify_backlog_batch`; 0: that of the backlog.
    pub batch: u64,
    /// `verify_dump`.
    pub is_dumped: bool,
    /// `verify_state_save`, where it is written out.
    pub is_state_saved: bool,
    /// `verify_state_load`.
    pub is_state_loaded: bool,
}

impl Job {
    /// True if it reads what it has written, and compares it.
    pub fn verifies_own(&self) -> bool {
        self.verify.is_some() && self.is_verified_after && self.rw.writes()
    }

    /// True if it does so in a phase of its own, after all jobs of its group: a program reads
    /// nothing back while it writes.
    pub fn is_verified_apart(&self) -> bool {
        let has_backlog = self.verifying.backlog > 0 && program::culprit(self).is_none();
        self.verifies_own() && !has_backlog
    }

    /// True if it may end before it has written all that it was to.
    pub fn may_end_early(&self) -> bool {
        self.runtime_ns > 0 || self.ends_all
    }

    /// True if what is read is compared with what was written: `verify=null` only reads.
    pub fn compares(&self) -> bool {
        self.verify.is_some_and(|name| name != NOTHING)
    }
}

/// Blocks in which a job of transfers of so many bytes is verified.
///
/// # Errors
///
/// The option that asks for blocks that cannot be.
pub fn blocks(job: &Job, io: u64) -> Result<VerifiedBlocks, Wrong> {
    if !job.compares() {
        return Ok(VerifiedBlocks::default());
    }
    let asked = Some(job.verifying.interval).filter(|bytes| *bytes > 0);
    let bytes = asked.map(|bytes| if io.is_multiple_of(bytes) { bytes } else { io });
    if let Some(bytes) = bytes.filter(|bytes| !bytes.is_multiple_of(BLOCK_BYTES_MIN)) {
        let what = format!("verify_interval: blocks of {bytes} bytes are not done");
        let problem = Problem::new(what, "write a multiple of 512 that divides bs");
        return Err(("verify_interval", problem));
    }
    let block = bytes.unwrap_or_else(|| 1 << io.trailing_zeros().min(BLOCK_POWER_MAX));
    // A pattern has no headers.
    let header_at = if verified_pattern(job).is_some() { 0 } else { job.verifying.header_at };
    let last = block.saturating_sub(HEADER_BYTES);
    if header_at > 0 && !(HEADER_BYTES..=last).contains(&header_at) {
        let what = format!(
            "verify_offset={header_at}: the header of 48 bytes would not lie inside the block"
        );
        let remedy = format!("write {HEADER_BYTES} to {last}, for blocks of {block} bytes");
        return Err(("verify_offset", Problem::new(what, remedy)));
    }
    Ok(VerifiedBlocks {
        bytes: bytes.map(Bytes),
        header_at_bytes: Bytes(header_at),
        may_be_foreign: job.rw.writes() && (job.rw.is_mixed() || job.may_end_early()),
        are_kept: job.verifying.is_dumped,
    })
}

/// Reading back while the job writes, if it asks for that.
pub fn read_back(job: &Job) -> Option<ReadingBack> {
    let Asked { backlog, batch, .. } = job.verifying;
    let rule =
        ReadingBack { after_ops: backlog, batch_ops: if batch == 0 { backlog } else { batch } };
    (job.verifies_own() && backlog > 0).then_some(rule)
}

/// Reads what the writing program of `tenant` has written, in the same order; absent: draws decide
/// how much that is, or a time.
pub fn rereading(tenant: &Tenant) -> Option<Tenant> {
    let program = tenant.program.as_ref()?;
    let is_exact = program.limit.total_bytes.is_some() && program.limit.time_ns.is_none();
    if !is_exact || program.moves(false) {
        return None;
    }
    let writes = program.steps.iter().filter(|step| step.does == Deed::Write);
    let read = |step: &Node| {
        let course = |at: Place| {
            let course = at.course.map(|own| Course { flushes: false, renews: false, ..own });
            Place { course, ..at }
        };
        Node {
            does: Deed::Read,
            id: Some(program::READ.to_owned()),
            durability: Durability::None,
            at: step.at.clone().map(course),
            ..step.clone()
        }
    };
    let steps = writes.map(read).collect();
    let program =
        Program { steps, after: Vec::new(), pace: Pace::Closed, flow: None, ..program.clone() };
    Some(Tenant { opening: Opening::Existing, program: Some(program), ..tenant.clone() })
}

/// The job that reads each block of a job's files once, in blocks of its smallest transfer.
pub fn reading_all(job: &Job) -> Job {
    let sizes = job.sizes();
    let block = if job.rw.is_mixed() { sizes[0].0.min(sizes[1].0) } else { sizes[1].0 };
    let untouched = Job::new(&job.section, job.at.clone());
    Job {
        rw: Rw::Read,
        rw_more: None,
        bs: [block; 3],
        bsrange: [None; 3],
        bssplit: None,
        distribution: untouched.distribution,
        percentage_random: [None; 3],
        io_size: None,
        loops: 1,
        number_ios: 0,
        rate: [0; 3],
        rate_iops: [0; 3],
        is_poisson: false,
        think_ns: 0,
        flow: 0,
        runtime_ns: 0,
        is_time_based: false,
        is_unlinked_each_loop: false,
        is_flushed_at_end: false,
        is_flushed_on_close: false,
        ..job.clone()
    }
}

/// Reads what `tenant` was to write, in the same order; all of its region if only a time ends it.
pub fn verifier(tenant: &Tenant) -> Tenant {
    let limit = tenant.limit;
    let (direction, limit) = match (limit, tenant.direction) {
        (Limit::Once | Limit::Ops { .. }, Direction::Mixed { read_share }) => {
            (Direction::Reread { read_share }, limit)
        }
        (Limit::Ops { .. }, Direction::Write) => (Direction::Read, limit),
        _ => (Direction::Read, Limit::Once),
    };
    let own = &tenant.manner;
    let tolerance = own.rules.tolerance.clone();
    Tenant {
        direction,
        fsync: FsyncPolicy::None,
        opening: Opening::Existing,
        is_preallocated: false,
        rate_ops_per_s: None,
        think_ns: iolab_model::Ns(0),
        begins_ns: iolab_model::Ns(0),
        limit,
        manner: Manner {
            op_log_window_ns: own.op_log_window_ns,
            submission_group: own.submission_group,
            verified: own.verified,
            advice: own.advice,
            // Opened again, so dropped again: what is dirty stays, and is on its way to the device.
            drops_cache_first: own.drops_cache_first,
            nice: own.nice,
            cpus: own.cpus.clone(),
            rules: TenantRules { tolerance, ..TenantRules::default() },
            ..Manner::default()
        },
        ..tenant.clone()
    }
}
