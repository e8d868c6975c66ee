//! Form of most knobs: one file that takes a whole number.

use std::path::PathBuf;

use super::api::{About, Knob, Scope, Site, find};
use crate::error::Result;
use crate::machine::Machine;

/// Largest `int`, the type behind most of these files.
pub const INT_MAX: i64 = i32::MAX as i64;

/// The whole numbers that a file takes.
pub struct Numbers {
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// Value on most machines: the kernel's default.
    pub usual: i64,
    /// Another one that is worth a comparison.
    pub other: i64,
    /// True if they are codes, such as 0 for off, which lie on no scale.
    pub are_codes: bool,
}

impl Numbers {
    fn about(&self, help: &'static str) -> About {
        let example = [self.usual.to_string(), self.other.to_string()];
        About { help, example, are_codes: self.are_codes, ..About::default() }
    }

    fn check(&self, site: Site, value: &str) -> Result<()> {
        check_range(site, value, self.min, self.max)
    }
}

/// A whole number in the device's `queue` folder.
pub struct QueueFile {
    /// Name of the file.
    pub file: &'static str,
    /// Meaning, in a few words.
    pub help: &'static str,
    /// Numbers that it takes.
    pub numbers: Numbers,
    /// True if a switch of the scheduler changes it.
    pub is_reset_by_scheduler: bool,
}

impl Knob for QueueFile {
    fn about(&self) -> About {
        self.numbers.about(self.help)
    }

    fn scope(&self) -> Scope {
        Scope::Device
    }

    fn path(&self, site: Site) -> PathBuf {
        site.queue_file(self.file)
    }

    fn check(&self, _machine: &Machine, site: Site, value: &str) -> Result<()> {
        self.numbers.check(site, value)
    }

    fn is_reset_by_scheduler(&self) -> bool {
        self.is_reset_by_scheduler
    }
}

/// A sysctl below `/proc/sys/vm`.
pub struct VmSetting {
    /// Name of the file.
    pub file: &'static str,
    /// Meaning, in a few words.
    pub help: &'static str,
    /// Numbers that it takes.
    pub numbers: Numbers,
    /// The other way to say the same; the kernel sets it to 0 when this one changes.
    pub twin: Option<&'static str>,
}

impl Knob for VmSetting {
    fn about(&self) -> About {
        self.numbers.about(self.help)
    }

    fn scope(&self) -> Scope {
        Scope::Machine
    }

    fn path(&self, _site: Site) -> PathBuf {
        PathBuf::from("/proc/sys/vm").join(self.file)
    }

    fn check(&self, _machine: &Machine, site: Site, value: &str) -> Result<()> {
        self.numbers.check(site, value)
    }

    fn write(&self, machine: &mut Machine, site: Site, value: &str) -> Result<()> {
        match self.twin {
            // The kernel does not take 0 bytes; it sets them to 0 when the ratio changes.
            Some(ratio) if value == "0" && self.numbers.min > 0 => {
                let (_, knob) = find(ratio)?;
                let site = site.other(ratio);
                let kept = knob.read(machine, site).unwrap_or_else(|| "0".to_owned());
                let other = if kept == "1" { "2" } else { "1" };
                knob.write(machine, site, other)?;
                knob.write(machine, site, &kept)
            }
            _ => {
                machine.write_knob(&self.path(site), value)?;
                if let Some((_, twin)) = self.twin.and_then(|name| find(name).ok()) {
                    machine.imagine(&twin.path(site), "0");
                }
                Ok(())
            }
        }
    }

    fn twin(&self, _name: &str) -> Option<&'static str> {
        self.twin
    }
}

/// A number below `/sys/devices/system/cpu` that only some machines have.
pub struct CpuSwitch {
    /// Name of the file, with its folder.
    pub file: &'static str,
    /// Meaning, in a few words.
    pub help: &'static str,
    /// Numbers that it takes.
    pub numbers: Numbers,
    /// Reason why a machine may have none, and what it may have instead.
    pub absence: &'static str,
}

impl Knob for CpuSwitch {
    fn about(&self) -> About {
        self.numbers.about(self.help)
    }

    fn scope(&self) -> Scope {
        Scope::Machine
    }

    fn path(&self, _site: Site) -> PathBuf {
        PathBuf::from("/sys/devices/system/cpu").join(self.file)
    }

    fn check(&self, machine: &Machine, site: Site, value: &str) -> Result<()> {
        if machine.peek(self.path(site)).is_none() {
            return Err(site.cannot_be(value, self.absence));
        }
        self.numbers.check(site, value)
    }
}

/// Refuses what is not a whole number within the bounds.
pub fn check_range(site: Site, value: &str, min: i64, max: i64) -> Result<()> {
    let number: i64 = value.parse().map_err(|_| {
        site.cannot_be(value, format!("a whole number from {min} to {max} is needed"))
    })?;
    if (min..=max).contains(&number) {
        return Ok(());
    }
    Err(site.cannot_be(value, format!("it must lie between {min} and {max}")))
}
