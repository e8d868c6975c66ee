//! raidz1: one sector of parity in each row of a block ([`super::raidz`]).
//!
//! Source: zpoolconcepts(7).

/// The row of the list.
pub type Raidz1 = super::raidz::Raidz<1>;
