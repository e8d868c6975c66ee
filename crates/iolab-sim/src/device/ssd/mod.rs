//! A flash drive: channels, dies and planes, a translation layer, a write cache, a host interface.
//!
//! Models: occupation of dies, channels, controller and link; a page-level translation layer with
//! garbage collection; a write cache that coalesces; single-level cache with folding; trim; a map
//! cache; read-ahead; SATA and `NVMe` in their costs per command and byte. Leaves out: the content,
//! power cuts, errors, wear levelling, heat. Source: `docs/reference/devices/ssd.md` and the papers
//! named there (`MQSim`, FAST 2018; Agrawal et al., USENIX ATC 2008; Desnoyers 2014).

pub mod cache;
pub mod collect;
pub mod die;
pub mod drive;
mod flash;
pub mod ftl;
pub mod geometry;
mod host;
pub mod map_cache;
pub mod parameters;
pub mod prefetch;

#[cfg(test)]
mod tests;

pub use drive::Ssd;
pub use parameters::Parameters;
