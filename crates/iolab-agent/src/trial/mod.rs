//! One trial, seen from the parent: prepare, let a child measure, collect, clean.

mod changes;
mod child;
mod recordings;
mod run;

pub use child::MeasureProgram;
pub use recordings::are_handed_over;
pub use run::{Context, run};
