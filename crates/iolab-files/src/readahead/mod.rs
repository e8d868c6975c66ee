//! Read-ahead: one rule per kernel era, and the walk of a read through cached pages.

pub mod clustered;
pub mod era;
pub mod linux;
pub mod reader;
pub mod walk;
pub mod zfetch;

#[cfg(test)]
mod tests;

pub use era::{ReadAheadEra, ReadAheadRules, Walk};
pub use linux::LinuxReadAhead;
