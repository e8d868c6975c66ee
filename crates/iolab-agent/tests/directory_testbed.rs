//! The directory testbed and dry runs through the real binary; nobody needs to be root.

#[path = "agent/client.rs"]
mod agent;

use std::fs;
use std::path::Path;
use std::time::Duration;

use agent::{Agent, ext4, loops_below, trial, wait_until, writing};
use serde_json::{Value, json};

fn once() -> Value {
    writing(&json!({"kind": "once"}))
}

fn spec(folder: &Path) -> Value {
    json!({"kind": "directory", "path": folder, "allow_knobs_on": []})
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder)
        .map(|listing| {
            listing.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        })
        .unwrap_or_default()
}

fn places() -> (tempfile::TempDir, tempfile::TempDir) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(folder.path().join("thesis"), "years").unwrap();
    (folder, tempfile::tempdir().unwrap())
}

#[test]
fn only_a_directory_of_ours_is_used_and_it_goes_away() {
    let (folder, state) = places();
    let (mut agent, _) = Agent::start("dir-use", state.path(), false);
    let opened = agent.ask("open_testbed", &spec(folder.path())).unwrap();
    assert!(opened["class"].as_str().unwrap().starts_with('A'));
    let own = Path::new(opened["directory"].as_str().unwrap()).to_path_buf();
    assert!(own.starts_with(folder.path()));
    let record = agent.ask("run_trial", &trial(&Value::Null, &json!({}), &once())).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    assert_eq!(record["stack"], Value::Null);
    assert_eq!(names(&own), [".iolab-token"], "the trial's files are gone");
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(closed["is_restored"], true, "{closed}");
    assert_eq!(names(folder.path()), ["thesis"]);
    assert_eq!(agent.end_input(), Some(0));
}

#[test]
fn in_place_files_have_the_names_that_were_given_and_nothing_else_is_touched() {
    let (folder, state) = places();
    let (mut agent, _) = Agent::start("dir-place", state.path(), false);
    let asked = json!({
        "kind": "directory", "path": folder.path(), "allow_knobs_on": [], "in_place": true
    });
    let opened = agent.ask("open_testbed", &asked).unwrap();
    assert_eq!(Path::new(opened["directory"].as_str().unwrap()), folder.path());
    let mut kept = once();
    kept[0]["keeps_files"] = json!(true);
    kept[0]["tenants"][0]["files"] = json!(["t.tmp"]);
    for (workload, left) in [(&kept, &["t.tmp", "thesis"][..]), (&once(), &["t.tmp", "thesis"])] {
        let record = agent.ask("run_trial", &trial(&Value::Null, &json!({}), workload)).unwrap();
        assert_eq!(record["status"], "ok", "{record}");
        let mut found = names(folder.path());
        found.sort();
        assert_eq!(found, left);
    }
    assert_eq!(agent.ask("close_testbed", &json!({})).unwrap()["is_restored"], true);
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(fs::read_to_string(folder.path().join("thesis")).unwrap(), "years");
}

/// Issue 14, point 1: asking for the alignment of direct I/O truncated and removed the user's
/// `t.tmp.probe`, through a link any file; now the probe has no name.
#[test]
fn direct_io_in_place_leaves_files_named_like_a_probe_alone() {
    let (folder, state) = places();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("t.tmp.probe"), "mine").unwrap();
    std::os::unix::fs::symlink(path("thesis"), path("u.tmp.probe")).unwrap();
    let (mut agent, _) = Agent::start("dir-probe", state.path(), false);
    let asked = json!({
        "kind": "directory", "path": folder.path(), "allow_knobs_on": [], "in_place": true
    });
    agent.ask("open_testbed", &asked).unwrap();
    for name in ["t.tmp", "u.tmp"] {
        let mut phases = once();
        phases[0]["tenants"][0]["files"] = json!([name]);
        let record = agent.ask("run_trial", &trial(&Value::Null, &json!({}), &phases)).unwrap();
        assert_eq!(record["status"], "ok", "{record}");
    }
    assert_eq!(agent.end_input(), Some(0));
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, ["t.tmp.probe", "thesis", "u.tmp.probe"]);
    assert_eq!(fs::read_to_string(path("t.tmp.probe")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(path("thesis")).unwrap(), "years");
}

#[test]
fn knobs_of_the_system_disk_need_to_be_allowed_by_name() {
    let (_folder, state) = places();
    let root = tempfile::tempdir_in("/var/tmp").unwrap();
    let (mut agent, hello) = Agent::start("dir-knob", state.path(), false);
    let opened = agent.ask("open_testbed", &spec(root.path())).unwrap();
    let asked = json!({"read_ahead_kb": "128"});
    let error = agent.ask("run_trial", &trial(&Value::Null, &asked, &once())).unwrap_err();
    assert_eq!(error["code"], "refused", "{error}");
    if hello["is_root"] == true && !opened["devices"].as_array().unwrap().is_empty() {
        let flag = format!("--allow-knobs-on {}", opened["devices"][0].as_str().unwrap());
        assert!(error["hint"].as_str().unwrap().contains(&flag), "{error}");
    }
    assert_eq!(agent.end_input(), Some(0));
    assert!(names(root.path()).is_empty());
}

#[test]
fn a_killed_agents_directory_is_removed_by_the_watchdog() {
    let (folder, state) = places();
    let (mut agent, _) = Agent::start("dir-kill", state.path(), false);
    agent.ask("open_testbed", &spec(folder.path())).unwrap();
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    wait_until(Duration::from_secs(5), "the directory is removed", || {
        names(folder.path()) == ["thesis"] && names(&state.path().join("journal")).is_empty()
    });
}

#[test]
fn a_dry_run_says_everything_and_does_nothing() {
    let (folder, state) = places();
    let (mut agent, _) = Agent::start("dry-run", state.path(), true);
    let spec = json!({"kind": "loop", "size_bytes": 314_572_800, "device_count": 1,
        "image_dir": folder.path(), "logical_block_bytes": 512});
    let opened = agent.ask("open_testbed", &spec).unwrap();
    let kinds = |answer: &Value| -> Vec<String> {
        let actions = answer["actions"].as_array().unwrap().iter();
        actions.map(|action| action["kind"].as_str().unwrap().to_owned()).collect()
    };
    for kind in ["create_file", "attach_loop", "create_directory", "remove_file"] {
        assert!(kinds(&opened).contains(&kind.to_owned()), "{kind}: {opened}");
    }
    if !opened["schedulers"].as_array().unwrap().is_empty() {
        let knobs = json!({"scheduler": "mq-deadline", "driver_queue_depth": "4"});
        let record = agent.ask("run_trial", &trial(&ext4(), &knobs, &once())).unwrap();
        assert_eq!((&record["status"], &record["phases"]), (&json!("dry_run"), &json!([])));
        assert_eq!(record["knobs"]["scheduler"], "mq-deadline");
        for kind in ["mkfs", "mount", "write_knob", "exec"] {
            assert!(kinds(&record).contains(&kind.to_owned()), "{kind}: {record}");
        }
    }
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(closed["is_restored"], true, "{closed}");
    for kind in ["detach_loop", "remove_loop", "remove_directory", "remove_file"] {
        assert!(kinds(&closed).contains(&kind.to_owned()), "{kind}: {closed}");
    }
    if !opened["schedulers"].as_array().unwrap().is_empty() {
        assert_eq!(kinds(&closed)[0], "umount", "{closed}");
        let text = closed["actions"].to_string();
        assert!(text.contains("mq-deadline -> none"), "{closed}");
        assert!(text.contains("or the value found at the start"), "{closed}");
    }
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(names(folder.path()), ["thesis"]);
    assert!(names(state.path()).is_empty());
    assert_eq!(loops_below(folder.path()), [""; 0]);
}

/// Rule R13. A dry run of a directory once said nothing of what closing does.
#[test]
fn a_dry_run_undoes_on_paper_whatever_it_made() {
    let (folder, state) = places();
    let targets = |answer: &Value, verbs: &[&str]| -> Vec<String> {
        let actions = answer["actions"].as_array().unwrap().iter();
        let chosen = actions.filter(|action| verbs.contains(&action["kind"].as_str().unwrap()));
        chosen.map(|action| action["target"].as_str().unwrap().to_owned()).collect()
    };
    let (mut agent, _) = Agent::start("dry-dir", state.path(), true);
    let opened = agent.ask("open_testbed", &spec(folder.path())).unwrap();
    let knobs = json!({"vm.dirty_bytes": "16777216"});
    let record = agent.ask("run_trial", &trial(&Value::Null, &knobs, &once())).unwrap();
    let written = targets(&record, &["write_knob"]);
    assert_eq!(written, ["/proc/sys/vm/dirty_bytes"], "{record}");
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    let mut made = targets(&opened, &["create_file", "create_directory"]);
    let mut removed = targets(&closed, &["remove_file", "remove_directory"]);
    made.sort();
    removed.sort();
    assert_eq!(made.len(), 2, "the journal and the directory: {opened}");
    assert_eq!(made, removed, "{closed}");
    // The kernel takes no 0 bytes: they go back through the ratio.
    let back = targets(&closed, &["write_knob"]);
    assert!(back.iter().all(|file| file.starts_with("/proc/sys/vm/dirty_")), "{closed}");
    assert!(!back.is_empty(), "{closed}");
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(names(folder.path()), ["thesis"]);
    assert!(names(state.path()).is_empty());
}

#[test]
fn misuse_is_answered_and_does_not_end_the_agent() {
    let (folder, state) = places();
    let (mut agent, _) = Agent::start("misuse", state.path(), false);
    let device = json!({"kind": "device", "path": "/dev/null", "erase_serial": "x",
        "protected": [], "precondition": "none", "precondition_round_ns": 1});
    for (method, params, code) in [
        ("open_testbed", &device, "refused"),
        ("open_testbed", &json!({"kind": "floppy"}), "usage"),
        ("open_testbed", &json!({"kind": "directory", "path": "/nowhere"}), "usage"),
        ("run_trial", &json!({}), "usage"),
        ("close_testbed", &json!({}), "usage"),
        ("dance", &json!({}), "usage"),
    ] {
        let error = agent.ask(method, params).unwrap_err();
        assert_eq!(error["code"], code, "{method}: {error}");
    }
    let missing = spec(&folder.path().join("gone"));
    assert_eq!(agent.ask("open_testbed", &missing).unwrap_err()["code"], "refused");
    let checks = agent.ask("doctor", &json!({"paths": [folder.path()]})).unwrap();
    assert!(checks["checks"].as_array().unwrap().len() > 8, "{checks}");
    assert_eq!(agent.end_input(), Some(0));
    assert!(names(&state.path().join("journal")).is_empty());
}
