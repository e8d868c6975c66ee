//! Devices that are recorded: found by what the user typed, and allowed.

use std::fs;
use std::path::{Path, PathBuf};

use iolab_trace::choice::PARTITION_FACT;
use serde::{Deserialize, Serialize};

use crate::boundary::Boundary;
use crate::error::{Error, Result};
use crate::identity::on_behalf;
use crate::journal;
use crate::plausible;
use crate::protocol::Warning;

/// A whole block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traced {
    /// Kernel name.
    pub name: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Disk sequence number, if the kernel has it.
    pub diskseq: Option<String>,
}

impl Traced {
    /// The device of a kernel name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn of_name(name: &str) -> Result<Self> {
        let folder = Path::new("/sys/block").join(name);
        let number = read(&folder.join("dev")).ok_or_else(|| none(name))?;
        let (major, minor) = number.split_once(':').ok_or_else(|| none(name))?;
        let parse = |text: &str| text.parse::<u32>().map_err(|_| none(name));
        let diskseq = read(&folder.join("diskseq"));
        Ok(Self { name: name.to_owned(), major: parse(major)?, minor: parse(minor)?, diskseq })
    }

    /// The number in records of trace points (`dev_t` of the kernel).
    pub fn kernel_number(&self) -> u32 {
        self.major << 20 | self.minor
    }

    /// Tell whether it is still there. One that gets a medium later, as a loop device an image, is;
    /// one that has lost its own is not.
    pub fn is_there(&self) -> bool {
        let Ok(now) = Self::of_name(&self.name) else { return false };
        let is_number_same = (now.major, now.minor) == (self.major, self.minor);
        let path = Path::new("/sys/block").join(&self.name).join("size");
        let is_empty = read(&path).is_some_and(|sectors| sectors == "0");
        is_number_same && !(now.diskseq != self.diskseq && is_empty)
    }

    /// Its partitions, as facts of a trace: device, first sector and sectors by name.
    pub fn partitions(&self) -> Vec<(String, String)> {
        let folder = Path::new("/sys/block").join(&self.name);
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let parts = names.filter(|name| folder.join(name).join("partition").exists());
        let told = parts.filter_map(|name| {
            let [start, size] = ["start", "size"].map(|file| read(&folder.join(&name).join(file)));
            let place = format!("{},{} {} {}", self.major, self.minor, start?, size?);
            Some((format!("{PARTITION_FACT}{name}"), place))
        });
        told.collect()
    }

    /// The kernel's counters of it, as they stand.
    pub fn counters(&self) -> Option<String> {
        let text = read(&Path::new("/sys/block").join(&self.name).join("stat"))?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn none(what: &str) -> Error {
    Error::usage(
        format!("{what} is no block device"),
        "name one as `lsblk -d -o NAME,MODEL` shows it: sda, /dev/nvme0n1",
    )
}

/// The whole device that is meant, with a remark if that is more than was typed.
///
/// # Errors
///
/// There is none.
pub fn find(asked: &str, boundary: Option<&Boundary>) -> Result<(Traced, Option<Warning>)> {
    let name = if asked.contains('/') {
        let resolved = || fs::canonicalize(asked).map_err(|_| none(asked));
        let real: PathBuf = on_behalf(boundary.map(Boundary::user), resolved)?;
        let rest = real.strip_prefix("/dev").map_err(|_| none(asked))?;
        rest.to_str().ok_or_else(|| none(asked))?.replace('/', "!")
    } else {
        asked.to_owned()
    };
    if name.is_empty() || name == "." || name == ".." {
        return Err(none(asked));
    }
    let class = Path::new("/sys/class/block").join(&name);
    if !class.join("partition").exists() {
        return Ok((Traced::of_name(&name).map_err(|_| none(asked))?, None));
    }
    let real = fs::canonicalize(&class).map_err(|_| none(asked))?;
    let whole = real.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let whole = Traced::of_name(whole.ok_or_else(|| none(asked))?)?;
    let what = format!("{name} is a part of {}: the whole device is recorded", whole.name);
    let what = format!("{what}; --device {name} chooses the part when the trace is read");
    let remark = Warning::new("whole_device", what, "its sectors tell the parts apart");
    Ok((whole, Some(remark)))
}

/// Refuses a device that is not for the user for whom root works: others than those of the user's
/// own runs are in the policy.
pub fn check(device: &Traced, boundary: &Boundary, state_dir: &Path) -> Result<()> {
    let path = format!("/sys/block/{}/loop/backing_file", device.name);
    let image = read(Path::new(&path));
    let runs = journal::files_of(Some(boundary.user().uid), state_dir);
    let mut runs = runs.iter().map(|path| journal::run_of(path));
    let is_own = image.is_some_and(|image| runs.any(|run| plausible::is_image_of(&image, &run)));
    if is_own { Ok(()) } else { boundary.check_device(&device.name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_device_is_told_as_it_was_typed() {
        for asked in ["", ".", "..", "nosuch", "/dev/null", "/etc/passwd", "/dev/../etc", "../sda"]
        {
            let error = find(asked, None).unwrap_err();
            assert!(error.to_string().contains(asked) && error.hint().contains("lsblk"), "{error}");
        }
    }

    #[test]
    fn numbers_are_packed_as_trace_points_have_them() {
        let device = Traced { name: "loop0".into(), major: 7, minor: 3, diskseq: None };
        assert_eq!(device.kernel_number(), 7_340_035);
        assert!(!Traced { major: 4095, ..device }.is_there());
    }
}
