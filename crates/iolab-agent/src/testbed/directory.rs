//! A directory on a live file system: data only inside a sub-directory of ours.
//!
//! Without root (class A) nothing else is touched. As root (class A+) knobs of the devices below
//! may change; if a device carries the running system, only if the user named it. `in_place` works
//! in the directory itself, as the programs do whose command lines are understood: their files are
//! named by the user, made and removed by the measuring, and nothing else there is touched. Left
//! out: the file system itself, which stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::api::{Asked, Kind, Opening, Prepared, Testbed};
use super::image::{free_bytes, reserve_of};
use super::{leaves_of, leaves_of_device, system_devices};
use crate::error::{Error, Result};
use crate::identity::on_behalf;
use crate::journal::Change;
use crate::knob::{Scope, find};
use crate::machine::Machine;
use crate::mounts;
use crate::owned_directory;
use crate::protocol::{ActionKind, DirectorySpec, RunAs, Warning};

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
    /// User with whose rights its files are touched, if root works for one.
    user: Option<RunAs>,
}

/// Class of what a user does without root.
pub const CLASS_OF_USERS: &str = "A";

impl Kind for DirectorySpec {
    /// As root knobs of the devices below may change, too.
    fn class(&self) -> &'static str {
        if nix::unistd::geteuid().is_root() { "A+" } else { CLASS_OF_USERS }
    }
}

/// Opens one.
pub fn open(mut spec: DirectorySpec, opening: Opening) -> Result<Box<dyn Testbed>> {
    let Opening { machine, boundary, .. } = opening;
    let user = machine.user().cloned();
    if let Some(boundary) = boundary {
        spec.path = boundary.directory(&spec.path)?;
    }
    let devices: Vec<String> = on_behalf(user.as_ref(), || {
        if spec.path.is_absolute() && spec.path.is_dir() {
            // Where devices lie themselves there is no disk below.
            let named = spec.devices.iter().flat_map(|node| leaves_of_device(machine, node));
            let found: BTreeSet<String> = named.chain(leaves_of(machine, &spec.path)).collect();
            return Ok(found.into_iter().collect());
        }
        let what = format!("{} is not an absolute path of a directory", spec.path.display());
        Err(Error::refused(what, "make it first, or name another"))
    })?;
    if let Some(boundary) = boundary {
        let known = devices.iter().filter(|_| !spec.devices.is_empty());
        let mut named = spec.allow_knobs_on.iter().chain(known);
        named.try_for_each(|name| boundary.check_device(name))?;
    }
    let (folder, token) = if spec.in_place {
        (spec.path.clone(), None)
    } else {
        own_folder(machine, &spec.path).map(|(folder, token)| (folder, Some(token)))?
    };
    let warnings = warnings_of(&spec.path, &devices);
    Ok(Box::new(DirectoryTestbed {
        class: spec.class(),
        folder,
        token,
        devices,
        system_devices: system_devices(machine),
        allowed: spec.allow_knobs_on,
        warnings,
        user,
    }))
}

/// Makes a sub-directory that is ours.
fn own_folder(machine: &mut Machine, path: &Path) -> Result<(PathBuf, String)> {
    let user = machine.user().cloned();
    // What cannot be opened now could not be looked at for removal either, and would stay promised.
    on_behalf(user.as_ref(), || owned_directory::check_place(path))?;
    let token = owned_directory::fresh_token()?;
    let folder = path.join(format!(".iolab-{token}"));
    let change = Change::DirectoryCreated { path: folder.clone(), token: token.clone() };
    let action = (ActionKind::CreateDirectory, folder.display().to_string(), String::new());
    machine.make(change, action, || {
        on_behalf(user.as_ref(), || owned_directory::create(&folder, &token))
    })?;
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
        on_behalf(self.user.as_ref(), || free_bytes(self.place())).unwrap_or(0)
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
            format!("use --on loop:1g, or allow it in a study with {}", flags.join(" ")),
        ))
    }

    fn check_fast_switching(&self) -> Result<()> {
        let shown = self.devices.join(", ");
        Err(Error::refused(
            format!(
                "{shown} carries a mounted file system: its settings are not changed more often \
                 than once a second"
            ),
            "compare on --on loop:1g, or by whole trials: --design trials",
        ))
    }

    fn prepare(&mut self, _machine: &mut Machine, asked: Asked) -> Result<Prepared> {
        if asked.stack.is_some() {
            return Err(Error::protocol("a directory has the file system it lies on, no stack"));
        }
        let place = self.place();
        let (free, reserve_bytes) = on_behalf(self.user.as_ref(), || {
            Ok((free_bytes(place)?, reserve_of(place, asked.reserve_bytes)?))
        })?;
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
            twins: Vec::new(),
            token: self.token.clone(),
            raw: None,
            stack: None,
            reserve_bytes,
            warnings: Vec::new(),
            places: Vec::new(),
            images: Vec::new(),
        })
    }

    fn clean(&mut self, machine: &mut Machine) -> Result<()> {
        let Some(token) = &self.token else { return Ok(()) };
        let files = self.folder.join("*").display().to_string();
        let removed = machine.act(ActionKind::RemoveFile, files, "after the trial", || {
            on_behalf(self.user.as_ref(), || owned_directory::clear(&self.folder, Some(token)))
        });
        removed.map(drop)
    }

    fn close(&mut self, _machine: &mut Machine) -> Result<()> {
        Ok(())
    }
}
