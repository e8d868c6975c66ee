//! A directory that is ours, proved by a token, and removing it without ever leaving it.
//!
//! Everything is opened relative to its parent and without following links; what lies on another
//! device (somebody mounted there) is not touched. Left out: knowing every file by name; the whole
//! directory was made by us, and nobody else is told of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::dir::Dir;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::error::{Error, Result};

const TOKEN_FILE: &str = ".iolab-token";
/// More than a token has, which is 36: a longer text is none of ours.
const TOKEN_BYTES_MAX: u64 = 64;
const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A token that nobody else has.
pub fn fresh_token() -> Result<String> {
    let path = "/proc/sys/kernel/random/uuid";
    let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    Ok(text.trim().to_owned())
}

/// Makes `path`, which must not exist, and puts the token inside; both are durable.
///
/// Without that a file system that gives up in the middle of a trial could lose the token, and
/// nobody could tell any more that the directory is ours.
pub fn create(path: &Path, token: &str) -> Result<()> {
    let fail = |error: nix::Error| Error::io("create", path, error);
    let (parent, name) = parent_of(path)?;
    mkdirat(&parent, name, Mode::S_IRWXU).map_err(fail)?;
    let folder = openat(&parent, name, FOLDER, Mode::empty()).map_err(fail)?;
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = openat(&folder, TOKEN_FILE, flags, Mode::S_IRUSR | Mode::S_IWUSR).map_err(fail)?;
    let mut file = fs::File::from(file);
    file.write_all(token.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::File::from(folder).sync_all())
        .map_err(|error| Error::io("write", path.join(TOKEN_FILE), error))
}

/// Removes `path` and all that is in it, if the token says that it is ours; nothing if it is gone.
pub fn remove(path: &Path, token: &str) -> Result<()> {
    let (parent, name) = match parent_of(path) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(());
        }
        other => other?,
    };
    let fail = |error: nix::Error| Error::io("remove", path, error);
    let folder = match openat(&parent, name, FOLDER, Mode::empty()) {
        Err(nix::Error::ENOENT) => return Ok(()),
        other => other.map_err(fail)?,
    };
    match read_token(&folder) {
        Some(found) if found == token => empty(&folder, path)?,
        Some(_) => {
            return Err(Error::failed(
                format!("{} is not ours: its token differs", path.display()),
                "look at it, and remove it by hand",
            ));
        }
        // Killed before the token was inside: the directory can only be removed if it is empty.
        None => {}
    }
    match unlinkat(&folder, TOKEN_FILE, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(nix::Error::ENOENT) => {}
        Err(error) => return Err(fail(error)),
    }
    match unlinkat(&parent, name, UnlinkatFlags::RemoveDir) {
        Err(nix::Error::ENOTEMPTY) => Err(Error::failed(
            format!("{} has no token of ours (any more) and is not empty", path.display()),
            "look at what is inside, and remove it by hand",
        )),
        other => other.map_err(fail),
    }
}

/// Removes everything in `path` but the token; a `token` that is given must be the one inside.
pub fn clear(path: &Path, token: Option<&str>) -> Result<()> {
    empty(&open_owned(path, token)?, path)
}

/// Makes our directory the working directory of this process.
///
/// From then on relative names stay inside it, whatever becomes of its path: in a directory that
/// others may write to, somebody could exchange ours for a link to a place of theirs.
pub fn enter(path: &Path, token: Option<&str>) -> Result<()> {
    let folder = open_owned(path, token)?;
    nix::unistd::fchdir(&folder).map_err(|error| Error::io("enter", path, error))
}

/// Gives our directory itself, not what its path leads to by now, to a user and a group.
pub fn give(path: &Path, token: Option<&str>, owner: (u32, u32)) -> Result<()> {
    let (uid, gid) = owner;
    let folder = open_owned(path, token)?;
    std::os::unix::fs::fchown(&folder, Some(uid), Some(gid))
        .map_err(|error| Error::io("hand over", path, error))
}

/// Our directory itself, proved by its token.
pub fn open_owned(path: &Path, token: Option<&str>) -> Result<OwnedFd> {
    let folder =
        open(path, FOLDER, Mode::empty()).map_err(|error| Error::io("open", path, error))?;
    if token.is_some_and(|token| read_token(&folder).as_deref() != Some(token)) {
        return Err(Error::refused(
            format!("{} is not the directory that iolab made", path.display()),
            "somebody moved or exchanged it: use a directory that others cannot write to",
        ));
    }
    Ok(folder)
}

/// Tell whether directories below `place` can be made and removed by who asks: it can be opened.
pub fn check_place(place: &Path) -> Result<()> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    open(place, flags, Mode::empty()).map(drop).map_err(|error| Error::io("open", place, error))
}

fn parent_of(path: &Path) -> Result<(OwnedFd, &OsStr)> {
    let parent = path.parent().expect("an owned directory lies in another");
    let name = path.file_name().expect("an owned directory has a name");
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let fd =
        open(parent, flags, Mode::empty()).map_err(|error| Error::io("open", parent, error))?;
    Ok((fd, name))
}

/// The token, or none if there is no whole one.
///
/// Whoever the directory was given to may have put anything in its place: a FIFO is not waited
/// for, and of a large file only the beginning is read.
fn read_token(folder: &OwnedFd) -> Option<String> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = openat(folder, TOKEN_FILE, flags, Mode::empty()).ok()?;
    if fstat(&file).ok()?.st_mode & SFlag::S_IFMT.bits() != SFlag::S_IFREG.bits() {
        return None;
    }
    let mut text = String::new();
    fs::File::from(file).take(TOKEN_BYTES_MAX).read_to_string(&mut text).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Removes what is in `folder`; `shown` is its path, for messages only.
fn empty(folder: &OwnedFd, shown: &Path) -> Result<()> {
    let device = fstat(folder).map_err(|error| Error::io("stat", shown, error))?.st_dev;
    for name in names(folder, shown)? {
        let path = shown.join(&name);
        if name == TOKEN_FILE {
            continue;
        }
        let fail = |error: nix::Error| Error::io("remove", &path, error);
        let status =
            fstatat(folder, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW).map_err(fail)?;
        if !is_folder(&status) {
            unlinkat(folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir).map_err(fail)?;
            continue;
        }
        let inner = openat(folder, name.as_os_str(), FOLDER, Mode::empty()).map_err(fail)?;
        let found = fstat(&inner).map_err(fail)?;
        if found.st_dev != device {
            return Err(Error::failed(
                format!("{} lies on another device", path.display()),
                "unmount it first",
            ));
        }
        empty(&inner, &path)?;
        let _ = unlinkat(&inner, TOKEN_FILE, UnlinkatFlags::NoRemoveDir);
        unlinkat(folder, name.as_os_str(), UnlinkatFlags::RemoveDir).map_err(fail)?;
    }
    Ok(())
}

fn is_folder(status: &FileStat) -> bool {
    SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR
}

fn names(folder: &OwnedFd, shown: &Path) -> Result<Vec<OsString>> {
    let fail = |error: nix::Error| Error::io("list", shown, error);
    let again = openat(folder.as_fd(), ".", FOLDER, Mode::empty()).map_err(fail)?;
    let mut listing = Dir::from_fd(again).map_err(fail)?;
    let mut found = Vec::new();
    for entry in listing.iter() {
        let name = OsStr::from_bytes(entry.map_err(fail)?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            found.push(name);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn planted() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let owned = place.path().join(".iolab-1");
        let foreign = place.path().join("precious");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("thesis"), "years").unwrap();
        create(&owned, "token-1").unwrap();
        (place, owned, foreign)
    }

    #[test]
    fn links_out_of_the_directory_are_removed_not_followed() {
        let (_place, owned, foreign) = planted();
        symlink(&foreign, owned.join("link")).unwrap();
        symlink(foreign.join("thesis"), owned.join("data.0")).unwrap();
        fs::hard_link(foreign.join("thesis"), owned.join("data.1")).unwrap();
        fs::create_dir_all(owned.join("a/b")).unwrap();
        symlink("../../..", owned.join("a/b/up")).unwrap();
        clear(&owned, Some("token-1")).unwrap();
        assert_eq!(fs::read_dir(&owned).unwrap().count(), 1, "the token stays");
        remove(&owned, "token-1").unwrap();
        assert!(!owned.exists());
        assert_eq!(fs::read_to_string(foreign.join("thesis")).unwrap(), "years");
    }

    /// Its user may put there what he likes: root neither waits for it nor reads all of it.
    #[test]
    fn a_token_that_is_no_small_file_is_not_ours() {
        let (_place, owned, _) = planted();
        let token = owned.join(TOKEN_FILE);
        fs::remove_file(&token).unwrap();
        nix::unistd::mkfifo(&token, Mode::S_IRWXU).unwrap();
        assert!(clear(&owned, Some("token-1")).is_err());
        fs::remove_file(&token).unwrap();
        fs::File::create(&token).unwrap().set_len(1 << 40).unwrap();
        assert!(clear(&owned, Some("token-1")).is_err());
        assert!(remove(&owned, "token-1").is_err());
        fs::remove_file(&token).unwrap();
        nix::unistd::mkfifo(&token, Mode::S_IRWXU).unwrap();
        remove(&owned, "token-1").unwrap();
        assert!(!owned.exists(), "nothing but a name of ours was in it");
    }

    #[test]
    fn what_is_given_away_is_ours_and_no_link() {
        use std::os::unix::fs::MetadataExt as _;
        let (place, owned, foreign) = planted();
        let me = fs::metadata(&owned).unwrap();
        give(&owned, Some("token-1"), (me.uid(), me.gid())).unwrap();
        assert!(give(&owned, Some("token-2"), (me.uid(), me.gid())).is_err());
        assert!(give(&foreign, Some("token-1"), (me.uid(), me.gid())).is_err());
        let link = place.path().join("link");
        symlink(&owned, &link).unwrap();
        assert!(give(&link, Some("token-1"), (me.uid(), me.gid())).is_err());
    }

    #[test]
    fn a_directory_exchanged_for_a_link_is_not_followed() {
        let (_place, owned, foreign) = planted();
        fs::remove_dir_all(&owned).unwrap();
        symlink(&foreign, &owned).unwrap();
        assert!(remove(&owned, "token-1").is_err());
        assert!(clear(&owned, None).is_err());
        assert!(enter(&owned, Some("token-1")).is_err());
        assert!(foreign.join("thesis").exists());
    }

    #[test]
    fn a_directory_without_our_token_is_kept() {
        let (_place, owned, foreign) = planted();
        assert!(clear(&foreign, Some("token-1")).is_err());
        assert!(enter(&foreign, Some("token-1")).is_err());
        assert!(remove(&owned, "token-2").is_err());
        assert!(owned.exists());
        assert!(remove(&foreign, "token-1").is_err(), "not empty, no token");
        assert!(foreign.join("thesis").exists());
    }

    #[test]
    fn what_was_killed_before_its_token_was_written_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let owned = place.path().join(".iolab-1");
        fs::create_dir(&owned).unwrap();
        remove(&owned, "token-1").unwrap();
        assert!(!owned.exists());
        fs::create_dir(&owned).unwrap();
        fs::write(owned.join(TOKEN_FILE), "").unwrap();
        remove(&owned, "token-1").unwrap();
        assert!(!owned.exists());
        remove(&owned, "token-1").unwrap();
        remove(&place.path().join("gone/.iolab-1"), "token-1").unwrap();
    }
}
