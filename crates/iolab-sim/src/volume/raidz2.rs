//! raidz2: two sectors of parity in each row of a block ([`super::raidz`]).
//!
//! Source: zpoolconcepts(7).

/// The row of the list.
pub type Raidz2 = super::raidz::Raidz<2>;
