//! Descriptions as JSON, and the contradictions that are refused.

use iolab_model::op::Access;

use super::*;

const EXAMPLE: &str = r#"{"version":1,"name":"iozone","engine":"psync","seed":7,"phases":[
    {"name":"write","tenants":[{"name":"main","workers":1,"file":"data","file_bytes":65536,
    "io_size_bytes":4096,"pattern":{"kind":"sequential"},"direction":{"kind":"write"},
    "opening":"create"}]}]}"#;

fn example() -> Workload {
    serde_json::from_str(EXAMPLE).unwrap()
}

#[test]
fn json_is_identity() {
    let workload = example();
    workload.check().unwrap();
    let text = serde_json::to_string(&workload).unwrap();
    assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload);
}

#[test]
fn unknown_fields_are_refused() {
    let text = EXAMPLE.replace("\"workers\"", "\"workerz\":1,\"workers\"");
    let error = serde_json::from_str::<Workload>(&text).unwrap_err().to_string();
    assert!(error.contains("workerz"), "{error}");
}

#[test]
fn contradictions_are_named() {
    type Break = fn(&mut Tenant);
    let cases: [(Break, &str); 18] = [
        (|t| t.io_size_bytes = Bytes(1 << 20), "larger than the file"),
        (|t| t.workers = 0, "zero record size"),
        (|t| (t.access, t.io_size_bytes) = (Access::Direct, Bytes(1000)), "multiple of 512"),
        (|t| t.file = "../etc".into(), "plain name"),
        (|t| t.direction = Direction::Mixed { read_share: 1.5 }, "from 0 to 1"),
        (|t| t.files = vec!["../etc".into()], "plain name"),
        (|t| t.files = vec!["a".into(), "b".into()], "one file per worker"),
        (|t| (t.files, t.is_file_shared) = (vec!["a".into()], true), "one file per worker"),
        (|t| (t.access, t.is_close_timed) = (Access::Mapped, true), "close of a mapped file"),
        (|t| t.rate_ops_per_s = Some(-1.0), "positive"),
        (|t| t.fsync = FsyncPolicy::Every { ops: 0 }, "at least 1"),
        (|t| t.vectors = 3, "divides the record"),
        (|t| (t.access, t.vectors) = (Access::Direct, 16), "divides the record"),
        (|t| (t.access, t.vectors) = (Access::Mapped, 2), "leave out the parts"),
        (|t| (t.access, t.depth) = (Access::Stdio, 4), "depth 1"),
        (|t| (t.lock, t.depth) = (LockPolicy::Record, 2), "depth 1"),
        (|t| (t.access, t.flush) = (Access::Direct, Flush::Msync), "engine mmap"),
        (|t| (t.access, t.flush) = (Access::Stdio, Flush::SyncFileRange), "or fsync"),
    ];
    for (change, expected) in cases {
        let mut workload = example();
        change(&mut workload.phases[0].tenants[0]);
        let message = workload.check().unwrap_err().to_string();
        assert!(message.contains(expected), "{message} lacks {expected}");
    }
}

#[test]
fn files_have_the_names_that_are_listed_or_follow_the_stem() {
    let mut tenant = example().phases[0].tenants[0].clone();
    tenant.workers = 2;
    assert_eq!(tenant.file_names().collect::<Vec<_>>(), ["data.0", "data.1"]);
    tenant.files = vec!["left".into(), "right".into()];
    assert_eq!(tenant.file_names().collect::<Vec<_>>(), ["left", "right"]);
}

#[test]
fn contradictions_of_refinements_are_named() {
    type Break = fn(&mut Tenant);
    let op = |at, length| ReplayOp::from((at, length, 0));
    let cases: [(Break, &str); 11] = [
        (|t| (t.manner.jumps_every, t.depth) = (100, 4), "jumps between records"),
        (|t| (t.manner.buffers, t.depth) = (4, 4), "4 buffers in turn at depth 4"),
        (
            |t| t.manner.burst = Some(Burst { pause_ns: Ns(1), ..Burst::default() }),
            "bursts of 0 bytes, 0 ops",
        ),
        (
            |t| (t.access, t.manner.drops_cache_every) = (Access::Direct, 16),
            "dropping cached pages",
        ),
        (|t| t.manner.nice = 20, "nice value of 20"),
        (|t| t.depth = 2, "a replay with a depth"),
        (|t| t.manner.replay[1].at = Bytes(65536), "op 2 of the replay"),
        (|t| t.manner.replay[0].length = Bytes(0), "op 1 of the replay"),
        (|t| t.manner.replay[0].length = Bytes(8192), "larger than the buffer"),
        (|t| (t.access, t.manner.replay[0].at) = (Access::Direct, Bytes(7)), "with direct I/O"),
        (|t| t.files = vec!["/tmp/../etc/passwd".into()], "file name"),
    ];
    for (index, (change, wanted)) in cases.into_iter().enumerate() {
        let mut workload = example();
        let tenant = &mut workload.phases[0].tenants[0];
        if index >= 4 {
            tenant.manner.replay = vec![op(0, 4096), op(8192, 512)];
        }
        workload.check().unwrap();
        change(&mut workload.phases[0].tenants[0]);
        let error = workload.check().unwrap_err().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let mut workload = example();
    workload.phases[0].tenants[0].files = vec!["/mnt/disk/f".into()];
    workload.check().unwrap();
    workload.verify = Verify::Full;
    workload.phases[0].tenants[0].manner.replay = vec![op(0, 4096)];
    assert!(workload.check().unwrap_err().to_string().contains("verify of a replay"));
}

#[test]
fn a_replay_is_as_long_as_its_list_and_its_file_as_large_as_it_says() {
    let mut tenant = example().phases[0].tenants[0].clone();
    (tenant.file_bytes, tenant.io_size_bytes) = (Bytes(10_000), Bytes(4096));
    assert_eq!((tenant.ops_of_a_pass(), tenant.used_bytes()), (2, Bytes(8192)));
    tenant.manner.replay = vec![ReplayOp::from((0, 10, 0)); 5];
    assert_eq!((tenant.ops_of_a_pass(), tenant.used_bytes()), (5, Bytes(10_000)));
}
