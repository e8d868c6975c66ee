//! Descriptions as JSON, and the contradictions that are refused.

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
