//! A hard disk: platters that turn, an arm that travels, caches and a queue in between.
//!
//! Modelled: zones, skews, seek curve, rotation by absolute angle, transfer across tracks, command
//! overhead, bus, read-ahead segments, write cache with destaging, tagged queueing.
//! Left out: defects and spare sectors, thermal recalibration, media errors, spindle start and
//! power states, arbitration between several drives on one bus.
//!
//! Sources: Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994);
//! Bucy, Schindler, Schlosser, Ganger, "The `DiskSim` simulation environment version 4.0
//! reference manual" (2008); Worthington, Ganger, Patt, "Scheduling algorithms for modern disk
//! drives" (1994).

pub mod drive;
pub mod geometry;
pub mod mechanism;
pub mod parameters;
pub mod queue;
pub mod read_cache;
pub mod seek;
pub mod statistics;
pub mod write_cache;

pub use drive::Disk;

#[cfg(test)]
pub(super) mod tests;
