//! `ZFS` on Linux: copy on write in transaction groups, with a cache and a device queue of its own.
//!
//! A change belongs to the transaction group that is open. When a group closes, everything that it
//! changed gets new places and is written, then the metadata that lead to it, then a label; only
//! that makes it durable. Whoever cannot wait has its changes written to the intent log. The parts:
//! `options` (properties, parameters of the module, releases), `metaslab` (free space), `node`
//! (files), `group` (transaction groups, and what they changed), `driver` (state), `admission`
//! (write throttles), `names`, `data` (records), `metadata` (what a group writes beside data),
//! `intent_log`, `image` (what a power cut leaves), `system` (the decider). Its cache is
//! `reclaim::adaptive`, its prefetch `readahead::zfetch`, its device queue a layer of the block
//! half.
//!
//! Left out: compression, deduplication, snapshots and clones, scrubs, L2ARC, several vdevs, gang
//! blocks as such, time of processors for checksums, deferred frees, blocks smaller than 4 KiB.
//!
//! Sources: Bonwick and Moore, "ZFS: The Last Word in File Systems"; zfs(4), zfs(8), zpool(8);
//! documentation of module parameters and comments of `OpenZFS` 0.6.0-rc11 to 2.3.0.

mod admission;
mod data;
mod driver;
mod group;
mod image;
mod intent_log;
mod metadata;
mod metaslab;
mod names;
mod node;
pub mod options;
mod system;

pub use driver::Zfs;

#[cfg(test)]
mod tests;
