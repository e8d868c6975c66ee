//! Verification of a job: its blocks, when they are read back, what is kept of wrong ones.
//!
//! Facts: fio 3.33 as it behaves. A `verify_interval` that does not divide the transfers is that of
//! a whole transfer. A job ends with its first wrong block, whatever `verify_fatal` says; with
//! `continue_on_error=verify` it goes on, unless `verify_fatal` is set.

use iolab_model::Bytes;
use iolab_workload::spec::rules::TenantRules;
use iolab_workload::spec::{Direction, FsyncPolicy, Limit, Manner, Opening, ReadingBack, Tenant};
use iolab_workload::verify::{HEADER_BYTES, VerifiedBlocks};

use super::buffers::verified_pattern;
use super::geometry::Wrong;
use super::job::Job;
use crate::diagnostic::Problem;

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

    /// True if it does so in a phase of its own, after all jobs of its group.
    pub fn is_verified_apart(&self) -> bool {
        self.verifies_own() && self.verifying.backlog == 0
    }
}

/// Blocks in which a job of transfers of so many bytes is verified.
///
/// # Errors
///
/// The option that asks for blocks that cannot be.
pub fn blocks(job: &Job, io: u64) -> Result<VerifiedBlocks, Wrong> {
    if job.verify.is_none() {
        return Ok(VerifiedBlocks::default());
    }
    let asked = Some(job.verifying.interval).filter(|bytes| *bytes > 0);
    let bytes = asked.map(|bytes| if io.is_multiple_of(bytes) { bytes } else { io });
    if let Some(bytes) = bytes.filter(|bytes| !bytes.is_multiple_of(BLOCK_BYTES_MIN)) {
        let what = format!("verify_interval: blocks of {bytes} bytes");
        let problem = Problem::new(what, "write a multiple of 512 that divides bs");
        return Err(("verify_interval", problem));
    }
    let block = bytes.unwrap_or_else(|| 1 << io.trailing_zeros().min(BLOCK_POWER_MAX));
    // A pattern has no headers.
    let header_at = if verified_pattern(job).is_some() { 0 } else { job.verifying.header_at };
    let last = block.saturating_sub(HEADER_BYTES);
    if header_at > 0 && !(HEADER_BYTES..=last).contains(&header_at) {
        let what = format!("verify_offset={header_at}: a header of 48 bytes is not inside");
        let remedy = format!("write {HEADER_BYTES} to {last}, for blocks of {block} bytes");
        return Err(("verify_offset", Problem::new(what, remedy)));
    }
    Ok(VerifiedBlocks {
        bytes: bytes.map(Bytes),
        header_at_bytes: Bytes(header_at),
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

/// Reads what `tenant` has written, in the same order.
pub fn verifier(tenant: &Tenant) -> Tenant {
    let limit = match tenant.limit {
        Limit::Ops { .. } if tenant.direction == Direction::Write => tenant.limit,
        _ => Limit::Once,
    };
    let own = &tenant.manner;
    let tolerance = own.rules.tolerance.clone();
    Tenant {
        direction: Direction::Read,
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
            rules: TenantRules { tolerance, ..TenantRules::default() },
            ..Manner::default()
        },
        ..tenant.clone()
    }
}
