//! File systems: one folder per family, one row each in [`list`].

pub mod buddy;
pub mod directory;
pub mod ext;
pub mod extent_map;
pub mod free_runs;
pub mod journal;
pub mod list;
pub mod qfs;
pub mod ufs;
pub mod vxfs;
pub mod write_behind;
pub mod xfs;
pub mod zfs;
