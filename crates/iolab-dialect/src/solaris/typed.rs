//! Everything that the lines say, with the place of each: what was typed, not what it means.

use std::ops::Range;

use super::line::{Line, LineFault, LineWord};
use super::tunable::{Meaning, Tunable};

/// File system that lines make, mount or tune.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fs {
    /// UFS.
    Ufs,
    /// `VxFS` of VERITAS.
    Vxfs,
    /// QFS, `samfs` to mount.
    Qfs,
    /// ZFS.
    Zfs,
}

impl Fs {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ufs, Self::Vxfs, Self::Qfs, Self::Zfs];

    /// Name in a stack file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ufs => "ufs",
            Self::Vxfs => "vxfs",
            Self::Qfs => "qfs",
            Self::Zfs => "zfs",
        }
    }

    /// The file system of this name; `samfs` is QFS.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|fs| fs.name() == name)
            .or((name == "samfs").then_some(Self::Qfs))
    }
}

/// A tunable that a line sets.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Index of its line.
    pub line: usize,
    /// Characters that say it.
    pub at: Range<usize>,
    /// Command that sets it; empty for a variable of the kernel.
    pub command: &'static str,
    /// The tunable.
    pub tunable: &'static Tunable,
    /// Its value in its own unit.
    pub value: u64,
    /// The value as typed.
    pub typed: String,
    /// File system that it belongs to; none: the kernel.
    pub fs: Option<Fs>,
    /// More about it, for the table.
    pub remark: String,
    /// The remark tells of a contradiction.
    pub is_caution: bool,
}

/// A row of the table that sets nothing.
#[derive(Clone, Debug)]
pub struct LineNote {
    /// Index of its line.
    pub line: usize,
    /// Subject of the line.
    pub about: String,
    /// Amount or names.
    pub value: String,
    /// Effect, or reason why there is none.
    pub effect: String,
    /// Tell whether it contradicts the rest, or is doubtful.
    pub is_caution: bool,
}

/// A line that uses a file system.
#[derive(Clone, Debug)]
pub struct Used {
    /// Index of its line.
    pub line: usize,
    /// Characters of the command.
    pub at: Range<usize>,
    /// The file system.
    pub fs: Fs,
    /// Command.
    pub command: &'static str,
    /// Names of devices, mount points or data sets, without directories of devices.
    pub names: Vec<String>,
}

/// Manager of volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// `DiskSuite`, Solaris Volume Manager.
    Md,
    /// `VxVM`.
    Vx,
    /// ZFS itself: a pool.
    Pool,
}

/// Arrangement of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeShape {
    /// One disk, or several one after the other.
    Plain {
        /// Disks.
        disks: u32,
    },
    /// RAID 0.
    Stripe {
        /// Disks.
        columns: u32,
        /// Bytes on one before the next one.
        unit: u64,
    },
    /// RAID 5.
    Raid5 {
        /// Disks, that of parity too.
        columns: u32,
        /// Bytes on one before the next one.
        unit: u64,
    },
    /// Copies of other volumes.
    Mirror {
        /// Their names.
        of: Vec<String>,
    },
    /// Copies, each of this shape.
    Copies {
        /// Number of copies.
        copies: u32,
        /// Arrangement of each.
        inside: Box<Self>,
    },
    /// A stripe over mirrors.
    StripedMirrors {
        /// Mirrors.
        columns: u32,
        /// Bytes on one before the next one.
        unit: u64,
        /// Disks of each.
        copies: u32,
    },
    /// Parity whose width follows each block (`raidz`).
    Raidz {
        /// Groups of disks.
        groups: u32,
        /// Disks of each.
        disks: u32,
        /// Of these, those of parity.
        parities: u32,
        /// Sector of the pool in bytes.
        sector: u64,
    },
    /// Data and log of their own (trans metadevice).
    Trans {
        /// Device of data.
        data: String,
    },
}

/// A volume.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Index of its line.
    pub line: usize,
    /// Name.
    pub name: String,
    /// Manager.
    pub manager: Manager,
    /// Arrangement.
    pub shape: VolumeShape,
}

/// A row of the mcf file of QFS.
#[derive(Clone, Debug)]
pub struct McfRow {
    /// Index of its line.
    pub line: usize,
    /// Characters of the type.
    pub at: Range<usize>,
    /// Device, or name of the family.
    pub name: String,
    /// `ma`, `mm`, `mr` ...
    pub kind: String,
    /// Family.
    pub family: String,
}

impl McfRow {
    /// Tell whether it is the row of a family, not of a device.
    pub fn is_family(&self) -> bool {
        matches!(self.kind.as_str(), "ma" | "ms")
    }
}

/// All lines and what they say.
#[derive(Debug, Default)]
pub struct Typed {
    /// Lines.
    pub lines: Vec<Line>,
    /// Tunables, in the order of the lines.
    pub settings: Vec<Setting>,
    /// Rows that set nothing.
    pub notes: Vec<LineNote>,
    /// Uses of file systems.
    pub used: Vec<Used>,
    /// Volumes.
    pub volumes: Vec<Volume>,
    /// Rows of mcf.
    pub mcf: Vec<McfRow>,
    /// Lines that give a pool a device for its log.
    pub pool_logs: Vec<usize>,
}

impl Typed {
    /// The line of an index.
    pub fn line(&self, index: usize) -> &Line {
        &self.lines[index]
    }

    /// Adds a row that sets nothing.
    pub fn note(&mut self, line: usize, about: impl Into<String>, effect: impl Into<String>) {
        self.notes.push(LineNote {
            line,
            about: about.into(),
            value: String::new(),
            effect: effect.into(),
            is_caution: false,
        });
    }

    /// Adds a use of a file system.
    pub fn uses(&mut self, line: usize, fs: Fs, command: &'static str, (at, names): Names<'_>) {
        let names = names.iter().map(|word| word.base().to_owned()).collect();
        self.used.push(Used { line, at, fs, command, names });
    }

    /// The setting that counts of a tunable's name: the last one.
    pub fn last(&self, fs: Option<Fs>, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|set| set.fs == fs && set.tunable.plain() == name)
    }

    /// The setting that counts of a meaning: the last one.
    pub fn last_of(&self, meaning: Meaning) -> Option<&Setting> {
        self.settings.iter().rev().find(|set| set.tunable.meaning == meaning)
    }

    /// A fault at a setting.
    pub fn fault(&self, set: &Setting, what: String, remedy: String) -> LineFault {
        self.line(set.line).fault(&set.at, what, remedy)
    }
}

/// Place of a command, and the names behind it.
pub type Names<'a> = (Range<usize>, &'a [LineWord]);

impl Typed {
    /// The setting that counts of a variable of the kernel: the last one.
    pub fn last_of_name(&self, name: &str) -> Option<&Setting> {
        let is_one = |set: &&Setting| set.command.is_empty() && set.tunable.plain() == name;
        self.settings.iter().rev().find(is_one)
    }
}
