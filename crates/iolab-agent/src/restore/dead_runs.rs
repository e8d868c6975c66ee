//! Undoing what dead runs left, journal by journal, and telling a dead run from a living one.
//!
//! A run lives as long as its journal is locked by a process that can go on. A killed agent keeps
//! the lock until the kernel has given up its mounts and files, its measuring children keep it
//! until they have noticed, and its watchdog holds it while it restores: these are waited for.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Instant;

use super::{PATIENCE, PAUSE, Restored, undo_journal};
use crate::error::Result;
use crate::journal::{self, Journal};
use crate::watchdog;

/// Undoes what dead runs left, or one of them; for a user only what his own left.
pub fn undo_dead_runs(
    uid: Option<u32>,
    state_dir: &Path,
    boot_id: &str,
    only: Option<&str>,
) -> Restored {
    let mut outcome = Restored::default();
    for path in journal::files_of(uid, state_dir) {
        if only.is_some_and(|run| path.file_stem().is_none_or(|stem| stem != run)) {
            continue;
        }
        match adopt(&path) {
            Ok(Some(journal)) => outcome.add(undo_journal(journal, boot_id)),
            Ok(None) if path.exists() => outcome.alive.push(alive(&path)),
            Ok(None) => {} // It has just ended.
            Err(error) => outcome.problems.push(format!("{error}: {}", error.hint())),
        }
    }
    outcome
}

/// Opens the journal of a dead run once its watchdog is done with it; none if its run lives, or if
/// it is gone.
pub fn adopt(path: &Path) -> Result<Option<Journal>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let journal = Journal::adopt(path)?;
        let is_settled = match &journal {
            // Between the agent's death and its turn the watchdog has not locked it yet.
            Some(_) => !watchdog::is_watching(&journal::run_of(path)),
            None => !path.exists() || is_held_by_a_run(path),
        };
        if is_settled || Instant::now() >= deadline {
            return Ok(journal);
        }
        drop(journal);
        sleep(PAUSE);
    }
}

/// True if the process that locked a journal can go on with its run.
fn is_held_by_a_run(path: &Path) -> bool {
    journal::owner_of_lock(path).is_some_and(|pid| is_going_on(pid) && !watchdog::is_one(pid))
}

/// True if a process is there and not about to end (proc(5): the state and the flags behind the
/// name; `PF_EXITING` of linux/sched.h).
fn is_going_on(pid: u32) -> bool {
    const PF_EXITING: u64 = 0x4;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = text.rsplit_once(')') else { return false };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let flags = words.get(6).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    !matches!(words.first(), None | Some(&("Z" | "X"))) && flags & PF_EXITING == 0
}

fn alive(path: &Path) -> String {
    let run = journal::run_of(path);
    match journal::owner_of_lock(path) {
        Some(pid) if watchdog::is_one(pid) => {
            format!("run {run} is dead, and its watchdog (pid {pid}) is still putting things back")
        }
        owner => {
            let pid = owner.map_or_else(String::new, |pid| format!(" (pid {pid})"));
            format!(
                "run {run}{pid} is under way: its changes are in place, nothing of it was undone"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::journal::Change;

    /// A restore just after kill -9 said that the run was under way, exit 3: the kernel had not yet
    /// closed the dead agent's files, or a child that measured for it had not. Here the process
    /// that took the lock is dead, and one that inherited it ends a moment later.
    #[test]
    fn a_run_that_is_just_dying_is_waited_for() {
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(state.path(), "run-1", "boot").unwrap();
        let image = state.path().join(".iolab-run-1-1.img");
        journal.intend(vec![Change::ImageCreated { path: image }]).unwrap();
        drop(journal);
        let path = journal::file_of(state.path(), "run-1");
        let mut heir = Command::new("sh")
            .args(["-c", r#"exec 9<"$0"; flock 9; echo locked; exec sleep 0.3"#])
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 6];
        std::io::Read::read_exact(heir.stdout.as_mut().unwrap(), &mut word).unwrap();
        assert!(Journal::adopt(&path).unwrap().is_none(), "it is locked");
        let outcome = undo_dead_runs(None, state.path(), "boot", None);
        heir.wait().unwrap();
        assert!(outcome.alive.is_empty() && outcome.problems.is_empty(), "{outcome:?}");
        assert!(journal::files(state.path()).is_empty());
    }

    #[test]
    fn a_process_goes_on_until_it_is_dead() {
        assert!(is_going_on(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        while is_going_on(child.id()) {
            sleep(PAUSE);
        }
        child.wait().unwrap();
        assert!(!is_going_on(child.id()), "its number is free");
    }
}
