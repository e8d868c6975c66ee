//! From a name to the device itself (rule R1), claiming it, and leaving it as ours.
//!
//! Names are only resolved; what counts is the number of what was opened. The kernel refuses the
//! claim while anybody mounts, swaps to or builds on the device or a partition of it. Left out:
//! partitions, which have no queue of their own.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use serde::{Deserialize, Serialize};

use super::content::{EDGE_BYTES, Ends, Verdict, verdict, wipe_command};
use super::identity::{Identity, identity};
use super::marker::{LeftBehind, Marker};
use super::sample;
use super::signature::Found;
use crate::error::{Error, Result};
use crate::machine::{DeviceIdentity, Machine, Whose};
use crate::protocol::ActionKind;
use crate::restore::patiently;
use crate::sys;

/// A whole device, found by any of its names.
#[derive(Debug)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// The kernel's own node.
    pub node: PathBuf,
    /// Number of the node.
    pub rdev: u64,
    /// Open for reading, which keeps its number; none if a rehearsal may not open it.
    pub file: Option<File>,
}

/// Linux include/uapi/asm-generic/errno.h: `ENOMEDIUM`.
const NO_MEDIUM: i32 = libc::ENOMEDIUM;

impl Disk {
    /// The device behind `path`, whatever links lead to it.
    pub fn find(machine: &Machine, path: &Path) -> Result<Self> {
        let shown = path.display();
        let real = fs::canonicalize(path).map_err(|error| {
            let hint = "see lsblk -o NAME,SERIAL,MODEL,SIZE for what there is";
            Error::refused(format!("{shown} cannot be found: {error}"), hint)
        })?;
        let found = fs::metadata(&real).map_err(|error| Error::io("look at", &real, error))?;
        if !found.file_type().is_block_device() {
            return Err(not_a_device(path, &real, &found));
        }
        let rdev = found.rdev();
        let number = format!("{}:{}", major(rdev), minor(rdev));
        let folder = machine.resolve(format!("/sys/dev/block/{number}")).ok_or_else(|| {
            Error::refused(format!("the kernel knows no device {number} ({shown})"), "see lsblk")
        })?;
        let name_of = |folder: &Path| folder.file_name().map(|n| n.to_string_lossy().into_owned());
        let name = name_of(&folder).expect("a device's folder has a name");
        if machine.exists(folder.join("partition")) {
            let disk = folder.parent().and_then(name_of).unwrap_or_default();
            return Err(Error::refused(
                format!("{shown} is a partition ({name}), and shares its queue with others"),
                format!("name the whole disk, /dev/{disk}, or use --on dir:PATH on that partition"),
            ));
        }
        let node = PathBuf::from(format!("/dev/{}", name.replace('!', "/")));
        let mut disk = Self { name, node, rdev, file: None };
        disk.file = match disk.open(OpenOptions::new().read(true), libc::O_NONBLOCK) {
            Ok(file) => Some(file),
            Err(Error::Io { source, .. })
                if source.kind() == ErrorKind::PermissionDenied && machine.is_dry_run() =>
            {
                None
            }
            Err(Error::Io { source, .. }) if source.raw_os_error() == Some(NO_MEDIUM) => {
                let what = format!("{} has no medium", disk.name);
                return Err(Error::refused(what, "insert one, or name another device"));
            }
            Err(error) => return Err(error),
        };
        Ok(disk)
    }

    /// Opens the node and makes sure that it still is the device.
    fn open(&self, how: &mut OpenOptions, flags: i32) -> Result<File> {
        open_node(&self.node, self.rdev, how, flags)
    }

    /// Identity of the claimed device.
    pub fn identity(&self, machine: &Machine) -> Identity {
        let image = self.file.as_ref().and_then(|file| sys::loop_image(file).ok());
        identity(machine, &self.name, image.map(|image| image.inode))
    }

    /// Tell whether the kernel would hand it out, asked without a chance to write.
    pub fn check_claim(&self) -> Result<()> {
        let how = &mut OpenOptions::new();
        let opened =
            patiently(|| match open_node(&self.node, self.rdev, how.read(true), libc::O_EXCL) {
                Err(Error::Io { source, .. }) => Err(source),
                _ => Ok(()),
            });
        match opened {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => Err(busy(&self.node)),
            _ => Ok(()),
        }
    }

    /// Claims it for nobody else.
    pub fn claim(&self) -> Result<Claim> {
        Claim::take(&self.node, self.rdev)
    }
}

fn open_node(node: &Path, rdev: u64, how: &mut OpenOptions, flags: i32) -> Result<File> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let opened = how.custom_flags(flags).open(node);
    let file = opened.map_err(|error| Error::io("open", node, error))?;
    let found = file.metadata().map_err(|error| Error::io("look at", node, error))?;
    if !found.file_type().is_block_device() || found.rdev() != rdev {
        return Err(Error::refused(
            format!("{} became another device while it was opened", node.display()),
            "look which device you mean, and try again; nothing was changed",
        ));
    }
    Ok(file)
}

fn not_a_device(path: &Path, real: &Path, found: &fs::Metadata) -> Error {
    let shown = path.display();
    if found.is_dir() {
        let hint = format!("for a directory: --on dir:{shown}");
        return Error::refused(format!("{shown} is a directory, no block device"), hint);
    }
    if found.is_file() && real.starts_with("/dev") {
        return Error::refused(
            format!("{shown} is an ordinary file that somebody made under /dev, no block device"),
            format!("a mistyped name does that; look at it, then rm {}", real.display()),
        );
    }
    Error::refused(
        format!("{shown} is no block device"),
        "name one, as lsblk lists them; for an image of your own use --on loop:1g",
    )
}

fn busy(node: &Path) -> Error {
    Error::refused(
        format!(
            "{} is in use: the kernel refuses to hand it out, because it is mounted, part of a \
             volume or claimed by a program",
            node.display()
        ),
        format!("see lsblk {} and fuser -v {0}", node.display()),
    )
}

/// The kernel's promise that nobody else mounts or builds on the device.
#[derive(Debug)]
pub struct Claim(File);

impl Claim {
    /// Takes it; waits a little for those who only look (udev).
    pub fn take(node: &Path, rdev: u64) -> Result<Self> {
        let mut taken = None;
        let attempt = patiently(|| {
            let how = &mut OpenOptions::new();
            match open_node(node, rdev, how.read(true).write(true), libc::O_EXCL) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ResourceBusy => {
                    Err(source)
                }
                other => {
                    taken = Some(other);
                    Ok(())
                }
            }
        });
        match (attempt, taken) {
            (Ok(()), Some(file)) => file.map(Self),
            _ => Err(busy(node)),
        }
    }

    /// The open device.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// Blanks both ends and puts the marker at the begin.
    fn mark(&self, marker: &Marker, size_bytes: u64) -> std::io::Result<()> {
        let mut begin = marker.to_bytes();
        begin.resize(EDGE_BYTES as usize, 0);
        self.0.write_all_at(&begin, 0)?;
        self.0.write_all_at(&vec![0; EDGE_BYTES as usize], size_bytes - EDGE_BYTES)?;
        self.0.sync_all()
    }
}

/// Note that a device was erased: what is needed to leave it as ours, and nobody else's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erased {
    /// Serial as typed.
    pub serial: String,
    /// Size of the device.
    pub size_bytes: u64,
    /// Number of its node.
    pub rdev: u64,
    /// Of every file system that we make on it.
    pub uuid: String,
    /// Time of the confirmation.
    pub confirmed_at_unix_s: u64,
    /// Digest of the plan for which it was confirmed.
    #[serde(default)]
    pub study: Option<String>,
}

/// State in which a device was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Blank at both ends, with our marker.
    Marked,
    /// As it is, because it is not what we left; the text says how.
    Alone(String),
}

/// Takes off what we made, if it is what we made.
pub fn settle(
    machine: &mut Machine,
    device: &DeviceIdentity,
    erased: &Erased,
    run: &str,
) -> Result<Left> {
    match device.whose(machine) {
        Whose::Same => {}
        Whose::Gone => return Ok(Left::Alone("it is gone".to_owned())),
        Whose::Foreign(how) => {
            return Ok(Left::Alone(format!("it is not the device it was: {how}")));
        }
    }
    // Who puts back what a dead run left does not know who wrote there in between.
    let is_closed_in_order = machine.journal().is_some_and(|journal| !journal.is_adopted());
    let node = PathBuf::from(format!("/dev/{}", device.name.replace('!', "/")));
    let detail = "blank both ends, mark it as iolab's";
    let left = machine.act(ActionKind::WriteMarker, node.display().to_string(), detail, || {
        let claim = Claim::take(&node, erased.rdev)?;
        let fail = |error| Error::io("mark", &node, error);
        let ends = Ends::read(claim.file(), erased.size_bytes).map_err(fail)?;
        if let Some(how) = foreign(&ends, &erased.uuid) {
            let command = wipe_command(&node.display().to_string(), erased.size_bytes);
            return Ok(Left::Alone(format!("{how}; if nobody needs that: {command}")));
        }
        let Erased { serial, size_bytes, confirmed_at_unix_s, .. } = erased;
        let left = left_behind(&claim, erased).filter(|_| is_closed_in_order);
        let marker = Marker::new(serial, *size_bytes, *confirmed_at_unix_s, run).with_left(left);
        claim.mark(&marker, *size_bytes).map_err(fail)?;
        Ok(Left::Marked)
    })?;
    Ok(left.unwrap_or(Left::Marked))
}

/// Note for a repetition of the study; none if there was no study or it cannot be read.
fn left_behind(claim: &Claim, erased: &Erased) -> Option<LeftBehind> {
    let study = erased.study.clone()?;
    claim.file().sync_all().ok()?;
    let content = sample::digest(claim.file(), erased.size_bytes, &erased.uuid).ok()?;
    Some(LeftBehind { study, seed: erased.uuid.clone(), content })
}

/// Foreign content of the device.
fn foreign(ends: &Ends, uuid: &str) -> Option<String> {
    match verdict(ends) {
        Verdict::Unseen | Verdict::Blank | Verdict::Marked(_) => None,
        Verdict::Labels(found) if found.iter().all(|label| is_ours(ends, label, uuid)) => None,
        Verdict::Labels(found) => Some(format!("it has a label of {} by now", found[0].name)),
        Verdict::Data(offset) => Some(format!("it has data at byte {offset} by now")),
    }
}

/// Tell whether a file system carries the name that we gave it. Offsets: Linux fs/ext4/ext4.h
/// (`s_uuid`), `xfs_format.h` (`sb_uuid`), `btrfs_tree.h` (`fsid`).
fn is_ours(ends: &Ends, label: &Found, uuid: &str) -> bool {
    let offset = match label.name {
        "ext2, ext3 or ext4" => 1024 + 0x68,
        "xfs" => 32,
        "btrfs" => 65_536 + 32,
        _ => return false,
    };
    let digits: String = uuid.chars().filter(|&digit| digit != '-').collect();
    let Ok(number) = u128::from_str_radix(&digits, 16) else { return false };
    digits.len() == 32 && ends.at(offset, 16) == Some(&number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

    fn ends(edit: impl Fn(&mut Vec<u8>)) -> Ends {
        let mut begin = vec![0; EDGE_BYTES as usize];
        edit(&mut begin);
        Ends { total_bytes: 64 << 20, begin, end: vec![0; EDGE_BYTES as usize] }
    }

    fn ext4(uuid: &[u8]) -> Ends {
        ends(|begin| {
            begin[1080..1082].copy_from_slice(b"\x53\xEF");
            begin[1024 + 0x68..1024 + 0x78].copy_from_slice(uuid);
        })
    }

    #[test]
    fn only_the_file_system_that_we_made_is_taken_off() {
        let ours: Vec<u8> = (0..16).map(|i| 0x0f + i * 0x0f).collect();
        assert_eq!(foreign(&ext4(&ours), UUID), None);
        assert!(foreign(&ext4(&[7; 16]), UUID).unwrap().contains("ext4"));
        assert!(foreign(&ends(|begin| begin[9_000] = 1), UUID).unwrap().contains("byte 9000"));
        assert_eq!(foreign(&ends(|_| ()), UUID), None);
        let with_table = ends(|begin| begin[512..520].copy_from_slice(b"EFI PART"));
        assert!(foreign(&with_table, UUID).unwrap().contains("GPT"));
    }

    #[test]
    fn what_is_no_device_is_told_apart() {
        let machine = Machine::new(true);
        let file = tempfile::NamedTempFile::new().unwrap();
        let message = |path: &Path| {
            let error = Disk::find(&machine, path).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{error}");
            error.to_string()
        };
        assert!(message(file.path()).contains("no block device"));
        assert!(message(Path::new("/dev/null")).contains("no block device"));
        assert!(message(Path::new("/tmp")).contains("is a directory"));
        assert!(message(Path::new("/dev/iolab-nowhere")).contains("cannot be found"));
    }
}
