//! The native workload file: the description of a workload as TOML.
//!
//! Keys are those of the description. Sizes and durations may be written as people do (`"4k"`,
//! `"10s"`), under keys that end in `_bytes` or `_ns`, or under their short names ([`tree`]). A
//! problem is told with its line, its key and the nearest name. Left out: everything that is no
//! workload (testbeds, factors), which is a study's.

mod expect;
mod place;
mod read;
mod recording;
mod tree;

pub use expect::Expect;
pub use read::{FileProblem, WorkloadFile, read};
pub(crate) use recording::open;
pub use recording::{anchored, identity};

#[cfg(test)]
mod tests;
