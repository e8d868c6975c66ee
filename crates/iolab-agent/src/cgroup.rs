//! A memory cgroup: a trial with little memory, its share of the page cache included.
//!
//! Version 2 if it owns the memory controller, else version 1. Pages are charged to whoever touches
//! them first, so files that others have cached cost nothing: drop them before. Source:
//! Documentation/admin-guide/cgroup-v2.rst, "Memory Ownership".
//! Left out: limits of I/O and CPU; turning controllers on for the whole machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::journal::{Change, State};
use crate::machine::Machine;
use crate::mounts;
use crate::protocol::ActionKind;
use crate::restore::patiently;

/// Less kills the workers themselves: their buffers and stacks are charged, too.
const BYTES_MIN: u64 = 16 << 20;

/// A cgroup of ours.
#[derive(Debug)]
pub struct MemoryLimit {
    path: PathBuf,
    journal_id: u64,
}

impl MemoryLimit {
    /// Makes one for a run.
    pub fn create(machine: &mut Machine, run: &str, limit_bytes: u64) -> Result<Self> {
        if limit_bytes < BYTES_MIN {
            return Err(Error::refused(
                format!("a memory limit of {limit_bytes} bytes would kill the workers"),
                "allow 32 MiB and the buffers of the workers at least",
            ));
        }
        let (parent, file) = hierarchy()?;
        let path = parent.join(format!("iolab-{run}"));
        let change = Change::CgroupCreated { path: path.clone() };
        let detail = format!("{file} = {limit_bytes}");
        let action = (ActionKind::CreateCgroup, path.display().to_string(), detail);
        let (journal_id, _) = machine.make(change, action, || {
            fs::create_dir(&path).map_err(|error| Error::io("create", &path, error))?;
            let file = path.join(file);
            fs::write(&file, limit_bytes.to_string())
                .map_err(|error| Error::io("write", &file, error))
        })?;
        Ok(Self { path, journal_id })
    }

    /// Moves a process in; what it has touched so far stays charged elsewhere.
    pub fn admit(&self, pid: u32) -> Result<()> {
        let file = self.path.join("cgroup.procs");
        fs::write(&file, pid.to_string()).map_err(|error| Error::io("write", &file, error))
    }

    /// Removes it; its processes are gone or about to be.
    pub fn remove(self, machine: &mut Machine) -> Result<()> {
        machine.act(ActionKind::RemoveCgroup, self.path.display().to_string(), "", || {
            patiently(|| fs::remove_dir(&self.path))
                .map_err(|error| Error::io("remove", &self.path, error))
        })?;
        match machine.journal() {
            Some(journal) => journal.mark(&[self.journal_id], State::Restored),
            None => Ok(()),
        }
    }
}

/// Tell whether a limit is possible, and where; the error says why not.
pub fn hierarchy() -> Result<(PathBuf, &'static str)> {
    let mounts = mounts::all();
    let is_v1 = |options: &str| options.split(',').any(|option| option == "memory");
    if let Some(mount) = mounts.iter().find(|m| m.fs == "cgroup" && is_v1(&m.super_options)) {
        return Ok((mount.point.clone(), "memory.limit_in_bytes"));
    }
    let unified = mounts.iter().find(|mount| mount.fs == "cgroup2").map(|mount| &mount.point);
    if let Some(point) = unified.filter(|point| is_enabled(point)) {
        return Ok((point.clone(), "memory.max"));
    }
    Err(Error::failed(
        "no memory cgroup can be made: no hierarchy hands the memory controller down",
        "as root: echo +memory > /sys/fs/cgroup/cgroup.subtree_control",
    ))
}

fn is_enabled(point: &Path) -> bool {
    fs::read_to_string(point.join("cgroup.subtree_control"))
        .is_ok_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
}
