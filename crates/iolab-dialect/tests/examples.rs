//! The examples of workload files, run on targets that need no device: the mix of operations is
//! counted by a log of what lanes were sent, and compared with what each file expects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use iolab_dialect::workload_file::{Expect, WorkloadFile, read};
use iolab_drive::coordinate::{NoObserver, PhaseOutcome};
use iolab_drive::pump::run_threads;
use iolab_drive::target::{Memory, Null};
use iolab_model::op::Access;
use iolab_model::op::{KeyValueKind, Op, Token};
use iolab_model::{
    Accepted, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Submission, Target,
};
use iolab_workload::operation::OperationKind;
use iolab_workload::program::Deed;

/// Ops that lanes were sent inside the timed region, by kind of op.
type Log = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// A target that writes down what its lanes are sent.
struct Logged<T> {
    inner: T,
    log: Log,
}

struct LoggedLane<L> {
    inner: L,
    log: Log,
}

fn word(op: &Op) -> &'static str {
    match op {
        Op::Read(_) => "read",
        Op::Write(_) => "write",
        Op::Fsync { .. } => "fsync",
        Op::Fdatasync { .. } => "fdatasync",
        Op::Create { .. } => "create",
        Op::Open { .. } => "open",
        Op::Close { .. } => "close",
        Op::Unlink { .. } => "unlink",
        Op::Stat { .. } => "stat",
        Op::ReadDirectory { .. } => "list_directory",
        Op::Deallocate { .. } => "discard",
        Op::KeyValue { kind: KeyValueKind::Get, .. } => "get",
        Op::KeyValue { kind: KeyValueKind::Put, .. } => "put",
        _ => "other",
    }
}

impl<T: Target> Target for Logged<T> {
    type Lane = LoggedLane<T::Lane>;
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn facts(&self) -> Vec<(String, String)> {
        self.inner.facts()
    }
    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error> {
        Ok(LoggedLane { inner: self.inner.open(request)?, log: Arc::clone(&self.log) })
    }
}

impl<L: Lane> Lane for LoggedLane<L> {
    fn now(&self) -> Ns {
        self.inner.now()
    }
    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        let accepted = self.inner.submit_batch(now, batch, done);
        let mut log = self.log.lock().unwrap();
        for submission in batch[..accepted.total()].iter().filter(|one| one.is_timed) {
            *log.entry(word(&submission.op)).or_insert(0) += 1;
        }
        accepted
    }
    fn kick(&mut self) -> Result<(), Error> {
        self.inner.kick()
    }
    fn reap(&mut self, min: u32, until: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        self.inner.reap(min, until, done)
    }
    fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }
    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.inner.buffer(token)
    }
    fn sleep_until(&mut self, instant: Ns) {
        self.inner.sleep_until(instant);
    }
}

fn examples() -> Vec<(PathBuf, WorkloadFile)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = read(&path.display().to_string(), &text);
        (path, file.unwrap_or_else(|problem| panic!("{problem}")))
    };
    paths.into_iter().map(read).collect()
}

/// Runs all phases; answers what was counted by id, and checks it against the log.
fn run<T: Target + Sync>(target: T, path: &Path, file: &WorkloadFile) -> BTreeMap<String, u64> {
    let log = Log::default();
    let target = Logged { inner: target, log: Arc::clone(&log) };
    let workload = &file.workload;
    let mut counted = BTreeMap::new();
    for phase in &workload.phases {
        log.lock().unwrap().clear();
        let outcome =
            run_threads(&target, (workload, phase), Path::new("/m"), |_| {}, &mut NoObserver);
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        check(path, &outcome);
        let by_log = log.lock().unwrap().clone();
        let by_record = by_deed(phase, &outcome);
        for (word, count) in &by_record {
            // A whole file may be several transfers, and a step may have begun at the end.
            let sent = by_log.get(word.as_str()).copied().unwrap_or(0);
            let is_piecewise = matches!(word.as_str(), "read" | "write");
            let is_same = if is_piecewise { sent >= *count } else { sent == *count };
            let cut = u64::from(phase.is_stonewalled) * 8;
            assert!(
                is_same || sent.abs_diff(*count) <= cut,
                "{}: {word} {count} in the record, {sent} in the log",
                path.display()
            );
        }
        for operation in outcome.tenants.iter().flat_map(|tenant| &tenant.operations) {
            *counted.entry(operation.id.clone()).or_insert(0) += operation.ops;
            assert_eq!(operation.latency.count(), operation.ops, "{}", operation.id);
        }
    }
    counted
}

fn check(path: &Path, outcome: &PhaseOutcome) {
    for worker in outcome.tenants.iter().flat_map(|tenant| &tenant.workers) {
        let where_ = format!("{}, phase {}", path.display(), outcome.name);
        assert_eq!(worker.first_error, None, "{where_}");
        assert!(worker.ops > 0 && worker.elapsed_ns > 0, "{where_}: {worker:?}");
    }
}

/// Counts of the record, by what each step does.
fn by_deed(phase: &iolab_workload::spec::Phase, outcome: &PhaseOutcome) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (tenant, found) in phase.tenants.iter().zip(&outcome.tenants) {
        let program = tenant.program.as_ref().unwrap();
        for operation in &found.operations {
            let node = program.all_nodes().find(|node| node.name() == operation.id).unwrap();
            if node.does != Deed::Composite {
                *all.entry(node.does.name().to_owned()).or_insert(0) += operation.ops;
            }
        }
    }
    all
}

#[test]
fn every_example_has_the_mix_that_it_expects() {
    let examples = examples();
    assert_eq!(examples.len(), 11);
    for (path, file) in &examples {
        let expect = file.expect.as_ref().expect("each example says what it expects");
        for name in ["null", "memory"] {
            let counted = match name {
                "null" => run(Null, path, file),
                _ => run(Memory::default(), path, file),
            };
            let surprise = Expect::surprise(&expect.operations, &counted, expect.tolerance);
            assert_eq!(surprise, None, "{} on {name}: {counted:?}", path.display());
        }
    }
}

#[test]
fn records_know_what_operations_are() {
    let examples = examples();
    let find = |name: &str| examples.iter().find(|(path, _)| path.ends_with(name)).unwrap();
    let operations = |name: &str| {
        let (_, file) = find(name);
        let phase = &file.workload.phases[0];
        let memory = Memory::default();
        let parts = (&file.workload, phase);
        let outcome = run_threads(&memory, parts, Path::new("/m"), |_| {}, &mut NoObserver);
        outcome.unwrap().tenants[0].operations.clone()
    };
    let etcd = operations("etcd.toml");
    let of = |id: &str| etcd.iter().find(|one| one.id == id).unwrap();
    assert_eq!(of("append").kind, OperationKind::Write);
    assert_eq!((of("append").access, of("append").io_size_bytes), (Some(Access::Append), None));
    assert_eq!(of("durable").kind, OperationKind::Sync);
    assert_eq!((of("entry").ops, of("entry").bytes), (300, of("append").bytes));
    let parts = of("append").latency.mean().unwrap() + of("durable").latency.mean().unwrap();
    assert!(
        of("entry").latency.mean().unwrap() >= parts * 0.9,
        "a whole takes as long as its parts"
    );
    assert!(of("entry").response.is_some(), "under a pace there are response times");
    let random = operations("fio-randrw.toml");
    assert!(random.iter().all(|one| one.access == Some(Access::Direct)));
    let guests = operations("vm-images.toml");
    let read = guests.iter().find(|one| one.id == "read").unwrap();
    assert_eq!((read.io_size_bytes, read.access), (Some(4096), Some(Access::Direct)));
    let json = serde_json::to_value(read).unwrap();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let names = ["access", "bytes", "id", "io_size_bytes", "kind", "latency", "ops"];
    assert_eq!(keys, names);
}
