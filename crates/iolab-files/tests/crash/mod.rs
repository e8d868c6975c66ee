//! A machine that can lose power at any event.

pub mod chance;
pub mod fragile;
pub mod small;

pub use fragile::Fragile;
#[allow(unused_imports, reason = "each test uses a part")]
pub use small::{cuts, made, made_with_second};
