//! Observation by the child around a phase's timed region: caches before, counters around, limits
//! during.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iolab_drive::clock::monotonic;
use iolab_drive::coordinate::Observer;
use iolab_drive::interim::{Board, Hearing};
use iolab_drive::record::{
    CacheRecord, CpuRecord, DeviceRecord, PhaseRecord, PlacedFiles, Warning,
};
use iolab_model::Ns;
use iolab_model::op::Access;
use iolab_real::glance::Glance;
use iolab_real::{cache, extents};
use iolab_workload::spec::{Phase, Tenant};

use super::child::print;
use super::counter_series::Readings;
use super::counters::{
    DeviceCounters, cpu, cpu_between, device_records, own_read_bytes, read_devices,
};
use super::request::{CacheState, Request};
use super::users_files::UsersFiles;
use crate::protocol::{MeasureLine, Progress};

/// Raised by SIGTERM: finish early, with what there is.
pub static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Free space is looked at this often (safety R10).
const SPACE_CHECK: Duration = Duration::from_secs(1);
/// Within this the front end has noted that a file was made.
const HEARING: Duration = Duration::from_millis(2);
/// Above this share of resident pages a cache that should be cold is not.
const COLD_SHARE_MAX: f64 = 0.01;
/// Below this share of resident pages a cache that should be warm is not.
const WARM_SHARE_MIN: f64 = 0.95;

/// Watches one phase.
pub struct PhaseObserver<'a> {
    request: &'a Request,
    phase: &'a Phase,
    began: Instant,
    last_space_check: Instant,
    of_children: bool,
    /// Told which files there are, if they are in a directory of the user's.
    pub users_files: Option<&'a UsersFiles>,
    is_laid_out: bool,
    cpu_start: CpuRecord,
    own_read_start: Option<u64>,
    /// Bytes that storage gave to this process during the timed region.
    pub own_read_bytes: Option<u64>,
    /// Reason why the phase was stopped early, if it was.
    pub stopped_because: Option<String>,
    /// State of the page cache.
    pub cache: CacheRecord,
    /// CPU time of the timed region.
    pub cpu: CpuRecord,
    /// Counters at its start.
    pub started: Vec<(String, DeviceCounters)>,
    /// Counters while it lasted.
    pub readings: Option<Readings>,
    /// Counters at its end.
    pub ended: Vec<(String, DeviceCounters)>,
    /// Board on which workers tell what they have done so far, and when it is looked at.
    board: Option<Arc<Board>>,
    hearing: Option<Hearing>,
    /// Departures from the request.
    pub warnings: Vec<Warning>,
}

impl<'a> PhaseObserver<'a> {
    /// An observer of `phase`; `began` is the beginning of the trial.
    pub fn new(request: &'a Request, phase: &'a Phase, began: Instant, of_children: bool) -> Self {
        Self {
            request,
            phase,
            began,
            last_space_check: Instant::now(),
            of_children,
            users_files: None,
            is_laid_out: false,
            cpu_start: CpuRecord::default(),
            own_read_start: None,
            own_read_bytes: None,
            stopped_because: None,
            cache: CacheRecord {
                asked: request.cache.name().into(),
                method: "none".into(),
                resident_before_share: 0.0,
            },
            cpu: CpuRecord::default(),
            started: Vec::new(),
            readings: None,
            ended: Vec::new(),
            board: board_of(request, phase).map(Arc::new),
            hearing: None,
            warnings: Vec::new(),
        }
    }

    /// Tells the front end which files of the user's directory there are now because of us, so that
    /// they are known even if all of us are killed; answers whether there was any news.
    fn tell_made(&self) -> bool {
        let births = self.users_files.map(|files| files.note(self.phase)).unwrap_or_default();
        if births.is_empty() {
            return false;
        }
        print(&MeasureLine::Progress(Progress {
            trial: Some(self.request.trial.clone()),
            phase: self.phase.name.clone(),
            message: "made".to_owned(),
            begun: births,
            ..Progress::default()
        }));
        true
    }

    /// Bytes that storage has given to this process; nobody asks where no device is looked at.
    fn own_read_bytes_now(&self) -> Option<u64> {
        let is_asked = !self.of_children && !self.request.counters.is_empty();
        is_asked.then(own_read_bytes).flatten()
    }

    /// Tells what the workers have done so far, if it is time.
    fn tell_so_far(&mut self) {
        let (Some(board), Some(hearing)) = (&self.board, &mut self.hearing) else { return };
        let interval = self.request.workload.interval_ns;
        let Some(outcome) = hearing.look(monotonic(), board, self.phase, interval) else { return };
        let mut record = PhaseRecord::new(outcome, self.phase, Access::Plain);
        record.cpu = cpu_between(self.cpu_start, cpu(self.of_children));
        let now = read_devices(&self.request.counters);
        record.devices = device_records(&self.started, &now, &now);
        tell_interim(self.request, self.phase, "so_far", record);
    }

    fn files(&self) -> Vec<PathBuf> {
        let names = self.phase.tenants.iter().flat_map(Tenant::file_names);
        // Those of sets, too: what is cold or warm is so for a program as for a stream.
        let workload = &self.request.workload;
        let sets = workload.sets_of(self.phase).flat_map(|set| set.drawn(workload.seed).files);
        let paths = names.chain(sets).map(|name| self.request.directory.join(name));
        let found = paths.filter_map(|path| Glance::of_path(&path).ok().map(|it| (it, path)));
        let files = found.flat_map(|(it, path)| {
            if it.is_directory() {
                self.files_of_store(&path)
            } else {
                Vec::from_iter(it.is_file().then_some(path))
            }
        });
        files.collect()
    }

    /// Files of a key-value store, whose clients are the phase's; of another directory none.
    fn files_of_store(&self, directory: &Path) -> Vec<PathBuf> {
        let has_clients = self.phase.tenants.iter().any(|tenant| tenant.kv.is_some());
        let listed = std::fs::read_dir(directory).ok().filter(|_| has_clients);
        let entries = listed.into_iter().flatten().filter_map(Result::ok);
        let is_file = |path: &PathBuf| Glance::of_path(path).is_ok_and(|it| it.is_file());
        entries.map(|entry| entry.path()).filter(is_file).collect()
    }

    /// Places of its files by now.
    pub fn placed(&self) -> Option<PlacedFiles> {
        let names = self.phase.tenants.iter().flat_map(Tenant::file_names);
        let workload = &self.request.workload;
        let sets = workload.sets_of(self.phase).flat_map(|set| set.drawn(workload.seed).files);
        let paths = names.chain(sets).map(|name| self.request.directory.join(name));
        let files = paths.filter(|path| Glance::of_name(path).is_ok_and(|it| it.is_file()));
        PlacedFiles::of(files.map(|file| extents::count(&file)))
    }

    fn reads(&self) -> bool {
        self.phase.tenants.iter().any(Tenant::reads)
    }

    /// Resident share of all files after applying `action` to each.
    fn apply(
        &mut self,
        files: &[PathBuf],
        action: fn(&Path) -> Result<cache::Residency, iolab_model::Error>,
    ) -> f64 {
        let (mut resident, mut pages) = (0, 0);
        for file in files {
            match action(file) {
                Ok(residency) => {
                    resident += residency.resident_pages;
                    pages += residency.pages;
                    residency.method.name().clone_into(&mut self.cache.method);
                }
                Err(error) => self.warnings.push(Warning::new(
                    "cache_unknown",
                    format!("the page cache's state is not known: {error}"),
                    "treat the numbers as neither cold nor warm",
                )),
            }
        }
        if pages == 0 { 0.0 } else { resident as f64 / pages as f64 }
    }

    fn prepare_cache(&mut self) {
        let files = self.files();
        let share = match self.request.cache {
            _ if !self.reads() => self.apply(&files, cache::residency),
            CacheState::AsIs => self.apply(&files, cache::residency),
            CacheState::Warm => self.apply(&files, cache::warm_file),
            CacheState::Cold => {
                let share = self.apply(&files, cache::drop_file);
                if share > 0.0 && self.request.may_drop_caches {
                    drop_all_caches();
                    self.apply(&files, cache::residency)
                } else {
                    share
                }
            }
        };
        self.cache.resident_before_share = share;
        let percent = (share * 100.0).round();
        match self.request.cache {
            CacheState::Cold if self.reads() && share > COLD_SHARE_MAX => {
                self.warnings.push(Warning::new(
                    "cache_not_cold",
                    format!("{percent} % of the file stayed in the page cache after dropping it"),
                    "on tmpfs nothing can be dropped; elsewhere another process may map the file",
                ));
            }
            CacheState::Warm if self.reads() && share < WARM_SHARE_MIN => {
                self.warnings.push(Warning::new(
                    "cache_not_warm",
                    format!("only {percent} % of the file is in the page cache after reading it"),
                    "the file may be larger than memory or than the memory limit",
                ));
            }
            _ => {}
        }
    }

    /// Reason why the phase must stop now, if there is one.
    fn reason_to_stop(&mut self) -> Option<String> {
        if IS_INTERRUPTED.load(Ordering::Relaxed) {
            return Some("interrupted".into());
        }
        let limit = self.request.time_limit_ns;
        if limit > 0 && self.began.elapsed() > Duration::from_nanos(limit) {
            let seconds = Duration::from_nanos(limit).as_secs_f64();
            return Some(format!(
                "phase {} stopped: the trial's time limit of {seconds:.0} s is over; use smaller \
                 files or a higher limit",
                self.phase.name
            ));
        }
        if self.last_space_check.elapsed() >= SPACE_CHECK {
            self.last_space_check = Instant::now();
            return self.shortage();
        }
        None
    }

    /// The first place that has less free space than must stay there.
    fn shortage(&self) -> Option<String> {
        let Request { directory, reserve_bytes, place_reserves, .. } = self.request;
        let places = place_reserves.iter().map(|(name, bytes)| (directory.join(name), *bytes));
        for (folder, reserve) in std::iter::once((directory.clone(), *reserve_bytes)).chain(places)
        {
            let free = free_bytes(&folder)?;
            if free < reserve {
                return Some(format!(
                    "phase {} stopped: {} MiB free under {} are less than the reserve of {} MiB; \
                     free some space or use smaller files",
                    self.phase.name,
                    free >> 20,
                    folder.display(),
                    reserve >> 20
                ));
            }
        }
        None
    }
}

impl Observer for PhaseObserver<'_> {
    fn laid_out(&mut self) {
        self.is_laid_out = true;
        if self.tell_made() {
            // Whoever hears it would run beside the first operations.
            std::thread::sleep(HEARING);
        }
        self.prepare_cache();
    }

    fn starting(&mut self) {
        self.readings = Some(Readings::begin(&self.request.counters));
        self.started = read_devices(&self.request.counters);
        self.own_read_start = self.own_read_bytes_now();
        self.cpu_start = cpu(self.of_children);
    }

    fn board(&self) -> Option<Arc<Board>> {
        self.board.clone()
    }

    /// Tell that the timed region has begun: knobs change so long after this.
    fn released(&mut self) {
        self.hearing = self.board.as_ref().map(|board| Hearing::since(monotonic(), board));
        if !self.phase.cuts_ns.is_empty() {
            let at_ns = monotonic().0;
            print(&MeasureLine::Released { phase: self.phase.name.clone(), at_ns });
        }
    }

    fn should_stop(&mut self) -> bool {
        if !self.is_laid_out {
            self.tell_made();
        }
        if let Some(readings) = &mut self.readings {
            readings.look(&self.request.counters);
        }
        self.tell_so_far();
        if self.stopped_because.is_none() {
            self.stopped_because = self.reason_to_stop();
        }
        self.stopped_because.is_some()
    }

    fn ended(&mut self) {
        self.cpu = cpu_between(self.cpu_start, cpu(self.of_children));
        self.ended = read_devices(&self.request.counters);
        if let Some(readings) = &mut self.readings {
            readings.end(&self.request.counters);
        }
        let both = self.own_read_start.zip(self.own_read_bytes_now());
        self.own_read_bytes = both.map(|(start, end)| end.saturating_sub(start));
    }
}

impl PhaseObserver<'_> {
    /// Adds the counters over time to what the devices did.
    pub fn add_series(&self, devices: &mut [DeviceRecord]) {
        let Some(readings) = &self.readings else { return };
        for device in devices {
            let mut names = self.request.counters.iter().map(|counter| &counter.name);
            let place = names.position(|name| *name == device.name);
            device.series = place.and_then(|place| readings.series(place));
        }
    }

    /// CPU time of workers that were processes is only known once they have ended.
    pub fn children_ended(&mut self) {
        if self.of_children {
            self.cpu = cpu_between(self.cpu_start, cpu(true));
        }
    }
}

/// Hands interim results of a phase to the front end.
pub fn tell_interim(request: &Request, phase: &Phase, message: &str, record: PhaseRecord) {
    print(&MeasureLine::Progress(Progress {
        trial: Some(request.trial.clone()),
        phase: phase.name.clone(),
        message: message.to_owned(),
        so_far: Some(Box::new(record)),
        ..Progress::default()
    }));
}

/// A board for the workers of a phase, if interim results are wanted: files without names, which
/// their processes inherit.
fn board_of(request: &Request, phase: &Phase) -> Option<Board> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let interim = request.interim.filter(|interim| interim.every_ns > 0)?;
    let workers = phase.tenants.iter().map(|tenant| tenant.workers as usize).sum();
    let file = |_| memfd_create(c"iolab-interim", MFdFlags::MFD_CLOEXEC).map(std::fs::File::from);
    let files = (0..workers).map(file).collect::<Result<Vec<_>, _>>().ok()?;
    Some(Board::new(Ns(interim.every_ns), interim.has_times, files))
}

/// The whole machine's clean pages, dentries and inodes; the agent has journalled the action.
fn drop_all_caches() {
    // Failure shows in the residency that is asked next.
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "3");
}

/// Bytes an ordinary user may still write under `path`; `None` if the kernel does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: statvfs is plain data, for which all zeroes is a valid value.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a C string and `answer` writable, both alive during the call.
    let result = unsafe { libc::statvfs(name.as_ptr(), &raw mut answer) };
    (result == 0).then(|| answer.f_bavail * answer.f_frsize)
}
