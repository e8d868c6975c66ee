//! A phase: the store is opened, filled if it is new, worked on by all clients, and closed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iolab_model::kv::KvStore;
use iolab_model::op::OpClass;
use iolab_model::{Error, Ns, Seed};
use iolab_workload::kv::{
    FieldChoice, KvAction, KvClient, KvCounts, KvEnd, KvRecord, KvSeries, KvStage, KvStatus, KvWork,
};
use iolab_workload::operation::OperationKind;
use iolab_workload::program::OperationCount;
use iolab_workload::report::Tolerated;
use iolab_workload::spec::{Phase, Workload};
use iolab_workload::{Gate, GroupState, StreamReport};

use super::client::Session;
use super::log::KvLog;
use super::status::{Progress, Telling};
use crate::coordinate::{Crew, Observer, PhaseOutcome, WorkerOutcome, assemble, coordinate};
use crate::group::{SharedGroup, Waking};
use crate::recorder::Recorder;
use crate::run_delay::run_delay_ns;

/// Records that are loaded between two looks whether to stop.
const LOADED_AT_ONCE: u64 = 256;
/// Pause of a client before a gate.
const NAP: Duration = Duration::from_micros(20);

/// Name of the store that prints operations in place of performing them.
const PRINTING: &str = "basic";

/// Means of a pump that its owner hands over.
#[derive(Clone, Copy)]
pub struct KvMeans<'a> {
    /// The clock.
    pub now: fn() -> Ns,
    /// Takes a line about the progress.
    pub tell: &'a (dyn Fn(String) + Sync),
    /// Called on each client's thread first (CPU affinity), with its ordinal.
    pub prepare: &'a (dyn Fn(u32) + Sync),
}

/// Runs the clients of a phase on the store that `open` opens.
///
/// # Errors
///
/// The store cannot be opened, filled or closed, or the phase is not one of clients alone.
pub fn run_kv<S: KvStore + Send, O: Observer>(
    open: impl FnOnce() -> Result<S, Error>,
    (workload, phase): (&Workload, &Phase),
    means: KvMeans<'_>,
    observer: &mut O,
) -> Result<PhaseOutcome, Error> {
    let [tenant] = &phase.tenants[..] else { return Err(beside_others()) };
    let Some(work) = &tenant.kv else { return Err(beside_others()) };
    let opened_from = (means.now)();
    let store = open()?;
    let opening = (means.now)().since(opened_from);
    let (name, version) = (store.name().to_owned(), store.version());
    let loaded = if work.loads_new_store && work.action == KvAction::Run && store.is_new() {
        load(&store, work, workload.seed, observer)?
    } else {
        0
    };
    observer.laid_out();
    let stage = KvStage::new(work);
    let live = || Mutex::new(KvCounts::new(&work.measured));
    let live: Vec<_> = (0..tenant.workers).map(|_| live()).collect();
    let crew = KvCrew { workload, phase, work, stage: &stage, live: &live, means };
    let (ended, release) = crew.run(store, tenant.workers, observer)?;
    let unix_ms = |instant: Ns| (unix_ns() - (means.now)().since(instant).0) / 1_000_000;
    let mut outcome = Ending { workload, phase, release, unix_ms: &unix_ms }.outcome(ended);
    if let Some(record) = outcome.tenants[0].kv.as_mut() {
        (record.opening_ns, record.loaded) = (opening.0, loaded);
        (record.store, record.version) = (name, version);
    }
    Ok(outcome)
}

pub(super) fn beside_others() -> Error {
    Error::BadWorkload {
        problem: "clients of a store beside other tenants".into(),
        remedy: "write a phase for each".into(),
    }
}

/// Puts all records into a store that has none; answers how many.
fn load<S: KvStore, O: Observer>(
    store: &S,
    work: &KvWork,
    seed: Seed,
    observer: &mut O,
) -> Result<u64, Error> {
    let mut client = KvClient::new(work, Seed(seed.0 ^ 1), 0);
    let mut record = Vec::new();
    for number in 0..work.record_count {
        if number % LOADED_AT_ONCE == 0 && observer.should_stop() {
            return Ok(number);
        }
        client.set_key(number);
        client.write_fields(FieldChoice::All, &mut record);
        store.put(client.key(), &record).map_err(|error| told(store.name(), &error.0))?;
    }
    Ok(work.record_count)
}

/// An error in the words of a store.
fn told(target: &'static str, words: &str) -> Error {
    Error::Unsupported { target, what: format!("go on: {words}") }
}

/// The clients of a phase, before they run.
struct KvCrew<'a> {
    workload: &'a Workload,
    phase: &'a Phase,
    work: &'a KvWork,
    stage: &'a KvStage,
    live: &'a [Mutex<KvCounts>],
    means: KvMeans<'a>,
}

/// End of a client.
pub(super) struct Ended {
    pub outcome: WorkerOutcome,
    pub counts: KvCounts,
    pub written: u64,
    pub first_error: Option<String>,
    /// Of the client that closed the store.
    pub facts: Vec<iolab_model::kv::KvFact>,
    pub gone: Ns,
}

/// Threads, as their coordinator sees them.
struct Threads<'a>(&'a AtomicU32);

impl Crew for Threads<'_> {
    fn lost(&mut self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    fn rest(&mut self, longest: Duration) {
        std::thread::park_timeout(longest);
    }
}

impl KvCrew<'_> {
    fn run<S: KvStore + Send, O: Observer>(
        &self,
        store: S,
        clients: u32,
        observer: &mut O,
    ) -> Result<(Vec<Ended>, Ns), Error> {
        let (group, departed) = (&SharedGroup::default(), &AtomicU32::new(0));
        let coordinator = std::thread::current();
        let wake = || coordinator.unpark();
        let waking = &Waking::new(group, clients as usize, &wake);
        let store = Arc::new(store);
        let wanted = self.work.operation_count;
        let progress = Progress::new(&self.work.measured, self.stage, self.live, wanted);
        let tell: &dyn Fn(String) = self.means.tell;
        let mut telling = Telling { inner: observer, progress, tell };
        let (joined, release) = std::thread::scope(|scope| {
            let spawn = |index| {
                let store = Arc::clone(&store);
                scope.spawn(move || {
                    let ended = self.client(store, (index, clients), waking);
                    if ended.is_err() {
                        group.stop();
                        departed.fetch_add(1, Ordering::AcqRel);
                    }
                    ended
                })
            };
            let threads: Vec<_> = (0..clients).map(spawn).collect();
            drop(store);
            coordinate(group, clients, &mut telling, &mut Threads(departed));
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let joined: Vec<Result<Ended, Error>> = threads.into_iter().map(join).collect();
            (joined, (self.means.now)())
        });
        telling.progress.end().into_iter().for_each(tell);
        Ok((joined.into_iter().collect::<Result<_, _>>()?, release))
    }

    /// One client, from its first look at the gate until it has left the store.
    fn client<S: KvStore>(
        &self,
        store: Arc<S>,
        (index, clients): (u32, u32),
        group: impl GroupState,
    ) -> Result<Ended, Error> {
        (self.means.prepare)(index);
        let before = run_delay_ns();
        let now = self.means.now;
        let log = self.log(index)?;
        let recorder = Recorder::new(1, self.workload.interval_ns, None)
            .ready_for(&[OpClass::Read, OpClass::Write]);
        let client = KvClient::new(self.work, self.workload.seed, index);
        let mut session = Session::new((&*store, self.stage), (client, recorder), now);
        session.log = log;
        session.is_printing = self.workload.engine_of(self.phase) == PRINTING;
        session.live = (self.work.measured.status_s > 0.0).then(|| &self.live[index as usize]);
        pass(&group, Gate::Start);
        let started = now();
        session.counts.origin = started;
        session.recorder.begin(started);
        let mine = share(self.work.operation_count, clients, index);
        let is_idle = mine == 0 && self.work.operation_count > 0;
        let last =
            if is_idle { started } else { session.run(mine, clients, || group.is_stopped()) };
        pass(&group, Gate::End);
        let mut report = report(&session, (started, last));
        report.worker = index;
        report.run_delay_ns = before.zip(run_delay_ns()).map(|(a, b)| b.saturating_sub(a));
        let log = session.log.take();
        let (written, first_error) = (session.bytes.1, session.first_error.take());
        let Session { mut counts, recorder, .. } = session;
        let (facts, closed, left) = close(store, now);
        counts.record_latency(KvSeries::Cleanup, &left, 0);
        let mut live = self.live[index as usize].lock().unwrap_or_else(PoisonError::into_inner);
        live.record_latency(KvSeries::Cleanup, &left, 0);
        drop(live);
        if let Err(problem) = log.map_or(Ok(()), KvLog::close).and(closed) {
            report.errors += 1;
            report.first_error.get_or_insert(problem);
        }
        let outcome = WorkerOutcome::new(0, report, recorder).with(operations(&counts));
        Ok(Ended { outcome, counts, written, first_error, facts, gone: now() })
    }

    fn log(&self, index: u32) -> Result<Option<KvLog>, Error> {
        let Some(folder) = &self.phase.tenants[0].manner.op_log else { return Ok(None) };
        let clocks = ((self.means.now)(), unix_ns());
        KvLog::create(folder, (&self.phase.name, index), clocks).map(Some)
    }
}

/// Arrives at a gate and waits until it is open.
fn pass(group: &impl GroupState, gate: Gate) {
    group.arrive(gate);
    while !group.is_open(gate) {
        std::thread::sleep(NAP);
    }
}

/// Operations of a client: the first ones do one more, where they cannot be shared equally.
pub(super) fn share(operations: u64, clients: u32, index: u32) -> u64 {
    let (clients, index) = (u64::from(clients), u64::from(index));
    operations / clients + u64::from(index < operations % clients)
}

/// Leaves the store; the last client closes it.
fn close<S: KvStore>(
    store: Arc<S>,
    now: fn() -> Ns,
) -> (Vec<iolab_model::kv::KvFact>, Result<(), String>, KvEnd) {
    let last = Arc::into_inner(store);
    let facts = last.as_ref().map(KvStore::facts).unwrap_or_default();
    let began = now();
    let closed = last.map_or(Ok(()), |store| store.close().map_err(|error| error.0));
    let end = KvEnd { status: KvStatus::Ok, intended: began, began, ended: now() };
    (facts, closed, end)
}

fn report<S: KvStore>(session: &Session<'_, S>, (started, last): (Ns, Ns)) -> StreamReport {
    let (read, written) = session.bytes;
    let has_failed = session.failures > 0;
    let is_load = session.client.work().action == KvAction::Load;
    let ends = is_load && !session.client.work().goes_on_after_errors && has_failed;
    let first = session.first_error.clone().unwrap_or_else(|| "no record has the key".into());
    StreamReport {
        ops: session.done,
        bytes: read + written,
        read_bytes: read,
        write_bytes: written,
        elapsed_ns: last.since(started).0,
        started_ns: started.0,
        errors: u64::from(ends),
        first_error: ends.then(|| format!("a record cannot be inserted: {first}")),
        tolerated: has_failed.then_some(Tolerated {
            errors: session.failures,
            first_errno: 0,
            first,
        }),
        mismatch_count: session.mismatches,
        ..StreamReport::default()
    }
}

/// Counts of each kind of operation, in iolab's own units.
pub(super) fn operations(counts: &KvCounts) -> Vec<OperationCount> {
    let one = |series: &KvSeries| {
        let empty = iolab_model::Histogram::new();
        let (ops, bytes, latency, response) =
            counts.histograms(*series).unwrap_or((0, 0, &empty, None));
        OperationCount {
            id: series.name().to_ascii_lowercase(),
            kind: OperationKind::KeyValue,
            ops,
            bytes,
            io_size_bytes: None,
            access: None,
            latency: latency.clone(),
            response: response.cloned(),
            parts: Vec::new(),
        }
    };
    KvSeries::ALL.iter().map(one).collect()
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Counts of all clients, put together.
pub(super) struct Ending<'a> {
    pub workload: &'a Workload,
    pub phase: &'a Phase,
    pub release: Ns,
    /// Unix time of an instant of the clients' clock, in milliseconds.
    pub unix_ms: &'a dyn Fn(Ns) -> u64,
}

impl Ending<'_> {
    pub fn outcome(&self, ended: Vec<Ended>) -> PhaseOutcome {
        let work = self.phase.tenants[0].kv.as_ref().expect("it was looked at before");
        let mut sum = KvCounts::new(&work.measured);
        for one in &ended {
            sum.merge(&one.counts);
        }
        let started = ended.iter().map(|one| Ns(one.outcome.report.started_ns)).min();
        let started = started.unwrap_or(self.release);
        let gone = ended.iter().map(|one| one.gone).max().unwrap_or(self.release);
        let record = KvRecord {
            running_ns: gone.since(started).0,
            began_unix_ms: (self.unix_ms)(started),
            user_write_bytes: ended.iter().map(|one| one.written).sum(),
            series: sum.records(),
            facts: ended.iter().flat_map(|one| one.facts.clone()).collect(),
            first_error: ended.iter().find_map(|one| one.first_error.clone()),
            ..KvRecord::default()
        };
        let outcomes = ended.into_iter().map(|one| one.outcome).collect();
        let mut outcome = assemble(self.phase, outcomes, self.workload.interval_ns);
        for tenant in &mut outcome.tenants {
            // Series that counted nothing were there so that all clients have the same.
            tenant.operations.retain(|one| one.ops > 0);
        }
        outcome.parent_ns = Some(gone.since(started).0);
        outcome.tenants[0].kv = Some(record);
        outcome
    }
}
