//! QFS (SAM-QFS) of Sun: allocation units as long as a stripe, metadata on a device of their own.
//!
//! Its rates follow from three numbers: the disk allocation unit (DAU) decides where data begin,
//! `maxcontig` (early releases) or `readahead` and `writebehind` (later ones) how much of them
//! travels at once, `wr_throttle` how much of a file may be on its way. The parts: `options`
//! (sammkfs, mount), `geometry` (where things lie), `pools` (free DAUs, large and small, and free
//! metadata), `space` (DAUs of files), `names` (entries and inodes), `driver` (state, changes and
//! their undoing), `system` (the decider). Write-behind is that of `fs::write_behind`, durability
//! that of `fs::journal`, without a log.
//!
//! Left out: archiving, releasing and staging (SAM), several devices of data or of metadata and
//! with them striping, round robin and striped groups, shared and multireader file systems, zeros
//! in the rest of a DAU that a sparse write gets, `sw_raid`, `flush_behind`, the change from paged
//! to direct I/O by size (`dio_*`), the log of release 5 on (LQFS), quotas, ACLs, segments.
//!
//! Sources: Sun QFS manual pages `sammkfs(1M)`, `mount_samfs(1M)`, `mcf(4)`; the published source
//! of release 5 (`cvnops.c`, `map.c`, `create.c`, `setdau.c`, `param.h`).

mod driver;
mod geometry;
mod names;
mod node;
pub mod options;
mod pools;
mod space;
mod system;

pub use driver::QfsFs;

#[cfg(test)]
mod tests;
