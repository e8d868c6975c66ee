//! Phases of clients of a key-value store: where it lies, and with which rights it is opened.
//!
//! A store's library runs in this process, which is the invoking user's: as root for somebody else
//! it is not loaded (safety R15).

use std::path::{Path, PathBuf};

use iolab_drive::coordinate::PhaseOutcome;
use iolab_drive::kv::{KvMeans, NoStore, run_kv};
use iolab_kv::{KvStore, StoreKind, StoreVisitor, directory, visit};
use iolab_model::op::Access;
use iolab_model::{Error, Ns};
use iolab_real::affinity;
use iolab_real::clock::LaneClock;
use iolab_workload::kv::{KvAction, KvWork};
use iolab_workload::spec::{Phase, WorkersAs, Workload};

use super::child::{Ended, Trial, print};
use super::observer::PhaseObserver;
use super::request::Request;
use crate::memory;
use crate::protocol::{MeasureLine, Progress, Replaceable};

/// Tell whether the tenants of a phase are clients of a store.
pub(super) fn has_clients(phase: &Phase) -> bool {
    phase.tenants.iter().any(|tenant| tenant.kv.is_some())
}

/// The store of a name; `None`: nothing is kept.
pub(super) fn known_store(name: &str) -> Result<Option<StoreKind>, Error> {
    match name {
        "null" | "basic" => Ok(None),
        _ => name.parse().map(Some),
    }
}

/// Makes or recognises the directories of all stores, before anything is measured.
///
/// # Errors
///
/// One is somebody's, whom the user did not name: nothing was touched.
pub(super) fn take_places(request: &Request) -> Result<(), String> {
    for phase in request.workload.phases.iter().filter(|phase| has_clients(phase)) {
        let name = request.workload.engine_of(phase);
        let store = known_store(name).map_err(|error| error.to_string())?;
        if request.device.is_some() || !store.is_some_and(StoreKind::has_directory) {
            continue;
        }
        let file = phase.tenants[0].file_name(0);
        let said = request.files.as_ref().and_then(|rules| rules.replaceable.get(&file));
        let is_named = matches!(said, Some(Replaceable::Named));
        let taken = directory::take(&request.directory.join(&file), name, is_named);
        taken.map_err(|error| match error {
            // What to do about it is the front end's to say.
            Error::BadWorkload { problem, .. } => problem,
            other => other.to_string(),
        })?;
    }
    Ok(())
}

/// Bytes that a map in memory needs for each record beside its key and fields: the key a second
/// time, places in an index, a tree and a list (some 100 bytes), and what an allocator adds.
const ENTRY_BYTES: u64 = 200;

/// Refuses records that memory cannot hold.
///
/// # Errors
///
/// They need more than is available; says how many would do.
fn check_memory(work: &KvWork, available: Option<u64>) -> Result<(), Error> {
    let inserted = (work.operation_count as f64 * work.mix.insert) as u64;
    let records = match work.action {
        KvAction::Load => work.insert_count,
        KvAction::Run if work.loads_new_store => work.record_count.saturating_add(inserted),
        KvAction::Run => inserted,
    };
    let each = work.record_bytes() + ENTRY_BYTES;
    let needed = records.saturating_mul(each);
    match available {
        Some(available) if needed > available => Err(Error::BadWorkload {
            problem: format!(
                "{records} records need about {} MiB of memory, and {} MiB are available",
                needed >> 20,
                available >> 20
            ),
            remedy: format!(
                "use at most {} records (recordcount), shorter fields, or the store rocksdb",
                available / each
            ),
        }),
        _ => Ok(()),
    }
}

/// The first load of a database, noted in its directory while it lasts.
struct Loading<'a> {
    place: Option<&'a Path>,
    work: &'a KvWork,
    was_under_way: bool,
}

impl<'a> Loading<'a> {
    /// Notes that a load begins, if one does.
    ///
    /// # Errors
    ///
    /// A run that loads nothing finds a part of the records; or nothing can be noted.
    fn of(work: &'a KvWork, place: Option<&'a PathBuf>) -> Result<Self, Error> {
        let place = place.map(PathBuf::as_path);
        let was_under_way = place.is_some_and(directory::is_loading);
        let is_load = work.action == KvAction::Load;
        if was_under_way && !is_load && !work.loads_new_store {
            let shown = place.and_then(Path::file_name).unwrap_or_default().display().to_string();
            return Err(Error::BadWorkload {
                problem: format!("{shown} holds a part of its records: a load did not end"),
                remedy: "load it again (ycsb load), or run without --compat, which does".into(),
            });
        }
        let is_new = place.is_some_and(|place| !place.join("CURRENT").exists());
        if let Some(place) = place
            && (is_load || (work.loads_new_store && is_new))
        {
            directory::begin_loading(place)?;
        }
        Ok(Self { place, work, was_under_way })
    }

    /// Notes that all records are there, if they are.
    fn end(&self, outcome: &PhaseOutcome) -> Result<(), Error> {
        let (Some(place), work) = (self.place, self.work) else { return Ok(()) };
        if !directory::is_loading(place) {
            return Ok(());
        }
        let inserted: u64 = outcome.tenants[0].workers.iter().map(|worker| worker.ops).sum();
        let is_complete = match work.action {
            KvAction::Load => {
                let is_whole = work.insert_start == 0 && work.insert_count >= work.record_count;
                inserted >= work.operation_count && (is_whole || !self.was_under_way)
            }
            KvAction::Run => {
                let loaded = outcome.tenants[0].kv.as_ref().map_or(0, |record| record.loaded);
                loaded >= work.record_count
            }
        };
        if is_complete { directory::end_loading(place) } else { Ok(()) }
    }
}

/// The clock of the clients.
fn now() -> Ns {
    thread_local! {
        static CLOCK: LaneClock = LaneClock::new();
    }
    CLOCK.with(LaneClock::now)
}

/// Clients of a store whose type is known when it is opened.
struct Clients<'a, 'o> {
    workload: &'a Workload,
    phase: &'a Phase,
    means: KvMeans<'a>,
    observer: &'a mut PhaseObserver<'o>,
}

impl StoreVisitor for Clients<'_, '_> {
    type Output = Result<PhaseOutcome, Error>;

    fn visit<S: KvStore + Send>(self, open: impl FnOnce() -> Result<S, Error>) -> Self::Output {
        run_kv(open, (self.workload, self.phase), self.means, self.observer)
    }
}

impl Trial<'_> {
    /// Runs a phase of clients.
    pub(super) fn run_clients(&self, phase: &Phase) -> Result<Ended, Error> {
        let workload = &self.request.workload;
        let name = workload.engine_of(phase);
        let work = phase.tenants.iter().find_map(|tenant| tenant.kv.as_ref());
        let work = work.expect("a phase of clients has some");
        if workload.workers_as == WorkersAs::Processes {
            let what = "be shared by processes; use threads".into();
            return Err(Error::Unsupported { target: "a key-value store", what });
        }
        let store = known_store(name)?;
        if self.table.is_some() {
            let what = "hold a key-value store; use a testbed with a file system".into();
            return Err(Error::Unsupported { target: "a device without a file system", what });
        }
        let place = self.request.directory.join(phase.tenants[0].file_name(0));
        let has_directory = store.is_some_and(StoreKind::has_directory);
        if store == Some(StoreKind::Memory) {
            let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
            check_memory(work, memory::available_bytes(&meminfo))?;
        }
        let load = Loading::of(work, has_directory.then_some(&place))?;
        let mut observer = PhaseObserver::new(self.request, phase, self.began, false);
        let told = self.progress(phase, "status");
        let tell = |line| {
            let shown = Progress { status: Some(line), ..told.clone() };
            print(&MeasureLine::Progress(shown));
        };
        let cpus = &workload.pin_cpus;
        let prepare = |ordinal: u32| {
            if !cpus.is_empty() {
                let _ = affinity::pin_to(cpus[ordinal as usize % cpus.len()]);
            }
        };
        let means = KvMeans { now, tell: &tell, prepare: &prepare };
        let observing = &mut observer;
        let visitor = Clients { workload, phase, means, observer: observing };
        let outcome = match store {
            Some(store) => visit(store, &place, &work.store, visitor)?,
            None => visitor.visit(|| NoStore::new(&work.store))?,
        };
        load.end(&outcome)?;
        let mut ended = self.ended((phase, Access::Plain), outcome, observer, has_directory);
        // The store's own threads read, too.
        ended.record.own_read_bytes = None;
        Ok(ended)
    }
}
