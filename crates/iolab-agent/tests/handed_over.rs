//! Files that users hand to an agent that is root for them, and separation of users' runs.
//!
//! Issue 14, points 4 and 9, second look. Symptoms: a directory whose name is no UTF-8 let the
//! agent panic; a journal without its first line was undone in a user's directory with all
//! rights of root; limits, signals and priorities of the caller reached root's process; a run
//! could not have the name of another user's, who was thereby found out; what was there before
//! was removed by the restore of a run that failed to make it. Needs root, as tests/boundary.rs.

#[path = "agent/client.rs"]
mod agent;
#[path = "agent/world.rs"]
mod world;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use agent::{Agent, alone, ext4, is_root, trial, writing};
use serde_json::{Value, json};
use world::{NOBODY, OTHER, World, refusal, small_loop};

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap()
}

/// Cause: paths were taken to be text when they went into the journal. Fix: such a name is refused
/// before anything is announced.
#[test]
fn needs_root_a_name_that_is_not_utf8_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::with_home();
    let strange = world.home.path().join(OsStr::from_bytes(b"data-\xff"));
    fs::create_dir(&strange).unwrap();
    chown(&strange, Some(NOBODY), Some(NOBODY)).unwrap();
    symlink(&strange, world.home.path().join("link")).unwrap();
    let mut agent = world.start("utf8-1");
    for in_place in [false, true] {
        let path = world.home.path().join("link");
        let spec = world.directory(&json!({"path": path, "in_place": in_place}));
        let error = refusal(agent.ask("open_testbed", &spec), "no UTF-8");
        assert!(message(&error).contains("not UTF-8"), "{error}");
    }
    let fine = world.directory(&json!({}));
    agent.ask("open_testbed", &fine).expect("the agent lives");
    assert_eq!(agent.end_input(), Some(0));
}

/// A state directory of a user who is not root may have any name; its watchdog must start.
#[test]
fn needs_root_words_that_are_not_utf8_do_not_end_it() {
    if !is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join(OsStr::from_bytes(b"\xff"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab-agent"));
    let done = command.arg("watchdog").arg(state).arg("run-1").output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}

/// A directory that looks like that of a run.
fn folder_of_a_run(parent: &Path, owner: u32) -> PathBuf {
    let made = parent.join(".iolab-t");
    fs::create_dir(&made).unwrap();
    fs::write(made.join(".iolab-token"), "t").unwrap();
    for path in [&made.join(".iolab-token"), &made] {
        chown(path, Some(owner), Some(owner)).unwrap();
    }
    made
}

/// A journal that names one, and whose first line is damaged.
fn headless(world: &World, name: &str, path: &Path) -> PathBuf {
    let folder = world.path("state/journal");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let change = json!({"kind": "directory_created", "path": path, "token": "t"});
    let line = json!({"line": "intent", "id": 1, "change": change});
    let journal = folder.join(format!("{name}.jsonl"));
    fs::write(&journal, format!("{{\"line\":\"opem\"}}\n{line}\n")).unwrap();
    journal
}

/// Cause: whose run it was stood in the first line only. Fix: a user's number is part of the
/// journal's name; if neither says it, the rights of the folder's owner must do.
#[test]
fn needs_root_without_its_first_line_a_journal_gets_no_rights_of_roots() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    fs::set_permissions(world.path("state"), Permissions::from_mode(0o700)).unwrap();
    let home = world.home.path();
    let victim = folder_of_a_run(&world.path("guarded"), 0);
    let link = home.join("link");
    symlink(world.path("guarded"), &link).unwrap();
    lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
    let own = folder_of_a_run(home, NOBODY);
    let journals = [
        headless(&world, "older-1", &link.join(".iolab-t")),
        headless(&world, &format!("{NOBODY}.newer-1"), &link.join(".iolab-t")),
        headless(&world, "older-2", &own),
    ];
    let (mut user, hello) = world.greet(NOBODY, "mine-1");
    let listed = json!([{"run": "newer-1", "entries": 2}]);
    assert_eq!(hello.unwrap()["open_journals"], listed, "his number is in the name");
    let outcome = user.ask("restore", &json!({"run": "newer-1"})).unwrap();
    assert!(outcome["problems"][0].as_str().unwrap().contains("Permission denied"), "{outcome}");
    assert_eq!(user.end_input(), Some(3));
    let mut root = world.greet(0, "roots-1").0;
    let outcome = root.ask("restore", &json!({"run": null})).unwrap();
    assert_eq!(root.end_input(), Some(3));
    assert!(victim.join(".iolab-token").exists(), "{outcome}");
    assert!(!own.exists(), "its owner may remove it: {outcome}");
    assert!(journals.iter().all(|path| path.exists()), "somebody must look: {outcome}");
}

fn started(world: &World, uid: u32, run: &str) -> Agent {
    let (mut agent, hello) = world.greet(uid, run);
    hello.unwrap();
    agent.ask("open_testbed", &small_loop("/var/tmp")).unwrap_or_else(|error| panic!("{error}"));
    agent
}

/// Cause: journals, mount points and groups of all users had the names that these chose. Fix: the
/// user's number is part of them.
#[test]
fn needs_root_users_may_have_runs_of_one_name() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    let mut agents = [NOBODY, OTHER, 0].map(|uid| started(&world, uid, "same-1"));
    let stack = json!({"fs": "ext4", "mkfs_options": [], "mount_options": [],
        "has_external_journal": false});
    let asked = trial(&stack, &json!({}), &writing(&json!({"kind": "once"})));
    for agent in &mut agents {
        assert_eq!(agent.ask("run_trial", &asked).unwrap()["status"], "ok");
    }
    let mut twice = world.greet(NOBODY, "same-1").0;
    let error = refusal(twice.ask("open_testbed", &small_loop("/var/tmp")), "his own");
    assert!(message(&error).contains("a run of the name same-1"), "{error}");
    assert_eq!(twice.end_input(), Some(0));
    for agent in agents {
        assert_eq!(agent.end_input(), Some(0));
    }
}

/// Cause: only what a study asked for was asked of mount(2).
#[test]
fn needs_root_a_users_file_system_has_no_devices_and_no_other_users_programs() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    let mut agent = started(&world, NOBODY, "mount-1");
    let asked = trial(&ext4(), &json!({}), &writing(&json!({"kind": "once"})));
    assert_eq!(agent.ask("run_trial", &asked).unwrap()["status"], "ok");
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", agent.child.id())).unwrap();
    let ours = mounts.lines().find(|line| line.contains("mount-1")).unwrap_or(&mounts);
    let options: Vec<&str> = ours.split(' ').nth(5).unwrap().split(',').collect();
    assert!(options.contains(&"nosuid") && options.contains(&"nodev"), "{ours}");
    assert_eq!(agent.end_input(), Some(0));
}

/// Cause: what was announced was undone, also if it could not be made because it was there. Fix:
/// then it is announced no longer, whatever it is.
#[test]
fn needs_root_what_was_there_before_is_not_removed() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    fs::DirBuilder::new().recursive(true).mode(0o700).create("/run/iolab").unwrap();
    let point = Path::new("/run/iolab/there-1");
    fs::create_dir_all(point).unwrap();
    let mut root = world.greet(0, "there-1").0;
    let error = root.ask("open_testbed", &small_loop("/var/tmp")).unwrap_err();
    assert!(message(&error).contains("File exists"), "{error}");
    assert_eq!(root.end_input(), Some(0));
    let is_there = point.exists();
    let _ = fs::remove_dir(point);
    assert!(is_there, "it was not ours");
}

/// Newcomers, finding 20: see `run_name`.
#[test]
fn needs_root_a_name_that_no_run_has_is_answered_in_plain_words() {
    if !is_root() {
        return;
    }
    let world = World::new(None);
    let mut agent = world.start("names-1");
    let error = refusal(agent.ask("restore", &json!({"run": "My Run"})), "a bad name");
    assert!(message(&error).contains("no run is called \"My Run\""), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("4 to 40"), "{error}");
    assert!(!error.to_string().contains("protocol"), "{error}");
}

/// Limit that the agent got, as the kernel shows it: soft limit by name.
fn limit(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().to_owned()
}

/// Cause: only three limits were raised, and nothing else was looked at. Fix: what outlives
/// execve(2) is as usual in root's process.
#[test]
fn needs_root_limits_signals_and_priorities_of_the_caller_do_not_reach_it() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let world = World::new(None);
    let inner = world.command(NOBODY, "serve");
    // Soft limits: in a container root may not raise hard ones, and the agent refuses to start.
    let mut command = Command::new("prlimit");
    command
        .args(["--as=2000000000:", "--data=1000000000:", "--stack=262144:", "--rttime=1:"])
        .args([
            "--nproc=1:",
            "--fsize=1000:",
            "--nofile=64:",
            "--sigpending=1:",
            "--core=unlimited:",
        ])
        .args(["choom", "-n", "900", "--", "chrt", "--idle", "0", "ionice", "-c", "3"])
        .args(["nice", "-n", "15", "env", "--ignore-signal=CHLD,XFSZ,ALRM"])
        .arg("--block-signal=TERM,USR1,CHLD")
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut agent = Agent::of(command);
    let params = json!({"protocol": 1, "run": "limits-1", "is_dry_run": false, "state_dir": null});
    agent.ask("hello", &params).unwrap();
    let pid = agent.child.id();
    for name in ["address space", "data size", "realtime timeout", "file size", "cpu time"] {
        assert_eq!(limit(pid, &format!("Max {name}")), "unlimited", "{name}");
    }
    let least = [("stack size", 8 << 20), ("processes", 4096), ("open files", 1024)];
    for (name, least) in least.into_iter().chain([("pending signals", 1024)]) {
        let found = limit(pid, &format!("Max {name}"));
        assert!(found.parse::<u64>().unwrap() >= least, "{name}: {found}");
    }
    assert_eq!(limit(pid, "Max core file size"), "0");
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let status = read("status");
    let mask = |name: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(text.trim(), 16).unwrap()
    };
    let bit = |signal: libc::c_int| 1_u64 << (signal - 1);
    assert_eq!(mask("SigBlk:"), 0);
    // SIGINT, SIGHUP and SIGPIPE are ignored by choice.
    let chosen = bit(libc::SIGINT) | bit(libc::SIGHUP) | bit(libc::SIGPIPE);
    // The C library keeps 32 and 33 for itself: no program can say what it does with them.
    let librarys = bit(32) | bit(33);
    assert_eq!(mask("SigIgn:") & !librarys, chosen, "{status}");
    assert_eq!(read("oom_score_adj").trim(), "0");
    let stat = read("stat");
    let words: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // proc(5): nice is field 19 and policy field 41; the state, field 3, is the first here.
    assert_eq!((words[16], words[38]), ("0", "0"), "nice and policy");
    let class = Command::new("ionice").args(["-p", &pid.to_string()]).output().unwrap();
    assert!(!String::from_utf8_lossy(&class.stdout).contains("idle"), "{class:?}");
    agent.ask("open_testbed", &small_loop("/var/tmp")).unwrap();
    let asked = trial(&ext4(), &json!({}), &writing(&json!({"kind": "once"})));
    assert_eq!(agent.ask("run_trial", &asked).unwrap()["status"], "ok");
    assert_eq!(agent.end_input(), Some(0));
}
