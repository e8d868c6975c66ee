//! The list of volumes.

use super::parameters::VolumeParameters;
use crate::api::layer::Layer;
use crate::error::SimError;

/// Constructor of a volume for the list.
pub(super) trait Assemble {
    /// A volume over the members, or what is wrong with them.
    fn assemble(
        members: Vec<Box<dyn Layer>>,
        parameters: &VolumeParameters,
    ) -> Result<Box<dyn Layer>, SimError>;
}

macro_rules! volumes {
    ( $( $(#[$meta:meta])* $Row:ident = $name:literal => $Type:path, )+ ) => {
        iolab_model::registry! {
            /// An arrangement of members.
            pub enum VolumeKind as "volume layout" {
                $( $(#[$meta])* $Row = $name, )+
            }
        }

        /// A volume as `parameters.layout` says over `members`, which are bare devices (a hardware
        /// array), queues with schedulers (software RAID) or other volumes.
        pub fn build(
            members: Vec<Box<dyn Layer>>,
            parameters: &VolumeParameters,
        ) -> Result<Box<dyn Layer>, SimError> {
            match parameters.layout {
                $( VolumeKind::$Row => <$Type>::assemble(members, parameters), )+
            }
        }
    };
}

volumes! {
    /// One after the other.
    Single = "single" => super::single::Single,
    /// Units in turn, no redundancy.
    Raid0 = "raid0" => super::raid0::Raid0,
    /// Copies on every member.
    Raid1 = "raid1" => super::raid1::Raid1,
    /// Units in turn over mirrored pairs.
    Raid10 = "raid10" => super::raid10::Raid10,
    /// Units in turn, one parity unit per row.
    Raid5 = "raid5" => super::raid5::Raid5,
    /// Units in turn, two parity units per row.
    Raid6 = "raid6" => super::raid6::Raid6,
    /// ZFS's parity: rows as wide as a block, one parity each.
    Raidz1 = "raidz1" => super::raidz1::Raidz1,
    /// The same with two parities.
    Raidz2 = "raidz2" => super::raidz2::Raidz2,
    /// The same with three parities.
    Raidz3 = "raidz3" => super::raidz3::Raidz3,
}

impl VolumeKind {
    /// Tell whether it is a layout of ZFS.
    pub const fn is_of_pools(self) -> bool {
        matches!(self, Self::Raidz1 | Self::Raidz2 | Self::Raidz3)
    }

    /// Units of data in a stripe over so many members, and whether there is parity beside them;
    /// none: no stripes.
    pub(crate) const fn columns(self, members: u64) -> Option<(u64, bool)> {
        match self {
            // The rows of raidz are of blocks, whatever their places.
            Self::Single | Self::Raid1 | Self::Raidz1 | Self::Raidz2 | Self::Raidz3 => None,
            Self::Raid0 => Some((members, false)),
            Self::Raid10 => Some((members / 2, false)),
            Self::Raid5 => Some((members - 1, true)),
            Self::Raid6 => Some((members - 2, true)),
        }
    }
}
