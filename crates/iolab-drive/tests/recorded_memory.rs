//! Memory of a long recorded stream; a process of its own, so that no other test is counted.

use std::io::{BufReader, Write as _};
use std::path::Path;

use iolab_drive::coordinate::NoObserver;
use iolab_drive::pump::run_threads;
use iolab_drive::target::Null;
use iolab_workload::Workload;
use iolab_workload::program::{Program, RECORDED_TITLE, Recorded, RecordedContent, RecordedFormat};
use iolab_workload::spec::Tenant;
use serde_json::json;
use tempfile::NamedTempFile;

/// Does a recording of so many reads again; answers the bytes of its text and what was counted.
fn replay(ops: u64) -> (u64, u64) {
    let mut file = NamedTempFile::new().unwrap();
    let mut out = std::io::BufWriter::new(&mut file);
    writeln!(out, "{RECORDED_TITLE}").unwrap();
    for op in 0..ops {
        writeln!(out, "{} read 0 {} 4096", op * 1000, op % 256 * 4096).unwrap();
    }
    drop(out);
    let from = BufReader::new(file.reopen().unwrap());
    let plain = Recorded::plain(file.path().into(), RecordedFormat::Iolab, "data");
    let content = RecordedContent::of(from, &plain).unwrap();
    let tenant = Tenant::of_program("main", 1, Program::default());
    let mut tenant = serde_json::to_value(tenant).unwrap();
    let recorded = json!({"file": file.path(), "set": "data", "content": content});
    tenant["program"] = json!({"steps": [], "recorded": recorded});
    let mut workload: Workload = serde_json::from_value(json!({
        "version": 1, "name": "w", "engine": "null", "seed": 1,
        "file_sets": [{"name": "data", "files": 1, "file_bytes": 1 << 20}],
        "phases": [{"name": "replay", "tenants": [tenant]}]}))
    .unwrap();
    workload.phases[0].tenants[0].program.as_mut().unwrap().complete_recorded();
    workload.check().unwrap();
    // The description does not grow with the stream.
    assert!(serde_json::to_string(&workload).unwrap().len() < 4096);
    let parts = (&workload, &workload.phases[0]);
    let outcome = run_threads(&Null, parts, Path::new("/m"), |_| {}, &mut NoObserver).unwrap();
    (file.path().metadata().unwrap().len(), outcome.tenants[0].operations[0].ops)
}

/// Kilobytes of memory that this process holds.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 400 000 operations, some 11 MB of text, take little more memory than a few thousand.
#[test]
fn a_long_recording_is_never_whole_in_memory() {
    const OPS: u64 = 400_000;
    replay(10_000);
    let before = resident_kb();
    let (text_bytes, ops) = replay(OPS);
    let grown = resident_kb().saturating_sub(before);
    assert_eq!(ops, OPS);
    assert!(text_bytes > 8 << 20, "{text_bytes}");
    assert!(grown < 2048, "{grown} KiB more for {text_bytes} bytes of text");
}
