//! Verification of what programs read: damage is named, and nothing else is.

use std::path::Path;
use std::sync::Arc;

use iolab_drive::coordinate::NoObserver;
use iolab_drive::pump::{Part, run_threads};
use iolab_drive::target::{Memory, Null};
use iolab_model::op::{Handle, Op, OpenHow, PathId, Position, Submission, Token, Transfer};
use iolab_model::target::{Content, LaneRequest};
use iolab_model::{Bytes, Lane as _, Ns, Seed, Target as _};
use iolab_workload::program::Program;
use iolab_workload::spec::Tenant;
use iolab_workload::verify::Books;
use iolab_workload::{StreamReport, Workload};
use serde_json::{Value, json};

const FILE: &str = "data/00000002";

fn tenant(name: &str, program: Value) -> Value {
    let mut tenant = serde_json::to_value(Tenant::of_program(name, 1, Program::default())).unwrap();
    tenant["program"] = program;
    tenant
}

/// Phases that write the second of two files and read it, of 64 KiB in blocks of 4 KiB.
fn workload(change: impl Fn(&mut Value)) -> Workload {
    let file = json!({"by": "pick", "set": "data", "pick": {"by": "list", "values": [1]}});
    let step = |does: &str| {
        json!({"steps": [{"id": does, "does": does, "file": file, "size_bytes": 4096,
                          "at": {"pick": {"by": "sequential"}}}],
               "limit": {"passes": 16}})
    };
    let mut value = json!({
        "version": 1, "name": "w", "engine": "memory", "seed": 1, "verify": "full",
        "file_sets": [{"name": "data", "files": 2, "file_bytes": 65536}],
        "phases": [
            {"name": "write", "keeps_files": true, "tenants": [tenant("writer", step("write"))]},
            {"name": "rewrite", "keeps_files": true, "tenants": [tenant("again", step("write"))]},
            {"name": "read", "keeps_files": true, "tenants": [tenant("reader", step("read"))]}]});
    change(&mut value);
    let mut workload: Workload = serde_json::from_value(value).unwrap();
    for tenant in workload.phases.iter_mut().flat_map(|phase| &mut phase.tenants) {
        tenant.io_size_bytes = tenant.program.as_ref().unwrap().buffer_bytes();
    }
    workload
}

/// A trial that can be stopped between phases.
struct Trial {
    memory: Memory,
    books: Books,
    workload: Workload,
}

impl Trial {
    fn new(workload: Workload) -> Self {
        workload.check().unwrap();
        Self { memory: Memory::default(), books: Books::default(), workload }
    }

    fn run(&self, phase: usize) -> Vec<StreamReport> {
        let phase = &self.workload.phases[phase];
        let part = Part { workload: &self.workload, phase, books: self.books.clone() };
        let place = Path::new("/m");
        let outcome = run_threads(&self.memory, part, place, |_| {}, &mut NoObserver).unwrap();
        outcome.tenants.into_iter().flat_map(|tenant| tenant.workers).collect()
    }

    fn is_right(&self, phase: usize) {
        for report in self.run(phase) {
            assert_eq!((report.first_error, report.mismatch_count), (None, 0));
            assert!(report.ops > 0);
        }
    }

    /// Changes bytes of a file behind everybody's back.
    fn tamper(&self, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let request = LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(1 << 16),
            content: Content::Prepared,
            seed: Seed(0),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from([Path::new("/m").join(FILE)]),
        };
        let mut lane = self.memory.open(&request).unwrap();
        let how = OpenHow { is_readable: true, is_writable: true, ..OpenHow::default() };
        let whole = Transfer::plain(Handle(0), Position::At(Bytes(0)), Bytes(1 << 16));
        let perform = |lane: &mut <Memory as iolab_model::Target>::Lane, op| {
            let mut done = Vec::new();
            let submission = Submission { token: Token(0), intended: Ns(0), is_timed: false, op };
            lane.submit_batch(Ns(0), &[submission], &mut done);
            done[0].outcome.unwrap()
        };
        perform(&mut lane, Op::Open { path: PathId(0), handle: Handle(0), how });
        perform(&mut lane, Op::Read(whole));
        let buffer = lane.buffer(Token(0)).unwrap();
        let before = buffer[..1 << 16].to_vec();
        change(&mut buffer[..1 << 16]);
        perform(&mut lane, Op::Write(whole));
        before
    }
}

#[test]
fn what_was_written_is_found_in_every_later_phase() {
    for verify in ["full", "headers"] {
        let trial = Trial::new(workload(|w| w["verify"] = json!(verify)));
        (0..3).for_each(|phase| trial.is_right(phase));
        trial.is_right(2);
    }
}

#[test]
fn damage_is_named_with_file_and_offset() {
    type Damage = fn(&mut [u8]);
    let cases: [(Damage, &str, u64, &str); 4] = [
        (|b| b[3 * 4096 + 700] ^= 1, "flipped", 3 * 4096 + 700, "byte 12988 is"),
        (|b| b.copy_within(4096..8192, 8192), "misplaced", 8192, "belongs to offset 4096"),
        (|b| b[4096..8192].fill(0), "zeros", 4096, "is lost"),
        (|b| b[4096..8192].fill(7), "foreign", 4096, "nothing of what iolab wrote"),
    ];
    for (damage, kind, offset, part) in cases {
        let trial = Trial::new(workload(|_| {}));
        trial.is_right(0);
        trial.is_right(1);
        trial.tamper(damage);
        let report = trial.run(2).remove(0);
        let found = &report.mismatches[0];
        assert_eq!((found.kind.as_str(), found.offset_bytes), (kind, offset));
        assert_eq!(found.file, FILE);
        let message = report.first_error.unwrap();
        assert!(message.contains(part) && message.contains(FILE), "{message}");
        assert!(message.starts_with("what was read is not what was written"), "{message}");
    }
}

/// The earlier phase's content is intact, and wrong: only a memory across phases finds that.
#[test]
fn lost_and_torn_writes_of_an_earlier_phase_are_found() {
    for (range, kind) in [(4096..8192, "stale"), (4096 + 512..8192, "torn")] {
        let trial = Trial::new(workload(|_| {}));
        trial.is_right(0);
        let old = trial.tamper(|_| {});
        trial.is_right(1);
        trial.tamper(|bytes| bytes[range.clone()].copy_from_slice(&old[range.clone()]));
        let report = trial.run(2).remove(0);
        assert_eq!(report.mismatches[0].kind, kind, "{:?}", report.first_error);
        assert!(report.first_error.unwrap().contains("in the phase write"));
    }
}

#[test]
fn a_step_says_whether_it_compares() {
    let read = |workload: &mut Value, verify: &str| {
        workload["phases"][2]["tenants"][0]["program"]["steps"][0]["verify"] = json!(verify);
    };
    let unchecked = Trial::new(workload(|w| read(w, "none")));
    let by_step = Trial::new(workload(|w| {
        w.as_object_mut().unwrap().remove("verify");
        read(w, "headers");
    }));
    for trial in [&unchecked, &by_step] {
        trial.is_right(0);
        trial.tamper(|bytes| bytes[4096] ^= 1);
    }
    unchecked.is_right(2);
    assert_eq!(by_step.run(2)[0].mismatch_count, 1);
}

/// Many workers write, read, empty, remove and make the same files at once: nothing is wrong.
#[test]
fn workers_that_race_are_told_nothing_that_is_not_so() {
    let any = json!({"by": "existing", "set": "data", "when_none": "skip"});
    let at = json!({"pick": {"by": "uniform"}});
    let step = |does: &str, weight: u32| {
        let (id, size) = (does, 8192);
        json!({"id": id, "does": does, "file": any, "at": at, "size_bytes": size, "weight": weight})
    };
    let either = json!({"does": "choose", "steps": [step("write", 1), step("read", 2)]});
    let overwrite = json!({"steps": [either], "limit": {"passes": 400}});
    let mut trial = Trial::new(workload(|w| {
        let mut all = tenant("many", overwrite.clone());
        all["workers"] = json!(8);
        w["phases"] = json!([{"name": "race", "keeps_files": true, "tenants": [all]}]);
    }));
    trial.is_right(0);
    let slot = |does: &str| json!({"does": does, "slot": "f"});
    let whole =
        |does: &str| json!({"does": does, "slot": "f", "is_whole": true, "size_bytes": 16384});
    let (mut create, mut open) = (slot("create"), slot("open"));
    create["file"] = json!({"by": "absent", "set": "data", "when_none": "skip"});
    open["file"] = any.clone();
    let pass = json!([{"does": "unlink", "file": any}, create, whole("write"),
        {"does": "close", "slot": "f", "id": "shut"}, open, whole("read"), slot("close")]);
    let come_and_go = json!({"steps": pass, "limit": {"passes": 100}});
    trial = Trial::new(workload(|w| {
        w["file_sets"][0]["files"] = json!(16);
        let one = tenant("one", come_and_go.clone());
        w["phases"] = json!([{"name": "come", "keeps_files": true, "tenants": [one]}]);
    }));
    trial.is_right(0);
}

#[test]
fn what_cannot_be_verified_is_refused() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 6] = [
        (|s| s["size_bytes"] = json!(1000), "no multiples of 512"),
        (|s| s["at"]["from_bytes"] = json!(100), "no multiples of 512"),
        (
            |s| {
                let file = s["file"].take();
                *s =
                    json!({"does": "write", "file": file, "size_bytes": 512, "position": "append"});
            },
            "at the handle's position or the end",
        ),
        (
            |s| {
                *s = json!({"does": "rename", "file": {"by": "existing", "set": "data"},
            "to_file": {"by": "absent", "set": "data"}});
            },
            "beside a step that does rename",
        ),
        (|s| s["verify"] = json!("full"), "`verify` means nothing to a step that does write"),
        (
            |s| {
                *s = json!({"does": "read", "file": s["file"], "size_bytes": 4096,
            "at": {"pick": {"by": "uniform"}}, "verify": "headers"});
            },
            "of two kinds",
        ),
    ];
    for (change, part) in cases {
        let broken = workload(|w| change(&mut w["phases"][0]["tenants"][0]["program"]["steps"][0]));
        let error = broken.check().unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let odd = workload(|w| w["file_sets"][0]["file_bytes"] = json!(65536 + 100));
    assert!(odd.check().unwrap_err().to_string().contains("verification of the files of data"));
    let found = workload(|w| w["file_sets"][0]["reuse"] = json!("found"));
    found.check().expect("what was there before is taken as it is");
    let whole = workload(|_| {});
    let parts = (&whole, &whole.phases[0]);
    let error = run_threads(&Null, parts, Path::new("/m"), |_| {}, &mut NoObserver).unwrap_err();
    assert!(error.to_string().contains("give back what was written"), "{error}");
}
