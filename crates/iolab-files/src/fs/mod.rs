//! File systems: one folder per family, one row each in [`list`].

pub mod list;
pub mod xfs;
