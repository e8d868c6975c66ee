//! One unit of clones as a program, where a stream cannot say what it does: several files, sizes
//! that vary, places by a distribution, operations on names.

use iolab_model::op::{Durability, RangeSync, WriteLife};
use iolab_model::{Bytes, Ns};
use iolab_workload::program::{
    Amount, Course, DataPath, Deed, Every, FileBy, FileChoice, FileSet, Fill, Flow, Limits, Node,
    OPEN_MAX, Pace, Pick, Place, Program, Reuse, Spread, Tree, WhenNone, Zones,
};
use iolab_workload::spec::{LockPolicy, Manner, Opening, Tenant};

use super::engine::{self, Engine};
use super::expand::Unit;
use super::geometry::{Geometry, Wrong, geometry, of_loops, percent_of};
use super::host::{Host, There};
use super::job::{Fallocate, Job, Sync};
use super::places::Path;
use super::value::Amount as Typed;
use super::{iolog, lower, rules, shape, tenant, verify};
use crate::diagnostic::Problem;

fn wrong<T>(name: &'static str, what: &str, remedy: &str) -> Result<T, Wrong> {
    Err((name, Problem::new(what, remedy)))
}

/// Tell whether a unit of this job is a program.
pub fn is_needed(job: &Job, engine: Engine) -> bool {
    engine.is_of_names() || engine.is_of_space() || culprit(job).is_some()
}

/// Option that makes a unit of this job a program, and what a stream could do in its place.
pub fn culprit(job: &Job) -> Option<&'static str> {
    let sizes = job.sizes();
    let is_used = |place: usize| if place == 0 { job.rw.reads() } else { job.rw.writes() };
    let varies =
        (0..2).filter(|place| is_used(*place)).any(|place| sizes[place].0 != sizes[place].1);
    let is_odd = |percent: &Option<u64>| percent.is_some_and(|percent| percent % 100 != 0);
    let [reads, writes, _] = job.percentage_random;
    let random = job.rw.is_random() && (is_odd(&reads) || is_odd(&writes))
        || job.rw.is_mixed() && reads != writes;
    let is_split = job.bssplit.is_some() && (is_used(0) || is_used(1));
    let several_sizes = varies || job.rw.is_mixed() && sizes[0] != sizes[1];
    let several_files = job.filename.len() > 1 || job.nrfiles > 1 && job.filename.is_empty();
    [
        (is_split, "use one size: leave bssplit out"),
        (several_sizes, "use one size: bs= in place of a range or two sizes"),
        (job.rw_more.is_some(), "leave the number behind rw= out"),
        (job.distribution != "random", "leave random_distribution out"),
        (random, "leave percentage_random out"),
        (several_files, "use one file: nrfiles=1, or one filename"),
        (job.filesize.is_some_and(|(low, high)| low != high), "use one filesize"),
        (job.is_poisson, "leave rate_process=poisson out"),
        (job.rw.trims(), "leave trims out"),
        (job.is_renewed(), "leave unlink_each_loop out"),
        (job.rw.is_random() && job.align != [None; 3], "leave blockalign out"),
        (job.is_strided == Some(true), "leave zonemode=strided out"),
        (job.flow > 0, "leave flow out"),
        (has_rates_of_directions(job), "leave the rate out"),
        (job.replay.file.is_some(), "leave read_iolog out"),
    ]
    .into_iter()
    .find_map(|(is_asked, remedy)| is_asked.then_some(remedy))
}

/// Tell whether reads and writes of a mixed job have rates, each its own.
fn has_rates_of_directions(job: &Job) -> bool {
    job.rw.is_mixed() && [job.rate, job.rate_iops].iter().any(|rates| rates[..2] != [0; 2])
}

/// Unit of what is verified.
const SECTOR: u64 = 512;

/// Files of all jobs of a command at most.
const FILES_MAX: u64 = 1 << 20;

/// Refuses more files than can be open, or than anybody has, before each has a name; so many are of
/// the jobs before.
pub fn check_files(job: &Job, unit: &Unit, engine: Engine, before: u64) -> Result<(), Wrong> {
    let (name, files) = if job.filename.is_empty() {
        ("nrfiles", job.nrfiles.saturating_mul(unit.clones))
    } else {
        ("filename", job.filename.len() as u64)
    };
    if !engine.is_of_names() && files > OPEN_MAX {
        let what = format!("{files} files of all clones would be open at once");
        let remedy = format!("use at most {OPEN_MAX}, or jobs after one another (stonewall)");
        return Err((name, Problem::new(what, remedy)));
    }
    if before.saturating_add(files) > FILES_MAX {
        let what = format!("more than {FILES_MAX} files of all jobs");
        return wrong(name, &what, "use fewer files, or clones that share them (filename=)");
    }
    Ok(())
}

/// Tell whether the cached pages of a file are dropped between two passes, as by fio.
fn drops_cache(job: &Job, engine: Engine) -> bool {
    let has_passes = tenant::is_timed(job) || job.loops > 1 || job.io_size.is_some();
    let is_plain = engine.name != "mmap" && !engine.is_without_files();
    has_passes && is_plain && job.is_strided != Some(true) && job.drops_cache_each_pass()
}

/// Tell whether an engine makes the files, which are not there before.
pub fn makes_names(engine: Engine) -> bool {
    engine.name == "filecreate"
}

/// Tell whether an engine removes the files.
pub fn removes_names(engine: Engine) -> bool {
    engine.name == "filedelete"
}

/// Work on one file, and on all of them together.
struct Work {
    /// Of one file.
    one: Geometry,
    /// Smallest transfer, which places are multiples of.
    unit: u64,
    /// All transfers are of one size.
    is_fixed: bool,
    files: u64,
    /// Bytes that are moved; absent: a time ends it.
    bytes: Option<u64>,
    /// Transfers, where sizes vary.
    ops: Option<u64>,
    is_endless: bool,
}

/// Tenant and files of a unit; whether files that are there are used is for the caller to say.
pub fn program_of(
    job: &Job,
    unit: &Unit,
    engine: Engine,
    (paths, set): (&[Path], &str),
    (host, looked_at): (&impl Host, Option<&str>),
) -> Result<(Tenant, FileSet), Wrong> {
    refuse_what_programs_lack(job, engine)?;
    rules::refuse(job, engine)?;
    let work = work(job, host, looked_at)?;
    let program = if engine.is_of_names() {
        of_names(job, engine, set, work.files)
    } else if job.replay.file.is_some() {
        iolog::program(job, set, |does| opened(job, engine, does))
    } else {
        of_transfers(job, unit, engine, set, &work)?
    };
    let is_null = engine.name == "null";
    let names: Vec<String> = paths.iter().map(|path| path.name.clone()).collect();
    let files = FileSet {
        name: set.to_owned(),
        place: None,
        is_flat: true,
        files: names.len() as u64,
        file_bytes: file_bytes(job, &work),
        tree: Tree { names: names.clone(), ..Tree::default() },
        existing_percent: if makes_names(engine) { 0.0 } else { 100.0 },
        reuse: Reuse::Kept,
        content: None,
        makers: 0,
        fill: match (job.rw.writes() && !job.rw.reads() || engine.is_of_space(), job.fallocate) {
            (true, _) if !engine.is_of_space() && (job.is_overwritten || job.rw.trims()) => {
                Fill::Data
            }
            (true, Fallocate::Native | Fallocate::Keep) => Fill::Allocated,
            (true, Fallocate::None | Fallocate::Truncate) => Fill::Sparse,
            (false, _) => Fill::Data,
        },
    };
    let tenant = Tenant {
        files: if is_null { Vec::new() } else { names },
        depth: if engine.is_asynchronous() { job.depth as u32 } else { 1 },
        opening: if makes_names(engine) { Opening::Create } else { Opening::Existing },
        priority: tenant::priority(job),
        lock: job.lock,
        begins_ns: tenant::delay(job, unit).0,
        manner: Manner {
            begin_step_ns: tenant::delay(job, unit).1,
            op_log_window_ns: job.logs.engine_window(),
            submission_group: tenant::submission_group(job, engine),
            cpus: lower::cpus_of(job),
            expects_written: job.verifies_earlier(),
            rules: rules::of(job)?,
            submitter_cpu: job.submitter_cpu,
            warm_up_ns: Ns(job.ramp_ns),
            kernel_thread_every: job.kernel_thread_every,
            refill_at: tenant::refill_at(job, engine),
            burst: tenant::pauses(job),
            verified: verify::blocks(job, work.unit)?,
            ..Manner::default()
        },
        ..Tenant::of_program(&unit.name, unit.clones as u32, program)
    };
    Ok((tenant, files))
}

/// Tenant of a job that burns the CPU: bursts with pauses between them, as long as it runs.
pub fn of_the_cpu(job: &Job, unit: &Unit) -> Result<Tenant, Wrong> {
    if job.cpu_percent == 0 {
        return wrong("ioengine", "ioengine=cpuio needs cpuload", "write cpuload=50, for instance");
    }
    if job.runtime_ns == 0 {
        let what = "ioengine=cpuio without runtime never ends";
        return wrong("ioengine", what, "write runtime= as well");
    }
    let timed = |does, ns: u64| Node { duration_ns: Some(Amount::Constant(ns)), ..Node::new(does) };
    let mut steps = vec![timed(Deed::Burn, job.cpu_chunk_ns)];
    let pause = u128::from(job.cpu_chunk_ns) * u128::from(100 - job.cpu_percent)
        / u128::from(job.cpu_percent);
    if pause > 0 {
        steps.push(timed(Deed::Think, pause as u64));
    }
    let limit = Limits { time_ns: Some(Ns(job.runtime_ns)), ..Limits::default() };
    let program = Program { steps, limit, ..Program::default() };
    let manner = Manner { cpus: lower::cpus_of(job), ..Manner::default() };
    Ok(Tenant { manner, ..Tenant::of_program(&unit.name, unit.clones as u32, program) })
}

fn file_bytes(job: &Job, work: &Work) -> Amount {
    match job.filesize {
        Some((low, high)) if low != high => {
            Amount::Drawn(Spread::Uniform { from: low, to: high, step: work.unit })
        }
        _ if job.compares() => Amount::Constant(work.one.file / SECTOR * SECTOR),
        _ => Amount::Constant(work.one.file),
    }
}

/// Refuse options that only streams can do.
fn refuse_what_programs_lack(job: &Job, engine: Engine) -> Result<(), Wrong> {
    if job.verifies_own() && (engine.is_of_names() || engine.is_of_space()) {
        let what =
            format!("verify has nothing to do with ioengine={}, which moves no data", engine.name);
        return wrong("verify", &what, "leave one of them out");
    }
    if job.verifies_own() && job.replay.file.is_some() {
        return wrong("verify", "verify of a replay is not done", "leave read_iolog out");
    }
    if job.ramp_ns > 0 && (engine.is_of_names() || job.rw.trims()) {
        let what = "ramp_time of operations on names, or of trims, is not done";
        return wrong("ramp_time", what, "leave it out");
    }
    let moves_nothing = engine.is_of_names() || engine.is_of_space() || job.rw.trims();
    let refused = [
        ("create_only", job.is_only_created),
        ("lockfile", job.lock != LockPolicy::None),
        ("force_async", job.kernel_thread_every > 0),
        ("latency_target", job.rules.target_ns > 0),
    ];
    match refused.into_iter().find(|(_, is_asked)| *is_asked && moves_nothing) {
        Some((name, _)) => {
            let what = format!("{name} is not done where no data are moved");
            wrong(name, &what, culprit(job).unwrap_or("leave it out"))
        }
        None => tenant::check_flushes(job),
    }
}

/// Sizes of the directions that a job uses.
fn used(job: &Job) -> Vec<(u64, u64)> {
    let sizes = job.sizes();
    let mut found = Vec::new();
    if job.rw.trims() {
        return vec![sizes[2]];
    }
    found.extend(Some(sizes[0]).filter(|_| job.rw.reads()));
    found.extend(Some(sizes[1]).filter(|_| job.rw.writes()));
    found
}

fn work(job: &Job, host: &impl Host, looked_at: Option<&str>) -> Result<Work, Wrong> {
    let sizes = used(job);
    let unit = sizes.iter().map(|size| size.0).min().unwrap_or(4096);
    let is_fixed = sizes.iter().all(|size| *size == (unit, unit));
    let files = if job.filename.is_empty() { job.nrfiles } else { job.filename.len() as u64 };
    let whole = match (job.size, job.filesize) {
        (Some(Typed::Bytes(bytes)), _) => Some(bytes),
        (Some(Typed::Percent(percent)), Some((bytes, _))) => {
            Some(percent_of(bytes.saturating_mul(files), percent))
        }
        _ => None,
    };
    let mut alone = Job { io_size: None, loops: 1, number_ios: 0, ..job.clone() };
    if let (None, Some(bytes)) = (job.filesize, whole) {
        alone.size = Some(Typed::Bytes(bytes / files));
    }
    if files > 1 && job.offset_increment != Typed::Bytes(0) {
        let what = "offset_increment with several files is not done yet";
        return wrong("offset_increment", what, "write one file per job");
    }
    if job.filesize.is_some() {
        // Sizes of files are given: size= is an amount alone.
        alone.size = None;
    }
    let one = geometry(&alone, host, looked_at, unit)?;
    let is_range = job.filesize.is_some_and(|(low, high)| low != high);
    let largest = job.filesize.map_or(one.region, |(_, high)| high.max(one.region));
    let blocks = |bytes: u64| bytes / unit * unit;
    let region = blocks(largest).saturating_mul(files);
    let one_pass = match skip(job)? {
        bytes if is_fixed && bytes > 0 => {
            skipping(largest, unit, bytes as u64, is_longer(&one, host, looked_at))
        }
        _ => blocks(largest),
    };
    let one_pass = one_pass.saturating_mul(files);
    let pass = match (job.io_size, whole) {
        (Some(Typed::Bytes(bytes)), _) if is_fixed => bytes.div_ceil(unit) * unit,
        (Some(Typed::Bytes(bytes)), _) => bytes,
        (Some(Typed::Percent(percent)), _) => percent_of(region, percent).div_ceil(unit) * unit,
        (None, Some(bytes)) if job.filesize.is_some() => blocks(bytes).min(region),
        (None, _) => one_pass,
    };
    let grain = if is_fixed { unit } else { 1 };
    let amount = |number_ios: u64| {
        let counted = Job { number_ios, ..job.clone() };
        of_loops(&counted, pass / grain, one_pass / grain).saturating_mul(grain)
    };
    let all = amount(0).max(unit);
    let is_timed = tenant::is_timed(job);
    // A pass of so many transfers begins again until the time is over, as with fio.
    let counted = Some(job.number_ios).filter(|count| *count > 0 && !is_timed);
    let bytes = match counted {
        Some(count) if is_fixed => Some(amount(count)),
        _ => (!is_timed).then_some(all),
    };
    let ops = counted.filter(|_| !is_fixed).map(|count| count.saturating_mul(job.loops));
    let is_sequential_mix = job.rw.is_mixed() && !job.rw.is_random();
    let is_endless = is_timed || is_sequential_mix || (all > one_pass && !is_range);
    Ok(Work { one, unit, is_fixed, files, bytes, ops, is_endless })
}

/// Bytes between two transfers of a job that is not random.
fn skip(job: &Job) -> Result<i64, Wrong> {
    match job.rw_more.as_deref().filter(|_| !job.rw.is_random()) {
        Some(text) => shape::skip(text, job.kb_base).map_err(|problem| ("rw", problem)),
        None => Ok(0),
    }
}

/// Tell whether a file is there that goes on behind the region of a job.
fn is_longer(one: &Geometry, host: &impl Host, path: Option<&str>) -> bool {
    match path.map(|path| host.at(path)) {
        Some(There::File(bytes) | There::Device(bytes)) => bytes > one.file,
        _ => false,
    }
}

/// Bytes that are moved in a pass over a region with `skip` bytes between two transfers: it ends
/// where a part of a transfer is left or the file goes on, and otherwise begins again from the
/// front.
fn skipping(region: u64, unit: u64, skip: u64, is_file_longer: bool) -> u64 {
    let step = unit.saturating_add(skip);
    let count = region.saturating_sub(unit) / step + 1;
    let is_part_left = count.checked_mul(step).is_some_and(|next| next < region);
    if is_part_left || is_file_longer { count * unit } else { region / unit * unit }
}

/// Creating, asking about or removing each file once.
fn of_names(job: &Job, engine: Engine, set: &str, files: u64) -> Program {
    let (does, by) = match engine.name {
        "filecreate" => (Deed::Create, FileBy::Absent),
        "filestat" => (Deed::Stat, FileBy::Own),
        _ => (Deed::Unlink, FileBy::Own),
    };
    // Files of others are left to their worker; of those that are made any will do.
    let file = FileChoice { when_none: WhenNone::End, ..choice(by, set) };
    let mut steps = vec![Node { file: Some(file), ..Node::new(does) }];
    if does == Deed::Create {
        steps.push(Node::new(Deed::Close));
    }
    let time = (job.runtime_ns > 0).then_some(Ns(job.runtime_ns));
    let limit = Limits { passes: Some(files), time_ns: time, ..Limits::default() };
    Program { steps, limit, ..Program::default() }
}

fn choice(by: FileBy, set: &str) -> FileChoice {
    FileChoice {
        by,
        set: Some(set.to_owned()),
        pick: None,
        slot: None,
        step: None,
        local: None,
        stay: 0,
        is_own: false,
        when_none: WhenNone::Fail,
    }
}

fn of_transfers(
    job: &Job,
    unit: &Unit,
    engine: Engine,
    set: &str,
    work: &Work,
) -> Result<Program, Wrong> {
    if job.rw.trims() {
        return of_trims(job, unit, engine, set, work);
    }
    check_space(job, engine, work)?;
    // One process of arrivals is divided as the rates are.
    let share =
        if job.is_poisson { tenant::read_share(job) } else { job.read_percent as f64 / 100.0 };
    let mut leafs = Vec::new();
    if job.rw.reads() && share > 0.0 {
        leafs.push(leaf(job, unit, (engine, set), work, (0, share))?);
    }
    if job.rw.writes() && (!job.rw.is_mixed() || share < 1.0) {
        let share = if job.rw.is_mixed() { 1.0 - share } else { 1.0 };
        leafs.push(leaf(job, unit, (engine, set), work, (1, share))?);
    }
    let mut steps = match leafs.len() {
        1 => leafs,
        _ => vec![Node { steps: leafs, ..Node::new(Deed::Choose) }],
    };
    let mut after = Vec::new();
    if job.rw.writes() {
        let flush = flush(job, engine)?;
        let every = job.flush_every();
        if every > 0 {
            let every = Every { ops: every, of: WRITE.to_owned(), is_repeated: job.rw.is_mixed() };
            steps.push(Node { every: Some(every), id: Some("sync".into()), ..flush.clone() });
        }
        if job.is_flushed_at_end || job.is_flushed_on_close {
            let last = Node { does: Deed::Fsync, id: Some("last_sync".into()), ..flush };
            after.push(if work.files > 1 { of_each_file(last, set, work.files) } else { last });
        }
    }
    let lasting = Ns(job.runtime_ns.saturating_add(job.ramp_ns));
    // What moves no bytes is counted by its passes, each of which is one operation.
    let passes =
        work.bytes.filter(|_| engine.is_of_space()).map(|bytes| (bytes / work.unit).max(1));
    let limit = Limits {
        passes,
        ops: work.ops,
        total_bytes: match work.bytes {
            _ if job.is_only_created => Some(Bytes(0)),
            bytes => bytes.filter(|_| !engine.is_of_space()).map(Bytes),
        },
        time_ns: (job.runtime_ns > 0).then_some(lasting),
        count: None,
    };
    let (pace, flow) = (pace(job, work)?, flow(job));
    Ok(Program { steps, after, pace, flow, limit, ..Program::default() })
}

/// Refuse what engines of lengths and blocks do not do.
fn check_space(job: &Job, engine: Engine, work: &Work) -> Result<(), Wrong> {
    if engine.name == engine::FTRUNCATE && (job.rw.reads() || job.rw.trims()) {
        let what = "ioengine=ftruncate only writes";
        return wrong("rw", what, "write rw=write or rw=randwrite");
    }
    if engine.is_of_space() && !work.is_fixed {
        let what = format!("ioengine={} with several sizes is not done", engine.name);
        return wrong("bs", &what, "write one size");
    }
    Ok(())
}

/// The proportion to other jobs, if there is one.
fn flow(job: &Job) -> Option<Flow> {
    (job.flow > 0).then(|| Flow { name: format!("flow{}", job.flow_id), weight: job.flow })
}

/// Trims, and perhaps a write of each trimmed block; a pass is one block.
fn of_trims(
    job: &Job,
    unit: &Unit,
    engine: Engine,
    set: &str,
    work: &Work,
) -> Result<Program, Wrong> {
    check_space(job, engine, work)?;
    if !work.is_fixed {
        return wrong("bs", "trims of several sizes are not done", "write one size");
    }
    if job.flush_every() > 0 || job.is_flushed_at_end || job.is_flushed_on_close {
        return wrong("fsync", "flushes between trims are not done", "leave them out");
    }
    if engine.name == "mmap" {
        return wrong("ioengine", "a mapped file cannot be trimmed", "write ioengine=psync");
    }
    let trim = leaf(job, unit, (engine, set), work, (2, 1.0))?;
    let mut steps = vec![Node { is_submitted_only: false, ..trim }];
    if job.rw.writes_data() {
        let file =
            FileChoice { set: None, step: Some(TRIM.to_owned()), ..choice(FileBy::Same, "") };
        steps.push(Node {
            id: Some(WRITE.to_owned()),
            file: Some(file),
            at: Some(Place { of: Some(TRIM.to_owned()), ..Place::default() }),
            size_bytes: Some(Amount::Constant(work.unit)),
            ..opened(job, engine, deed(engine, 1))
        });
    }
    let time_ns = (job.runtime_ns > 0).then_some(Ns(job.runtime_ns));
    let passes = work.bytes.map(|bytes| (bytes / work.unit).max(1));
    let limit = Limits { passes, time_ns, ..Limits::default() };
    let (pace, flow) = (pace(job, work)?, flow(job));
    Ok(Program { steps, pace, flow, limit, ..Program::default() })
}

/// Id of the step that reads: results are found by ids.
pub const READ: &str = "read";
/// Id of the step that writes.
pub const WRITE: &str = "write";
/// Id of the step that trims.
pub const TRIM: &str = "trim";

fn leaf(
    job: &Job,
    unit: &Unit,
    (engine, set): (Engine, &str),
    work: &Work,
    (place, weight): (usize, f64),
) -> Result<Node, Wrong> {
    let is_random = job.rw.is_random();
    let (does, id) = (deed(engine, place), [READ, WRITE, TRIM][place]);
    let more = job.rw_more.as_deref();
    let runs = match more.filter(|_| is_random) {
        Some(text) => shape::run_length(text).map_err(|problem| ("rw", problem))?,
        None => 1,
    };
    let skip_bytes = skip(job)?;
    let course = Course {
        picked_percent: if is_random { job.percentage_random[place].unwrap_or(100) } else { 0 },
        ops_per_place: runs,
        is_repeating: job.is_identical,
        skip_bytes,
        is_endless: work.is_endless,
        drops_cache: drops_cache(job, engine),
        renews: job.is_renewed(),
        flushes: job.is_flushed_after_pass() && job.is_strided != Some(true),
        zones: zones(job)?,
    };
    let region = shape::Worked { bytes: Some(work.one.region), kb_base: job.kb_base };
    let named = shape::distribution(&job.distribution, place, region);
    let named = named.map_err(|problem| ("random_distribution", problem))?;
    let align = job.align[place];
    let has_no_map = job.has_no_map || align.is_some() || has_two_sizes(job);
    let even = if has_no_map { Pick::Uniform } else { Pick::Permutation };
    let grain = if has_two_sizes(job) { job.sizes()[place].0 } else { work.unit };
    let is_range = job.filesize.is_some_and(|(low, high)| low != high);
    let first = work.one.begin_of(unit.first);
    let at = Place {
        pick: Some(named.unwrap_or(even)).filter(|_| is_random),
        unit_bytes: Some(Bytes(align.filter(|_| is_random).unwrap_or(grain))),
        from_bytes: Bytes(first),
        within_bytes: (!is_range).then_some(Bytes(region_of(job, work))),
        worker_step_bytes: Bytes(work.one.step),
        course: Some(course),
        ..Place::default()
    };
    let (service, more) = &job.file_service;
    let served = shape::service(service, more.as_deref());
    let (order, stay) = served.map_err(|problem| ("file_service_type", problem))?;
    let file = FileChoice {
        pick: Some(order),
        stay,
        is_own: job.filename.is_empty(),
        ..choice(FileBy::Served, set)
    };
    Ok(Node {
        id: Some(id.to_owned()),
        weight,
        file: Some(file),
        at: Some(at),
        size_bytes: Some(size_of(job, place, work.unit)),
        is_submitted_only: engine.is_asynchronous() && job.depth > 1,
        flags: engine::flags(job, engine),
        // A read by fallocate(2): the file has room, and is as long as before.
        keeps_length: does == Deed::Allocate && place == 0,
        ..opened(job, engine, does)
    })
}

/// Length of the part of a file that is worked on. Blocks that are verified are whole sectors: what
/// is left behind the last transfer is not touched.
fn region_of(job: &Job, work: &Work) -> u64 {
    if job.compares() { work.one.region / SECTOR * SECTOR } else { work.one.region }
}

/// Tell whether the reads and the writes of a random job have sizes of their own: whole transfers
/// of the larger ones find no room in a map of places that the smaller ones have passed.
pub fn has_two_sizes(job: &Job) -> bool {
    let is_mapped = !job.has_no_map && job.align == [None; 3] && !job.compares();
    let is_mixed = job.rw.is_mixed() && job.rw.is_random() && !job.rw.trims();
    is_mapped && is_mixed && job.sizes()[0].0 != job.sizes()[1].0
}

/// Deed of a read (0), a write (1) or a trim.
fn deed(engine: Engine, place: usize) -> Deed {
    match (engine.name, place) {
        (engine::FTRUNCATE, _) => Deed::Truncate,
        (engine::FALLOC, 0 | 1) => Deed::Allocate,
        (engine::FALLOC, _) => Deed::Punch,
        (_, 0) => Deed::Read,
        (_, 1) => Deed::Write,
        _ => Deed::Discard,
    }
}

/// Zones that a job works on one after the other.
fn zones(job: &Job) -> Result<Option<Zones>, Wrong> {
    if job.is_strided != Some(true) {
        let what = "zonesize needs zonemode=strided";
        return match job.zone_bytes {
            0 => Ok(None),
            _ => wrong("zonesize", what, "write zonemode=strided, or leave zonesize out"),
        };
    }
    if job.zone_bytes == 0 {
        return wrong("zonemode", "zonemode=strided needs zonesize", "write zonesize=");
    }
    let range = if job.zone_range == 0 { job.zone_bytes } else { job.zone_range };
    Ok(Some(Zones {
        moved_bytes: Bytes(job.zone_bytes),
        bytes: Bytes(range),
        skip_bytes: Bytes(job.zone_skip),
    }))
}

/// A step on a file that is kept open: all of a job open it alike.
fn opened(job: &Job, engine: Engine, does: Deed) -> Node {
    let path = match (engine.name == "mmap", job.is_direct) {
        (true, _) => DataPath::Mapped,
        (false, true) => DataPath::Direct,
        (false, false) => DataPath::Cached,
    };
    Node {
        path: Some(path),
        durability: match job.sync {
            Sync::None => Durability::None,
            Sync::Sync => Durability::Sync,
            Sync::Dsync => Durability::DataSync,
        },
        // Only who may write may keep readers out (fcntl(2)).
        is_read_only: !job.rw.writes()
            && !engine.is_of_space()
            && job.lock != LockPolicy::Exclusive,
        advice: job.advised().filter(|_| !engine.is_without_files()),
        write_life: if job.rw.writes() { job.write_life } else { WriteLife::Unsaid },
        ..Node::new(does)
    }
}

fn size_of(job: &Job, place: usize, unit: u64) -> Amount {
    if let Some(split) = &job.bssplit {
        match split[job.place_of_sizes(place)].as_slice() {
            [] => {}
            [only] => return Amount::Constant(only.value),
            rows => return Amount::Drawn(Spread::Table { rows: rows.to_vec() }),
        }
    }
    let (from, to) = job.sizes()[place];
    if from == to {
        return Amount::Constant(from);
    }
    // Multiples of the smallest transfer, or any number of bytes.
    let step = if job.is_unaligned { 1 } else { from.min(unit).max(1) };
    Amount::Drawn(Spread::Uniform { from, to: from + (to - from) / step * step, step })
}

/// A flush of the file that was written last.
fn flush(job: &Job, engine: Engine) -> Result<Node, Wrong> {
    let asks = job.flush_every() > 0 || job.is_flushed_at_end || job.is_flushed_on_close;
    if asks && engine.name == "mmap" {
        let what = "flushes of mapped files of several sizes are not done yet";
        return wrong("fsync", what, "use one file and one size");
    }
    let does = match job.range_sync {
        Some(_) => Deed::SyncFileRange,
        None if job.fdatasync > 0 => Deed::Fdatasync,
        None => Deed::Fsync,
    };
    let range_sync = job.range_sync.map_or_else(RangeSync::default, |(how, _)| how);
    let file = FileChoice {
        set: None,
        step: Some(WRITE.to_owned()),
        when_none: WhenNone::Skip,
        ..choice(FileBy::Same, "")
    };
    Ok(Node { file: Some(file), range_sync, ..opened(job, engine, does) })
}

/// The same step on each file of a clone, once; of files that clones share each clone has a part.
fn of_each_file(step: Node, set: &str, files: u64) -> Node {
    let file = FileChoice { when_none: WhenNone::Skip, ..choice(FileBy::Own, set) };
    Node { file: Some(file), times: Some(Amount::Constant(files)), ..step }
}

/// Bytes or transfers per second that limit a job, of reads, of writes and of trims; 0: any number.
struct Limited {
    of: [f64; 3],
    are_bytes: bool,
}

/// Rates of a job: of several sizes those of transfers are bytes of the smallest ones, as with fio.
fn limited(job: &Job, work: &Work) -> Result<Option<Limited>, Wrong> {
    let Some(rates) = tenant::rates(job)? else { return Ok(None) };
    let sizes = job.sizes();
    let of = [0, 1, 2].map(|place| {
        let rate = rates.of[place] as f64;
        match (work.is_fixed, rates.are_bytes) {
            (true, true) => rate / work.unit as f64,
            (true, false) | (false, true) => rate,
            (false, false) => rate * sizes[place].0 as f64,
        }
    });
    Ok(Some(Limited { of, are_bytes: !work.is_fixed }))
}

fn pace(job: &Job, work: &Work) -> Result<Pace, Wrong> {
    if job.is_poisson {
        return pace_of_arrivals(job, work);
    }
    let Some(Limited { of: [reads, writes, trims], are_bytes }) = limited(job, work)? else {
        return Ok(Pace::Closed);
    };
    let only = match (job.rw.reads(), job.rw.writes()) {
        // What is never drawn has no rate.
        (true, true) if job.read_percent == 100 => reads,
        (true, true) if job.read_percent == 0 => writes,
        (true, true) => {
            let (reads_per_s, writes_per_s) = (reads, writes);
            return Ok(Pace::Directions { reads_per_s, writes_per_s, is_in_bytes: are_bytes });
        }
        (true, false) => reads,
        (false, _) if job.rw.trims() => trims,
        (false, _) => writes,
    };
    Ok(match only {
        rate if rate <= 0.0 => Pace::Closed,
        bytes_per_s if are_bytes => Pace::Bytes { bytes_per_s },
        passes_per_s => Pace::Rate { passes_per_s },
    })
}

/// Pace of a job whose transfers arrive as a Poisson process.
fn pace_of_arrivals(job: &Job, work: &Work) -> Result<Pace, Wrong> {
    if !work.is_fixed && job.rate != [0; 3] {
        let what = "a rate in bytes of several transfer sizes is not done for rate_process=poisson";
        let remedy = "write rate_iops=: bytes per second divided by the mean transfer";
        return wrong("rate", what, remedy);
    }
    if let Some(passes_per_s) = tenant::rate(job, work.unit)? {
        return Ok(Pace::Poisson { passes_per_s });
    }
    let what = "rate_process=poisson needs a rate";
    wrong("rate_process", what, "write rate_iops= as well")
}
