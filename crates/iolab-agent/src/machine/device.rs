//! Identity of the block device of a change, so that a restore never hits another one.
//!
//! Names are given anew: `loop8` or `sdb` may be somebody else's by the time of the restore. A loop
//! device of ours is known by the run in the path of its image, any other by its number and the
//! kernel's disk sequence number (`diskseq`, Linux 5.15), which changes with the medium.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Machine;

/// Identity of a block device within one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// Kernel name.
    pub name: String,
    /// `major:minor`.
    pub number: String,
    /// Disk sequence number, if the kernel has it.
    pub diskseq: Option<String>,
    /// The run, if it is a loop device of ours.
    pub loop_run: Option<String>,
}

/// Owner of the device that is found where a change was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The same device.
    Same,
    /// No device of that name.
    Gone,
    /// Another device; the text says how it differs.
    Foreign(String),
}

impl DeviceIdentity {
    /// Identity of the device that has this name now.
    pub fn of(machine: &Machine, name: &str, loop_run: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            number: machine.peek(file(name, "dev")).unwrap_or_default(),
            diskseq: machine.peek(file(name, "diskseq")),
            loop_run: loop_run.map(str::to_owned),
        }
    }

    /// Compares with the device that has this name now.
    pub fn whose(&self, machine: &Machine) -> Whose {
        if machine.is_on_paper(&self.name) {
            return Whose::Same; // What stands in for it is somebody's, and stays untouched.
        }
        let Some(number) = machine.peek(file(&self.name, "dev")) else { return Whose::Gone };
        if number != self.number {
            return Whose::Foreign(format!("it is {number}, was {}", self.number));
        }
        if let Some(run) = &self.loop_run {
            let backing = machine.peek(file(&self.name, "loop/backing_file"));
            return match backing {
                Some(image) if !crate::plausible::is_image_of(&image, run) => {
                    Whose::Foreign(format!("it is attached to {image} now"))
                }
                _ => Whose::Same,
            };
        }
        let diskseq = machine.peek(file(&self.name, "diskseq"));
        if self.diskseq.is_some() && diskseq != self.diskseq {
            return Whose::Foreign("its medium was exchanged".to_owned());
        }
        Whose::Same
    }
}

fn file(name: &str, rest: &str) -> PathBuf {
    PathBuf::from(format!("/sys/block/{name}/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fake_machine;

    #[test]
    fn a_loop_number_taken_by_somebody_else_is_foreign() {
        let (root, machine) = fake_machine();
        let identity = DeviceIdentity::of(&machine, "loop8", Some("run-1"));
        assert_eq!(identity.whose(&machine), Whose::Same);
        let folder = root.path().join("sys/block/loop8/loop");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("backing_file"), "/var/tmp/.iolab-run-1-0 (deleted)").unwrap();
        assert_eq!(identity.whose(&machine), Whose::Same);
        std::fs::write(folder.join("backing_file"), "/home-of-somebody/cd.iso").unwrap();
        assert!(matches!(identity.whose(&machine), Whose::Foreign(_)));
    }

    #[test]
    fn another_medium_is_foreign_and_a_missing_device_gone() {
        let (root, machine) = fake_machine();
        let identity = DeviceIdentity::of(&machine, "sda", None);
        assert_eq!(identity.whose(&machine), Whose::Same);
        std::fs::write(root.path().join("sys/block/sda/diskseq"), "77").unwrap();
        assert!(matches!(identity.whose(&machine), Whose::Foreign(_)));
        std::fs::remove_dir_all(root.path().join("sys/block/sda")).unwrap();
        assert_eq!(identity.whose(&machine), Whose::Gone);
    }
}
