//! Costs of software: time of a processor per call of a scheduler, and the processors.

mod costs;
mod processors;

pub use costs::{CostTable, HookCosts, Software};
pub use processors::ProcessorClocks;
