//! xfs: allocation groups, promises kept at write-back, preallocation beyond the end of files that
//! grow, a log of changes collected in memory.

pub mod busy;
pub mod fork;
pub mod geometry;
pub mod groups;
pub mod inodes;
pub mod leaves;
pub mod log;
pub mod near;
pub mod node;
pub mod options;
pub mod prealloc;
pub mod space;
pub mod volume;

mod data;
mod names;
mod system;

pub use volume::Xfs;

#[cfg(test)]
mod tests;
