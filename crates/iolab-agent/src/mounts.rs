//! Table of mounts, from `/proc/self/mountinfo`.
//!
//! Source: Documentation/filesystems/proc.rst 3.5. Left out: propagation.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Identity of the mount.
    pub id: u64,
    /// `major:minor` as mountinfo has it.
    pub number: String,
    /// Part of the file system that it shows, `/` for all of it.
    pub root: PathBuf,
    /// Mount point.
    pub point: PathBuf,
    /// Options of this mount.
    pub options: String,
    /// Type of the file system.
    pub fs: String,
    /// Source: a device or another name.
    pub source: String,
    /// Options of the file system.
    pub super_options: String,
}

impl Mount {
    /// All options that are in effect.
    pub fn effective_options(&self) -> String {
        format!("{},{}", self.options, self.super_options)
    }
}

/// All mounts of this process.
pub fn all() -> Vec<Mount> {
    parse_all(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// All mounts in the text of a mountinfo file.
pub fn parse_all(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse).collect()
}

/// The mount that `path` lies in; asks the kernel, because `st_dev` misleads on btrfs and overlays.
pub fn of(path: &Path) -> Option<Mount> {
    of_open(&File::from(open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?))
}

/// The mount that what was opened lies in.
pub fn of_open(folder: &File) -> Option<Mount> {
    let facts =
        std::fs::read_to_string(format!("/proc/self/fdinfo/{}", folder.as_raw_fd())).ok()?;
    let id: u64 =
        facts.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()?;
    all().into_iter().find(|mount| mount.id == id)
}

fn parse(line: &str) -> Option<Mount> {
    let (mount, super_block) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let super_block: Vec<&str> = super_block.split(' ').collect();
    Some(Mount {
        id: mount.first()?.parse().ok()?,
        number: (*mount.get(2)?).to_owned(),
        root: PathBuf::from(unescape(mount.get(3)?)),
        point: PathBuf::from(unescape(mount.get(4)?)),
        options: (*mount.get(5)?).to_owned(),
        fs: (*super_block.first()?).to_owned(),
        source: unescape(super_block.get(1)?),
        super_options: unescape(super_block.get(2)?),
    })
}

/// Blanks and the like are written as three octal digits behind a backslash.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = code.filter(|_| *first == b'\\') {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_blanks_and_optional_fields() {
        let line = "36 35 98:0 /mnt1 /mnt/my\\040disk rw,noatime master:1 - \
                    ext3 /dev/root rw,errors=continue";
        let mount = parse(line).unwrap();
        assert_eq!((mount.id, mount.number.as_str()), (36, "98:0"));
        assert_eq!(mount.point, Path::new("/mnt/my disk"));
        assert_eq!((mount.fs.as_str(), mount.source.as_str()), ("ext3", "/dev/root"));
        assert_eq!(mount.effective_options(), "rw,noatime,rw,errors=continue");
    }

    #[test]
    fn the_root_is_in_some_mount() {
        assert_eq!(of(Path::new("/proc")).unwrap().fs, "proc");
    }
}
