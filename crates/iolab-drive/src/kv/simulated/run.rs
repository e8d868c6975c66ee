//! A phase of clients of a simulated store: it is made, loaded if that is asked for, and worked on.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_lsm::{JobKind, LsmOptions, LsmStore, StoreCost};
use iolab_model::target::Content;
use iolab_model::{Bytes, Completion, Error, LaneRequest, Ns, Seed, Target, VirtualTime};
use iolab_workload::kv::{
    KvAction, KvClient, KvCounts, KvEnd, KvSeries, KvStage, KvStatus, KvWork,
};
use iolab_workload::spec::{Phase, Workload};
use iolab_workload::worker::WholeOperation;
use iolab_workload::{GroupState, Step, Worker};

use super::client::{Share, SimulatedClient};
use super::files::paths;
use super::shared::{Shared, SharedCell};
use super::thread::StoreThread;
use crate::coordinate::{Observer, PhaseOutcome, WorkerOutcome};
use crate::kv::log::KvLog;
use crate::kv::run::{Ended, Ending, operations, share};
use crate::needs::MODELLED;
use crate::pump::{Actor, ObservedGroup, run_events};
use crate::recorder::Recorder;

/// Processors of the machine that the store believes to be on [assume]: YCSB's binding asks for two
/// jobs for each.
const CPUS: u64 = 2;
/// Release whose rules the model has.
const VERSION: &str = "7.8 (model)";

/// A client, or a thread of the store.
enum Player<'a> {
    Client(Box<SimulatedClient<'a>>),
    Thread(Box<StoreThread<'a>>),
}

impl Worker for Player<'_> {
    fn next(&mut self, now: Ns) -> Step {
        match self {
            Self::Client(client) => client.next(now),
            Self::Thread(thread) => thread.next(now),
        }
    }

    fn complete(&mut self, completion: &Completion) -> bool {
        match self {
            Self::Client(client) => client.complete(completion),
            Self::Thread(thread) => thread.complete(completion),
        }
    }

    fn whole_operation(&mut self) -> Option<WholeOperation> {
        match self {
            Self::Client(client) => client.whole_operation(),
            Self::Thread(_) => None,
        }
    }
}

type Players<'a, L> = Vec<Actor<L, Player<'a>>>;

/// Runs the clients of a phase on a simulated store.
///
/// # Errors
///
/// The phase is not one of clients of it alone, an option is unknown, or a file cannot be made.
pub fn run_simulated_kv<T: Target + VirtualTime, O: Observer>(
    target: &T,
    (workload, phase): (&Workload, &Phase),
    directory: &Path,
    observer: &mut O,
) -> Result<PhaseOutcome, Error> {
    let [tenant] = &phase.tenants[..] else { return Err(super::super::run::beside_others()) };
    let Some(work) = &tenant.kv else { return Err(super::super::run::beside_others()) };
    if workload.engine_of(phase) != MODELLED {
        let what = format!("be the store {}: use {MODELLED}", workload.engine_of(phase));
        return Err(Error::Unsupported { target: target.name(), what });
    }
    let options = LsmOptions::of(&work.store.options, CPUS)?;
    let (flushes, compactions) = options.jobs();
    let store = LsmStore::new(options, work.store.durability, StoreCost::default());
    let shared: SharedCell = RefCell::new(Shared { store, clients: 1, changes: 0, failure: None });
    let group = ObservedGroup::new(observer, tenant.workers);
    let place = Place {
        target,
        workload,
        paths: paths(&directory.join(tenant.file_name(0))),
        can_allocate: target.capabilities().has_allocate,
    };
    let kinds = core::iter::repeat_n(JobKind::Flush, flushes as usize)
        .chain(core::iter::repeat_n(JobKind::Compaction, compactions as usize));
    let mut players: Players<'_, T::Lane> = Vec::new();
    for kind in kinds {
        let thread = StoreThread::new(&shared, kind, place.can_allocate);
        players.push(place.actor(Player::Thread(Box::new(thread)))?);
    }
    let is_loaded = work.loads_new_store && work.action == KvAction::Run;
    let load_work = KvWork {
        action: KvAction::Load,
        operation_count: if is_loaded { work.record_count } else { 0 },
        insert_start: 0,
        time_limit_s: 0,
        ..work.clone()
    };
    let load_stage = KvStage::new(&load_work);
    let loaded = place.load(&mut players, &shared, (&load_work, &load_stage), &group)?;
    group.laid_out();
    let stage = KvStage::new(work);
    place.clients(&mut players, &shared, (work, &stage), (phase, &group))?;
    run_events(&mut players, target, &group)?;
    told(&shared)?;
    let release = target.now();
    let ended = ended(players, &shared);
    let unix_ms = |now: Ns| now.0 / 1_000_000;
    let mut outcome = Ending { workload, phase, release, unix_ms: &unix_ms }.outcome(ended);
    if let Some(record) = outcome.tenants[0].kv.as_mut() {
        (record.opening_ns, record.loaded) = (0, loaded);
        (record.store, record.version) = (MODELLED.into(), Some(VERSION.into()));
    }
    Ok(outcome)
}

/// The first failure on a file, as an error of the phase.
fn told(shared: &SharedCell) -> Result<(), Error> {
    let Some((call, errno)) = shared.borrow().failure else { return Ok(()) };
    Err(Error::System { call, subject: "the simulated database".into(), errno })
}

/// Ways to the files of the store.
struct Place<'t, T> {
    target: &'t T,
    workload: &'t Workload,
    paths: Arc<[PathBuf]>,
    can_allocate: bool,
}

impl<T: Target + VirtualTime> Place<'_, T> {
    fn actor<'a>(&self, worker: Player<'a>) -> Result<Actor<T::Lane, Player<'a>>, Error> {
        let lane = self.target.open(&LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(0),
            content: Content::Zero,
            seed: Seed(0),
            priority: None,
            submitter_cpu: None,
            paths: Arc::clone(&self.paths),
        })?;
        let recorder = Recorder::new(1, self.workload.interval_ns, None);
        Ok(Actor { lane, worker, recorder })
    }

    /// Makes the database, and puts all records into it if there are any to put; answers how many.
    fn load<'a>(
        &self,
        players: &mut Players<'a, T::Lane>,
        shared: &'a SharedCell,
        (work, stage): (&KvWork, &'a KvStage),
        group: &'a dyn GroupState,
    ) -> Result<u64, Error> {
        let operations = work.operation_count;
        let client = KvClient::new(work, Seed(self.workload.seed.0 ^ 1), 0);
        let share = Share { index: 0, clients: 1, operations, is_untimed: true };
        let loader = SimulatedClient::new(shared, (stage, group), client, share, self.can_allocate);
        let loader = if operations == 0 { loader.idle() } else { loader };
        players.push(self.actor(Player::Client(Box::new(loader)))?);
        run_events(players, self.target, group)?;
        told(shared)?;
        let last = players.pop().map(|actor| actor.worker);
        Ok(match last {
            Some(Player::Client(client)) => client.done(),
            _ => 0,
        })
    }

    /// Adds the clients of a phase.
    fn clients<'a>(
        &self,
        players: &mut Players<'a, T::Lane>,
        shared: &'a SharedCell,
        (work, stage): (&KvWork, &'a KvStage),
        (phase, group): (&Phase, &'a dyn GroupState),
    ) -> Result<(), Error> {
        let clients = phase.tenants[0].workers;
        shared.borrow_mut().clients = clients;
        for index in 0..clients {
            let operations = share(work.operation_count, clients, index);
            let client = KvClient::new(work, self.workload.seed, index);
            let own = Share { index, clients, operations, is_untimed: false };
            let mut one =
                SimulatedClient::new(shared, (stage, group), client, own, self.can_allocate);
            if operations == 0 && work.operation_count > 0 {
                one = one.idle();
            }
            if let Some(folder) = &phase.tenants[0].manner.op_log {
                one.log = Some(KvLog::create(folder, (&phase.name, index), (Ns(0), 0))?);
            }
            players.push(self.actor(Player::Client(Box::new(one)))?);
        }
        Ok(())
    }
}

/// Results of the clients.
fn ended<L>(players: Players<'_, L>, shared: &SharedCell) -> Vec<Ended> {
    let mut facts = Some(shared.borrow().store.facts());
    let one = |Actor { worker, recorder, .. }: Actor<L, Player<'_>>| {
        let Player::Client(mut client) = worker else { return None };
        let mut report = client.report();
        let now = client.gone;
        let left = KvEnd { status: KvStatus::Ok, intended: now, began: now, ended: now };
        let mut counts: KvCounts = client.counts.clone();
        counts.record_latency(KvSeries::Cleanup, &left, 0);
        if let Some(Err(problem)) = client.log.take().map(KvLog::close) {
            report.errors += 1;
            report.first_error.get_or_insert(problem);
        }
        let outcome = WorkerOutcome::new(0, report, recorder).with(operations(&counts));
        Some(Ended {
            outcome,
            counts,
            written: client.written,
            first_error: client.first_error.take(),
            facts: facts.take().unwrap_or_default(),
            gone: now,
        })
    };
    players.into_iter().filter_map(one).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small mix.
    pub fn work() -> KvWork {
        serde_json::from_value(serde_json::json!({
            "action": "run",
            "store": {"durability": "wal", "table": "usertable"},
            "record_count": 1000, "operation_count": 1000, "insert_start": 0,
            "insert_count": 1000, "field_count": 10, "field_prefix": "field",
            "field_length": {"by": "constant", "length": 100},
            "reads_all_fields": true, "writes_all_fields": false, "is_verified": false,
            "mix": {"read": 0.5, "update": 0.5, "insert": 0.0, "scan": 0.0,
                    "read_modify_write": 0.0},
            "order": {"by": "zipfian"}, "zero_padding": 1, "is_hashed": true,
            "scan_length": {"by": "uniform", "from": 1, "to": 100}, "target_per_s": 0.0,
            "is_spinning": false, "time_limit_s": 0, "insert_retries": 0,
            "retry_interval_s": 3.0, "goes_on_after_errors": false, "loads_new_store": true,
            "measured": {"interval": "op", "ms_parts": 0, "window_ms": 0, "status_s": 0.0,
                         "label": ""},
        }))
        .unwrap()
    }
}
