//! Path of tracefs: mounted, or attached to this process alone.
//!
//! Where nobody has mounted it, it is opened without being mounted anywhere (fsopen(2), fsmount(2),
//! Linux 5.2): nobody else sees it, and it ends with the process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::sys;

const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// A file that every tracefs has.
const MARK: &str = "events/header_page";

/// The kernel's tracing file system.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds or opens it.
    ///
    /// # Errors
    ///
    /// The kernel has none, or does not let this process use it.
    pub fn open() -> Result<Self> {
        if !nix::unistd::geteuid().is_root() {
            let what = "only root can record block events";
            return Err(Error::refused(what, "run it as root or with sudo"));
        }
        let mounted = USUAL.iter().map(Path::new).find(|root| root.join(MARK).exists());
        if let Some(root) = mounted {
            return Ok(Self { root: root.to_path_buf(), _mount: None });
        }
        let mount = sys::open_file_system(c"tracefs").map_err(|error| unusable(&error))?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        if !root.join(MARK).exists() {
            return Err(unusable(&io::Error::from_raw_os_error(libc::ENODEV)));
        }
        Ok(Self { root, _mount: Some(mount) })
    }

    /// Its root directory, for this process.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn unusable(error: &io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENODEV) => Error::failed(
            "this kernel has no tracefs: block events cannot be recorded",
            "use a kernel with CONFIG_BLK_DEV_IO_TRACE, or watch the counters: iolab iostat",
        ),
        Some(libc::ENOSYS) => Error::failed(
            "tracefs is not mounted",
            "as root: mount -t tracefs tracefs /sys/kernel/tracing",
        ),
        Some(libc::EPERM | libc::EACCES) => Error::refused(
            "the kernel does not let this process use tracefs (a container, or lockdown)",
            "record on the host, or watch the counters: iolab iostat",
        ),
        _ => Error::io("open", "tracefs", io::Error::from(error.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_tracefs_cannot_be_used_is_told_with_what_helps() {
        for (errno, word) in [
            (libc::ENODEV, "iolab iostat"),
            (libc::ENOSYS, "mount -t tracefs"),
            (libc::EPERM, "on the host"),
        ] {
            let error = unusable(&io::Error::from_raw_os_error(errno));
            assert!(error.hint().contains(word), "{error}: {}", error.hint());
        }
    }
}
