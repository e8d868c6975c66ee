//! File or device behind a loop device, by number and not by name.
//!
//! One file has many names (hard links, bind mounts, other roots), so that names say nothing about
//! whether two loop devices share an image. The kernel tells device and inode to whoever may open
//! the loop device; others look at the name that sysfs shows. Source: include/uapi/linux/loop.h.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

use crate::machine::Machine;
use crate::sys;

/// File or device behind a loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// As sysfs names it.
    pub shown: String,
    /// Device and inode of the file; none if nobody may look.
    pub file: Option<(u64, u64)>,
    /// `major:minor`, if it is a block device.
    pub device: Option<String>,
}

/// The image of the loop device `name`; none if it is no attached loop device.
pub fn image_of(machine: &Machine, name: &str) -> Option<Image> {
    let shown = machine.peek(format!("/sys/block/{name}/loop/backing_file"))?;
    let node = machine.real(&Path::new("/dev").join(name));
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(node);
    if let Some(found) = opened.ok().and_then(|file| sys::loop_image(&file).ok()) {
        let device = (found.rdev != 0).then(|| number_of(found.rdev));
        return Some(Image { shown, file: Some((found.dev, found.inode)), device });
    }
    let place = machine.resolve(&shown).unwrap_or_else(|| PathBuf::from(&shown));
    let found = fs::metadata(machine.real(&place)).ok();
    let file = found.as_ref().map(|found| (found.dev(), found.ino()));
    let device = found.filter(|found| found.file_type().is_block_device());
    Some(Image { shown, file, device: device.map(|found| number_of(found.rdev())) })
}

/// `major:minor`.
pub fn number_of(rdev: u64) -> String {
    format!("{}:{}", major(rdev), minor(rdev))
}

impl Image {
    /// Tell whether both are one file; by name only if nobody may look.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.file, other.file) {
            (Some(own), Some(theirs)) if own == theirs => true,
            _ => self.shown == other.shown,
        }
    }

    /// Tell whether the file at `path` is this one.
    pub fn is_at(&self, path: &Path) -> bool {
        let found = fs::metadata(path);
        self.file.is_some()
            && found.is_ok_and(|found| self.file == Some((found.dev(), found.ino())))
    }
}
