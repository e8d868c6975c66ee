//! Recorded streams on targets in memory: order, times, dependencies, limits, memory.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use iolab_drive::coordinate::{NoObserver, PhaseOutcome};
use iolab_drive::pump::run_threads;
use iolab_drive::target::{Memory, Null};
use iolab_model::op::{Op, Position, Submission};
use iolab_model::{
    Accepted, Capabilities, Completion, Error, Lane, LaneRequest, Ns, Target, Token,
};
use iolab_workload::Workload;
use iolab_workload::program::{Program, Recorded, RecordedContent, RecordedFormat};
use iolab_workload::spec::Tenant;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

const TITLE: &str = "iolab recorded stream 1";

/// A recording of these lines.
fn recording(lines: impl IntoIterator<Item = String>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    let mut out = std::io::BufWriter::new(&mut file);
    writeln!(out, "{TITLE}").unwrap();
    lines.into_iter().for_each(|line| writeln!(out, "{line}").unwrap());
    drop(out);
    file
}

/// A workload of one tenant that does the recording again.
fn workload(file: &NamedTempFile, change: impl Fn(&mut Value)) -> Workload {
    let plain = Recorded::plain(file.path().into(), RecordedFormat::Iolab, "data");
    let content = RecordedContent::of(std::io::BufReader::new(file.reopen().unwrap()), &plain);
    let recorded = json!({"file": file.path(), "set": "data", "content": content.unwrap()});
    let tenant = Tenant::of_program("main", 1, Program::default());
    let mut tenant = serde_json::to_value(tenant).unwrap();
    tenant["program"] = json!({"steps": [], "recorded": recorded});
    change(&mut tenant);
    let mut workload: Workload = serde_json::from_value(json!({
        "version": 1, "name": "w", "engine": "memory", "seed": 1,
        "file_sets": [{"name": "data", "files": 2, "file_bytes": 1 << 20}],
        "phases": [{"name": "replay", "tenants": [tenant]}]}))
    .unwrap();
    let program = workload.phases[0].tenants[0].program.as_mut();
    program.unwrap().complete_recorded();
    workload
}

fn run<T: Target + Sync>(target: &T, workload: &Workload) -> PhaseOutcome {
    workload.check().unwrap();
    let parts = (workload, &workload.phases[0]);
    run_threads(target, parts, Path::new("/m"), |_| {}, &mut NoObserver).unwrap()
}

fn counts(outcome: &PhaseOutcome) -> Vec<(String, u64, u64)> {
    let operations = outcome.tenants[0].operations.iter();
    operations.map(|own| (own.id.clone(), own.ops, own.bytes)).collect()
}

fn failure(outcome: &PhaseOutcome) -> String {
    outcome.tenants[0].workers[0].first_error.clone().unwrap_or_default()
}

fn mixed() -> Vec<String> {
    [
        "0 write 0 0 8192",
        "10 read 0 4096 4096",
        "10 fsync 0",
        "20 write 1 512 1024",
        "25 read 1 512 512",
    ]
    .map(String::from)
    .to_vec()
}

#[test]
fn every_operation_is_done_once_per_pass() {
    let file = recording(mixed());
    for passes in [1, 3] {
        let workload = workload(&file, |tenant| {
            tenant["program"]["limit"] = json!({"passes": passes});
        });
        let expected: Vec<(String, u64, u64)> =
            [("read", 2, 4608), ("write", 2, 9216), ("fsync", 1, 0)]
                .map(|(id, ops, bytes)| (id.to_owned(), ops * passes, bytes * passes))
                .to_vec();
        for outcome in [run(&Memory::default(), &workload), run(&Null, &workload)] {
            assert_eq!(failure(&outcome), "");
            assert_eq!(counts(&outcome), expected);
        }
    }
}

#[test]
fn limits_end_a_stream_early() {
    let file = recording((0..1000).map(|number| format!("{number} read 0 {} 512", number * 512)));
    let workload = workload(&file, |tenant| tenant["program"]["limit"] = json!({"ops": 7}));
    assert_eq!(counts(&run(&Null, &workload)), [("read".to_owned(), 7, 7 * 512)]);
}

#[test]
fn times_are_kept_or_scaled_or_left_out() {
    let file = recording((0..5).map(|number| format!("{} read 0 0 512", number * 20_000_000)));
    let elapsed = |pace: Option<Value>| {
        let workload = workload(&file, |tenant| {
            if let Some(pace) = &pace {
                tenant["program"]["pace"] = pace.clone();
            }
        });
        let outcome = run(&Null, &workload);
        assert_eq!(failure(&outcome), "");
        outcome.tenants[0].workers[0].elapsed_ns
    };
    assert!(elapsed(None) < 20_000_000, "as fast as possible");
    assert!(elapsed(Some(json!({"kind": "recorded"}))) >= 80_000_000);
    let fast = elapsed(Some(json!({"kind": "recorded", "speed": 4.0})));
    assert!((20_000_000..80_000_000).contains(&fast), "{fast}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_done() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 9] = [
        (|t| t["workers"] = json!(2), "one recorded stream for several workers"),
        (|t| t["program"]["recorded"]["set"] = json!("date"), "no set of files called date"),
        (|t| t["program"]["recorded"]["file"] = json!("x"), "name a whole path"),
        (
            |t| t["program"]["pace"] = json!({"kind": "rate", "passes_per_s": 1.0}),
            "pace of its own",
        ),
        (|t| t["program"]["pace"] = json!({"kind": "recorded", "speed": 0.0}), "a speed of 0"),
        (|t| t["program"]["steps"] = json!([{"does": "read"}]), "write in the stream, and no step"),
        (|t| t["program"]["steps"] = json!([{"does": "create"}]), "a step that does create"),
        (|t| t["program"]["recorded"]["content"]["files"] = json!(3), "3 files in the stream"),
        (
            |t| t["program"]["recorded"]["content"]["end_bytes"] = json!(2 << 20),
            "the stream reaches 2m into a file",
        ),
    ];
    let file = recording(mixed());
    for (change, part) in cases {
        let error = workload(&file, change).check().unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let odd = recording(["0 read 0 3 512".to_owned()]);
    let direct: Change = |t| t["program"]["recorded"]["path"] = json!("direct");
    let error = workload(&odd, direct).check().unwrap_err().to_string();
    assert!(error.contains("in units of 1 bytes"), "{error}");
    let mut plain = workload(&file, |_| {});
    let program = plain.phases[0].tenants[0].program.as_mut().unwrap();
    program.pace = iolab_workload::program::Pace::Recorded { speed: 1.0 };
    program.recorded = None;
    assert!(plain.check().unwrap_err().to_string().contains("without a recorded stream"));
}

/// The file may be another one when it is run: the worker trusts no line.
#[test]
fn a_stream_that_has_changed_leads_out_of_no_file() {
    for (line, part) in [
        ("0 read 7 0 512", "line 2: file 7 of a set of 2"),
        ("0 read 0 1048576 512", "bytes 1048576 to 1049088 of a file of 1m"),
        ("0 write 0 0 65536", "64k in a buffer of 8k"),
        ("0 discard 0 0 512", "no step does it"),
        ("0 chmod 0 0 512", "line 2: 'chmod' is none of"),
    ] {
        let mut file = recording(mixed());
        let workload = workload(&file, |_| {});
        let path = file.path().to_owned();
        std::fs::write(&path, format!("{TITLE}\n{line}\n")).unwrap();
        file.flush().unwrap();
        let why = failure(&run(&Memory::default(), &workload));
        assert!(why.contains(part), "{line}: {why}");
    }
    let file = recording(mixed());
    let workload = workload(&file, |_| {});
    std::fs::write(file.path(), format!("{TITLE}\n0 read 0 0 512\n")).unwrap();
    let why = failure(&run(&Memory::default(), &workload));
    assert!(why.contains("than when the trial was planned"), "{why}");
}

/// A lane that never ends an operation by itself: the last one that began ends first.
struct Late<L> {
    inner: L,
    held: Vec<Completion>,
    log: Arc<Mutex<Vec<(u64, &'static str)>>>,
    places: Vec<u64>,
}

struct LateTarget(Memory, Arc<Mutex<Vec<(u64, &'static str)>>>);

impl Target for LateTarget {
    type Lane = Late<<Memory as Target>::Lane>;

    fn name(&self) -> &'static str {
        "late"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { depth_max: 8, ..self.0.capabilities() }
    }

    fn facts(&self) -> Vec<(String, String)> {
        self.0.facts()
    }

    fn open(&self, request: &LaneRequest) -> Result<Self::Lane, Error> {
        let inner = self.0.open(request)?;
        Ok(Late { inner, held: Vec::new(), log: Arc::clone(&self.1), places: vec![0; 16] })
    }
}

impl<L: Lane> Lane for Late<L> {
    fn now(&self) -> Ns {
        self.inner.now()
    }

    fn submit_batch(
        &mut self,
        now: Ns,
        batch: &[Submission],
        done: &mut Vec<Completion>,
    ) -> Accepted {
        for one in batch {
            if let Op::Read(transfer) = one.op
                && let Position::At(at) = transfer.at
            {
                self.places[one.token.0 as usize] = at.0 / 512;
                self.log.lock().unwrap().push((at.0 / 512, "began"));
            }
        }
        let mut ended = Vec::new();
        let taken = self.inner.submit_batch(now, batch, &mut ended);
        for completion in ended {
            let is_read = batch
                .iter()
                .any(|one| one.token == completion.token && matches!(one.op, Op::Read(_)));
            if is_read { self.held.push(completion) } else { done.push(completion) }
        }
        Accepted { done: done.len(), queued: taken.total() - done.len() }
    }

    fn reap(&mut self, min: u32, _: Ns, done: &mut Vec<Completion>) -> Result<(), Error> {
        for _ in 0..min.max(1) {
            let Some(mut last) = self.held.pop() else { break };
            last.completed = self.inner.now();
            let place = self.places[last.token.0 as usize];
            self.log.lock().unwrap().push((place, "ended"));
            done.push(last);
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.held.len() as u32
    }

    fn kick(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn buffer(&mut self, token: Token) -> Option<&mut [u8]> {
        self.inner.buffer(token)
    }

    fn sleep_until(&mut self, instant: Ns) {
        self.inner.sleep_until(instant);
    }
}

#[test]
fn an_operation_waits_for_those_that_it_names_and_for_no_others() {
    // The place of operation number n is n units from the beginning.
    let lines =
        ["0 read 0 512 512", "0 read 0 1024 512", "0 read 0 1536 512 after 1", "0 read 0 2048 512"];
    let file = recording(lines.map(String::from));
    let log = Arc::default();
    let target = LateTarget(Memory::default(), Arc::clone(&log));
    let outcome = run(&target, &workload(&file, |tenant| tenant["depth"] = json!(4)));
    assert_eq!(failure(&outcome), "");
    let log = log.lock().unwrap().clone();
    let at = |what| log.iter().position(|known| *known == what).unwrap();
    assert!(at((2, "began")) < at((1, "ended")), "the second waits for nobody: {log:?}");
    assert!(at((1, "ended")) < at((3, "began")), "the third waits for the first: {log:?}");
    assert!(at((3, "began")) < at((4, "began")), "they begin in order: {log:?}");
    let reported = outcome.tenants[0].operations[0].ops;
    assert_eq!(reported, 4);
}
