//! UFS of Solaris: blocks of 8 KiB with fragments, clusters, a throttle for each file.
//!
//! Its rates follow less from where blocks lie than from how many of them travel together:
//! `maxcontig` blocks are one cluster, which is read ahead and written behind as one request.
//! The parts: `geometry` and `groups` (where things lie), `names` (entries and inodes), `space`
//! (blocks and fragments of files), `clusters` (what is written when), `system` (the decider).
//! Durability is that of `fs::journal`: writes in order, or a log.
//!
//! Left out: quotas, ACLs, shadow inodes, sparse superblocks, rotational layout tables (`-d`,
//! `-r`), snapshots.
//!
//! Sources: `McVoy` and Kleiman, "Extent-like performance from a UNIX file system" (USENIX 1991);
//! Solaris Tunable Parameters Reference Manual (Solaris 8 and 9); the manual pages `newfs(1M)`,
//! `tunefs(1M)`, `mount_ufs(1M)`.

mod clusters;
mod driver;
mod geometry;
mod groups;
mod names;
mod node;
pub mod options;
mod space;
mod system;

pub use driver::UfsFs;

#[cfg(test)]
mod tests;
