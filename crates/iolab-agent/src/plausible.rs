//! Check that a journal entry can be one of ours, before it is acted on.
//!
//! A journal is read as root. Whoever can write into it must not be able to make a restore write to
//! or remove anything but what this program makes: queue settings of block devices, and files and
//! folders that carry the run's or the token's name. What is not plausible stays in the journal as
//! a problem, and nothing is touched.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::disk::BYTES_MIN;
use crate::error::{Error, Result};
use crate::journal::Change;
use crate::machine::DeviceIdentity;
use crate::testbed::PLACE_MARK;
use crate::trace;

/// Longest value of any knob; the longest real one is a 20-digit number.
const VALUE_MAX: usize = 32;

/// Refuses a change that this program cannot have made for `run`.
pub fn check(run: &str, change: &Change) -> Result<()> {
    let name = change.path().and_then(Path::file_name).and_then(|name| name.to_str());
    let is_plain_path = change.path().is_none_or(is_plain);
    let is_ours = is_plain_path
        && match change {
            Change::Knob { knob, old, device, .. } => {
                // The one knob whose files may hold different words has them as a list.
                let is_list = knob == "cpu.governor";
                let is_fine = if is_list { old.split(',').all(is_value) } else { is_value(old) };
                is_fine && device.as_ref().is_none_or(is_device)
            }
            Change::LoopAdded { .. } | Change::CachesDropped { .. } => true,
            Change::ImageCreated { path } => {
                let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
                !is_link && name.is_some_and(|name| is_image_of(name, run))
            }
            Change::TraceInstance { name } => trace::is_name_of(name, run),
            Change::DeviceErased { device, erased } => {
                is_device(device)
                    && erased.serial.len() < 256
                    && erased.study.as_ref().is_none_or(|it| it.len() <= 64)
                    && erased.size_bytes >= BYTES_MIN
            }
            // The token file inside is looked at before anything is removed.
            Change::DirectoryCreated { token, .. } => {
                !token.is_empty() && name.is_some_and(|name| name.starts_with(".iolab-"))
            }
            Change::MountPointCreated { path } => path
                .strip_prefix("/run/iolab")
                .is_ok_and(|below| below.iter().next().is_some_and(|own| is_folder_of(own, run))),
            Change::CgroupCreated { path } => {
                path.starts_with("/sys/fs/cgroup") && name.is_some_and(|name| name.contains(run))
            }
        };
    if is_ours {
        return Ok(());
    }
    Err(Error::failed(
        "this entry cannot be iolab's: nothing was touched",
        "look at the journal; if somebody changed it, remove that line",
    ))
}

/// Tell whether this is the path of an image that `run` made, as the kernel shows it for a loop
/// device.
pub fn is_image_of(path: &str, run: &str) -> bool {
    let shown = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = Path::new(shown).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(&format!(".iolab-{run}-")))
}

/// Tell whether a folder in `/run/iolab` is one of `run`: its own, or that of one of its places.
fn is_folder_of(name: &OsStr, run: &str) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(run));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(PLACE_MARK))
}

/// Absolute and without `..`.
fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn is_value(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= VALUE_MAX && text.bytes().all(is_safe)
}

/// A name like the kernel's own (`sda`, `nvme0n1`, `cciss!c0d0`); one that is gone is found gone.
fn is_device(device: &DeviceIdentity) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'!' | b'-' | b'_');
    !device.name.is_empty() && device.name.bytes().all(is_safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(device: &str, old: &str) -> Change {
        let (name, number) = (device.to_owned(), "8:0".to_owned());
        let identity = DeviceIdentity { name, number, diskseq: None, loop_run: None };
        Change::Knob {
            knob: "nomerges".into(),
            path: format!("/sys/block/{device}/queue/nomerges").into(),
            old: old.into(),
            new: None,
            device: Some(identity),
        }
    }

    /// A tampered journal made root write to, and remove, files of others.
    #[test]
    fn what_we_cannot_have_made_is_refused() {
        let path = |text: &str| std::path::PathBuf::from(text);
        let token = || "t1".to_owned();
        let foreign = [
            knob("../../tmp/dev", "1"),
            knob("sda/../x", "1"),
            knob("sda", "ROOT::0"),
            knob("sda", ""),
            knob("sda", "1,2"),
            Change::ImageCreated { path: path("/somewhere/thesis.img") },
            Change::ImageCreated { path: path("/somewhere/.iolab-run-2-0.img") },
            Change::ImageCreated { path: path("/x/../etc/.iolab-run-1-0.img") },
            Change::MountPointCreated { path: path("/srv/empty") },
            Change::MountPointCreated { path: path("/run/iolab/run-12") },
            Change::MountPointCreated { path: path("/run/iolab") },
            Change::CgroupCreated { path: path("/somewhere/iolab-run-1") },
            Change::CgroupCreated { path: path("/sys/fs/cgroup/memory/other") },
            Change::DirectoryCreated { path: path("/somewhere/data"), token: token() },
            Change::TraceInstance { name: "of-somebody".to_owned() },
            Change::TraceInstance { name: "iolab-run-2-abc".to_owned() },
            Change::TraceInstance { name: "iolab-run-1-../x".to_owned() },
        ];
        for change in foreign {
            assert!(check("run-1", &change).is_err(), "{change:?}");
        }
        let ours = [
            knob("sda", "mq-deadline"),
            knob("loop8", "-1"),
            Change::ImageCreated { path: path("/var/tmp/.iolab-run-1-0.img") },
            Change::MountPointCreated { path: path("/run/iolab/run-1/mnt") },
            Change::MountPointCreated { path: path("/run/iolab/run-1+log") },
            Change::CgroupCreated { path: path("/sys/fs/cgroup/memory/iolab-run-1") },
            Change::DirectoryCreated { path: path("/tank/.iolab-t1"), token: token() },
            Change::TraceInstance { name: "iolab-run-1-1a2b3c".to_owned() },
        ];
        for change in ours {
            assert!(check("run-1", &change).is_ok(), "{change:?}");
        }
    }
}
