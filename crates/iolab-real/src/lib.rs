//! Targets on the running kernel: one engine per way of submitting I/O.
//!
//! [`engine`] holds the engines; the rest is what they share (open files, buffers, the clock) and
//! what an experiment needs around them: the page cache's state ([`cache`]), the alignment of
//! direct I/O ([`alignment`]), CPU affinity and memory shared with forked workers.

pub mod affinity;
pub mod alignment;
pub mod buffer;
pub mod cache;
pub mod clock;
pub mod created;
pub mod engine;
pub mod extents;
mod fault;
mod files;
pub mod glance;
mod kernel;
mod listing;
mod mapping;
pub mod priority;
pub mod shared;
mod stream;
mod vectors;

pub use engine::{Engine, EngineVisitor, Unavailable};
