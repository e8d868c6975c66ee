//! The user's own files: which of them a trial may remove, make anew or write (safety R6).
//!
//! In a directory of the user's every file that the workload names is looked at before the first
//! one is touched: by a descriptor, so that a link is a link and not what it points at. One that is
//! there may be changed only if the user named it or an earlier trial left it so; one that is only
//! read stays, whoever made it. A file that is made is made where no other is, and later it is
//! compared by its inode, between phases and before it is removed. Its birth is told to the front
//! end as soon as it is there: if all of iolab is killed, the next start knows it by that.
//!
//! Left out: directories of small files, which have names of their own that nobody else uses.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use iolab_drive::record::Warning;
use iolab_real::created;
use iolab_real::glance::Glance;
use iolab_workload::program::Reuse;
use iolab_workload::spec::{FileUse, NamedKind, Opening, Phase, Tenant};

use super::request::{FileBirth, FileMark, Request};
use crate::protocol::Replaceable;

/// Code of the warning that says that a file is not ours; the front end's exit code follows.
const FOREIGN_FILE: &str = "foreign_file";

/// Mode bits of the owner; the measuring has to open it.
const OWNERS_MODE: u32 = 0o7700;

/// Device and inode.
type Identity = (u64, u64);

/// One file, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has the name.
    Absent,
    /// File that may be changed and removed; `is_made`: all that is in it is iolab's.
    Ours { identity: Identity, is_made: bool },
    /// File of another owner, only read.
    Foreign(Identity),
}

/// All files of a trial in a directory of the user's.
pub struct UsersFiles {
    directory: PathBuf,
    states: RefCell<BTreeMap<String, State>>,
    /// Permissions of files that were removed to be made anew.
    modes: BTreeMap<String, u32>,
    /// Files with a mark that are written where they are, and whose birth was not told yet.
    in_place: RefCell<BTreeSet<String>>,
}

/// A file that was looked at.
struct Seen {
    path: PathBuf,
    /// Held open, so that its inode is nobody else's meanwhile.
    file: Option<(File, Metadata)>,
    use_: FileUse,
}

impl UsersFiles {
    /// Decides about every file, all or nothing, then removes those that are made anew; `None` if
    /// the directory is not the user's. Openings become such that only a free name is taken.
    ///
    /// # Errors
    ///
    /// A file may not be changed, or is none; nothing was touched.
    pub fn take(request: &mut Request) -> Result<Option<Self>, String> {
        let Some(rules) = &request.files else { return Ok(None) };
        let mut seen = Vec::new();
        let uses = FileUse::of_phases(&request.workload.phases);
        for use_ in uses.into_iter().filter(|use_| use_.kind == NamedKind::File) {
            let path = request.directory.join(&use_.name);
            let is_filled =
                request.workload.file_sets.iter().any(|set| {
                    set.reuse != Reuse::Untouched && set.tree.names.contains(&use_.name)
                });
            let file = look(&path, !use_.is_changed && !is_filled)?;
            if let (Some((_, found)), true) = (&file, use_.is_changed) {
                let is_allowed = match rules.replaceable.get(&use_.name) {
                    Some(Replaceable::Named) => true,
                    Some(Replaceable::Made(mark)) => *mark == mark_of(found),
                    Some(Replaceable::Begun(birth)) => is_born(&path, found, *birth),
                    None => false,
                };
                if !is_allowed {
                    return Err(foreign(&path));
                }
                let is_named = rules.replaceable.get(&use_.name) == Some(&Replaceable::Named);
                if is_named && !use_.is_made() && found.nlink() > 1 {
                    return Err(linked(&path, found.nlink()));
                }
            }
            seen.push(Seen { path, file, use_ });
        }
        let (mut states, mut modes) = (BTreeMap::new(), BTreeMap::new());
        let mut in_place = BTreeSet::new();
        for Seen { path, file, use_ } in seen {
            let is_marked = matches!(rules.replaceable.get(&use_.name), Some(Replaceable::Made(_)));
            if is_marked && use_.is_changed && !use_.is_made() {
                in_place.insert(use_.name.clone());
            }
            let state = match &file {
                None => State::Absent,
                Some((_, found)) if use_.is_made() => {
                    remove_if(&path, identity(found))?;
                    modes.insert(use_.name.clone(), found.mode());
                    State::Absent
                }
                Some((_, found)) => match rules.replaceable.get(&use_.name) {
                    Some(Replaceable::Made(mark)) if *mark == mark_of(found) => {
                        State::Ours { identity: identity(found), is_made: true }
                    }
                    Some(Replaceable::Begun(birth)) if is_born(&path, found, *birth) => {
                        State::Ours { identity: identity(found), is_made: true }
                    }
                    // Named to be written; what is only read stays, whatever was allowed.
                    Some(Replaceable::Named) if use_.is_changed => {
                        State::Ours { identity: identity(found), is_made: false }
                    }
                    _ => State::Foreign(identity(found)),
                },
            };
            states.insert(use_.name, state);
        }
        take_only_free_names(&mut request.workload.phases);
        let (directory, states) = (request.directory.clone(), RefCell::new(states));
        Ok(Some(Self { directory, states, modes, in_place: RefCell::new(in_place) }))
    }

    /// Tell whether the files of `phase` are still those that were decided about.
    ///
    /// # Errors
    ///
    /// One was replaced.
    pub fn check(&self, phase: &Phase) -> Result<(), String> {
        let states = self.states.borrow();
        for name in names(phase) {
            let path = self.directory.join(&name);
            let known = match states.get(&name) {
                Some(State::Ours { identity, .. } | State::Foreign(identity)) => *identity,
                _ => continue,
            };
            match Glance::of_name(&path) {
                Ok(found) if (found.device, found.inode) != known => return Err(foreign(&path)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes which files of `phase` now exist because it made them; answers the births of those
    /// that are new, or are written where they are: their marks are not theirs any more.
    pub fn note(&self, phase: &Phase) -> BTreeMap<String, FileBirth> {
        let mut states = self.states.borrow_mut();
        let mut births = BTreeMap::new();
        for tenant in &phase.tenants {
            for name in own_names(tenant).filter(|name| self.in_place.borrow_mut().remove(name)) {
                let found = created::of_path(&self.directory.join(&name));
                let is_same = |found: &created::Birth| {
                    let identity = (found.device, found.inode);
                    states.get(&name) == Some(&State::Ours { identity, is_made: true })
                };
                let birth = found.filter(is_same).and_then(|found| birth_of(&found));
                births.extend(birth.map(|birth| (name, birth)));
            }
            let makes = tenant.opening != Opening::Existing;
            for name in own_names(tenant).filter(|_| makes) {
                // Whatever else has the name by now is somebody's.
                let Some(found) = created::made(&self.directory.join(&name)) else { continue };
                let made = State::Ours { identity: (found.device, found.inode), is_made: true };
                if states.get(&name) == Some(&made) {
                    continue;
                }
                self.narrow(&name, (found.device, found.inode));
                births.extend(birth_of(&found).map(|birth| (name.clone(), birth)));
                states.insert(name, made);
            }
        }
        births
    }

    /// Takes from others what they had not with the file that was there before.
    fn narrow(&self, name: &str, known: Identity) {
        let Some(mode) = self.modes.get(name) else { return };
        let mut how = OpenOptions::new();
        let opened = how.read(true).custom_flags(libc::O_NOFOLLOW).open(self.directory.join(name));
        let found = opened.and_then(|file| file.metadata().map(|found| (file, found)));
        if let Ok((file, found)) = found
            && identity(&found) == known
        {
            let narrow = found.mode() & (OWNERS_MODE | mode);
            // A mode that cannot be changed is that of a file system without any.
            let _ = file.set_permissions(Permissions::from_mode(narrow & 0o7777));
        }
    }

    /// Removes the files of `phase` that are ours, those of a layout that failed, too.
    pub fn remove(&self, phase: &Phase) {
        let mut states = self.states.borrow_mut();
        for name in names(phase) {
            let path = self.directory.join(&name);
            let known = match states.get(&name) {
                Some(State::Ours { identity, .. }) => Some(*identity),
                // Somebody may have taken the name meanwhile, with an empty file perhaps.
                Some(State::Absent) => created::made(&path).map(|it| (it.device, it.inode)),
                _ => None,
            };
            // What cannot be removed is told by the mark that is not there.
            if known.is_some_and(|known| remove_if(&path, known).is_ok()) {
                states.insert(name, State::Absent);
            }
        }
    }

    /// Marks of the files that were made and stay.
    pub fn made(&self) -> BTreeMap<String, FileMark> {
        let states = self.states.borrow();
        let ours = states.iter().filter_map(|(name, state)| match state {
            State::Ours { identity, is_made: true } => Some((name, *identity)),
            _ => None,
        });
        ours.filter_map(|(name, known)| {
            let found = self.directory.join(name).symlink_metadata().ok()?;
            (identity(&found) == known).then(|| (name.clone(), mark_of(&found)))
        })
        .collect()
    }
}

/// Tells the front end that a file was refused, not that something failed.
pub fn refusal(message: &str) -> Warning {
    Warning::new(FOREIGN_FILE, message, "name another file, or allow it with --overwrite")
}

fn foreign(path: &Path) -> String {
    let shown = path.strip_prefix(".").unwrap_or(path).display();
    format!("{shown} is not a file that iolab made, or was changed since: nothing was touched")
}

/// Refuse a file with several names: only one was named, and writing in place changes all.
fn linked(path: &Path, names: u64) -> String {
    let shown = path.strip_prefix(".").unwrap_or(path).display();
    format!(
        "{shown} has {names} names (hard links), and this would be written into the file that all \
         of them share: nothing was touched"
    )
}

/// The file that has the name, and what it is; `None` if nothing has it. What is only read may be a
/// device.
fn look(path: &Path, is_only_read: bool) -> Result<Option<(File, Metadata)>, String> {
    let mut how = OpenOptions::new();
    let opened = how.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let found = file.metadata().map_err(|error| format!("{}: {error}", path.display()))?;
    let kind = found.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(Some((file, found))),
        () if is_only_read && kind.is_symlink() && is_device(path) => {
            return Ok(Some((file, found)));
        }
        () if kind.is_block_device() && is_only_read => return Ok(Some((file, found))),
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "a special file",
    };
    let shown = path.strip_prefix(".").unwrap_or(path).display();
    Err(format!("{shown} is {what}: nothing was touched"))
}

/// Tell whether a name leads to a block device; those that last are links.
fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

fn mark_of(found: &Metadata) -> FileMark {
    let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    FileMark {
        device: found.dev(),
        inode: found.ino(),
        size_bytes: found.len(),
        modified_ns: ns(found.mtime(), found.mtime_nsec()),
        changed_ns: ns(found.ctime(), found.ctime_nsec()),
    }
}

fn birth_of(found: &created::Birth) -> Option<FileBirth> {
    let birth = |born_ns| FileBirth { device: found.device, inode: found.inode, born_ns };
    found.born_ns.map(birth)
}

/// True if a file is one that an earlier run had begun to write when it was killed. What was
/// written to it since cannot be told from what that run wrote: it is the same file.
fn is_born(path: &Path, found: &Metadata, birth: FileBirth) -> bool {
    let now = created::of_path(path);
    let known = (birth.device, birth.inode, Some(birth.born_ns));
    identity(found) == (birth.device, birth.inode)
        && now.is_some_and(|now| (now.device, now.inode, now.born_ns) == known)
}

fn remove_if(path: &Path, known: Identity) -> Result<(), String> {
    let fails = |error: std::io::Error| format!("{}: {error}", path.display());
    match path.symlink_metadata() {
        Ok(found) if identity(&found) == known => std::fs::remove_file(path).map_err(fails),
        Ok(_) => Err(foreign(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fails(error)),
    }
}

/// Names of the files of a tenant that are files, not directories of many.
fn own_names(tenant: &Tenant) -> impl Iterator<Item = String> + '_ {
    tenant.file_names().filter(|_| !tenant.is_folder())
}

fn names(phase: &Phase) -> impl Iterator<Item = String> + '_ {
    phase.tenants.iter().flat_map(own_names)
}

/// Make a file only under a free name, in its first phase.
fn take_only_free_names(phases: &mut [Phase]) {
    let mut used = BTreeSet::new();
    for tenant in phases.iter_mut().flat_map(|phase| &mut phase.tenants) {
        let mine: Vec<String> = own_names(tenant).collect();
        if tenant.opening == Opening::Create && mine.iter().all(|name| !used.contains(name)) {
            tenant.opening = Opening::New;
        }
        used.extend(mine);
    }
}

#[cfg(test)]
mod tests;
