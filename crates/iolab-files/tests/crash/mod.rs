//! A machine that can lose power at any event.

pub mod fragile;
pub mod small;

pub use fragile::Fragile;
pub use small::{cuts, made};
