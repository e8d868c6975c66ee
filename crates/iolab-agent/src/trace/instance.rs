//! A tracing instance of ours: a directory of tracefs with buffers and settings of its own.
//!
//! Nothing outside of it is changed, and it goes as a whole. It survives whoever made it, so its
//! name is in the journal before it is made. Source: Linux Documentation/trace/ftrace.rst,
//! "Instances".

use std::fs;
use std::path::{Path, PathBuf};

use super::tracefs::Tracefs;
use crate::error::{Error, Result};
use crate::journal::{Change, State};
use crate::machine::Machine;
use crate::owned_directory;
use crate::protocol::ActionKind;
use crate::restore::patiently;

/// Characters of the part of a name that is drawn.
const TOKEN_LENGTH: usize = 12;

/// A name that no instance has.
pub fn fresh_name(run: &str) -> Result<String> {
    let token = owned_directory::fresh_token()?;
    // No hyphens: else a name of `run-1-x` could be taken for one of `run-1`.
    let token: String =
        token.chars().filter(char::is_ascii_alphanumeric).take(TOKEN_LENGTH).collect();
    Ok(format!("{}{token}", prefix(run)))
}

/// Tell whether an instance of this name is one that `run` made.
pub fn is_name_of(name: &str, run: &str) -> bool {
    let is_plain = |rest: &str| {
        !rest.is_empty()
            && rest.len() <= 64
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    name.strip_prefix(&prefix(run)).is_some_and(is_plain)
}

fn prefix(run: &str) -> String {
    format!("iolab-{run}-")
}

/// An instance that is in the journal.
#[derive(Debug)]
pub struct Instance {
    /// Its name.
    pub name: String,
    journal_id: u64,
}

impl Instance {
    /// Makes one for a run; none in a dry run.
    pub fn create(machine: &mut Machine, run: &str) -> Result<Option<Self>> {
        let tracefs = Tracefs::open()?;
        let name = fresh_name(run)?;
        let path = folder(&tracefs, &name);
        let change = Change::TraceInstance { name: name.clone() };
        let action = (ActionKind::CreateTraceInstance, name.clone(), String::new());
        let (journal_id, made) = machine.make(change, action, || {
            fs::create_dir(&path).map_err(|error| Error::io("create", shown(&name), error))
        })?;
        Ok(made.map(|()| Self { name, journal_id }))
    }

    /// Removes it; who reads it is gone or about to be.
    pub fn remove(self, machine: &mut Machine) -> Result<()> {
        machine.act(ActionKind::RemoveTraceInstance, self.name.clone(), "", || {
            remove(&self.name).map(drop)
        })?;
        match machine.journal() {
            Some(journal) => journal.mark(&[self.journal_id], State::Restored),
            None => Ok(()),
        }
    }
}

fn folder(tracefs: &Tracefs, name: &str) -> PathBuf {
    tracefs.root().join("instances").join(name)
}

/// The path of an instance for messages, wherever this process found it.
fn shown(name: &str) -> PathBuf {
    Path::new("/sys/kernel/tracing/instances").join(name)
}

/// Stops and removes an instance; false if there is none of this name.
pub fn remove(name: &str) -> Result<bool> {
    let tracefs = Tracefs::open()?;
    let path = folder(&tracefs, name);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(false);
    }
    // Removing it does the same; stopped events cost nothing while that waits for a reader.
    let _ = fs::write(path.join("tracing_on"), "0");
    let _ = fs::write(path.join("events/enable"), "0");
    patiently(|| fs::remove_dir(&path)).map_err(|error| Error::io("remove", shown(name), error))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_run_and_of_nobody_else() {
        let (one, other) = (fresh_name("run-1").unwrap(), fresh_name("run-1").unwrap());
        assert!(one != other && is_name_of(&one, "run-1") && is_name_of(&other, "run-1"));
        for name in ["iolab-run-1-", "iolab-run-1-x/y", "iolab-run-1-..", "run-1-x", "x", ""] {
            assert!(!is_name_of(name, "run-1"), "{name}");
        }
        assert!(!is_name_of("iolab-run-1-2-abc", "run-1"), "that of run-1-2");
        assert!(!is_name_of("iolab-run-12-abc", "run-1"), "another run's");
    }
}
