//! raidz3: three sectors of parity in each row of a block ([`super::raidz`]).
//!
//! Source: zpoolconcepts(7).

/// The row of the list.
pub type Raidz3 = super::raidz::Raidz<3>;
