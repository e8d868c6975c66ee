//! One trial, seen from the parent: prepare, let a child measure, collect, clean.

mod changes;
mod child;
mod run;

pub use child::MeasureProgram;
pub use run::{Context, run};
