//! File systems: one folder per family, one row each in [`list`].

pub mod buddy;
pub mod directory;
pub mod ext;
pub mod extent_map;
pub mod journal;
pub mod list;
pub mod ufs;
pub mod vxfs;
pub mod xfs;
pub mod zfs;
