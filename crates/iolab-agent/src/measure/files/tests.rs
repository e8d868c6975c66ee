//! Runs sets of files in a directory of a child process of its own, for the working directory
//! belongs to the whole process.

use iolab_drive::coordinate::NoObserver;
use iolab_workload::spec::Workload;
use serde_json::json;

use super::*;

const NAME: &str = "measure::files::tests::in_a_process_of_its_own";
const PLACE: &str = "IOLAB_TEST_FILES_IN";

fn phases(link: &str, size: (u64, u64), directories: u64) -> Workload {
    let phase = |action: &str, order: &str| {
        json!({"name": format!("{order} {action}"), "keeps_files": true, "tenants": [{
            "name": "main", "workers": 1, "file": "set", "file_bytes": 1000,
            "io_size_bytes": 1000, "pattern": {"kind": "sequential"},
            "direction": {"kind": "write"}, "opening": "existing",
            "file_set": {"action": action, "order": order, "files": 100,
                "directories": directories, "size_min_bytes": size.0,
                "size_max_bytes": size.1, "link": link, "is_flushed": link == "none"}}]})
    };
    let phases: Vec<_> = ["sequential", "random"]
        .iter()
        .flat_map(|order| ["create", "read", "remove"].map(|action| phase(action, order)))
        .collect();
    serde_json::from_value(json!({"version": 1, "name": "files", "engine": "sync", "seed": 7,
        "phases": phases}))
    .unwrap()
}

/// What lies below the directory.
fn count() -> usize {
    fs::read_dir(".").unwrap().flatten().fold(0, |sum, entry| {
        let inside = fs::read_dir(entry.path()).map_or(0, Iterator::count);
        sum + inside + 1
    })
}

#[test]
fn in_a_process_of_its_own() {
    if let Some(place) = std::env::var_os(PLACE) {
        std::env::set_current_dir(place).unwrap();
        all_kinds();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]).env(PLACE, folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("all kinds were run"), "{said}");
}

fn all_kinds() {
    for (link, size, directories) in [
        ("none", (0, 0), 1),
        ("none", (500, 2500), 3),
        ("none", (2048, 2048), 1),
        ("hard", (0, 0), 2),
        ("symbolic", (0, 0), 1),
    ] {
        let workload = phases(link, size, directories);
        workload.check().unwrap();
        for (index, phase) in workload.phases.iter().enumerate() {
            let outcome = run_files((&workload, phase), &mut NoObserver).unwrap();
            let report = &outcome.tenants[0].workers[0];
            assert_eq!(report.first_error, None, "{}", phase.name);
            assert_eq!(report.ops, 100, "{}", phase.name);
            let is_removed = index % 3 == 2;
            assert_eq!(fs::exists("set").unwrap(), !is_removed);
            if index % 3 == 0 {
                std::env::set_current_dir("set").unwrap();
                let folders = if directories > 1 { directories as usize } else { 0 };
                assert_eq!(count(), 100 + folders);
                std::env::set_current_dir("..").unwrap();
                let expected = size.0 * 100..=size.1 * 100;
                assert!(expected.contains(&report.write_bytes), "{}", report.write_bytes);
            }
            if index % 3 == 1 {
                let made = size.0 * 100..=size.1 * 100;
                assert!(made.contains(&report.read_bytes), "{}", report.read_bytes);
            }
        }
    }
    // A name that is taken fails with a place, and the working directory stays what it was.
    let workload = phases("none", (0, 0), 1);
    let here = std::env::current_dir().unwrap();
    run_files((&workload, &workload.phases[0]), &mut NoObserver).unwrap();
    let again = run_files((&workload, &workload.phases[0]), &mut NoObserver).unwrap();
    let error = again.tenants[0].workers[0].first_error.as_deref().unwrap();
    assert!(error.starts_with("file number 0: "), "{error}");
    assert_eq!(std::env::current_dir().unwrap(), here);
    println!("all kinds were run");
}
