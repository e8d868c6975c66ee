//! The doctor of an ordinary user, in places that are not the user's. Issue 14, point 10.
//!
//! Symptom: `iolab doctor` judged `/`, where nobody asked it to, and advised `sudo chown $USER /`
//! (in `/etc`: of that). Who follows that hands the system's files to one user. Cause: one hint for
//! every directory that cannot be written, and `/` as the place if none is named. It judges the
//! working directory and the home directory, and never advises to take over what is another's.
//!
//! As root it becomes another user; as an ordinary user it stays who it is.

#[path = "agent/client.rs"]
mod agent;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agent::is_root;
use serde_json::{Value, json};

/// A number of no user in the list of users: neither a home nor a name.
const STRANGER: &str = "54321";

/// A copy of the agent that anybody may start, for as long as the directory stays.
fn agent_for_all() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("iolab-agent");
    agent::copy_program(Path::new(env!("CARGO_BIN_EXE_iolab-agent")), &path);
    (folder, path)
}

/// All checks, as a stranger in `place` gets them; `home` is none for a variable that is not set.
fn checks(agent: &Path, place: &Path, home: Option<&str>, paths: &[&str]) -> Vec<Value> {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"]).arg(agent);
        command
    } else {
        Command::new(agent)
    };
    command.current_dir(place).env_remove("HOME").env_remove("XDG_STATE_HOME");
    command.envs(home.map(|home| ("HOME", home)));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let hello = json!({"protocol": 1, "run": "doctor-test", "is_dry_run": true, "state_dir": null});
    let mut input = child.stdin.take().unwrap();
    for (id, method, params) in [(1, "hello", hello), (2, "doctor", json!({"paths": paths}))] {
        writeln!(input, "{}", json!({"id": id, "method": method, "params": params})).unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answer = answers.into_iter().find(|answer| answer["id"] == 2).unwrap();
    answer["result"]["checks"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

fn named<'a>(checks: &'a [Value], name: &str) -> Vec<&'a Value> {
    checks.iter().filter(|check| check["name"] == name).collect()
}

#[test]
fn nobody_is_told_to_take_over_what_is_not_theirs() {
    let (folder, agent) = agent_for_all();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let homes = [None, Some("/nonexistent"), Some("/"), Some("/etc"), Some("/root")];
    for place in [Path::new("/"), Path::new("/etc"), Path::new("/var/tmp"), &closed] {
        for home in homes {
            let checks = checks(&agent, place, home, &[]);
            let text = Value::from(checks.clone()).to_string();
            assert!(!text.contains("chown"), "{place:?} {home:?}: {text}");
            assert!(!text.contains("chmod u+wx /\""), "{place:?} {home:?}: {text}");
            let here = named(&checks, "working directory");
            assert_eq!(here.len().clamp(1, 2), here.len(), "{place:?}: {text}");
            let is_writable = place == Path::new("/var/tmp") || (!is_root() && place == closed);
            let has_told = here.iter().any(|check| {
                let told = check["message"].as_str().unwrap();
                told.contains("cannot be written") || told.contains("cannot be")
            });
            assert_eq!(has_told, !is_writable, "{place:?}: {text}");
            for check in here.iter().filter(|_| !is_writable) {
                assert_ne!(check["status"], "fail", "nobody has named {place:?}");
            }
            // There is one about the journal, and who can keep none is told how to.
            let journal = named(&checks, "journal");
            assert_eq!(journal.len(), 1, "{text}");
            if is_root() {
                assert_eq!(journal[0]["status"], "fail", "{home:?}: {text}");
                let hint = journal[0]["hint"].as_str().unwrap();
                assert_eq!(hint.matches("mkdir -p").count(), 1, "{hint}");
                let advice = "set XDG_STATE_HOME to a directory of your own: `mkdir -p ";
                assert!(hint.contains(advice) && hint.contains("; export XDG_"), "{hint}");
            }
        }
    }
}

#[test]
fn a_named_directory_of_another_is_an_error_and_the_way_out_is_one_of_ones_own() {
    let (_folder, agent) = agent_for_all();
    let found = checks(&agent, Path::new("/var/tmp"), Some("/nonexistent"), &["/etc", "/etc/no"]);
    for path in ["/etc", "/etc/no"] {
        let check = named(&found, path)[0];
        assert_eq!(check["status"], "fail", "{check}");
        let hint = check["hint"].as_str().unwrap();
        assert_eq!(hint, "use a directory of your own: mkdir -p /var/tmp/iolab-test", "{check}");
    }
    assert!(named(&found, "working directory").is_empty(), "only what is named is judged");
}

/// Issue 14, point 10: an engine that only a device decides about was listed as usable where no
/// place was tried, and a disk in use was "ok ... refused".
#[test]
fn what_was_not_tried_and_what_cannot_be_erased_are_said() {
    let (folder, agent) = agent_for_all();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
    if is_root() {
        let found = checks(&agent, Path::new("/"), Some("/nonexistent"), &[]);
        let polled = named(&found, "engine io_uring_poll");
        assert!(polled[0]["message"].as_str().unwrap().starts_with("not tried: "), "{polled:?}");
        let engines = named(&found, "engines")[0]["message"].as_str().unwrap();
        assert!(!engines.contains("io_uring_poll"), "{engines}");
    }
    let found = checks(&agent, Path::new("/var/tmp"), None, &[]);
    let text = Value::from(found.clone()).to_string();
    assert!(!text.contains("--on device: is refused"), "{text}");
}

#[test]
fn what_is_the_users_own_may_be_opened_again() {
    if is_root() {
        return; // Root may write everywhere; a stranger owns nothing here.
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    let path = folder.path().to_str().unwrap();
    let agent = PathBuf::from(env!("CARGO_BIN_EXE_iolab-agent"));
    let found = checks(&agent, Path::new("/var/tmp"), None, &[path]);
    assert_eq!(named(&found, path)[0]["hint"], format!("chmod u+wx {path}"));
}
