//! `VxFS` of VERITAS: extents that grow, read-ahead and flush-behind in parallel requests, an
//! intent log with four modes.
//!
//! Its rates follow from two products: `read_pref_io` times `read_nstream` is read ahead of a
//! sequential reader, `write_pref_io` times `write_nstream` is sent off behind a sequential writer,
//! whom `max_diskq` holds back. The parts: `options` (mkfs, vxtunefs, mount), `geometry` (where
//! things lie), `extents` (growth, and what is given back), `flush` (what is written when), `names`
//! (entries and inodes), `driver` (state, changes and their undoing), `system` (the decider).
//! Durability is that of `fs::journal`.
//!
//! Left out: data in the log (`datainlog`), reservations (setext), Quick I/O, snapshots, quotas,
//! ACLs, more than one data volume, immediate data in the inode.
//!
//! Sources: VERITAS File System Administrator's Guides 4.1, 5.0 and 5.1 (chapter on I/O tuning);
//! manual pages `mkfs_vxfs(1M)`, `mount_vxfs(1M)`, `vxtunefs(1M)`, `fs_vxfs(4)` (HP-UX 11i).

mod driver;
mod extents;
mod flush;
mod geometry;
mod names;
mod node;
pub mod options;
mod system;

pub use driver::VxFs;

#[cfg(test)]
mod tests;
