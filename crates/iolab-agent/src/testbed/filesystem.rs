//! File systems that we make and mount, each a row of a table.
//!
//! Ours are plain defaults without discards and lazy work in the background: mkfs would punch holes
//! into the image, and a trial would pay for the rest (mkfs.ext4(8): discard, `lazy_itable_init`).
//! The user's options follow ours, so theirs win; they come from closed lists (`options`). Mounting
//! is the system call, not mount(8), which has options of its own; afterwards the mount point is
//! proved to be our device.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::mount::MsFlags;
use nix::sys::stat::{Mode, major, minor};

use super::kernel_log::KernelLog;
use super::options::{self, MkfsOption};
use super::parameters::{self, Reader};
use crate::error::{Error, Result};
use crate::machine::{Machine, find_program};
use crate::mounts;
use crate::protocol::{ActionKind, Stack, Warning};
use crate::restore::patiently;

/// Form of a journal on another device.
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
    reader: Reader,
    /// Beginnings of the kernel's lines about it that name no device.
    said_by: &'static [&'static str],
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

/// The driver of ext4 serves all three.
const EXT_SAYS: &[&str] = &["EXT4-fs: ", "EXT3-fs: ", "EXT2-fs: ", "ext4: ", "ext3: ", "ext2: "];

/// Every file system of a loop testbed.
pub const FILE_SYSTEMS: &[FileSystem] = &[
    FileSystem {
        name: "ext2",
        mkfs: "mkfs.ext2",
        mkfs_options: &["-F", "-q", "-E", "nodiscard,lazy_itable_init=0"],
        mount_options: &[],
        external_journal: ExternalJournal::None,
        bytes_min: 16 * MIB,
        reader: parameters::DUMPE2FS,
        said_by: EXT_SAYS,
    },
    FileSystem {
        name: "ext3",
        mkfs: "mkfs.ext3",
        mkfs_options: &["-F", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::Ext,
        bytes_min: 16 * MIB,
        reader: parameters::DUMPE2FS,
        said_by: EXT_SAYS,
    },
    FileSystem {
        name: "ext4",
        mkfs: "mkfs.ext4",
        mkfs_options: &["-F", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::Ext,
        bytes_min: 16 * MIB,
        reader: parameters::DUMPE2FS,
        said_by: EXT_SAYS,
    },
    FileSystem {
        name: "xfs",
        mkfs: "mkfs.xfs",
        mkfs_options: &["-f", "-q", "-K"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::Xfs,
        bytes_min: 300 * MIB, // xfsprogs 5.19 and later refuse less.
        reader: parameters::XFS_DB,
        said_by: &["XFS: ", "xfs: "],
    },
    FileSystem {
        name: "btrfs",
        mkfs: "mkfs.btrfs",
        mkfs_options: &["-f", "-q", "-K"],
        mount_options: &["nodiscard"],
        external_journal: ExternalJournal::None,
        bytes_min: 110 * MIB, // btrfs-progs: the smallest without mixed groups.
        reader: parameters::BTRFS,
        said_by: &["BTRFS: ", "BTRFS error: ", "btrfs: "],
    },
];

/// Mount options that trade the user's data for speed.
const UNSAFE_OPTIONS: &[&str] = &["barrier=0", "nobarrier"];

/// A file system on our devices.
#[derive(Debug)]
pub struct Volume<'a> {
    /// `/dev/loop8`.
    pub device: &'a str,
    /// `/dev/loop9`, if there is a second one.
    pub journal_device: Option<&'a str>,
    /// Mount point.
    pub point: &'a Path,
    /// Size of the device.
    pub bytes: u64,
    /// Identifier, if it must be told from others.
    pub uuid: Option<&'a str>,
}

/// The row of a stack; refuses what we cannot make here.
pub fn check(stack: &Stack, volume: &Volume) -> Result<&'static FileSystem> {
    let names: Vec<&str> = FILE_SYSTEMS.iter().map(|row| row.name).collect();
    let found = FILE_SYSTEMS.iter().find(|row| row.name == stack.fs);
    let found = found.ok_or_else(|| Error::unknown("file system", &stack.fs, &names))?;
    options::mkfs_options(found.name, &stack.mkfs_options)?;
    options::mount_options(found.name, &stack.mount_options)?;
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

/// Makes the file system anew; answers its parameters, as far as they can be read back.
pub fn make(machine: &mut Machine, stack: &Stack, volume: &Volume) -> Result<Vec<String>> {
    let fs = check(stack, volume)?;
    if find_program(fs.mkfs).is_none() {
        return Err(Error::failed(
            format!("{} is not installed", fs.mkfs),
            format!("install the programs of {}, or leave it out", fs.name),
        ));
    }
    let theirs = options::mkfs_options(fs.name, &stack.mkfs_options)?;
    let mut command = vec![fs.mkfs.to_owned()];
    command.extend(joined(fs.mkfs_options, &theirs));
    command.extend(volume.uuid.iter().flat_map(|uuid| fs.uuid_options(uuid)));
    if let (true, Some(journal)) = (stack.has_external_journal, volume.journal_device) {
        match fs.external_journal {
            ExternalJournal::Ext => {
                make_ext_journal(machine, &theirs, journal)?;
                command.extend(["-J".to_owned(), format!("device={journal}")]);
            }
            ExternalJournal::Xfs => command.extend(["-l".to_owned(), format!("logdev={journal}")]),
            ExternalJournal::None => {}
        }
    }
    command.push(volume.device.to_owned());
    machine.run(ActionKind::Mkfs, volume.device, &command)?;
    Ok(fs.reader.read(machine, volume.device))
}

/// Our options and theirs; mke2fs takes the last `-E` only, so these become one, theirs last.
fn joined(ours: &[&str], theirs: &[MkfsOption]) -> Vec<String> {
    let mut words: Vec<String> = ours.iter().map(|&word| word.to_owned()).collect();
    for MkfsOption { name, value } in theirs {
        let place = words.iter().position(|word| word == "-E").filter(|_| *name == "-E");
        match (place, value) {
            (Some(place), Some(value)) => words[place + 1].extend([",", value]),
            _ if name.starts_with("--") => {
                let value = value.iter().map(|value| format!("={value}"));
                words.push(std::iter::once((*name).to_owned()).chain(value).collect());
            }
            _ => words.extend(std::iter::once((*name).to_owned()).chain(value.clone())),
        }
    }
    words
}

/// The journal must have the block size of the file system.
fn make_ext_journal(machine: &mut Machine, theirs: &[MkfsOption], journal: &str) -> Result<()> {
    let given = theirs.iter().rev().find(|option| option.name == "-b");
    let block_size = given.and_then(|option| option.value.as_deref()).unwrap_or("4096");
    let words = ["mke2fs", "-F", "-q", "-O", "journal_dev", "-b", block_size, journal];
    machine.run(ActionKind::Mkfs, journal, &words.map(str::to_owned)).map(drop)
}

/// Mounts it and proves that it is ours; a failure quotes the kernel.
pub fn mount(machine: &mut Machine, stack: &Stack, volume: &Volume) -> Result<()> {
    let fs = check(stack, volume)?;
    let theirs = options::mount_options(fs.name, &stack.mount_options)?;
    let mut words: Vec<String> = fs.mount_options.iter().map(|&word| word.into()).collect();
    if let (true, ExternalJournal::Xfs, Some(journal)) =
        (stack.has_external_journal, fs.external_journal, volume.journal_device)
    {
        words.push(format!("logdev={journal}"));
    }
    words.extend(theirs.words);
    // Whoever made the image's content may have put there what root would not run or open.
    let (bounds, bound_words) = match machine.user() {
        Some(_) => (MsFlags::MS_NOSUID | MsFlags::MS_NODEV, &["nosuid", "nodev"][..]),
        None => (MsFlags::empty(), &[][..]),
    };
    let asked: Vec<&str> = stack.mount_options.iter().map(|it| &**it).collect();
    let asked = [fs.mount_options, &asked, bound_words];
    let point = volume.point.display().to_string();
    let command = shown(fs, &asked.concat(), volume);
    let mut log = KernelLog::from_now(
        [Some(volume.device), volume.journal_device].into_iter().flatten(),
        // Somebody for whom root works is not told what other devices' users do.
        if machine.user().is_none() { fs.said_by } else { &[] },
    );
    machine
        .act(ActionKind::Mount, point, command.clone(), || {
            let (device, data) = (Some(volume.device), words.join(","));
            let data = Some(&*data).filter(|data| !data.is_empty());
            nix::mount::mount(device, volume.point, Some(fs.name), theirs.flags | bounds, data)
                .map_err(|error| {
                    let lines = log.new_lines().into_iter().map(|line| format!("kernel: {line}"));
                    let said: Vec<String> = lines.collect();
                    Error::Command { command, status: error.to_string(), output: said.join(" | ") }
                })?;
            prove(fs, volume).inspect_err(|_| {
                let _ = nix::mount::umount(volume.point);
            })
        })
        .map(drop)
}

/// The command that would do the same.
fn shown(fs: &FileSystem, options: &[&str], volume: &Volume) -> String {
    let options = match options {
        [] => String::new(),
        words => format!(" -o {}", words.join(",")),
    };
    format!("mount -t {}{options} {} {}", fs.name, volume.device, volume.point.display())
}

/// Refuses to go on unless the mount point is the root of the file system on our device.
///
/// A mount option once made a run measure the host's disk.
fn prove(fs: &FileSystem, volume: &Volume) -> Result<()> {
    let fail = |error: io::Error| Error::io("look at", volume.point, error);
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = open(volume.point, flags, Mode::empty()).map_err(|error| fail(error.into()))?;
    let folder = File::from(opened);
    let found = mounts::of_open(&folder);
    let ours = std::fs::metadata(volume.device).map_err(fail)?.rdev();
    let number = format!("{}:{}", major(ours), minor(ours));
    // btrfs shows a number that no device has; the kernel names the device as the source.
    let is_device = match (&found, fs.name) {
        (Some(mount), "btrfs") => {
            std::fs::metadata(&mount.source).is_ok_and(|source| source.rdev() == ours)
        }
        (Some(mount), _) => {
            mount.number == number && folder.metadata().map_err(fail)?.dev() == ours
        }
        (None, _) => false,
    };
    let is_ours = found.as_ref().is_some_and(|mount| {
        is_device && mount.point == volume.point && mount.root == Path::new("/")
    });
    if is_ours {
        return Ok(());
    }
    let what = found.map_or_else(|| "no mount".to_owned(), |it| format!("{} {}", it.fs, it.number));
    Err(Error::refused(
        format!(
            "{} is not {} after mounting it there, but {what}: nothing was written",
            volume.point.display(),
            volume.device
        ),
        "leave the mount options out, and report this",
    ))
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

    /// Each of them was taken before there were lists: Issue 14, points 5 and 6.
    #[test]
    fn options_cannot_reach_other_devices() {
        let large = volume(1 << 30);
        let foreign_mkfs = ["/dev/vda", "device=UUID=1", "-dfile,name=x", "dev/vda", "-zsafety"];
        for option in foreign_mkfs {
            let error = check(&stack("ext4", &[option], &[]), &large).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{option}: {error}");
        }
        for option in ["journal_path=x", "loop", "noatime,bind", "X-mount.subdir=x", "remount"] {
            let error = check(&stack("ext4", &[], &[option]), &large).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{option}: {error}");
        }
        check(&stack("ext4", &["-b", "1024"], &["noatime,nodelalloc", "barrier=0"]), &large)
            .unwrap();
    }

    /// mke2fs heeds the last `-E` only: the user's made it discard and work in the background.
    #[test]
    fn options_of_options_are_joined() {
        let theirs = ["-E", "stride=4", "-b1024"].map(str::to_owned);
        let theirs = options::mkfs_options("ext4", &theirs).unwrap();
        let words = joined(&["-q", "-E", "nodiscard"], &theirs);
        assert_eq!(words, ["-q", "-E", "nodiscard,stride=4", "-b", "1024"]);
        let theirs = ["--csum=xxhash", "-M"].map(str::to_owned);
        let theirs = options::mkfs_options("btrfs", &theirs).unwrap();
        assert_eq!(joined(&["-f"], &theirs), ["-f", "--csum=xxhash", "-M"]);
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
