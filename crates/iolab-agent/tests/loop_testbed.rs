//! The loop testbed through the real binary: what it does, and that nothing of it stays, however
//! it ends.
//!
//! Needs root; touches only loop devices that the agent added.

#[path = "agent/client.rs"]
mod agent;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agent::{Agent, Device, alone, ext4, is_root, mounts_of, trial, wait_until, writing};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const PRESSURE: &str = "/proc/sys/vm/vfs_cache_pressure";

struct Place {
    folder: tempfile::TempDir,
    pressure: String,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(folder.path().join("images")).unwrap();
        Self { folder, pressure: fs::read_to_string(PRESSURE).unwrap() }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn spec(&self, device_count: u32) -> Value {
        json!({"kind": "loop", "size_bytes": 314_572_800, "device_count": device_count,
            "image_dir": self.folder.path().join("images"), "logical_block_bytes": 512})
    }

    /// Tell whether nothing is left of a run and its device.
    fn is_clean(&self, run: &str, device: &Device) -> bool {
        !device.exists()
            && !Path::new("/run/iolab").join(run).exists()
            && files(&self.folder.path().join("images")).is_empty()
            && files(&self.state().join("journal")).is_empty()
            && fs::read_to_string(PRESSURE).unwrap() == self.pressure
            && mounts_of(run).is_empty()
    }
}

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let listing = fs::read_dir(folder).into_iter().flatten();
    listing.map(|entry| entry.unwrap().path()).collect()
}

fn knobs() -> Value {
    json!({"scheduler": "bfq", "bfq.slice_idle": "0", "driver_queue_depth": "4",
        "read_ahead_kb": "128", "vm.vfs_cache_pressure": "73"})
}

fn watchdog_of(state: &Path) -> Option<Pid> {
    let state = state.to_str().unwrap();
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().ok()?;
        let command = fs::read_to_string(format!("/proc/{name}/cmdline")).ok()?;
        let is_it = command.contains("\0watchdog\0") && command.contains(state);
        is_it.then(|| name.parse().map(Pid::from_raw).ok())?
    })
}

/// Opens a testbed, runs one trial with knobs, returns the device.
fn prepared(agent: &mut Agent, place: &Place) -> Device {
    let opened = agent.ask("open_testbed", &place.spec(1)).unwrap();
    let record = agent
        .ask("run_trial", &trial(&ext4(), &knobs(), &writing(&json!({"kind": "once"}))))
        .unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    device_of(&opened)
}

fn device_of(opened: &Value) -> Device {
    Device::named(opened["devices"][0].as_str().unwrap())
}

#[test]
fn needs_root_a_testbed_is_opened_used_and_leaves_nothing() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (mut agent, hello) = Agent::start("loop-use", &place.state(), false);
    assert_eq!(hello["open_journals"], json!([]));
    let opened = agent.ask("open_testbed", &place.spec(2)).unwrap();
    let device = device_of(&opened);
    assert_eq!(opened["class"], "B");
    assert!(opened["schedulers"].as_array().unwrap().contains(&json!("bfq")), "{opened}");
    let phases = writing(&json!({"kind": "once"}));

    let record = agent.ask("run_trial", &trial(&ext4(), &knobs(), &phases)).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    for (name, value) in knobs().as_object().unwrap() {
        assert_eq!(&record["knobs"][name], value, "{name}");
    }
    let options = record["stack"]["effective_mount_options"].as_str().unwrap();
    assert!(options.contains("nodelalloc"), "{options}");
    assert_eq!(record["facts"]["fs.type"], "ext4");
    assert!(
        fs::read_to_string(format!("/sys/block/{}/queue/scheduler", device.name))
            .unwrap()
            .contains("[bfq]")
    );
    assert_eq!(mounts_of("loop-use"), [""; 0], "the mount is private");

    // The next trial has other knobs, a small memory, and its journal on the second device.
    let mut stack = ext4();
    stack["has_external_journal"] = json!(true);
    let mut second = trial(&stack, &json!({"scheduler": "none"}), &phases);
    second["memory_limit_bytes"] = json!(64 << 20);
    let record = agent.ask("run_trial", &second).unwrap();
    assert_eq!(record["status"], "ok", "{record}");
    assert_eq!(record["knobs"]["driver_queue_depth"], "128", "{record}");
    assert_eq!(record["knobs"]["vm.vfs_cache_pressure"], place.pressure.trim());
    assert!(!Path::new("/sys/fs/cgroup/memory/iolab-loop-use").exists());

    // A mount that fails says why, in the kernel's words; the testbed survives it.
    stack["mount_options"] = json!(["journal_async_commit", "data=ordered"]);
    let error = agent.ask("run_trial", &trial(&stack, &json!({}), &phases)).unwrap_err();
    assert_eq!(error["code"], "failed");
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("mount -t ext4") && said.contains("kernel: "), "{error}");
    for fs in ["ext2", "ext3", "xfs", "btrfs"] {
        let stack = json!({"fs": fs, "mkfs_options": [], "mount_options": [],
            "has_external_journal": fs == "xfs" || fs == "ext3"});
        let record = agent.ask("run_trial", &trial(&stack, &json!({}), &phases)).unwrap();
        assert_eq!(record["status"], "ok", "{fs}: {record}");
        assert_eq!(record["facts"]["fs.type"], fs);
    }

    let closed = agent.ask("close_testbed", &json!({})).unwrap();
    assert_eq!(closed["is_restored"], true, "{closed}");
    assert!(place.is_clean("loop-use", &device));
    assert_eq!(agent.ask("shutdown", &json!({})).unwrap()["problems"], json!([]));
    assert_eq!(agent.end_input(), Some(0));
}

/// The image had a name that the caller could foresee: a file of somebody else's that had it was
/// removed when making the image failed. The name has a token now.
#[test]
fn needs_root_a_file_named_like_an_image_stays() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let place = Place::new();
    let foreign = place.folder.path().join("images/.iolab-notes-0.img");
    fs::write(&foreign, "precious").unwrap();
    let (mut agent, _) = Agent::start("notes", &place.state(), false);
    agent.ask("open_testbed", &place.spec(1)).unwrap();
    assert_eq!(agent.ask("close_testbed", &json!({})).unwrap()["is_restored"], true);
    assert_eq!(agent.end_input(), Some(0));
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "precious");
}

#[test]
fn needs_root_the_watchdog_restores_after_the_agent_was_killed() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (mut agent, _) = Agent::start("loop-kill", &place.state(), false);
    let device = prepared(&mut agent, &place);
    assert!(!place.is_clean("loop-kill", &device));
    // In the middle of a trial.
    let limit = json!({"kind": "time", "duration_ns": 20_000_000_000_u64});
    agent.send("run_trial", &trial(&ext4(), &knobs(), &writing(&limit)));
    std::thread::sleep(Duration::from_millis(700));
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    let limit = Duration::from_secs(5);
    wait_until(limit, "the watchdog restores", || place.is_clean("loop-kill", &device));
}

#[test]
fn needs_root_restore_works_after_agent_and_watchdog_were_killed() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (mut agent, _) = Agent::start("loop-both", &place.state(), false);
    let device = prepared(&mut agent, &place);
    let watchdog = watchdog_of(&place.state()).expect("a watchdog runs");
    kill(watchdog, Signal::SIGKILL).unwrap();
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    wait_until(Duration::from_secs(5), "the mount ends", || !device.is_attached());
    assert!(!place.is_clean("loop-both", &device));

    let (mut agent, hello) = Agent::start("loop-again", &place.state(), false);
    assert_eq!(hello["open_journals"][0]["run"], "loop-both", "{hello}");
    let refusal = agent.ask("open_testbed", &place.spec(1)).unwrap_err();
    assert_eq!(refusal["code"], "refused", "{refusal}");
    let outcome = agent.ask("restore", &json!({"run": null})).unwrap();
    assert_eq!(outcome["problems"], json!([]), "{outcome}");
    assert!(place.is_clean("loop-both", &device), "{outcome}");
    assert_eq!(agent.end_input(), Some(0));
}

#[test]
fn needs_root_the_end_of_input_and_a_signal_both_restore() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    for is_signal in [false, true] {
        let place = Place::new();
        let (mut agent, _) = Agent::start("loop-end", &place.state(), false);
        let device = prepared(&mut agent, &place);
        let limit = json!({"kind": "time", "duration_ns": 20_000_000_000_u64});
        agent.send("run_trial", &trial(&ext4(), &knobs(), &writing(&limit)));
        std::thread::sleep(Duration::from_millis(500));
        let started = Instant::now();
        if is_signal {
            kill(Pid::from_raw(agent.child.id().cast_signed()), Signal::SIGTERM).unwrap();
            assert_eq!(agent.child.wait().unwrap().code(), Some(0));
        } else {
            assert_eq!(agent.end_input(), Some(0));
        }
        assert!(started.elapsed() < Duration::from_secs(10));
        assert!(place.is_clean("loop-end", &device));
    }
}

#[test]
fn needs_root_an_interrupt_gives_a_partial_record() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (mut agent, _) = Agent::start("loop-stop", &place.state(), false);
    prepared(&mut agent, &place);
    let limit = json!({"kind": "time", "duration_ns": 30_000_000_000_u64});
    let id = agent.send("run_trial", &trial(&ext4(), &json!({}), &writing(&limit)));
    std::thread::sleep(Duration::from_secs(1));
    let started = Instant::now();
    let interrupt = agent.send("interrupt", &json!({}));
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let message = agent.receive();
        if message.get("event").is_none() {
            answered.push(message);
        }
    }
    assert_eq!(answered[0], json!({"id": interrupt, "result": {}}));
    assert_eq!(answered[1]["id"], id);
    assert_eq!(answered[1]["result"]["status"], "interrupted", "{}", answered[1]);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(agent.end_input(), Some(0));
}
