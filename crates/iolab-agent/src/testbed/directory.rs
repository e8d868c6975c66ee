//! A directory on a live file system: data only inside a sub-directory of ours.
//!
//! Without root (class A) nothing else is touched. As root (class A+) knobs of the devices below
//! may change; if a device carries the running system, only if the user named it. `in_place` works
//! in the directory itself, as the programs do whose command lines are understood: their files are
//! named by the user, made and removed by the measuring, and nothing else there is touched; names
//! that are only scratch are in the journal, so that no kill leaves them. Left out: the file system
//! itself, which stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use super::api::{Opening, Prepared, Testbed};
use super::image::{free_bytes, reserve_of};
use super::{leaves_of, system_devices};
use crate::error::{Error, Result};
use crate::journal::Change;
use crate::knob::{Scope, find};
use crate::machine::Machine;
use crate::mounts;
use crate::owned_directory;
use crate::plausible;
use crate::protocol::{ActionKind, TrialSpec, Warning, typed};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    path: PathBuf,
    allow_knobs_on: Vec<String>,
    #[serde(default)]
    in_place: bool,
    /// Names in it that are made and removed again, if it is worked in place.
    #[serde(default)]
    scratch: Vec<String>,
}

/// An open directory testbed.
struct DirectoryTestbed {
    class: &'static str,
    folder: PathBuf,
    /// Absent: the folder is the user's.
    token: Option<String>,
    devices: Vec<String>,
    system_devices: BTreeSet<String>,
    allowed: Vec<String>,
    warnings: Vec<Warning>,
}

/// As root knobs of the devices below may change, too.
pub fn class() -> &'static str {
    if nix::unistd::geteuid().is_root() { "A+" } else { "A" }
}

/// Opens one.
pub fn open(spec: Value, opening: Opening) -> Result<Box<dyn Testbed>> {
    let spec: Spec = typed("a directory testbed", spec)?;
    let Opening { machine, .. } = opening;
    if !spec.path.is_absolute() || !spec.path.is_dir() {
        let what = format!("{} is not an absolute path of a directory", spec.path.display());
        return Err(Error::refused(what, "make it first, or name another"));
    }
    let devices = leaves_of(machine, &spec.path);
    promise_scratch(machine, &spec)?;
    let (folder, token) = if spec.in_place {
        (spec.path.clone(), None)
    } else {
        own_folder(machine, &spec.path).map(|(folder, token)| (folder, Some(token)))?
    };
    let warnings = warnings_of(&spec.path, &devices);
    Ok(Box::new(DirectoryTestbed {
        class: class(),
        folder,
        token,
        devices,
        system_devices: system_devices(machine),
        allowed: spec.allow_knobs_on,
        warnings,
    }))
}

/// Notes what will lie beside the user's files, so that it is removed whoever is killed.
fn promise_scratch(machine: &mut Machine, spec: &Spec) -> Result<()> {
    let mut changes = Vec::new();
    for name in &spec.scratch {
        if !spec.in_place || !plausible::is_scratch(name) {
            return Err(Error::protocol(format!("'{name}' is no name of a scratch file")));
        }
        let path = spec.path.join(name);
        if fs::symlink_metadata(&path).is_ok() {
            let what = format!("{} exists: perhaps bonnie++ was killed there", path.display());
            return Err(Error::refused(what, "look at it and remove it, then start again"));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let began_at_unix_ns = now.map_or(0, |now| now.as_nanos() as u64);
        changes.push(Change::ScratchCreated { path, began_at_unix_ns });
    }
    let ids = machine.intend(changes)?;
    machine.applied(&ids)
}

/// Makes a sub-directory that is ours.
fn own_folder(machine: &mut Machine, path: &Path) -> Result<(PathBuf, String)> {
    let token = owned_directory::fresh_token()?;
    let folder = path.join(format!(".iolab-{token}"));
    let change = Change::DirectoryCreated { path: folder.clone(), token: token.clone() };
    let ids = machine.intend(vec![change])?;
    machine.act(ActionKind::CreateDirectory, folder.display().to_string(), "", || {
        owned_directory::create(&folder, &token)
    })?;
    machine.applied(&ids)?;
    Ok((folder, token))
}

fn warnings_of(path: &Path, devices: &[String]) -> Vec<Warning> {
    if !devices.is_empty() {
        return Vec::new();
    }
    let fs = mounts::of(path).map_or_else(|| "unknown".to_owned(), |mount| mount.fs);
    vec![Warning::new(
        "no_block_device",
        format!("no block device was found under {} ({fs})", path.display()),
        "device counters and knobs need a directory on a disk's file system",
    )]
}

impl DirectoryTestbed {
    /// The directory that the user named.
    fn place(&self) -> &Path {
        match &self.token {
            Some(_) => self.folder.parent().unwrap_or(&self.folder),
            None => &self.folder,
        }
    }
}

impl Testbed for DirectoryTestbed {
    fn class(&self) -> &'static str {
        self.class
    }

    fn directory(&self) -> &Path {
        &self.folder
    }

    fn devices(&self) -> &[String] {
        &self.devices
    }

    fn is_users(&self) -> bool {
        self.token.is_none()
    }

    fn loop_run(&self) -> Option<&str> {
        None
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn free_bytes(&self) -> u64 {
        free_bytes(self.place()).unwrap_or(0)
    }

    fn check_knobs(&self, machine: &Machine, knobs: &BTreeMap<String, String>) -> Result<()> {
        if knobs.is_empty() {
            return Ok(());
        }
        let names = knobs.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        if self.class == "A" && !machine.is_dry_run() {
            let what = format!("{names} cannot be changed without root");
            return Err(Error::refused(what, "run it as root or with sudo, or leave them out"));
        }
        let mut is_on_device = false;
        for name in knobs.keys() {
            is_on_device |= find(name)?.1.scope() == Scope::Device;
        }
        let carries_system = |name: &&String| self.system_devices.contains(*name);
        let forbidden = self.devices.iter().filter(carries_system);
        let forbidden: Vec<&str> =
            forbidden.filter(|name| !self.allowed.contains(name)).map(String::as_str).collect();
        if !is_on_device || forbidden.is_empty() {
            return Ok(());
        }
        let flags: Vec<String> =
            forbidden.iter().map(|name| format!("--allow-knobs-on {name}")).collect();
        Err(Error::refused(
            format!(
                "{} carries the running system; {names} would change on it",
                forbidden.join(", ")
            ),
            format!("allow it with {}, or use --on loop:1g", flags.join(" ")),
        ))
    }

    fn prepare(&mut self, _machine: &mut Machine, spec: &TrialSpec) -> Result<Prepared> {
        if spec.stack.is_some() {
            return Err(Error::protocol("a directory has the file system it lies on, no stack"));
        }
        let place = self.place();
        let free = free_bytes(place)?;
        let reserve_bytes = reserve_of(place, spec.reserve_bytes)?;
        if free < reserve_bytes {
            return Err(Error::refused(
                format!(
                    "{} has {} MiB free, less than the {} MiB that must stay free",
                    place.display(),
                    free >> 20,
                    reserve_bytes >> 20
                ),
                "free some space, or use another directory",
            ));
        }
        Ok(Prepared {
            folder: self.folder.clone(),
            token: self.token.clone(),
            raw: None,
            stack: None,
            reserve_bytes,
            warnings: Vec::new(),
        })
    }

    fn clean(&mut self, machine: &mut Machine) -> Result<()> {
        let Some(token) = &self.token else { return Ok(()) };
        let files = self.folder.join("*").display().to_string();
        let removed = machine.act(ActionKind::RemoveFile, files, "after the trial", || {
            owned_directory::clear(&self.folder, Some(token))
        });
        removed.map(drop)
    }

    fn close(&mut self, _machine: &mut Machine) -> Result<()> {
        Ok(())
    }
}
