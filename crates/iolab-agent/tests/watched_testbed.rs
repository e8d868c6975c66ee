//! Issue 14: what was found about the watchdog, options and mounts, through the real binary.
//!
//! Needs root; touches only loop devices that it or the agent added.

#[path = "agent/client.rs"]
mod agent;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agent::{Agent, alone, ext4, is_root, trial, wait_until, writing};
use nix::mount::{MsFlags, mount, umount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

fn place() -> (tempfile::TempDir, Value) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let spec = json!({"kind": "loop", "size_bytes": 64 << 20, "device_count": 1,
        "image_dir": folder.path(), "logical_block_bytes": 512});
    (folder, spec)
}

fn once(stack: &Value) -> Value {
    trial(stack, &json!({}), &writing(&json!({"kind": "once"})))
}

fn watchdog_of(agent: &Agent) -> Option<Pid> {
    let children = format!("/proc/{0}/task/{0}/children", agent.child.id());
    let children = fs::read_to_string(children).unwrap();
    children.split_whitespace().find_map(|pid| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        command.contains("\0watchdog\0").then(|| Pid::from_raw(pid.parse().unwrap()))
    })
}

/// A busy machine stops it a little later.
fn stop(process: Pid) {
    kill(process, Signal::SIGSTOP).unwrap();
    wait_until(Duration::from_secs(10), "it stops", || {
        fs::read_to_string(format!("/proc/{process}/stat")).unwrap().contains(") T ")
    });
}

fn codes(record: &Value) -> Vec<&str> {
    record["warnings"].as_array().unwrap().iter().filter_map(|it| it["code"].as_str()).collect()
}

/// Symptom: once the watchdog was killed nobody would have restored after a kill of the agent, and
/// nobody noticed. Fix: the agent looks before each trial, starts another one in the mount
/// namespace of the first, and the record says so.
#[test]
fn needs_root_issue_14_point_9_a_dead_watchdog_is_replaced() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let (folder, spec) = place();
    let state = folder.path().join("state");
    let (mut agent, _) = Agent::start("watch-dead", &state, false);
    let opened = agent.ask("open_testbed", &spec).unwrap();
    let device = Path::new("/sys/block").join(opened["devices"][0].as_str().unwrap());
    let first = watchdog_of(&agent).unwrap();
    kill(first, Signal::SIGKILL).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let record = agent.ask("run_trial", &once(&ext4())).unwrap();
    assert!(codes(&record).contains(&"watchdog_replaced"), "{record}");
    let second = watchdog_of(&agent).expect("another one watches");
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap();
    assert_eq!(namespace(&second.to_string()), namespace("self"), "it must not keep our mounts");
    let record = agent.ask("run_trial", &once(&ext4())).unwrap();
    assert!(!codes(&record).contains(&"watchdog_replaced"), "{record}");
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    wait_until(Duration::from_secs(10), "the second watchdog restores", || {
        !device.exists() && fs::read_dir(state.join("journal")).unwrap().count() == 0
    });
}

/// Symptom: after SIGSTOP to the watchdog the end of a run waited for ever. Fix: it is woken, and
/// ended if that does not help.
#[test]
fn needs_root_issue_14_point_9_a_stopped_watchdog_does_not_hang_the_end() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let (folder, spec) = place();
    let (mut agent, _) = Agent::start("watch-stop", &folder.path().join("state"), false);
    agent.ask("open_testbed", &spec).unwrap();
    let watchdog = watchdog_of(&agent).unwrap();
    stop(watchdog);
    let record = agent.ask("run_trial", &once(&ext4())).unwrap();
    assert!(codes(&record).contains(&"watchdog_stopped"), "{record}");
    stop(watchdog);
    let begun = Instant::now();
    assert_eq!(agent.ask("close_testbed", &json!({})).unwrap()["problems"], json!([]));
    assert_eq!(agent.end_input(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(!Path::new(&format!("/proc/{watchdog}")).exists());
}

/// Symptom: what others had mounted stayed mounted in the agent's copy of all mounts; after their
/// umount their loop device stayed attached, their disk in use. Fix: unmounts reach the copy.
#[test]
fn needs_root_issue_14_point_9_mounts_of_others_are_not_pinned() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let (folder, spec) = place();
    // Of this thread only, shared as the mounts of a machine are.
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SHARED, none).unwrap();
    let (other, image) = (folder.path().join("other"), folder.path().join("other.img"));
    fs::create_dir(&other).unwrap();
    File::create(&image).unwrap().set_len(16 << 20).unwrap();
    let said = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let image = image.to_str().unwrap();
    said("/usr/sbin/mkfs.ext4", &["-q", image]);
    let device = said("/usr/sbin/losetup", &["--find", "--show", image]);
    mount(Some(&*device), &other, Some("ext4"), MsFlags::empty(), none).unwrap();

    let (mut agent, _) = Agent::start("mounts-pinned", &folder.path().join("state"), false);
    agent.ask("open_testbed", &spec).unwrap();
    agent.ask("run_trial", &once(&ext4())).unwrap();
    umount(&other).unwrap();
    let is_free = File::options().read(true).custom_flags_excl().open(&device).map(drop);
    said("/usr/sbin/losetup", &["--detach", &device]);
    let backing = Path::new("/sys/block").join(&device["/dev/".len()..]).join("loop/backing_file");
    assert!(!backing.exists(), "the device is kept attached by a mount of the agent's");
    assert!(is_free.is_ok(), "{is_free:?}");
    assert_eq!(agent.end_input(), Some(0));
}

trait Exclusive {
    /// The kernel refuses to open a device that is mounted anywhere.
    fn custom_flags_excl(&mut self) -> &mut Self;
}

impl Exclusive for fs::OpenOptions {
    fn custom_flags_excl(&mut self) -> &mut Self {
        std::os::unix::fs::OpenOptionsExt::custom_flags(self, nix::libc::O_EXCL)
    }
}

/// Symptom: `X-mount.subdir=lost+found` stored "ok" trials that wrote to the host's disk, `-z` left
/// a file in `/`; then every restore failed. Fix: closed lists, a private working directory.
#[test]
fn needs_root_issue_14_points_5_and_6_nothing_is_made_outside() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let (folder, spec) = place();
    let state = folder.path().join("state");
    let root = || -> Vec<_> {
        fs::read_dir("/").unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = root();
    let (mut agent, _) = Agent::start("options-out", &state, false);
    agent.ask("open_testbed", &spec).unwrap();
    for (mkfs, mount) in [
        ("-z safety-undo", ""),
        ("-d etc", ""),
        ("-l etc", ""),
        ("", "X-mount.subdir=lost+found"),
        ("", "errors=panic"),
    ] {
        let mut stack = ext4();
        stack["mkfs_options"] = json!(mkfs.split_whitespace().collect::<Vec<_>>());
        stack["mount_options"] = if mount.is_empty() { json!([]) } else { json!([mount]) };
        let error = agent.ask("run_trial", &once(&stack)).unwrap_err();
        assert_eq!(error["code"], "refused", "{mkfs}{mount}: {error}");
    }
    assert_eq!(agent.ask("run_trial", &once(&ext4())).unwrap()["status"], "ok");
    assert_eq!(agent.ask("close_testbed", &json!({})).unwrap()["problems"], json!([]));
    let own = format!("iolab-program-{}-", agent.child.id());
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(root(), before);
    // Other agents may run programs meanwhile: only the directories of this one count.
    assert!(
        !fs::read_dir("/run")
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with(&own) })
    );
}
