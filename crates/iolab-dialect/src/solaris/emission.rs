//! Words of a stack file for the tunables of each file system: one row per file system.

use super::tunable::{BLOCK, Meaning, Unit};
use super::typed::{Fs, Setting};

/// Part of `[files]` that a setting becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A word of `mkfs_options`.
    Make(String),
    /// A word of `mount_options`.
    Mount(String),
    /// An entry of `system`.
    System(String, u64),
    /// Nothing; why.
    Nothing(String),
    /// Nothing, although it would matter; why.
    Missing(String),
}

/// A file system, and how its settings are said.
pub struct Emission {
    /// The file system.
    pub fs: Fs,
    /// Part of the stack that a setting becomes.
    pub say: fn(&Setting) -> Said,
}

/// Every file system. A new one in the simulator is a function here.
pub const EMISSIONS: &[Emission] = &[
    Emission { fs: Fs::Ufs, say: ufs },
    Emission { fs: Fs::Vxfs, say: vxfs },
    Emission { fs: Fs::Qfs, say: qfs },
    Emission { fs: Fs::Zfs, say: zfs },
];

/// The row of a file system.
pub fn emission(fs: Fs) -> &'static Emission {
    EMISSIONS.iter().find(|row| row.fs == fs).expect("every file system has a row")
}

fn ufs(set: &Setting) -> Said {
    let (name, value) = (set.tunable.plain(), set.value);
    match set.tunable.meaning {
        Meaning::Maxcontig => Said::Make(format!("-C {value}")),
        Meaning::Make("-b") if value != BLOCK => {
            Said::Missing("the model has blocks of 8 KiB alone".into())
        }
        Meaning::Make("-f") if value != 1024 => {
            Said::Missing("the model has fragments of 1 KiB alone".into())
        }
        Meaning::Make("-o") => Said::Make(format!("-o {}", set.typed)),
        Meaning::Make(option) => Said::Make(format!("{option} {value}")),
        Meaning::Mount => Said::Mount(name.to_owned()),
        Meaning::System => Said::System(name.to_owned(), value),
        Meaning::Nothing(why) => Said::Nothing(why.to_owned()),
        _ => Said::Missing("the model does not have it".into()),
    }
}

fn vxfs(set: &Setting) -> Said {
    let name = set.tunable.plain();
    match (set.tunable.meaning, name) {
        (Meaning::Own, "read_ahead") => {
            Said::Missing("the model reads ahead as releases before 4.1 do".into())
        }
        (Meaning::Own, "buf_breakup_sz") => {
            Said::Make(format!("-o buf_breakup_size={}", set.value))
        }
        (Meaning::Own, _) => Said::Make(format!("-o {name}={}", set.value)),
        (Meaning::Mount, _) if matches!(set.tunable.unit, Unit::Word(_)) => {
            Said::Mount(format!("{name}={}", set.typed))
        }
        (Meaning::Mount, _) => Said::Mount(name.to_owned()),
        (Meaning::Nothing(why), _) => Said::Nothing(why.to_owned()),
        _ => Said::Missing("the model does not have it".into()),
    }
}

fn qfs(set: &Setting) -> Said {
    let (name, value) = (set.tunable.plain(), set.value);
    match set.tunable.meaning {
        Meaning::Own if set.command == "sammkfs" => Said::Make(format!("{name} {value}")),
        Meaning::Own | Meaning::Mount if set.tunable.unit == Unit::Flag => {
            Said::Mount(name.to_owned())
        }
        Meaning::Own | Meaning::Mount => Said::Mount(format!("{name}={value}")),
        Meaning::Nothing(why) => Said::Nothing(why.to_owned()),
        _ => Said::Missing("the model does not have it".into()),
    }
}

/// Least record of the model.
const RECORD_MIN: u64 = 4 << 10;

fn zfs(set: &Setting) -> Said {
    let (name, value, typed) = (set.tunable.plain(), set.value, set.typed.as_str());
    match (set.tunable.meaning, name, typed) {
        (Meaning::Nothing(why), ..) => Said::Nothing(why.to_owned()),
        (_, "recordsize", _) if value < RECORD_MIN || !value.is_power_of_two() => {
            Said::Missing("the model has records of 4 KiB to 128 KiB, powers of two".into())
        }
        (_, "recordsize", _) => Said::Make(format!("-O recordsize={value}")),
        (_, "compression", "off") => Said::Make("-O compression=off".into()),
        (_, "compression", _) => Said::Missing("the model stores data as they are".into()),
        (_, "secondarycache", _) => Said::Missing("the model has no second cache".into()),
        (_, "primarycache", "none") => {
            Said::Missing("the model keeps at least metadata in its cache".into())
        }
        (_, "zfs_arc_min", _) => Said::Missing("the model's cache has no least size".into()),
        _ if set.command.is_empty() => Said::System(name.to_owned(), value),
        _ => Said::Make(format!("-O {name}={typed}")),
    }
}
