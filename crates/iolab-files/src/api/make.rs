//! `MakeSpec`: everything that mkfs and mount know when a file system is made.

use core::fmt;
use core::str::FromStr;

use iolab_model::Ns;

use super::options::FsOptions;
use crate::error::FilesError;

/// Version of the kernel whose rules hold, as in `kernel = "6.18"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
}

impl Kernel {
    /// A version.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The oldest one with modelled rules.
    pub const OLDEST: Self = Self::new(2, 6);
    /// The one that holds unless a stack says otherwise: that of the recordings.
    pub const DEFAULT: Self = Self::new(6, 18);
}

impl Default for Kernel {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Kernel {
    type Err = FilesError;

    /// `6.18`, `2.6.32`; what follows the second number is not looked at.
    fn from_str(text: &str) -> Result<Self, FilesError> {
        let mut numbers = text.split('.').map(str::parse::<u16>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if Self::new(major, minor) >= Self::OLDEST => {
                Ok(Self::new(major, minor))
            }
            _ => Err(FilesError::Inconsistent {
                subject: format!("kernel {text:?}"),
                problem: "is no version with two numbers, from 2.6 on".into(),
                remedy: "write it as in kernel = \"6.18\"".into(),
            }),
        }
    }
}

/// Release of Solaris whose rules hold, as in `kernel = "solaris-8"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Solaris(pub u16);

impl Solaris {
    /// The one that holds unless a stack says otherwise: that of the documents.
    pub const DEFAULT: Self = Self(8);
}

impl Default for Solaris {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Solaris {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "solaris-{}", self.0)
    }
}

/// A device that a file system lies on, as the block layer describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Size.
    pub bytes: u64,
    /// Has a head that must travel.
    pub is_rotational: bool,
    /// Preferred granule (`minimum_io_size`): the unit of a striped volume; 0: none.
    pub io_min_bytes: u32,
    /// Preferred width (`optimal_io_size`): a full stripe; 0: none.
    pub io_opt_bytes: u32,
    /// Stripes that a volume manager tells its own file system of; none: no such volume.
    pub stripe: Option<StripeFacts>,
}

/// Stripes of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeFacts {
    /// Bytes on one member before the next one.
    pub unit_bytes: u64,
    /// Units of data in a stripe.
    pub columns: u64,
    /// A write of less than a stripe has to read first.
    pub has_parity: bool,
}

/// Everything that mkfs and mount know.
#[derive(Clone, Debug)]
pub struct MakeSpec {
    /// Its devices, by role; the first is [`super::block::DeviceId::MAIN`].
    pub devices: Vec<DeviceFacts>,
    /// Version of the kernel.
    pub kernel: Kernel,
    /// Options of mkfs.
    pub mkfs: FsOptions,
    /// Options of mount.
    pub mount: FsOptions,
    /// Release of Solaris, for file systems that come from there.
    pub solaris: Solaris,
    /// Variables of the kernel (/etc/system), for file systems that come from there.
    pub system: FsOptions,
    /// Processors of the machine.
    pub cpus: u16,
    /// Memory of the machine, as far as files may have it.
    pub memory_bytes: u64,
    /// Work of a processor to give blocks their place, once, with what keeps account of it.
    pub map_cost: Ns,
}
