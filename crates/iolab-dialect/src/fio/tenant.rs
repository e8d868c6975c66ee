//! One unit of clones as a tenant of the workload.

use iolab_model::op::{Access, Durability, RangeSync};
use iolab_model::priority::PriorityClass;
use iolab_model::{Bytes, Ns, Priority};
use iolab_workload::spec::{
    Burst, Direction, Flush, FsyncPolicy, Limit, Manner, Opening, Pattern, Preallocation, Region,
    Tenant,
};

use super::engine::{self, Engine};
use super::expand::Unit;
use super::geometry::{Geometry, Wrong};
use super::job::{Fallocate, Job, Pauses, Sync};
use super::places::Path;
use super::{lower, rules, verify};
use crate::diagnostic::Problem;
use crate::workload::tenant;

fn wrong<T>(name: &'static str, what: &str, remedy: &str) -> Result<T, Wrong> {
    Err((name, Problem::new(what, remedy)))
}

/// The tenant that does what a unit of a job does.
pub fn tenant_of(
    job: &Job,
    unit: &Unit,
    engine: Engine,
    (geometry, opening): (&Geometry, Opening),
    paths: &[Path],
) -> Result<Tenant, Wrong> {
    let is_mapped = engine.name == "mmap";
    if is_mapped && job.is_direct {
        return wrong(
            "direct",
            "direct=1 with ioengine=mmap: a mapped file is always in the page cache",
            "leave one of them out",
        );
    }
    let names: Vec<String> = paths.iter().map(|path| path.name.clone()).collect();
    let is_shared = names.len() == 1;
    let first = Bytes(geometry.begin_of(unit.first));
    let io = geometry.io;
    let flush = match (is_mapped, job.fdatasync > 0, job.range_sync.is_some()) {
        (true, ..) => Flush::Msync,
        (false, true, _) => Flush::Fdatasync,
        (false, false, true) => Flush::SyncFileRange,
        (false, false, false) => Flush::Fsync,
    };
    Ok(Tenant {
        name: unit.name.clone(),
        workers: unit.clones as u32,
        is_file_shared: is_shared,
        file: names[0].clone(),
        files: if is_shared { Vec::new() } else { names },
        file_bytes: Bytes(geometry.file),
        region: Some(Region {
            from_bytes: first,
            bytes: Bytes(geometry.region),
            step_bytes: Bytes(geometry.step),
        }),
        io_size_bytes: Bytes(io),
        pattern: pattern(job),
        direction: direction(job),
        depth: if engine.is_asynchronous() { job.depth as u32 } else { 1 },
        access: match (is_mapped, job.is_direct) {
            (true, _) => Access::Mapped,
            (false, true) => Access::Direct,
            (false, false) => Access::Plain,
        },
        durability: match job.sync {
            Sync::None => Durability::None,
            Sync::Sync => Durability::Sync,
            Sync::Dsync => Durability::DataSync,
        },
        fsync: fsync(job, geometry)?,
        is_close_timed: false,
        flush,
        is_preallocated: opening == Opening::Keep && job.fallocate != Fallocate::None,
        opening,
        rate_ops_per_s: rate(job, io)?,
        think_ns: Ns(if is_simple_pause(job, engine) { job.think_ns } else { 0 }),
        lock: job.lock,
        flags: engine::flags(job, engine),
        begins_ns: delay(job, unit).0,
        priority: priority(job),
        limit: limit(job, geometry),
        manner: manner(job, unit, engine, geometry)?,
        ..tenant(&unit.name)
    })
}

/// Manner of its transfers of so many bytes.
fn manner(job: &Job, unit: &Unit, engine: Engine, geometry: &Geometry) -> Result<Manner, Wrong> {
    let io = geometry.io;
    let pass = geometry.region / io;
    let has_passes = is_timed(job) || geometry.ops > pass;
    let drops = has_passes && job.drops_cache_each_pass() && engine.name != "mmap";
    Ok(Manner {
        drops_cache_first: drops_first(job, engine),
        drops_cache_every: if drops && !engine.is_without_files() { pass } else { 0 },
        burst: burst(job, engine, io)?,
        begin_step_ns: delay(job, unit).1,
        rules: rules::of(job)?,
        submitter_cpu: job.submitter_cpu,
        warm_up_ns: Ns(job.ramp_ns),
        range_sync: job.range_sync.map_or_else(RangeSync::default, |(how, _)| how),
        preallocation: preallocation(job),
        advice: job.advised().filter(|_| !engine.is_without_files()),
        write_life: job.write_life,
        nice: job.nice,
        cpus: lower::cpus_of(job),
        kernel_thread_every: job.kernel_thread_every,
        op_log_window_ns: job.logs.engine_window(),
        refill_at: refill_at(job, engine),
        submission_group: submission_group(job, engine),
        expects_written: job.verifies_earlier(),
        verified: verify::blocks(job, io)?,
        read_back: verify::read_back(job),
        ..Manner::default()
    })
}

/// Tell whether a file that is only written loses its cached pages first, as fio has it.
fn drops_first(job: &Job, engine: Engine) -> bool {
    let is_cached = engine.name == "mmap" || !job.is_direct;
    is_cached
        && !engine.is_without_files()
        && job.is_invalidated
        && !job.is_pre_read
        && job.rw.writes()
        && !job.rw.reads()
        && !job.rw.trims()
}

/// Time until the first clone of a unit begins, and from one clone to the next: a range of delays
/// is divided evenly, where fio draws each clone's.
pub(super) fn delay(job: &Job, unit: &Unit) -> (Ns, Ns) {
    let (low, high) = job.delay_ns;
    let step = high.saturating_sub(low) / job.clones.max(1);
    (Ns(low + step / 2 + step * unit.first), Ns(if unit.clones > 1 { step } else { 0 }))
}

/// Transfers that are handed over together (`iodepth_batch`), and told apart from their ends; 0: of
/// an engine that waits for each.
pub(super) fn submission_group(job: &Job, engine: Engine) -> u32 {
    let group = if job.submitted_together == 0 { job.depth } else { job.submitted_together };
    if engine.is_asynchronous() { group.min(job.depth) as u32 } else { 0 }
}

/// Number of transfers under way below which more begin, once there were as many as `iodepth`: all
/// that is waited for at once has ended (`iodepth_batch_complete_min`), and no more than
/// `iodepth_low` are left. Absent: each one that ends makes room for the next.
pub(super) fn refill_at(job: &Job, engine: Engine) -> Option<u32> {
    if !engine.is_asynchronous() || job.depth < 2 {
        return None;
    }
    let low = if job.depth_low == 0 { job.depth } else { job.depth_low.min(job.depth) };
    let awaited = job.ends_awaited.clamp(1, job.depth);
    let left = low.min(job.depth - awaited);
    (left + 1 < job.depth).then_some(left as u32)
}

fn pattern(job: &Job) -> Pattern {
    let place = usize::from(!job.rw.reads());
    let is_random = match job.percentage_random[place] {
        Some(percent) => percent == 100 && job.rw.is_random(),
        None => job.rw.is_random(),
    };
    match (is_random, job.has_no_map) {
        (false, _) => Pattern::Sequential,
        (true, true) => Pattern::Uniform,
        (true, false) => Pattern::Shuffled,
    }
}

fn direction(job: &Job) -> Direction {
    match (job.rw.reads(), job.rw.writes()) {
        (true, false) => Direction::Read,
        (false, _) => Direction::Write,
        (true, true) => Direction::Mixed { read_share: job.read_percent as f64 / 100.0 },
    }
}

/// Share of reads of a mixed job with one process of arrivals: that of the rates.
pub(super) fn read_share(job: &Job) -> f64 {
    let rates = if job.rate_iops == [0; 3] { job.rate } else { job.rate_iops };
    match (rates[0], rates[1]) {
        (0, 0) => job.read_percent as f64 / 100.0,
        (reads, writes) => reads as f64 / (reads as f64 + writes as f64),
    }
}

/// Rates of the directions of a job.
#[derive(Clone, Copy)]
pub(super) struct Rates {
    /// Option that gives them.
    name: &'static str,
    /// Reads, writes and trims; 0: any.
    pub(super) of: [u64; 3],
    /// Bytes per second, not transfers.
    pub(super) are_bytes: bool,
}

/// Rates of the directions of a job, if any has one.
pub(super) fn rates(job: &Job) -> Result<Option<Rates>, Wrong> {
    match (job.rate != [0; 3], job.rate_iops != [0; 3]) {
        (false, false) => Ok(None),
        (true, true) => wrong("rate", "rate and rate_iops exclude each other", "write one of them"),
        (true, false) => Ok(Some(Rates { name: "rate", of: job.rate, are_bytes: true })),
        (false, true) => Ok(Some(Rates { name: "rate_iops", of: job.rate_iops, are_bytes: false })),
    }
}

/// Transfers per second, if they are limited.
pub(super) fn rate(job: &Job, io: u64) -> Result<Option<f64>, Wrong> {
    let Some(Rates { name, of, are_bytes }) = rates(job)? else { return Ok(None) };
    let unit = if are_bytes { io as f64 } else { 1.0 };
    let total = match (job.rw.reads(), job.rw.writes()) {
        (true, true) if of[0] == 0 || of[1] == 0 => {
            let what = "a rate of one direction alone is not done with rate_process=poisson";
            return wrong(name, what, "write both: rate=READ,WRITE");
        }
        (true, true) => of[0] as f64 + of[1] as f64,
        (true, false) => of[0] as f64,
        (false, _) if job.rw.trims() => of[2] as f64,
        (false, _) => of[1] as f64,
    };
    Ok((total > 0.0).then_some(total / unit))
}

/// Tell whether each transfer is followed by a pause, one after the other, and nothing more is said
/// of pauses.
fn is_simple_pause(job: &Job, engine: Engine) -> bool {
    let is_deep = engine.is_asynchronous() && job.depth > 1;
    job.thinks_after() == 1 && job.pauses == Pauses::default() && !is_deep
}

fn burst(job: &Job, engine: Engine, io: u64) -> Result<Option<Burst>, Wrong> {
    if job.think_ns == 0 || is_simple_pause(job, engine) {
        return Ok(None);
    }
    let Some(bytes) = job.thinks_after().checked_mul(io) else {
        return wrong("thinktime_blocks", "thinktime_blocks is too large", "write fewer");
    };
    Ok(pauses(job).map(|pauses| Burst { bytes: Bytes(bytes), ops: 0, ..pauses }))
}

/// Pauses of a job whose transfers are of several sizes, or on several files.
pub(super) fn pauses(job: &Job) -> Option<Burst> {
    (job.think_ns > 0).then(|| Burst {
        bytes: Bytes(0),
        ops: job.thinks_after(),
        lasting_ns: Ns(job.pauses.every_ns),
        pause_ns: Ns(job.think_ns),
        burning_ns: Ns(job.pauses.burning_ns),
        delays_schedule: job.pauses.delays_schedule,
    })
}

fn fsync(job: &Job, geometry: &Geometry) -> Result<FsyncPolicy, Wrong> {
    check_flushes(job)?;
    let is_ended = job.is_flushed_at_end || job.is_flushed_on_close;
    let ops = job.flush_every();
    Ok(match (job.rw.writes(), ops, is_ended) {
        (false, _, _) | (true, 0, false) => FsyncPolicy::None,
        (true, ops, is_ended) => {
            let has_passes = is_timed(job) || geometry.ops > geometry.region / geometry.io;
            let is_flushed = has_passes && job.is_flushed_after_pass();
            let pass_ops = if is_flushed { geometry.region / geometry.io } else { 0 };
            FsyncPolicy::Between { ops, is_ended, pass_ops, is_repeated: job.rw.is_mixed() }
        }
    })
}

/// Refuses flushes of several kinds in one job.
pub(super) fn check_flushes(job: &Job) -> Result<(), Wrong> {
    let kinds = [
        ("fsync", job.fsync > 0),
        ("fdatasync", job.fdatasync > 0),
        ("sync_file_range", job.range_sync.is_some()),
    ];
    let mut asked = kinds.into_iter().filter(|(_, is_asked)| *is_asked);
    match (asked.next(), asked.next_back()) {
        (Some((first, _)), Some((last, _))) => {
            wrong(last, &format!("{first} and {last} exclude each other"), "write one of them")
        }
        _ => Ok(()),
    }
}

/// Way in which room is made in a file, if it is.
fn preallocation(job: &Job) -> Preallocation {
    match job.fallocate {
        Fallocate::None | Fallocate::Native => Preallocation::Extended,
        Fallocate::Keep => Preallocation::Reserved,
        Fallocate::Truncate => Preallocation::Length,
    }
}

/// Tell whether a time ends the job, not its bytes.
pub(super) fn is_timed(job: &Job) -> bool {
    job.is_time_based && job.runtime_ns > 0
}

fn limit(job: &Job, geometry: &Geometry) -> Limit {
    if job.is_only_created {
        return Limit::Ops { ops: 0, within_ns: None };
    }
    let lasting = Ns(job.runtime_ns.saturating_add(job.ramp_ns));
    if is_timed(job) {
        return Limit::Time { duration_ns: lasting };
    }
    let within_ns = (job.runtime_ns > 0).then_some(lasting);
    let is_pass = geometry.ops == geometry.region / geometry.io;
    let is_one_pass = is_pass && within_ns.is_none() && !job.ends_all;
    if is_one_pass { Limit::Once } else { Limit::Ops { ops: geometry.ops, within_ns } }
}

pub(super) fn priority(job: &Job) -> Option<Priority> {
    if job.prio.is_none() && job.prio_class.is_none() {
        return None;
    }
    let class = match job.prio_class {
        Some(0) => PriorityClass::None,
        Some(1) => PriorityClass::RealTime,
        Some(3) => PriorityClass::Idle,
        _ => PriorityClass::BestEffort,
    };
    Some(Priority { class, level: job.prio.unwrap_or(0) as u8 })
}
