//! File systems: one folder per family, one row each in [`list`].

pub mod buddy;
pub mod extent_map;
pub mod list;
