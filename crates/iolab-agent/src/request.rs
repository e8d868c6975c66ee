//! Names that a request may hold: the one place where names that become paths, and sizes that
//! become memory, are looked at.
//!
//! Names of trials and phases end up in names of files and in messages; they are plain for
//! everybody. The rest is asked of those for whom root works (`boundary`): root may do as it likes
//! with its own machine. Left out: whether a workload makes sense, which is the workload's own.

use iolab_model::priority::PriorityClass;
use iolab_workload::Workload;
use iolab_workload::file_set::FileAction;
use iolab_workload::program::{FileSet, Program};
use iolab_workload::spec::{Phase, Tenant};

use crate::error::{Error, Result};
use crate::protocol::{PairsSpec, TrialSpec, WaitFor};

const NAME_BYTES_MAX: usize = 200;
/// Workers that run at once.
const WORKERS_MAX: u64 = 4096;
/// Operations in flight, and parts and buffers of each, of one worker.
const SLOTS_MAX: u64 = 4096;
const RECORD_BYTES_MAX: u64 = 1 << 30;
/// Memory for the buffers of all workers of a phase.
const BUFFERS_BYTES_MAX: u64 = 4 << 30;
const IO_GROUPS_MAX: usize = 64;

/// Refuses what cannot be part of a file's name.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let is_plain = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !matches!(name, "." | "..")
        && !name.contains(['/', '\0', '\n']);
    if is_plain {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(Error::protocol(format!(
        "{shown:?} is no name of a {what}: 1 to {NAME_BYTES_MAX} bytes, no '/', not '.' or '..'"
    )))
}

/// Refuses names of a trial that are not plain; anybody's.
pub fn check_names(spec: &TrialSpec) -> Result<()> {
    check_name("trial", &spec.trial)?;
    let treatments = spec.pairs.iter().flat_map(|pairs| &pairs.treatments);
    let workloads = treatments.map(|treatment| &treatment.workload).chain([&spec.workload]);
    let mut phases = workloads.flat_map(|workload| &workload.phases);
    phases.try_for_each(|phase| check_name("phase", &phase.name))
}

/// Refuses a workload that reaches beyond its directory, or takes without measure; says how many
/// bytes its files have at once.
///
/// Whole paths are for the directories of the user who measures (`has_paths`). Root's own child
/// writes no logs and waits for no semaphores of others.
pub fn check_workload(spec: &TrialSpec, has_paths: bool, is_root: bool) -> Result<u64> {
    let workload = &spec.workload;
    workload.check().map_err(|error| Error::protocol(error.to_string()))?;
    if spec.io_groups.len() > IO_GROUPS_MAX {
        return Err(too_much("control groups", spec.io_groups.len() as u64, IO_GROUPS_MAX as u64));
    }
    let waits = spec.waits.as_ref();
    if is_root && waits.is_some_and(|waits| waits.kind == WaitFor::Semaphores) {
        let what = "semaphores of others are not waited for as root";
        return Err(Error::refused(what, "measure as yourself, or wait for the front end"));
    }
    for tenant in workload.phases.iter().flat_map(|phase| &phase.tenants) {
        let mut names = tenant.files.iter().chain([&tenant.file]);
        if let Some(name) = names.find(|name| !has_paths && check_name("file", name).is_err()) {
            let what = format!("the file {name:?} is not inside the testbed");
            return Err(Error::refused(what, "name plain files"));
        }
        if is_root && tenant.manner.nice < 0 {
            let what = format!("root takes no nice value of {} for others", tenant.manner.nice);
            return Err(Error::refused(what, "use 0 or more, or measure as yourself"));
        }
        // ioprio_set(2): this class takes CAP_SYS_ADMIN or CAP_SYS_NICE.
        if is_root && tenant.priority.is_some_and(|it| it.class == PriorityClass::RealTime) {
            let what = "root takes no real-time I/O priority for others";
            return Err(Error::refused(what, "use be or idle, or measure as yourself"));
        }
        if let Some(folder) = tenant.manner.op_log.as_ref().filter(|_| is_root) {
            let what = format!("root writes no log for others ({})", folder.display());
            return Err(Error::refused(what, "leave op_log out, or use a directory of yours"));
        }
    }
    for set in &workload.file_sets {
        check_name("set of files", &set.name)?;
        set.place.iter().try_for_each(|place| check_name("place", place))?;
    }
    let bytes = workload.phases.iter().map(|phase| check_sizes(workload, phase));
    bytes.collect::<Result<Vec<u64>>>().map(|all| all.into_iter().max().unwrap_or(0))
}

/// Refuses slices of which all cells together take more than one phase may: they all wait at once.
pub fn check_at_once(pairs: &PairsSpec) -> Result<()> {
    let mut all = Vec::new();
    for treatment in &pairs.treatments {
        let phases = &treatment.workload.phases;
        all.extend(phases.iter().map(Taken::by).collect::<Result<Vec<_>>>()?);
    }
    let sum = all.into_iter().fold(Taken::default(), Taken::and);
    sum.check()
}

/// Resources that the workers of a phase take.
#[derive(Clone, Copy, Default)]
struct Taken {
    workers: u64,
    buffer_bytes: u64,
}

impl Taken {
    /// Refuses a tenant whose own numbers are too large.
    fn by(phase: &Phase) -> Result<Self> {
        let mut taken = Self::default();
        for tenant in &phase.tenants {
            let slots = u64::from(tenant.depth)
                .max(u64::from(tenant.manner.buffers))
                .max(u64::from(tenant.vectors));
            if slots > SLOTS_MAX {
                return Err(too_much("operations or buffers at once", slots, SLOTS_MAX));
            }
            let program = tenant.program.as_ref().map(Program::buffer_bytes);
            let record = program.unwrap_or(tenant.io_size_bytes).0;
            if record > RECORD_BYTES_MAX {
                return Err(too_much("bytes in a record", record, RECORD_BYTES_MAX));
            }
            let workers = u64::from(tenant.workers);
            let buffer_bytes = workers.saturating_mul(slots).saturating_mul(record);
            taken = taken.and(Self { workers, buffer_bytes });
        }
        Ok(taken)
    }

    const fn and(self, other: Self) -> Self {
        Self {
            workers: self.workers.saturating_add(other.workers),
            buffer_bytes: self.buffer_bytes.saturating_add(other.buffer_bytes),
        }
    }

    fn check(self) -> Result<()> {
        if self.workers > WORKERS_MAX {
            return Err(too_much("workers", self.workers, WORKERS_MAX));
        }
        if self.buffer_bytes > BUFFERS_BYTES_MAX {
            return Err(too_much("bytes of buffers", self.buffer_bytes, BUFFERS_BYTES_MAX));
        }
        Ok(())
    }
}

/// Bytes of all files of a phase; refuses a phase that would take all memory or processes.
fn check_sizes(workload: &Workload, phase: &Phase) -> Result<u64> {
    Taken::by(phase)?.check()?;
    let sets = workload.sets_of(phase).map(FileSet::bytes_max);
    let mut files = sets.fold(0_u64, u64::saturating_add);
    for tenant in &phase.tenants {
        let count = u64::from(tenant.workers);
        files = files.saturating_add(file_bytes(tenant, count));
        let numbers = u64::from(tenant.file_step).saturating_mul(count);
        if u64::from(tenant.file_first).saturating_add(numbers) > u64::from(u32::MAX) {
            return Err(Error::protocol("numbers of files go beyond 4294967295"));
        }
    }
    Ok(files)
}

fn file_bytes(tenant: &Tenant, workers: u64) -> u64 {
    match &tenant.file_set {
        Some(work) if work.action == FileAction::Extend => work.size_max_bytes.0,
        Some(work) => work.files.saturating_mul(work.size_max_bytes.0),
        None if tenant.program.is_some() => 0,
        None if tenant.is_file_shared => tenant.file_bytes.0,
        None => tenant.file_bytes.0.saturating_mul(workers),
    }
}

fn too_much(what: &str, asked: u64, limit: u64) -> Error {
    let text = format!("{asked} {what} are more than the {limit} that are possible for others");
    Error::refused(text, "ask for less, or run it as root: sudo iolab ...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(phase: &Value) -> TrialSpec {
        let trial = json!({
            "trial": "t0001", "stack": null, "is_fresh_fs": false, "knobs": {}, "cache": "as_is",
            "memory_limit_bytes": null, "reserve_bytes": 0, "time_limit_ns": 1,
            "workload": {"version": 1, "name": "w", "engine": "psync", "seed": 7,
                "phases": [phase]}});
        serde_json::from_value(trial).unwrap()
    }

    fn phase(change: impl Fn(&mut Value)) -> Value {
        let mut phase = json!({"name": "write", "tenants": [{
            "name": "main", "workers": 2, "file": "data", "file_bytes": 8192,
            "io_size_bytes": 4096, "pattern": {"kind": "sequential"},
            "direction": {"kind": "write"}, "opening": "create"}]});
        change(&mut phase["tenants"][0]);
        phase
    }

    #[test]
    fn names_of_trials_and_phases_are_plain() {
        check_names(&spec(&phase(|_| {}))).unwrap();
        for name in ["", ".", "..", "../x", "a/b", "/x", "a\0b", &"x".repeat(201)] {
            let mut wrong = spec(&phase(|_| {}));
            name.clone_into(&mut wrong.trial);
            assert!(check_names(&wrong).is_err(), "{name:?}");
            let mut wrong = phase(|_| {});
            wrong["name"] = json!(name);
            assert!(check_names(&spec(&wrong)).is_err(), "{name:?}");
        }
    }

    /// Issue 14, point 4: `op_log`, whole paths and `files` led root anywhere.
    #[test]
    fn files_lie_inside_and_logs_are_the_users() {
        assert_eq!(check_workload(&spec(&phase(|_| {})), false, true).unwrap(), 16384);
        let reaching: [(&str, Value); 4] = [
            ("file", json!("/etc/shadow")),
            ("files", json!(["a", "/etc/shadow"])),
            ("file", json!("../x")),
            ("manner", json!({"op_log": "/etc"})),
        ];
        for (key, value) in reaching {
            let wrong = spec(&phase(|tenant| tenant[key] = value.clone()));
            assert!(check_workload(&wrong, false, true).is_err(), "{key} {value}");
        }
        // The stem counts even where the files are listed: a set of files uses it.
        let hidden = |tenant: &mut Value| {
            tenant["file"] = json!("/etc/x");
            tenant["files"] = json!(["a", "b"]);
        };
        assert!(check_workload(&spec(&phase(hidden)), false, true).is_err());
        let own = spec(&phase(|tenant| {
            tenant["file"] = json!("/scratch/x");
            tenant["manner"] = json!({"op_log": "/scratch"});
        }));
        check_workload(&own, true, false).unwrap();
    }

    #[test]
    fn sizes_do_not_wrap_around() {
        let large = u64::MAX - 4095;
        let wide = spec(&phase(|tenant| tenant["file_bytes"] = json!(large)));
        assert_eq!(check_workload(&wide, false, true).unwrap(), u64::MAX);
        let greedy: [(&str, Value); 4] = [
            ("workers", json!(u32::MAX)),
            ("depth", json!(1_000_000)),
            ("file_first", json!(u32::MAX)),
            ("manner", json!({"buffers": 1_000_000})),
        ];
        for (key, value) in greedy {
            let wrong = spec(&phase(|tenant| tenant[key] = value.clone()));
            assert!(check_workload(&wrong, false, true).is_err(), "{key}");
        }
        let heavy = spec(&phase(|tenant| {
            tenant["file_bytes"] = json!(1_u64 << 40);
            tenant["io_size_bytes"] = json!(1_u64 << 39);
        }));
        assert!(check_workload(&heavy, false, true).is_err());
    }

    /// All cells of a session of slices wait at once: together they take what a phase may.
    #[test]
    fn slices_take_no_more_than_a_phase() {
        let session = |change: &dyn Fn(&mut Value), count: usize| {
            let workload = serde_json::to_value(&spec(&phase(change)).workload).unwrap();
            let treatment = json!({"knobs": {}, "workload": workload});
            let pairs = json!({"treatments": vec![treatment; count], "slice_min_ns": 1,
                "slice_max_ns": 1, "washout_ns": 0, "unit_ns": 1, "units": 1, "time_ns": 1,
                "seed": 1});
            serde_json::from_value::<PairsSpec>(pairs).unwrap()
        };
        check_at_once(&session(&|_| {}, 4)).unwrap();
        let half = |tenant: &mut Value| tenant["workers"] = json!(WORKERS_MAX / 2);
        check_at_once(&session(&half, 2)).unwrap();
        assert!(check_at_once(&session(&half, 3)).is_err());
        assert!(check_at_once(&session(&|tenant| tenant["depth"] = json!(5000), 1)).is_err());
    }

    #[test]
    fn root_does_no_real_time_io_for_others() {
        let with = |class: &str| {
            spec(&phase(|tenant| tenant["priority"] = json!({"class": class, "level": 0})))
        };
        assert!(check_workload(&with("rt"), false, true).is_err());
        check_workload(&with("be"), false, true).unwrap();
        check_workload(&with("rt"), false, false).unwrap();
    }

    #[test]
    fn root_waits_for_no_semaphores_of_others() {
        let mut waiting = spec(&phase(|_| {}));
        let waits = json!({"kind": "semaphores", "numbers": {"write": 0}});
        waiting.waits = Some(serde_json::from_value(waits).unwrap());
        assert!(check_workload(&waiting, false, true).is_err());
        assert!(check_workload(&waiting, false, false).is_ok());
    }
}
