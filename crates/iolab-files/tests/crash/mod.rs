//! A machine that can lose power at any event.

pub mod fragile;

pub use fragile::Fragile;
