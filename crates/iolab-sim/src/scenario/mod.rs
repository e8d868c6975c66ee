//! Scenario files: exact dispatch orders that a scheduler must produce, and cases of the block
//! layer around it.

mod block_layer;
mod file;
mod run;

pub use file::{Device, Expectation, RequestRow, Scenario, ScenarioFile};
pub use run::{Judgement, judge, judge_all, obtain};
