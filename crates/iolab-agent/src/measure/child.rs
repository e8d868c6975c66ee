//! Reads one request on standard input, runs it, prints progress and one answer on standard output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use iolab_drive::coordinate::PhaseOutcome;
use iolab_drive::overhead::harness_ns_per_op;
use iolab_drive::pump::{Part, Seat, Workplace, run_threads};
use iolab_drive::record::{PhaseRecord, Warning};
use iolab_drive::submission::{default_access, with_accesses};
use iolab_drive::target::Memory;
use iolab_drive::verify::told::{Culprit, mismatches, verifying};
use iolab_model::op::Access;
use iolab_model::{Error, Ns, Target};
use iolab_real::alignment::direct_alignment;
use iolab_real::clock::LaneClock;
use iolab_real::{Engine, affinity};
use iolab_workload::file_set::FileAction;
use iolab_workload::program::FileSet;
use iolab_workload::spec::{Opening, Phase, Tenant, WorkersAs};
use iolab_workload::verify::Books;

use crate::owned_directory;
use crate::protocol::{MeasureLine, Progress};
use crate::request::check_name;
use crate::semaphores::Passed;
use crate::trial::are_handed_over;

use super::caveats::caveats;
use super::clients::{self, has_clients, known_store};
use super::counters::{device_records, read_devices};
use super::observer::{IS_INTERRUPTED, PhaseObserver, tell_interim};
use super::pairs;
use super::probe;
use super::processes::run_processes;
use super::request::{Answer, PairsSpec, Request, RunAs, Status};
use super::several;
use super::slices::Table;
use super::users_files::{self, UsersFiles};
use super::waits::wait;

/// Linux include/uapi/linux/magic.h: `TMPFS_MAGIC`.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Least time between two messages about the progress of a trial: whoever hears it runs then,
/// perhaps on the same CPU, and leaves neither the caches nor the time of a phase of microseconds
/// alone.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// Entry point of `iolab-agent measure`.
pub fn main() -> ExitCode {
    LaneClock::begin();
    crate::sys::allow_many_files();
    // A worker that sleeps before a gate wakes up when it is over, and not 50 us later.
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut line = String::new();
    let request = match std::io::stdin().read_line(&mut line) {
        // By way of a value, as the agent reads workloads: the code that reads them is there once.
        Ok(_) => serde_json::from_str::<serde_json::Value>(&line)
            .and_then(serde_json::from_value::<Request>)
            .map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    on_sigterm_finish_early();
    let answer = match request {
        Ok(request) => enter_and_run(request),
        Err(message) => failed(format!("the request is not understood: {message}")),
    };
    print(&MeasureLine::Result(Box::new(answer)));
    ExitCode::SUCCESS
}

/// Says one line to the agent.
pub(super) fn print(line: &MeasureLine) {
    let line = serde_json::to_string(line).expect("lines have only text keys");
    let mut out = std::io::stdout().lock();
    // If nobody listens any more there is nobody to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn on_sigterm_finish_early() {
    extern "C" fn raise(_: libc::c_int) {
        IS_INTERRUPTED.store(true, Ordering::Relaxed);
    }
    let handler: extern "C" fn(libc::c_int) = raise;
    // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        libc::signal(libc::SIGINT, libc::SIG_IGN);
    }
}

fn failed(message: String) -> Answer {
    let (phases, warnings) = (Vec::new(), Vec::new());
    let made = BTreeMap::new();
    Answer { status: Status::Failed, error: Some(message), phases, pairs: None, warnings, made }
}

/// Works inside the directory, not below its name: whoever may rename it cannot lead us elsewhere.
fn enter_and_run(mut request: Request) -> Answer {
    let enter = |request: &Request| {
        let entered = owned_directory::enter(&request.directory, request.token.as_deref());
        entered.map_err(|error| error.to_string())
    };
    let change = |request: &mut Request| {
        let Some(who) = request.run_as.clone() else { return Ok(()) };
        open_groups(request)?;
        become_user(&who)
    };
    let done = if request.enters_as_user {
        change(&mut request).and_then(|()| enter(&request))
    } else {
        enter(&request).and_then(|()| change(&mut request))
    };
    if let Err(problem) = done {
        return failed(problem);
    }
    request.directory = PathBuf::from(".");
    run(&mut request)
}

/// Opens what only root may open, for workers that join their groups as somebody else.
fn open_groups(request: &mut Request) -> Result<(), String> {
    for group in &mut request.groups {
        let opened = std::fs::OpenOptions::new().write(true).open(&group.procs);
        let opened = opened.map_err(|error| format!("{}: {error}", group.procs.display()))?;
        group.opened = Some(Arc::new(opened));
    }
    Ok(())
}

/// Gives up root for good. Who changes user no longer dies with the parent: that is asked anew.
fn become_user(who: &RunAs) -> Result<(), String> {
    use nix::unistd::{Gid, Uid, getppid, setgroups, setresgid, setresuid};
    let parent = getppid();
    let (uid, gid) = (Uid::from_raw(who.uid), Gid::from_raw(who.gid));
    let groups: Vec<Gid> = who.groups.iter().copied().map(Gid::from_raw).collect();
    let done = setgroups(&groups)
        .and_then(|()| setresgid(gid, gid, gid))
        .and_then(|()| setresuid(uid, uid, uid))
        // Whatever it might run gains no other rights: what it does may be recorded for the user.
        .and_then(|()| nix::sys::prctl::set_no_new_privs())
        .and_then(|()| nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL));
    done.map_err(|errno| format!("user {uid} and group {gid} cannot be taken: {errno}"))?;
    if getppid() == parent { Ok(()) } else { Err("the agent is gone".into()) }
}

fn run(request: &mut Request) -> Answer {
    let checked = check_engines(request)
        .and_then(|()| request.workload.check())
        .and_then(|()| check_places(request))
        .and_then(|()| check_recordings(request))
        .and_then(|()| match &request.device {
            Some(device) => Table::new(device, &request.directory, &request.workload)
                .map(|table| (Vec::new(), Some(table))),
            None => check_alignment(request).map(|warnings| (warnings, None)),
        });
    let (warnings, table) = match checked {
        Ok(checked) => checked,
        Err(error) => return failed(error.to_string()),
    };
    if let Some(spec) = &request.pairs {
        return alternate(request, spec, warnings);
    }
    let users_files = match UsersFiles::take(request) {
        Ok(taken) => taken,
        Err(why) => return Answer { warnings: vec![users_files::refusal(&why)], ..failed(why) },
    };
    if let Err(why) = clients::take_places(request) {
        return Answer { warnings: vec![users_files::refusal(&why)], ..failed(why) };
    }
    let (began, memory) = (Instant::now(), Memory::default());
    let (table, users_files) = (table.as_ref(), users_files.as_ref());
    let books = Books::default();
    fetch_memory(request.workload.phases.len());
    let is_in_memory = is_tmpfs(&request.directory);
    let trial = Trial { request, table, users_files, is_in_memory, began, memory, books };
    let mut answer = trial.run();
    answer.made = users_files.map_or_else(BTreeMap::new, UsersFiles::made);
    answer.warnings.splice(0..0, warnings);
    answer
}

/// Fetches the memory that the records of so many phases take, and keeps what is freed: pages that
/// the kernel clears between two phases, and lists that it puts them into, are in the way of phases
/// of microseconds.
fn fetch_memory(phases: usize) {
    const OF_A_PHASE: usize = 64 << 10;
    const PHASES_MAX: usize = 256;
    #[cfg(target_env = "gnu")]
    {
        const KEPT: libc::c_int = 32 << 20;
        // SAFETY: mallopt takes only numbers; no other thread runs yet.
        unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT) };
    }
    let parts = (0..phases.min(PHASES_MAX)).map(|_| vec![1_u8; OF_A_PHASE]);
    drop(std::hint::black_box(parts.collect::<Vec<_>>()));
}

/// Runs a session of slices.
fn alternate(request: &Request, spec: &PairsSpec, mut warnings: Vec<Warning>) -> Answer {
    if request.workload.phases.iter().any(has_clients) {
        return failed(
            "clients of a key-value store do not alternate: compare whole trials".into(),
        );
    }
    if request.files.is_some() {
        return failed("alternating slices need a testbed of their own, as --on loop:1g".into());
    }
    match pairs::run(request, spec, Instant::now()) {
        Ok(ended) => {
            warnings.extend(ended.warnings);
            let status = match (&ended.record, ended.why.as_deref()) {
                (Some(_), None) => Status::Ok,
                (_, Some(pairs::INTERRUPTED)) => Status::Interrupted,
                _ => Status::Failed,
            };
            let error = ended.why.filter(|_| status == Status::Failed);
            let pairs = ended.record;
            Answer { status, error, pairs, warnings, ..failed(String::new()) }
        }
        Err(error) => Answer { warnings, ..failed(error.to_string()) },
    }
}

fn is_without_device(engine: &str) -> bool {
    matches!(engine, "null" | "memory")
}

/// Every engine that some phase names, before the first one runs.
fn check_engines(request: &Request) -> Result<(), Error> {
    let workload = &request.workload;
    let engines = workload
        .phases
        .iter()
        .flat_map(|phase| workload.engines_of(phase).into_iter().map(move |name| (phase, name)));
    for (phase, name) in engines {
        if has_clients(phase) {
            known_store(name)?;
        } else if !is_without_device(name) {
            name.parse::<Engine>().map_err(|error| match error {
                Error::UnknownName { kind, name, known } => {
                    Error::UnknownName { kind, name, known: known + ", null, memory" }
                }
                other => other,
            })?;
        }
    }
    Ok(())
}

/// Whole paths are for the user's own directories: where we made one, nothing lies outside it. What
/// makes and removes directories has no place in a directory of the user's.
fn check_places(request: &Request) -> Result<(), Error> {
    let is_ours = request.is_ours || request.token.is_some() || request.device.is_some();
    if !is_ours && request.workload.phases.iter().any(|phase| !has_claimed(request, phase)) {
        return Err(Error::BadWorkload {
            problem: "sets of files in a directory of yours".into(),
            remedy: "use a testbed, as in --on loop:1g or --on dir:PATH".into(),
        });
    }
    let tenants = request.workload.phases.iter().flat_map(|phase| &phase.tenants);
    // The stem counts even where files are listed: it is the directory of a set of files.
    let mut names = tenants.flat_map(|tenant| tenant.files.iter().chain([&tenant.file]));
    match names.find(|name| is_ours && check_name("file", name).is_err()) {
        Some(name) => Err(Error::BadWorkload {
            problem: format!("the file {name} is not inside the testbed"),
            remedy: "name plain files".into(),
        }),
        None => Ok(()),
    }
}

/// Recorded streams come as open descriptors: whoever measures, perhaps root, opens no name.
fn check_recordings(request: &mut Request) -> Result<(), Error> {
    if are_handed_over(&mut request.workload) {
        return Ok(());
    }
    Err(Error::BadWorkload {
        problem: "a recorded stream that was not handed over".into(),
        remedy: "run whole trials: alternating slices have no recorded streams".into(),
    })
}

/// True if all that a phase makes are files that were decided about beforehand, or only numbers.
fn has_claimed(request: &Request, phase: &Phase) -> bool {
    if request.workload.engines_of(phase).into_iter().all(is_without_device) {
        return true;
    }
    let claimed: BTreeSet<String> = phase.tenants.iter().flat_map(Tenant::file_names).collect();
    let is_claimed =
        |set: &FileSet| set.is_flat && set.tree.names.iter().all(|name| claimed.contains(name));
    // The directory of a store is looked at when it is opened.
    let mut folders = phase.tenants.iter().filter(|tenant| tenant.kv.is_none());
    request.workload.sets_of(phase).all(is_claimed) && !folders.any(Tenant::is_folder)
}

/// Asks the file system what direct I/O must be aligned to, before anything is written.
fn check_alignment(request: &Request) -> Result<Vec<Warning>, Error> {
    let workload = &request.workload;
    let on_disk = workload.phases.iter().flat_map(|phase| {
        let is_on_disk =
            |tenant: &&Tenant| !is_without_device(workload.engine_of_tenant(phase, tenant));
        phase.tenants.iter().filter(is_on_disk)
    });
    let direct: Vec<_> = on_disk.filter(|tenant| tenant.is_direct()).collect();
    let Some(first) = direct.first() else { return Ok(Vec::new()) };
    let mut warnings = Vec::new();
    let file = request.directory.join(first.file_name(0));
    let is_device = file.metadata().is_ok_and(|found| found.file_type().is_block_device());
    if is_tmpfs(&request.directory) && !is_device {
        warnings.push(Warning::new(
            "direct_on_tmpfs",
            "direct I/O on tmpfs is accepted by the kernel, but it is still memory",
            "use a directory on a disk",
        ));
    }
    let told = if is_device { direct_alignment(&file) } else { probe::alignment_beside(&file) };
    let Some(alignment) = told? else { return Ok(warnings) };
    let unit = alignment.offset.0;
    // Sizes of a program's transfers are those of its steps.
    let is_odd = |tenant: &&&Tenant| {
        unit == 0 || tenant.program.is_none() && !tenant.io_size_bytes.0.is_multiple_of(unit)
    };
    if let Some(tenant) = direct.iter().find(is_odd) {
        let size = tenant.io_size_bytes;
        let (problem, remedy) = if unit == 0 {
            let problem = "this file cannot be read and written by direct I/O".to_owned();
            (problem, "go through the page cache, or use another file system or mount option")
        } else {
            let problem = format!("direct I/O with records of {size} on a unit of {unit} bytes");
            (problem, "use a multiple of the unit, or go through the page cache")
        };
        return Err(Error::BadWorkload { problem, remedy: remedy.into() });
    }
    Ok(warnings)
}

fn is_tmpfs(directory: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(name) = std::ffi::CString::new(directory.as_os_str().as_bytes()) else { return false };
    // SAFETY: statfs is plain data, for which all zeroes is a valid value.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a C string and `answer` writable, both alive during the call.
    let result = unsafe { libc::statfs(name.as_ptr(), &raw mut answer) };
    result == 0 && answer.f_type == TMPFS_MAGIC
}

/// One trial: its phases, each on the target that its engine's name stands for.
pub(super) struct Trial<'a> {
    pub(super) request: &'a Request,
    /// Slices of a device, if they stand for files.
    pub(super) table: Option<&'a Table>,
    /// Permissions for the user's files, if they are in a directory of the user's.
    users_files: Option<&'a UsersFiles>,
    /// Its files have no place on a device.
    is_in_memory: bool,
    pub(super) began: Instant,
    /// Files of the engine `memory`, which stay from phase to phase.
    pub(super) memory: Memory,
    /// Knowledge of verified files, from phase to phase.
    books: Books,
}

/// End of a phase, with the reason if it ended badly.
pub(super) struct Ended {
    status: Status,
    why: Option<String>,
    pub(super) record: PhaseRecord,
}

impl Trial<'_> {
    fn run(&self) -> Answer {
        let phases = &self.request.workload.phases;
        let mut answer = Answer { status: Status::Ok, error: None, ..failed(String::new()) };
        let mut told = None::<Instant>;
        for (index, phase) in phases.iter().enumerate() {
            if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
                told = Some(Instant::now());
                let share = Some(index as f64 / phases.len() as f64);
                let progress = Progress { share, ..self.progress(phase, "running") };
                print(&MeasureLine::Progress(progress));
            }
            let is_waited_for = match self.wait(phase) {
                Ok(Passed::Together) => true,
                Ok(Passed::Stopped) => {
                    answer.status = Status::Interrupted;
                    false
                }
                Err(error) => {
                    answer.status = Status::Failed;
                    answer.error = Some(format!("{}: {error}", phase.name));
                    false
                }
            };
            if !is_waited_for {
                if !self.files_stay() {
                    self.remove_files(phase);
                }
                break;
            }
            if let Some(Err(why)) = self.users_files.map(|files| files.check(phase)) {
                answer.warnings.push(users_files::refusal(&why));
                (answer.status, answer.error) = (Status::Failed, Some(why));
                break;
            }
            let ended = self.on_its_target(phase);
            let goes_on = self.request.workload.goes_on_after_failure;
            let is_over = !matches!(
                &ended,
                Ok(ended) if ended.status == Status::Ok
                    || ended.status == Status::Failed && goes_on
            );
            // What makes no file beforehand has made it by now.
            if let Some(files) = self.users_files.filter(|_| !is_over || self.files_stay()) {
                files.note(phase);
            }
            let is_cleared = is_over && self.makes_files() && !self.files_stay();
            if !phase.keeps_files || is_cleared {
                self.remove_files(phase);
            }
            self.add_to(&mut answer, ended, (phase, index + 1 == phases.len()));
            if is_over {
                break;
            }
            pause(phase.pause_after_ns);
        }
        if answer.status == Status::Ok && self.files_stay() {
            self.unlink();
        }
        answer
    }

    /// Adds the end of a phase to what is answered.
    fn add_to(
        &self,
        answer: &mut Answer,
        ended: Result<Ended, Error>,
        (phase, is_last): (&Phase, bool),
    ) {
        match ended {
            Ok(ended) => {
                // The first failure is that of all.
                if answer.status == Status::Ok || ended.status == Status::Interrupted {
                    answer.status = ended.status;
                    answer.error = ended.why.or(answer.error.take());
                }
                answer.warnings.extend(mismatches(&ended.record, Culprit::Storage));
                if self.request.interim.is_some() && !is_last {
                    tell_interim(self.request, phase, "ended", ended.record.clone());
                }
                // Of an interrupted phase, too: a command line prints what there is of it. The
                // record says that it was interrupted, so that nobody compares it.
                answer.phases.push(ended.record);
            }
            Err(error) => {
                answer.status = Status::Failed;
                answer.error = Some(format!("{}: {error}", phase.name));
            }
        }
    }

    pub(super) fn progress(&self, phase: &Phase, message: &str) -> Progress {
        Progress {
            trial: Some(self.request.trial.clone()),
            phase: phase.name.clone(),
            message: message.to_owned(),
            ..Progress::default()
        }
    }

    /// Waits for others before a phase, if the trial does.
    fn wait(&self, phase: &Phase) -> Result<Passed, String> {
        let Some(waits) = &self.request.waits else { return Ok(Passed::Together) };
        wait(waits, &phase.name, |number| {
            let waiting = self.progress(phase, "waiting");
            print(&MeasureLine::Progress(Progress { number: Some(number), ..waiting }));
        })
    }

    fn on_its_target(&self, phase: &Phase) -> Result<Ended, Error> {
        if has_clients(phase) {
            return self.run_clients(phase);
        }
        several::on_its_targets(self, &with_accesses(&self.request.workload, phase))
    }

    /// Runs a phase on its targets.
    pub(super) fn run_phase(&self, place: &dyn Workplace, phase: &Phase) -> Result<Ended, Error> {
        let target = place.erased();
        let workload = &self.request.workload;
        let is_file_set = phase.tenants.iter().any(|tenant| tenant.file_set.is_some());
        let has_sets = workload.sets_of(phase).next().is_some();
        if has_sets && self.table.is_some() {
            let what = "hold sets of files; use a testbed with a file system".into();
            return Err(Error::Unsupported { target: "a device without a file system", what });
        }
        if is_file_set && self.table.is_some() {
            let what = "make and remove many files; use a testbed with a file system".into();
            return Err(Error::Unsupported { target: "this testbed", what });
        }
        let has_program = phase.tenants.iter().any(|tenant| tenant.program.is_some());
        let harness_ns_per_op = (workload.is_calibrated && !is_file_set && !has_program)
            .then(|| harness_ns_per_op(place, workload, &phase.tenants[0]))
            .transpose()?;
        let survives = (0..phase.tenants.len()).all(|it| place.of_tenant(it).survives_forks());
        let workers_as = if survives { workload.workers_as } else { WorkersAs::Threads };
        let as_processes = workers_as == WorkersAs::Processes;
        let mut observer = PhaseObserver::new(self.request, phase, self.began, as_processes);
        observer.users_files = self.users_files;
        let has_device = is_kernel(target.name());
        let (pair, directory) = ((workload, phase), self.request.directory.as_path());
        let outcome = match workers_as {
            WorkersAs::Threads if self.has_group(phase) => {
                return Err(Error::BadWorkload {
                    problem: "a thread cannot be in a control group of its own".into(),
                    remedy: "use workers_as = \"processes\"".into(),
                });
            }
            WorkersAs::Threads if phase.tenants.iter().any(|t| t.manner.nice != 0) => {
                return Err(Error::BadWorkload {
                    problem: "a thread cannot have a nice value of its own".into(),
                    remedy: "use workers_as = \"processes\"".into(),
                });
            }
            WorkersAs::Threads => {
                let part = Part { workload, phase, books: self.books.clone() };
                run_threads(place, part, directory, pin, &mut observer)
            }
            WorkersAs::Processes if target.capabilities().has_namespace && has_device => {
                let prepare = |seat: &Seat<'_>| self.join_group(seat);
                run_processes(place, pair, directory, prepare, &mut observer)
            }
            WorkersAs::Processes => {
                let what = "share its files between processes; use --workers-as threads".into();
                Err(Error::Unsupported { target: "memory or null", what })
            }
        };
        observer.children_ended();
        let access = default_access(workload, phase);
        let mut ended = self.ended((phase, access), outcome?, observer, has_device);
        let record = &mut ended.record;
        record.harness_ns_per_op = harness_ns_per_op;
        record.warnings.extend(caveats(record, (workload, phase), place));
        record.warnings.extend(verifying(workload.verification(), false));
        Ok(ended)
    }

    /// The record of what was measured, with what was observed meanwhile.
    pub(super) fn ended(
        &self,
        (phase, default_access): (&Phase, Access),
        outcome: PhaseOutcome,
        observer: PhaseObserver<'_>,
        has_device: bool,
    ) -> Ended {
        let lost = outcome.lost_workers;
        let lost_by = outcome.lost_by.as_ref().map_or(String::new(), |how| format!(" ({how})"));
        let mut record = PhaseRecord::new(outcome, phase, default_access);
        if has_device {
            let flushed = read_devices(&self.request.counters);
            record.devices = device_records(&observer.started, &observer.ended, &flushed);
            observer.add_series(&mut record.devices);
            record.own_read_bytes = observer.own_read_bytes;
            record.placed = if self.is_in_memory { None } else { observer.placed() };
        }
        record.cache = observer.cache;
        record.cpu = observer.cpu;
        record.warnings = observer.warnings;
        let (status, why) = match (observer.stopped_because, record.first_error()) {
            (_, Some(error)) => (Status::Failed, Some(format!("{}: {error}", phase.name))),
            _ if lost > 0 => {
                let of = if lost == 1 { "a worker process" } else { "worker processes" };
                let many = if lost == 1 { String::new() } else { format!("{lost} ") };
                (Status::Failed, Some(format!("{}: {many}{of} died{lost_by}", phase.name)))
            }
            (Some(why), None) if why == "interrupted" => (Status::Interrupted, None),
            (Some(why), None) => (Status::Failed, Some(why)),
            (None, None) => (Status::Ok, None),
        };
        Ended { status, why, record }
    }

    fn has_group(&self, phase: &Phase) -> bool {
        let groups = &self.request.groups;
        phase.tenants.iter().any(|tenant| groups.iter().any(|group| group.tenant == tenant.name))
    }

    /// Pins a worker process and moves it where its tenant belongs, before it opens any file.
    fn join_group(&self, seat: &Seat<'_>) -> Result<(), String> {
        pin(seat);
        be_nice(seat)?;
        let Some(group) = self.request.groups.iter().find(|g| g.tenant == seat.tenant.name) else {
            return Ok(());
        };
        let joined = match &group.opened {
            Some(file) => file.write_at(b"0", 0).map(drop),
            None => std::fs::write(&group.procs, "0"),
        };
        joined.map_err(|error| format!("it cannot join {}: {error}", group.procs.display()))
    }

    /// Tell whether the user keeps the files, who then finds them where something failed as well:
    /// they may show why, or be of an earlier run.
    fn files_stay(&self) -> bool {
        let last = self.request.workload.phases.last();
        self.users_files.is_some() && last.is_some_and(|last| last.keeps_files)
    }

    /// Tell whether the files are the trial's own: one that only uses what it finds must not remove
    /// it when it fails.
    fn makes_files(&self) -> bool {
        if !self.request.workload.file_sets.is_empty() {
            return true;
        }
        let tenants = self.request.workload.phases.iter().flat_map(|phase| &phase.tenants);
        // A file that is extended is what the user wants to have; it goes where it fails.
        let extends =
            |t: &Tenant| t.file_set.as_ref().is_some_and(|work| work.action == FileAction::Extend);
        tenants
            .into_iter()
            .filter(|t| !extends(t))
            .any(|t| matches!(t.opening, Opening::Create | Opening::New | Opening::LaidOut))
    }

    /// Removes the files of tenants that do not leave them to the user, nor to a later phase.
    fn unlink(&self) {
        let phases = &self.request.workload.phases;
        for (index, phase) in phases.iter().enumerate() {
            let later = phases[index + 1..].iter().flat_map(|phase| &phase.tenants);
            let later = later.filter(|tenant| !tenant.manner.is_unlinked);
            let kept: BTreeSet<String> = later.flat_map(Tenant::file_names).collect();
            let goes = |tenant: &&Tenant| {
                tenant.manner.is_unlinked && !tenant.file_names().any(|name| kept.contains(&name))
            };
            let tenants = phase.tenants.iter().filter(goes).cloned().collect();
            self.remove_files(&Phase { tenants, ..phase.clone() });
        }
    }

    fn remove_files(&self, phase: &Phase) {
        if let Some(files) = self.users_files {
            return files.remove(phase);
        }
        let workload = &self.request.workload;
        // Sets that phases kept for others go with the last one.
        let is_last = workload.phases.last().is_some_and(|last| std::ptr::eq(last, phase));
        let used: Vec<&FileSet> = workload.sets_of(phase).collect();
        let sets = workload.file_sets.iter();
        // The files of a flat set are named by its tenants; what has its name is somebody's.
        let sets = sets.filter(|set| !set.is_flat && (is_last || used.contains(set)));
        let sets: Vec<&FileSet> = sets.collect();
        let names = sets.iter().map(|set| set.directory());
        let files = phase.tenants.iter().flat_map(Tenant::file_names);
        for name in files.chain(names) {
            // The agent sweeps its directory after the trial; this only frees space early.
            let path = self.request.directory.join(name);
            let _ = match path.symlink_metadata() {
                Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
                _ => std::fs::remove_file(path),
            };
        }
        // A place that is not just a directory stays: it is a mount, or a link.
        for place in sets.iter().filter_map(|set| set.place.as_ref()) {
            let _ = std::fs::remove_dir(self.request.directory.join(place));
        }
    }
}

/// Waits that long, or until somebody wants the trial to end.
fn pause(length: Ns) {
    const STEP: Duration = Duration::from_millis(20);
    let until = Instant::now() + Duration::from_nanos(length.0);
    while Instant::now() < until && !IS_INTERRUPTED.load(Ordering::Relaxed) {
        std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
    }
}

/// Tell whether the target is the kernel, whose files every process sees.
pub(super) fn is_kernel(target: &str) -> bool {
    target.parse::<Engine>().is_ok()
}

/// Gives a worker its nice value, if it has one.
fn be_nice(seat: &Seat<'_>) -> Result<(), String> {
    let nice = seat.tenant.manner.nice;
    if nice == 0 {
        return Ok(());
    }
    // SAFETY: setpriority takes no pointers; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, libc::c_int::from(nice)) } {
        0 => Ok(()),
        _ => Err(format!("nice {nice}: {}", io::Error::last_os_error())),
    }
}

/// Pins a worker to its CPUs, if its tenant or the workload names any; failure is visible in the
/// facts, not fatal.
pub(super) fn pin(seat: &Seat<'_>) {
    let own = &seat.tenant.manner.cpus;
    let (cpus, is_split) = match own.numbers.as_slice() {
        [] => (seat.workload.pin_cpus.as_slice(), true),
        own_cpus => (own_cpus, own.is_split),
    };
    let _ = match cpus {
        [] => Ok(()),
        cpus if is_split => affinity::pin_to(cpus[seat.ordinal as usize % cpus.len()]),
        cpus => affinity::allow(cpus),
    };
}
