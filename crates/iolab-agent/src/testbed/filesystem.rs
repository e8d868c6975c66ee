//! File systems that we make and mount, each a row of a table.
//!
//! Ours are plain defaults without discards and lazy work in the background: mkfs would punch holes
//! into the image, and a trial would pay for the rest (mkfs.ext4(8): discard, `lazy_itable_init`).
//! The user's options follow ours, so theirs win. An option may not name anything but what we hand
//! over: mkfs takes further devices as arguments, and some mount options take paths.

use std::path::Path;

use super::kernel_log::KernelLog;
use crate::error::{Error, Result};
use crate::machine::{Machine, find_program};
use crate::mounts;
use crate::protocol::{ActionKind, Stack, Warning};
use crate::restore::patiently;

/// How a file system takes a journal on another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExternalJournal {
    /// `mke2fs -O journal_dev`, then `-J device=`.
    Ext,
    /// `-l logdev=` and the mount option of that name.
    Xfs,
    /// Not at all.
    None,
}

/// One row: how to make and mount it.
#[derive(Debug)]
pub struct FileSystem {
    /// Name in a stack.
    pub name: &'static str,
    /// The program that makes it.
    pub mkfs: &'static str,
    mkfs_options: &'static [&'static str],
    mount_options: &'static [&'static str],
    external_journal: ExternalJournal,
    bytes_min: u64,
}

impl FileSystem {
    /// mke2fs(8) and mkfs.btrfs(8): `-U`; mkfs.xfs(8): `-m uuid=`.
    fn uuid_options(&self, uuid: &str) -> [String; 2] {
        match self.name {
            "xfs" => ["-m".to_owned(), format!("uuid={uuid}")],
            _ => ["-U".to_owned(), uuid.to_owned()],
        }
    }
}

const MIB: u64 = 1 << 20;

/// Every file system of a loop testbed.
pub const FILE_SYSTEMS: &[FileSystem] = &[
    FileSystem {
        name: "ext2",
        mkfs: "mkfs.ext2",
        mkfs_options: &["-F", "-q", "-E", "nodiscard,lazy_itable_init=0"],
        mount_options: &[],
        external_journal: ExternalJournal::None,
        bytes_min: 16 * MIB,
    },
    FileSystem {
        name: "ext3",
        mkfs: "mkfs.ext3",
        mkfs_options: &["-F", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::Ext,
        bytes_min: 16 * MIB,
    },
    FileSystem {
        name: "ext4",
        mkfs: "mkfs.ext4",
        mkfs_options: &["-F", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::Ext,
        bytes_min: 16 * MIB,
    },
    FileSystem {
        name: "xfs",
        mkfs: "mkfs.xfs",
        mkfs_options: &["-f", "-q", "-K"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::Xfs,
        bytes_min: 300 * MIB, // xfsprogs 5.19 and later refuse less.
    },
    FileSystem {
        name: "btrfs",
        mkfs: "mkfs.btrfs",
        mkfs_options: &["-f", "-q", "-K"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::None,
        bytes_min: 110 * MIB, // btrfs-progs: the smallest without mixed groups.
    },
];

/// Words in options that would name another device or file.
const FOREIGN_WORDS: &[&str] =
    &["/", "device=", "logdev=", "rtdev=", "name=", "journal_dev=", "journal_path="];

/// Mount options that mean something else than mounting this device.
const FOREIGN_MOUNTS: &[&str] =
    &["bind", "rbind", "move", "remount", "loop", "offset", "sizelimit", "helper", "ro"];

/// Mount options that trade the user's data for speed.
const UNSAFE_OPTIONS: &[&str] = &["barrier=0", "nobarrier"];

/// A file system on our devices.
#[derive(Debug)]
pub struct Volume<'a> {
    /// `/dev/loop8`.
    pub device: &'a str,
    /// `/dev/loop9`, if there is a second one.
    pub journal_device: Option<&'a str>,
    /// Where it is mounted.
    pub point: &'a Path,
    /// Size of the device.
    pub bytes: u64,
    /// What it is called, if it must be told from others.
    pub uuid: Option<&'a str>,
}

/// The row of a stack; refuses what we cannot make here.
pub fn check(stack: &Stack, volume: &Volume) -> Result<&'static FileSystem> {
    let names: Vec<&str> = FILE_SYSTEMS.iter().map(|row| row.name).collect();
    let found = FILE_SYSTEMS.iter().find(|row| row.name == stack.fs);
    let found = found.ok_or_else(|| Error::unknown("file system", &stack.fs, &names))?;
    for option in stack.mkfs_options.iter().chain(&stack.mount_options) {
        if FOREIGN_WORDS.iter().any(|word| option.contains(word)) {
            return Err(Error::refused(
                format!("the option '{option}' could name another device or file"),
                "leave it out; an external journal has a setting of its own",
            ));
        }
    }
    for option in &stack.mount_options {
        if option
            .split(',')
            .any(|word| FOREIGN_MOUNTS.contains(&word.split('=').next().unwrap_or_default()))
        {
            return Err(Error::refused(
                format!("the mount option '{option}' is not for a testbed"),
                "leave it out",
            ));
        }
    }
    if volume.bytes < found.bytes_min {
        return Err(Error::failed(
            format!(
                "{} needs {} MiB, the testbed has {}",
                found.name,
                found.bytes_min / MIB,
                volume.bytes / MIB
            ),
            "use a larger testbed, such as --on loop:1g",
        ));
    }
    if stack.has_external_journal && found.external_journal == ExternalJournal::None {
        return Err(Error::failed(
            format!("{} has no external journal", found.name),
            "use ext3, ext4 or xfs for it",
        ));
    }
    if stack.has_external_journal && volume.journal_device.is_none() {
        return Err(Error::protocol("an external journal needs a testbed with device_count 2"));
    }
    Ok(found)
}

/// Makes the file system anew.
pub fn make(machine: &mut Machine, stack: &Stack, volume: &Volume) -> Result<()> {
    let fs = check(stack, volume)?;
    if find_program(fs.mkfs).is_none() {
        return Err(Error::failed(
            format!("{} is not installed", fs.mkfs),
            format!("install the programs of {}, or leave it out", fs.name),
        ));
    }
    let mut command = vec![fs.mkfs.to_owned()];
    command.extend(fs.mkfs_options.iter().map(|option| (*option).to_owned()));
    command.extend(volume.uuid.iter().flat_map(|uuid| fs.uuid_options(uuid)));
    command.extend(stack.mkfs_options.iter().cloned());
    if let (true, Some(journal)) = (stack.has_external_journal, volume.journal_device) {
        match fs.external_journal {
            ExternalJournal::Ext => {
                make_ext_journal(machine, stack, journal)?;
                command.extend(["-J".to_owned(), format!("device={journal}")]);
            }
            ExternalJournal::Xfs => command.extend(["-l".to_owned(), format!("logdev={journal}")]),
            ExternalJournal::None => {}
        }
    }
    command.push(volume.device.to_owned());
    machine.run(ActionKind::Mkfs, volume.device, &command).map(drop)
}

/// The journal must have the block size of the file system.
fn make_ext_journal(machine: &mut Machine, stack: &Stack, journal: &str) -> Result<()> {
    let options = &stack.mkfs_options;
    let block_size = options
        .iter()
        .position(|option| option == "-b")
        .and_then(|place| options.get(place + 1))
        .cloned()
        .or_else(|| options.iter().find_map(|option| option.strip_prefix("-b").map(str::to_owned)))
        .filter(|size| !size.is_empty())
        .unwrap_or_else(|| "4096".to_owned());
    let words = ["mke2fs", "-F", "-q", "-O", "journal_dev", "-b", &block_size, journal];
    machine.run(ActionKind::Mkfs, journal, &words.map(str::to_owned)).map(drop)
}

/// Mounts it; a failure quotes mount(8) and the kernel.
pub fn mount(machine: &mut Machine, stack: &Stack, volume: &Volume) -> Result<()> {
    let fs = check(stack, volume)?;
    let mut options: Vec<String> = fs.mount_options.iter().map(|&option| option.into()).collect();
    if let (true, ExternalJournal::Xfs, Some(journal)) =
        (stack.has_external_journal, fs.external_journal, volume.journal_device)
    {
        options.push(format!("logdev={journal}"));
    }
    options.extend(stack.mount_options.iter().cloned());
    let mut command: Vec<String> = ["mount", "-n", "-t", fs.name].map(str::to_owned).into();
    if !options.is_empty() {
        command.extend(["-o".to_owned(), options.join(",")]);
    }
    let point = volume.point.display().to_string();
    command.extend([volume.device.to_owned(), point.clone()]);
    let mut log = KernelLog::from_now();
    machine.run(ActionKind::Mount, &point, &command).map(drop).map_err(|error| match error {
        Error::Command { command, status, output } => {
            let mut words = vec![output];
            words.extend(log.new_lines().into_iter().map(|line| format!("kernel: {line}")));
            Error::Command { command, status, output: words.join(" | ") }
        }
        other => other,
    })
}

/// Unmounts; tries again for a while: a finished `io_uring` lets go of its files a little later
/// (Linux `io_uring/io_uring.c`: `io_ring_exit_work`).
pub fn unmount(machine: &mut Machine, point: &Path) -> Result<()> {
    let shown = point.display().to_string();
    machine
        .act(ActionKind::Umount, shown, "", || {
            patiently(|| nix::mount::umount(point).map_err(Into::into))
                .map_err(|error| Error::io("unmount", point, error))
        })
        .map(drop)
}

/// Options in effect, as the kernel says.
pub fn effective_options(point: &Path) -> Option<String> {
    mounts::all()
        .into_iter()
        .rev()
        .find(|mount| mount.point == point)
        .map(|mount| mount.effective_options())
}

/// Warnings that a stack deserves.
pub fn warnings_of(stack: &Stack) -> Vec<Warning> {
    let options = stack.mount_options.iter().flat_map(|option| option.split(','));
    options
        .filter(|option| UNSAFE_OPTIONS.contains(option))
        .map(|option| {
            Warning::new(
                "unsafe_mount",
                format!("{option} on {}: data is lost on power failure", stack.fs),
                "do not use it where data matters",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(fs: &str, mkfs: &[&str], mount: &[&str]) -> Stack {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Stack {
            fs: fs.to_owned(),
            mkfs_options: owned(mkfs),
            mount_options: owned(mount),
            has_external_journal: false,
        }
    }

    fn volume(bytes: u64) -> Volume<'static> {
        Volume {
            device: "/dev/loop8",
            journal_device: None,
            point: Path::new("/x"),
            bytes,
            uuid: None,
        }
    }

    #[test]
    fn options_cannot_reach_other_devices() {
        let large = volume(1 << 30);
        let foreign_mkfs = ["/dev/vda", "device=UUID=1", "-dfile,name=x", "dev/vda", "logdev=x"];
        for option in foreign_mkfs {
            let error = check(&stack("ext4", &[option], &[]), &large).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{option}: {error}");
        }
        for option in ["journal_path=x", "loop", "noatime,bind", "offset=4096", "remount"] {
            let error = check(&stack("ext4", &[], &[option]), &large).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{option}: {error}");
        }
        check(&stack("ext4", &["-b", "1024"], &["noatime,nodelalloc", "barrier=0"]), &large)
            .unwrap();
    }

    #[test]
    fn what_cannot_be_made_is_said_before_it_is_tried() {
        let error = check(&stack("ext5", &[], &[]), &volume(1 << 30)).unwrap_err();
        assert!(error.to_string().contains("did you mean"), "{error}");
        let error = check(&stack("xfs", &[], &[]), &volume(64 << 20)).unwrap_err();
        assert!(error.to_string().contains("300 MiB"), "{error}");
        let mut external = stack("btrfs", &[], &[]);
        external.has_external_journal = true;
        assert!(check(&external, &volume(1 << 30)).is_err());
        external.fs = "ext4".to_owned();
        assert!(check(&external, &volume(1 << 30)).is_err(), "there is one device only");
    }

    #[test]
    fn unsafe_options_are_flagged() {
        let found = warnings_of(&stack("ext4", &[], &["noatime,barrier=0"]));
        assert_eq!(found[0].code, "unsafe_mount");
        assert!(warnings_of(&stack("ext4", &[], &["noatime"])).is_empty());
    }
}
