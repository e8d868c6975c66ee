//! Directory of a store: ours by a marker in it; another's is refused, whatever it holds.
//!
//! A store writes, renames and removes files by rules of its own, so a directory that holds
//! anything is only opened if an earlier run made it, or if the user named it (safety R6).

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use iolab_model::Error;
use iolab_model::error::Errno;

/// File that says who made the directory.
pub const MARKER: &str = "IOLAB-STORE";
/// File that lies beside it while the records are loaded: what is there is not all of them.
pub const LOADING: &str = "IOLAB-LOADING";
/// First line of it.
const HEAD: &str = "iolab store 1";

/// State of a directory before a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryState {
    /// Made just now, or empty before.
    New,
    /// Made by a store of this kind.
    Ours,
    /// Another's, which the user named.
    Named,
}

/// Makes or recognises the directory of a store.
///
/// # Errors
///
/// It is somebody's and was not named, or cannot be made or read; nothing was touched.
pub fn take(directory: &Path, store: &str, is_named: bool) -> Result<DirectoryState, Error> {
    match directory.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = DirBuilder::new().mode(0o755).create(directory);
            made.map_err(|error| failed("making", directory, &error))?;
            mark(directory, store)?;
            return Ok(DirectoryState::New);
        }
        Err(error) => return Err(failed("looking at", directory, &error)),
        Ok(found) if !found.is_dir() => return Err(foreign(directory, "is no directory")),
        Ok(_) => {}
    }
    let read = std::fs::read_dir(directory);
    let mut entries = read.map_err(|error| failed("reading", directory, &error))?;
    if entries.next().is_none() {
        mark(directory, store)?;
        return Ok(DirectoryState::New);
    }
    match marked(directory) {
        Some(found) if found == store => Ok(DirectoryState::Ours),
        Some(found) => {
            Err(foreign(directory, &format!("holds a database of {found}, not of {store}")))
        }
        None if is_named => Ok(DirectoryState::Named),
        None => Err(foreign(directory, "is not a database that iolab made")),
    }
}

/// Notes that records are being loaded, until [`end_loading`]: a load that was killed leaves it.
///
/// # Errors
///
/// It cannot be written.
pub fn begin_loading(directory: &Path) -> Result<(), Error> {
    let path = directory.join(LOADING);
    let mut how = OpenOptions::new();
    let opened = how.write(true).create_new(true).mode(0o644).custom_flags(libc::O_NOFOLLOW);
    match opened.open(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(failed("writing", &path, &error))
        }
        _ => Ok(()),
    }
}

/// Notes that all records are there.
///
/// # Errors
///
/// The note cannot be taken away.
pub fn end_loading(directory: &Path) -> Result<(), Error> {
    let path = directory.join(LOADING);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("removing", &path, &error)),
        _ => Ok(()),
    }
}

/// Tell whether a load began that did not end.
pub fn is_loading(directory: &Path) -> bool {
    directory.join(LOADING).symlink_metadata().is_ok()
}

fn mark(directory: &Path, store: &str) -> Result<(), Error> {
    let path = directory.join(MARKER);
    let mut how = OpenOptions::new();
    let opened = how.write(true).create_new(true).mode(0o644).open(&path);
    let written =
        opened.and_then(|mut file| file.write_all(format!("{HEAD}\n{store}\n").as_bytes()));
    written.map_err(|error| failed("writing", &path, &error))
}

/// Store that the marker names.
fn marked(directory: &Path) -> Option<String> {
    let mut how = OpenOptions::new();
    let opened = how.read(true).custom_flags(libc::O_NOFOLLOW).open(directory.join(MARKER)).ok()?;
    let mut text = String::new();
    opened.take(256).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some(HEAD)).then(|| lines.next().unwrap_or_default().to_owned())
}

fn failed(call: &'static str, path: &Path, error: &std::io::Error) -> Error {
    let errno = Errno(error.raw_os_error().unwrap_or(Errno::EIO.0));
    Error::System { call, subject: path.display().to_string(), errno }
}

fn foreign(directory: &Path, why: &str) -> Error {
    let shown = directory.strip_prefix(".").unwrap_or(directory).display();
    Error::BadWorkload {
        problem: format!("{shown} {why}: nothing was touched"),
        remedy: "name another directory, or allow this one with --overwrite".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_did_not_end_is_known() {
        let place = tempfile::tempdir().unwrap();
        let one = place.path().join("db");
        take(&one, "rocksdb", false).unwrap();
        assert!(!is_loading(&one));
        begin_loading(&one).unwrap();
        begin_loading(&one).unwrap();
        assert!(is_loading(&one));
        assert_eq!(take(&one, "rocksdb", false).unwrap(), DirectoryState::Ours);
        end_loading(&one).unwrap();
        end_loading(&one).unwrap();
        assert!(!is_loading(&one));
    }

    #[test]
    fn a_directory_is_new_ours_or_refused() {
        let place = tempfile::tempdir().unwrap();
        let one = place.path().join("db");
        assert_eq!(take(&one, "rocksdb", false).unwrap(), DirectoryState::New);
        assert_eq!(take(&one, "rocksdb", false).unwrap(), DirectoryState::Ours);
        let other = take(&one, "fjall", false).unwrap_err().to_string();
        assert!(other.contains("of rocksdb, not of fjall"), "{other}");
        let theirs = place.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        assert_eq!(
            take(&theirs, "rocksdb", false).unwrap(),
            DirectoryState::New,
            "an empty one is free"
        );
        std::fs::remove_file(theirs.join(MARKER)).unwrap();
        std::fs::write(theirs.join("letter"), "dear").unwrap();
        let refused = take(&theirs, "rocksdb", false).unwrap_err().to_string();
        assert!(refused.contains("not a database that iolab made"), "{refused}");
        assert!(!theirs.join(MARKER).exists(), "nothing was touched");
        assert_eq!(take(&theirs, "rocksdb", true).unwrap(), DirectoryState::Named);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        assert!(take(&link, "rocksdb", false).unwrap_err().to_string().contains("no directory"));
    }
}
