//! ext2, ext3 and ext4: one family with one layout.

pub mod directory;
pub mod driver;
mod durability;
mod file_system;
pub mod geometry;
pub mod inodes;
pub mod make;
pub mod mapping;
pub mod mballoc;
pub mod mode;
mod names;
pub mod node;
mod old_driver;
pub mod options;
pub mod reservation;
mod space;
