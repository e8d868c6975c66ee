//! The place of the journals: full, shared by two runs, or in foreign hands.
//!
//! Needs root; mounts in a namespace of its own and touches only loop devices that it or the agent
//! added.

#[path = "agent/client.rs"]
mod agent;

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agent::{Agent, alone, ext4, is_root, trial, wait_until, writing};
use nix::mount::{MsFlags, mount, umount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const PRESSURE: &str = "/proc/sys/vm/vfs_cache_pressure";
const OTHER_PRESSURE: &str = "73";

/// A state directory on a file system of 1 KiB blocks, so that the end of a block cuts a line.
struct SmallState {
    folder: tempfile::TempDir,
    pressure: String,
}

impl SmallState {
    fn new() -> Self {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        let image = folder.path().join("state.img");
        File::create(&image).unwrap().set_len(256 << 10).unwrap();
        run(Command::new("mkfs.ext2").args(["-q", "-b", "1024", "-m", "0"]).arg(&image));
        run(Command::new("mount").args(["-n", "-o", "loop"]).arg(&image).arg(&state));
        Self { folder, pressure: pressure() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn spec(&self) -> Value {
        json!({"kind": "loop", "size_bytes": 64 << 20, "device_count": 1,
            "image_dir": self.folder.path(), "logical_block_bytes": 512})
    }

    /// Takes every block that is left.
    fn fill(&self) {
        let mut file = File::create(self.path().join("filler")).unwrap();
        let error = loop {
            if let Err(error) = file.write_all(&[0; 1024]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }

    fn journal(&self, run: &str) -> PathBuf {
        self.path().join("journal").join(run).with_extension("jsonl")
    }
}

impl Drop for SmallState {
    fn drop(&mut self) {
        let _ = umount(&self.path());
    }
}

fn run(command: &mut Command) {
    let output = command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn pressure() -> String {
    fs::read_to_string(PRESSURE).unwrap()
}

fn pressing() -> Value {
    json!({"vm.vfs_cache_pressure": OTHER_PRESSURE})
}

fn trial_with(knobs: &Value) -> Value {
    trial(&ext4(), knobs, &writing(&json!({"kind": "once"})))
}

#[test]
fn needs_root_a_full_disk_refuses_the_step_before_the_machine_is_changed() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let state = SmallState::new();
    let (mut agent, _) = Agent::start("full-step", &state.path(), false);
    agent.ask("open_testbed", &state.spec()).unwrap();
    let before = fs::read(state.journal("full-step")).unwrap();
    state.fill();
    let error = agent.ask("run_trial", &trial_with(&pressing())).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("No space left") && text.contains("make room"), "{text}");
    assert_eq!(pressure(), state.pressure, "nothing may be changed that is not in the journal");
    // Half a line had been written: the rest of the block was free.
    let after = fs::read(state.journal("full-step")).unwrap();
    assert!(!before.len().is_multiple_of(1024), "there was room for a part");
    assert_eq!(String::from_utf8_lossy(&after), String::from_utf8_lossy(&before));
    // Putting back works on the full disk, and the journal, which says nothing any more, goes.
    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(closed["problems"], json!([]));
    assert!(!state.journal("full-step").exists());
    assert_eq!(agent.end_input(), Some(0));
}

#[test]
fn needs_root_changes_are_undone_on_a_full_disk_also_by_the_watchdog() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    for (name, is_killed) in [("full-close", false), ("full-kill", true)] {
        let state = SmallState::new();
        let (mut agent, _) = Agent::start(name, &state.path(), false);
        agent.ask("open_testbed", &state.spec()).unwrap();
        let record = agent.ask("run_trial", &trial_with(&pressing())).unwrap();
        assert_eq!(record["status"], "ok", "{record}");
        assert_eq!(pressure().trim(), OTHER_PRESSURE);
        state.fill();
        if is_killed {
            kill(Pid::from_raw(agent.child.id().cast_signed()), Signal::SIGKILL).unwrap();
            agent.child.wait().unwrap();
            let is_over = || !state.journal(name).exists();
            wait_until(Duration::from_secs(20), "the watchdog's work", is_over);
        } else {
            assert_eq!(agent.end_input(), Some(0));
        }
        assert_eq!(pressure(), state.pressure, "{name}");
        assert!(!state.journal(name).exists(), "{name}");
    }
}

#[test]
fn needs_root_a_journal_that_cannot_begin_leaves_nothing() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let state = SmallState::new();
    fs::create_dir(state.path().join("journal")).unwrap();
    state.fill();
    let (mut agent, _) = Agent::start("full-start", &state.path(), false);
    let error = agent.ask("open_testbed", &state.spec()).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("full-start.jsonl"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("make room"), "{error}");
    assert!(!state.journal("full-start").exists());
    assert_eq!(agent.end_input(), Some(0));
}

/// Two studies at once: the second took the first one's `vm.` value for the original, and
/// "restored" it when the first had long put back the real one.
#[test]
fn needs_root_a_setting_that_another_run_has_changed_is_refused() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (state, before) = (folder.path().join("state"), pressure());
    let spec = json!({"kind": "directory", "path": folder.path(), "allow_knobs_on": []});
    let mut asked = trial_with(&pressing());
    asked["stack"] = Value::Null;
    let start = |name: &str| {
        let mut agent = Agent::start(name, &state, false).0;
        agent.ask("open_testbed", &spec).unwrap();
        agent
    };
    let (mut first, mut second) = (start("clash-1"), start("clash-2"));
    assert_eq!(first.ask("run_trial", &asked).unwrap()["status"], "ok");
    let error = second.ask("run_trial", &asked).unwrap_err();
    assert_eq!(error["code"], "refused");
    assert!(error["message"].as_str().unwrap().contains("clash-1"), "{error}");
    assert_eq!(first.end_input(), Some(0));
    assert_eq!(pressure(), before);
    assert_eq!(second.ask("run_trial", &asked).unwrap()["status"], "ok");
    assert_eq!(second.end_input(), Some(0));
    assert_eq!(pressure(), before);
}

#[test]
fn needs_root_a_state_directory_in_foreign_hands_is_refused() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let refused = |state: &Path| {
        let (agent, hello) = Agent::greet("foreign", state, false);
        let error = hello.unwrap_err();
        assert_eq!(agent.end_input(), Some(0));
        assert_eq!(error["code"], "refused", "{error}");
        assert!(error["hint"].as_str().unwrap().contains("chown root:"), "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (state, journals) = (folder.path().join("state"), folder.path().join("state/journal"));
    fs::create_dir_all(&journals).unwrap();
    for path in [&state, &journals] {
        chown(path, Some(65534), None).unwrap();
        assert!(refused(&state).contains("belongs to user 65534"));
        chown(path, Some(0), None).unwrap();
        for (mode, is_refused) in [(0o777, true), (0o770, true), (0o1777, false), (0o755, false)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            if is_refused {
                assert!(refused(&state).contains("can be changed by others"), "{mode:o}");
            } else {
                assert_eq!(Agent::start("mine", &state, false).0.end_input(), Some(0), "{mode:o}");
            }
        }
    }
    // A link does not lead root to what somebody else may change.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&state, &link).unwrap();
    chown(&state, Some(65534), None).unwrap();
    assert!(refused(&link).contains("belongs to user 65534"));
}
