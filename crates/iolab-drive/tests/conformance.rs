//! The conformance suite on the targets that need no device, and whole phases on them.

use std::path::Path;

use iolab_drive::coordinate::{NoObserver, Observer};
use iolab_drive::pump::run_threads;
use iolab_drive::target::{Memory, Null};
use iolab_model::conformance::assert_conforms;
use iolab_model::op::{Op, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane as _, LaneRequest, Ns, Seed, Submission, Target};
use iolab_workload::Workload;
use iolab_workload::preset::{IozoneRequest, iozone};

#[test]
fn null_conforms() {
    assert_conforms(&Null, Path::new("/nowhere"));
}

#[test]
fn memory_conforms() {
    assert_conforms(&Memory::default(), Path::new("/nowhere"));
}

fn all_tests(workers: u32) -> Workload {
    let request: IozoneRequest = serde_json::from_str(&format!(
        "{{\"tests\":[\"write\",\"rewrite\",\"read\",\"reread\",\"random-read\",\"random-write\",\
         \"backward-read\",\"record-rewrite\",\"stride-read\"],\"file_bytes\":1048576,\
         \"io_size_bytes\":4096,\"engine\":\"memory\",\"seed\":1,\"workers\":{workers}}}"
    ))
    .unwrap();
    iozone(&request).unwrap()
}

#[test]
fn every_iozone_phase_touches_every_byte_once() {
    let workload = all_tests(1);
    let memory = Memory::default();
    for phase in &workload.phases {
        let outcome =
            run_threads(&memory, (&workload, phase), Path::new("/m"), |_| {}, &mut NoObserver)
                .unwrap();
        let worker = &outcome.tenants[0].workers[0];
        assert_eq!((worker.ops, worker.bytes, worker.errors), (256, 1 << 20, 0), "{}", phase.name);
        assert!(worker.elapsed_ns > 0 && outcome.elapsed_ns >= worker.elapsed_ns);
        let service = &outcome.tenants[0].service;
        let count = [&service.read, &service.write]
            .into_iter()
            .flatten()
            .map(iolab_model::Histogram::count);
        assert_eq!(count.sum::<u64>(), 256, "one latency per op in {}", phase.name);
    }
}

#[test]
fn throughput_mode_stops_readers_and_completes_files() {
    let workload = all_tests(4);
    let memory = Memory::default();
    for phase in &workload.phases {
        let outcome =
            run_threads(&memory, (&workload, phase), Path::new("/m"), |_| {}, &mut NoObserver)
                .unwrap();
        let workers = &outcome.tenants[0].workers;
        assert_eq!(workers.len(), 4);
        assert!(workers.iter().all(|w| w.errors == 0), "{}: {workers:?}", phase.name);
        assert!(workers.iter().any(|w| w.ops == 256), "somebody finished {}", phase.name);
        assert!(workers.iter().all(|w| w.ops <= 256));
        // What the kernel counts of this thread it counts of the workers.
        let own = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let slices = own.trim_end().rsplit(' ').next().unwrap_or_default();
        let is_counted = !matches!(slices, "" | "0");
        let are_told = workers.iter().filter(|w| w.run_delay_ns.is_some()).count();
        assert_eq!(are_told, if is_counted { 4 } else { 0 }, "{}", phase.name);
    }
}

#[test]
fn a_missing_file_is_reported_and_nobody_hangs() {
    let mut workload = all_tests(3);
    workload.phases.drain(..2);
    workload.phases[0].tenants[0].opening = iolab_workload::spec::Opening::Existing;
    let memory = Memory::default();
    let phase = &workload.phases[0];
    let outcome =
        run_threads(&memory, (&workload, phase), Path::new("/m"), |_| {}, &mut NoObserver).unwrap();
    for worker in &outcome.tenants[0].workers {
        assert_eq!(worker.errors, 1);
        let message = worker.first_error.as_deref().unwrap();
        assert!(message.contains("iozone.") && message.contains("No such file"), "{message}");
    }
}

/// bonnie++'s rewrite and its seeks: a record is read, and all or some are written back.
#[test]
fn an_update_is_one_op_of_two_calls() {
    let phase = |name: &str, write_share: f64, limit: &str| {
        format!(
            "{{\"name\":\"{name}\",\"keeps_files\":true,\"tenants\":[{{\"name\":\"main\",\
             \"workers\":1,\"file\":\"data\",\"file_bytes\":1048576,\"io_size_bytes\":4096,\
             \"pattern\":{{\"kind\":\"uniform\"}},\"opening\":\"laid_out\",\
             \"direction\":{{\"kind\":\"update\",\"write_share\":{write_share}}},\
             \"fsync\":{{\"kind\":\"every\",\"ops\":1}},\"limit\":{limit}}}]}}"
        )
    };
    let text = format!(
        "{{\"version\":1,\"name\":\"u\",\"engine\":\"memory\",\"seed\":3,\
         \"phases\":[{},{}]}}",
        phase("rewrite", 1.0, "{\"kind\":\"once\"}"),
        phase("seeks", 0.1, "{\"kind\":\"ops\",\"ops\":5000}"),
    );
    let workload: Workload = serde_json::from_str(&text).unwrap();
    workload.check().unwrap();
    let memory = Memory::default();
    let mut outcomes = workload.phases.iter().map(|phase| {
        run_threads(&memory, (&workload, phase), Path::new("/m"), |_| {}, &mut NoObserver).unwrap()
    });
    let rewrite = outcomes.next().unwrap();
    let worker = &rewrite.tenants[0].workers[0];
    assert_eq!((worker.ops, worker.bytes, worker.errors), (256, 1 << 20, 0));
    assert_eq!((worker.read_bytes, worker.write_bytes), (1 << 20, 1 << 20));
    let service = &rewrite.tenants[0].service;
    let counts =
        [&service.read, &service.write, &service.sync].map(|h| h.as_ref().unwrap().count());
    assert_eq!(counts, [256, 256, 256], "read, written, flushed");
    let seeks = outcomes.next().unwrap();
    let worker = &seeks.tenants[0].workers[0];
    assert_eq!((worker.ops, worker.read_bytes), (5000, 5000 * 4096));
    let updates = worker.write_bytes / 4096;
    assert!((400..600).contains(&updates), "a tenth of 5000: {updates}");
}

fn small_files(link: &str, sizes: (u64, u64), directories: u64) -> Workload {
    let phase = |order: &str, action: &str| {
        format!(
            r#"{{"name":"{order} {action}","keeps_files":true,"tenants":[{{"name":"main",
            "workers":2,"file":"set","file_bytes":1000,"io_size_bytes":1000,
            "pattern":{{"kind":"sequential"}},"opening":"existing",
            "direction":{{"kind":"write"}},"file_set":{{"action":"{action}",
            "order":"{order}","files":100,"directories":{directories},"link":"{link}",
            "size_min_bytes":{},"size_max_bytes":{},"is_flushed":true}}}}]}}"#,
            sizes.0, sizes.1
        )
    };
    let orders = ["sequential", "random"];
    let actions = ["create", "read", "remove"];
    let phases = orders.map(|order| actions.map(|action| phase(order, action)).join(","));
    let text = format!(
        r#"{{"version":1,"name":"f","engine":"memory","seed":3,"phases":[{}]}}"#,
        phases.join(",")
    );
    let workload: Workload = serde_json::from_str(&text).unwrap();
    workload.check().unwrap();
    workload
}

/// Every file of every worker is made, read and removed once, wherever lanes have names.
fn runs_small_files<T: Target + Sync>(target: &T, directory: &Path, links: &[&str]) {
    let kinds = [("none", (0, 0), 1), ("none", (500, 2500), 3), ("none", (2048, 2048), 1)];
    let linked = links.iter().map(|link| (*link, (0, 0), 2));
    for (link, sizes, directories) in kinds.into_iter().chain(linked) {
        let workload = small_files(link, sizes, directories);
        for (index, phase) in workload.phases.iter().enumerate() {
            let pair = (&workload, phase);
            let outcome = run_threads(target, pair, directory, |_| {}, &mut NoObserver).unwrap();
            for worker in &outcome.tenants[0].workers {
                assert_eq!(worker.first_error, None, "{} {link}", phase.name);
                assert_eq!(worker.ops, 100, "{} {link}", phase.name);
                let moved = [worker.write_bytes, worker.read_bytes, 0][index % 3];
                let expected = if index % 3 == 2 { 0..=0 } else { sizes.0 * 100..=sizes.1 * 100 };
                let keeps = !target.capabilities().keeps_nothing;
                assert!(!keeps || expected.contains(&moved), "{}: {moved}", phase.name);
            }
            let service = &outcome.tenants[0].service;
            let histogram = if index % 3 == 1 { &service.read } else { &service.write };
            assert_eq!(histogram.as_ref().unwrap().count(), 200, "one latency of each file");
        }
    }
}

#[test]
fn small_files_go_through_the_lanes_of_memory_and_null() {
    runs_small_files(&Memory::default(), Path::new("/m"), &["hard"]);
    runs_small_files(&Null, Path::new("/n"), &["hard", "symbolic"]);
}

#[test]
fn a_name_that_is_taken_fails_with_a_place() {
    let (memory, workload) = (Memory::default(), small_files("none", (0, 0), 1));
    let pair = (&workload, &workload.phases[0]);
    let run = || run_threads(&memory, pair, Path::new("/m"), |_| {}, &mut NoObserver).unwrap();
    run();
    let again = run();
    let mut errors = again.tenants[0].workers.iter().filter_map(|it| it.first_error.as_deref());
    let error = errors.next().unwrap();
    assert!(error.starts_with("file number 0: "), "{error}");
}

#[test]
fn one_directory_of_several_workers_is_refused() {
    let mut workload = small_files("none", (0, 0), 1);
    workload.phases[0].tenants[0].is_file_shared = true;
    let error = workload.check().unwrap_err().to_string();
    assert!(error.contains("give each its own directory"), "{error}");
}

fn in_turn(second: &str) -> Workload {
    let tenant = |name: &str, workers: u32, more: &str| {
        let program = format!(
            r#"{{"steps":[{{"does":"burn","duration_ns":300000}}],"limit":{{"passes":5}}{more}}}"#
        );
        let program = serde_json::from_str(&program).unwrap();
        iolab_workload::spec::Tenant::of_program(name, workers, program)
    };
    let mut workload = small_files("none", (0, 0), 1);
    workload.phases.truncate(1);
    workload.phases[0].tenants = vec![tenant("second", 2, second), tenant("first", 2, "")];
    workload
}

#[test]
fn a_tenant_begins_when_the_other_has_ended() {
    let mut workload = in_turn(r#","begins_after":"first""#);
    workload.phases[0].tenants[0].begins_ns = Ns::from_ms(1);
    workload.check().unwrap();
    let pair = (&workload, &workload.phases[0]);
    let outcome = run_threads(&Null, pair, Path::new("/n"), |_| {}, &mut NoObserver).unwrap();
    let [second, first] = &outcome.tenants[..] else { panic!("two tenants") };
    let ends = first.workers.iter().map(|worker| worker.started_ns + worker.elapsed_ns);
    let ended = ends.max().unwrap();
    for worker in &second.workers {
        assert_eq!(worker.first_error, None);
        assert!(worker.elapsed_ns >= 1_500_000, "five times 300 us: {worker:?}");
        assert!(worker.started_ns >= ended + 1_000_000, "{worker:?}");
    }
    assert!(second.began_ns >= 1_500_000, "{}", second.began_ns);
}

#[test]
fn turns_that_cannot_come_are_refused() {
    let problem = |more: &str| in_turn(more).check().unwrap_err().to_string();
    let unknown = problem(r#","begins_after":"third""#);
    assert!(unknown.contains("third is not the name") && unknown.contains("first"), "{unknown}");
    let own = problem(r#","begins_after":"second""#);
    assert!(own.contains("wait for each other"), "{own}");
    let mut cut = in_turn(r#","begins_after":"first""#);
    cut.phases[0].is_stonewalled = true;
    assert!(cut.check().is_err());
}

/// Stops a phase when it is asked for the fortieth time.
struct Impatient(u32);

impl Observer for Impatient {
    fn should_stop(&mut self) -> bool {
        self.0 += 1;
        self.0 >= 40
    }
}

#[test]
fn making_files_without_data_can_be_stopped_between_two() {
    let text = r#"{"version":1,"name":"f","engine":"memory","seed":3,"phases":[
        {"name":"write","tenants":[{"name":"main","workers":60,"file":"set",
        "file_bytes":4096,"io_size_bytes":4096,"pattern":{"kind":"sequential"},
        "opening":"create","direction":{"kind":"write"}}]}]}"#;
    let workload: Workload = serde_json::from_str(text).unwrap();
    workload.check().unwrap();
    let (memory, phase) = (Memory::default(), &workload.phases[0]);
    let mut observer = Impatient(0);
    let outcome =
        run_threads(&memory, (&workload, phase), Path::new("/m"), |_| {}, &mut observer).unwrap();
    assert!(observer.0 >= 40 && outcome.tenants.iter().all(|t| t.workers.is_empty()));
    let mut lane = memory
        .open(&LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(4096),
            content: Content::Incompressible,
            seed: Seed(1),
            priority: None,
            submitter_cpu: None,
            paths: phase.tenants[0].file_names().map(|name| Path::new("/m").join(name)).collect(),
        })
        .unwrap();
    let is_there = |path| {
        let (token, intended, op) = (Token(0), Ns(0), Op::Stat { path: PathId(path) });
        let mut done = Vec::new();
        lane.submit_batch(Ns(0), &[Submission { token, intended, is_timed: false, op }], &mut done);
        done[0].outcome.is_ok()
    };
    let made = (0..60).map(is_there).filter(|is| *is).count();
    assert!((1..60).contains(&made), "{made} of 60 files were made");
}
