//! Asks a file system what direct I/O must be aligned to, without a name that could be a user's.
//!
//! The question is answered for a file only, and none need exist yet. So one without a name is made
//! (`O_TMPFILE`); where the file system has no such files, one with a name of chance that must be
//! new, unlinked at once. Nothing that exists is opened.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use iolab_model::Error;
use iolab_real::alignment::{DirectAlignment, direct_alignment};

use crate::owned_directory::fresh_token;

/// The alignment for files beside `file`; none if the kernel does not say or nothing can be made.
pub fn alignment_beside(file: &Path) -> Result<Option<DirectAlignment>, Error> {
    let folder = file.parent().filter(|folder| *folder != OsStr::new(""));
    match nameless(folder.unwrap_or(Path::new("."))) {
        Ok(probe) => direct_alignment(Path::new(&format!("/proc/self/fd/{}", probe.as_raw_fd()))),
        Err(_) => Ok(None),
    }
}

fn nameless(folder: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).mode(0o600);
    how.clone().custom_flags(libc::O_TMPFILE).open(folder).or_else(|_| named(&how, folder))
}

/// For file systems without nameless files, such as those of networks.
fn named(how: &OpenOptions, folder: &Path) -> io::Result<File> {
    let token = fresh_token().map_err(io::Error::other)?;
    let path: PathBuf = folder.join(format!(".iolab-probe-{token}"));
    let file = how.clone().create_new(true).custom_flags(libc::O_NOFOLLOW).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Issue 14, point 1: `iozone -I -f NAME` truncated and removed the user's file `NAME.probe`,
    /// through a link any file, because the probe had that name.
    #[test]
    fn files_and_links_that_are_there_survive() {
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("data.probe"), "mine").unwrap();
        fs::write(path("thesis"), "years").unwrap();
        symlink(path("thesis"), path("link.probe")).unwrap();
        for name in ["data", "link"] {
            alignment_beside(&path(name)).unwrap();
        }
        named(OpenOptions::new().read(true).write(true), place.path()).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["data.probe", "link.probe", "thesis"]);
        assert_eq!(fs::read_to_string(path("data.probe")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(path("thesis")).unwrap(), "years");
    }

    #[test]
    fn where_nothing_can_be_made_nothing_is_known() {
        assert_eq!(alignment_beside(Path::new("/nowhere/data")).unwrap().map(|_| ()), None);
    }
}
