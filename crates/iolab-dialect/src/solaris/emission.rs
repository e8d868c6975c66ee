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

/// A file system, and how its settings are said; without a way no stack is written yet.
pub struct Emission {
    /// The file system.
    pub fs: Fs,
    /// Part of the stack that a setting becomes.
    pub say: Option<fn(&Setting) -> Said>,
}

/// Every file system. A new one in the simulator is a function here.
pub const EMISSIONS: &[Emission] = &[
    Emission { fs: Fs::Ufs, say: Some(ufs) },
    Emission { fs: Fs::Vxfs, say: Some(vxfs) },
    Emission { fs: Fs::Qfs, say: Some(qfs) },
    Emission { fs: Fs::Zfs, say: None },
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
