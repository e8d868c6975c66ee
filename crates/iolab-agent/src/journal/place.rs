//! The place of the journals: who may change it, and which journals are in it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, geteuid};

use super::lines;
use super::record::Line;
use crate::doctor;
use crate::error::{Error, Result};
use crate::run_name;

const SUFFIX: &str = "jsonl";
/// The first line of a journal is shorter.
const HEADER_BYTES_MAX: u64 = 4096;

/// Refuses, as root, a place for journals that others could change: they say what root will write.
///
/// Only what exists is looked at; what does not is made for its owner alone.
pub fn check_place(state_dir: &Path) -> Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    for folder in [state_dir.to_path_buf(), folder(state_dir)] {
        // What a link is called is its owner's choice, what it leads to that of another.
        for found in [fs::symlink_metadata(&folder), fs::metadata(&folder)] {
            let Ok(found) = found else { continue };
            let mode = found.mode();
            let is_writable = mode & 0o022 != 0 && mode & 0o1000 == 0 && !found.is_symlink();
            let trouble = match found.uid() {
                0 if is_writable => format!("can be changed by others (mode {:o})", mode & 0o7777),
                0 => continue,
                owner => format!("belongs to user {owner}"),
            };
            return Err(Error::refused(
                format!("{} {trouble}, and root acts on the journals in it", folder.display()),
                format!(
                    "see what is in it, then: chown root: {0}; chmod go-w {0}",
                    folder.display()
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses what `Journal::create_for` would, without making anything.
pub fn check_writable(state_dir: &Path) -> Result<()> {
    let folder = folder(state_dir);
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    nix::unistd::access(there, AccessFlags::W_OK | AccessFlags::X_OK)
        .map_err(|errno| unwritable("create", &folder, &errno.into()))
}

pub(super) fn unwritable(action: &str, path: &Path, error: &std::io::Error) -> Error {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ": make room on that file system".to_owned()
        }
        ErrorKind::ReadOnlyFilesystem => ": it needs a file system that is writable".to_owned(),
        ErrorKind::PermissionDenied => format!(": {}", permission_for(path)),
        _ => String::new(),
    };
    let hint = format!("nothing is changed before the journal says so{advice}");
    Error::failed(format!("cannot {action} {}: {error}", path.display()), hint)
}

/// Directory that keeps a journal from being written: its owner and mode, the expected ones, and
/// the command that gives them, or another directory where it belongs to somebody else.
fn permission_for(path: &Path) -> String {
    let found = path.ancestors().find_map(|at| Some((at, fs::metadata(at).ok()?)));
    let Some((there, found)) = found else { return doctor::elsewhere() };
    let way = doctor::opened_again(there, Errno::EACCES).unwrap_or_else(doctor::elsewhere);
    format!(
        "{} belongs to user {} (mode {:o}) and must let user {} write in it (u+wx): {way}",
        there.display(),
        found.uid(),
        found.mode() & 0o7777,
        geteuid(),
    )
}

/// File of a run's journal.
pub fn file_of(state_dir: &Path, run: &str) -> PathBuf {
    folder(state_dir).join(format!("{run}.{SUFFIX}"))
}

/// All journals, by name.
pub fn files(state_dir: &Path) -> Vec<PathBuf> {
    files_in(&folder(state_dir))
}

/// Journals that a user may know of: those of his runs; root's `uid` is none, and knows all.
pub fn files_of(uid: Option<u32>, state_dir: &Path) -> Vec<PathBuf> {
    let mut found = files(state_dir);
    found.retain(|path| uid.is_none() || owner_of(path) == uid);
    found
}

/// The user whose number a journal's name begins with.
pub(super) fn uid_in(path: &Path) -> Option<u32> {
    run_name::parts(&run_of(path)).0
}

/// The user for whom root made the changes, whether its run lives or not: as its name says, or, in
/// those of an older iolab, the first line.
fn owner_of(path: &Path) -> Option<u32> {
    if let Some(uid) = uid_in(path) {
        return Some(uid);
    }
    let mut line = String::new();
    BufReader::new(File::open(path).ok()?.take(HEADER_BYTES_MAX)).read_line(&mut line).ok()?;
    let found = lines::take_apart(&line, |line| serde_json::from_str::<Line>(line).is_ok());
    match serde_json::from_str(&found.whole.first()?.1).ok()? {
        Line::Open { uid, .. } => uid,
        _ => None,
    }
}

pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|suffix| suffix == SUFFIX));
    found.sort();
    found
}

pub(super) fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("journal")
}

pub(super) fn sync_directory(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| Error::io("sync", folder, error))
}

/// The process that holds the lock of a journal: its living owner, as `/proc/locks` has it.
pub fn owner_of_lock(path: &Path) -> Option<u32> {
    let inode = format!(":{}", fs::symlink_metadata(path).ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5)?.ends_with(&inode);
        is_it.then(|| words[4].parse().ok())?
    })
}

/// The run that a file is named after, as it is called on this machine.
pub fn run_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Symptom: a journal that could not be made was explained by "see HOME". Fix: the directory,
    /// its owner and mode, those that are expected, and the command.
    #[test]
    fn a_journal_that_may_not_be_written_names_the_directory_and_the_way() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
        let denied = std::io::Error::from(ErrorKind::PermissionDenied);
        let (shown, user) = (folder.path().display(), geteuid());
        let hint = unwritable("create", &folder.path().join("iolab/journal"), &denied).hint();
        assert_eq!(
            hint,
            format!(
                "nothing is changed before the journal says so: {shown} belongs to user {user} \
                 (mode 500) and must let user {user} write in it (u+wx): chmod u+wx {shown}"
            )
        );
        // Nobody is advised to take over what is the system's.
        let hint = unwritable("create", Path::new("/journal-of-nobody"), &denied).hint();
        assert!(hint.contains("/ belongs to user 0"), "{hint}");
        assert!(hint.contains("set XDG_STATE_HOME to a directory of your own"), "{hint}");
    }
}
