//! Makes ops: what a workload is ([`spec`]), in which order records are touched ([`generator`]),
//! and the passive actor that turns both into a stream of ops ([`worker`]).
//!
//! Nothing here blocks, sleeps, reads a clock or performs I/O, so the same worker runs against the
//! kernel in real time and against a simulated stack in virtual time.

pub mod acknowledged;
mod bursting;
pub mod draws;
pub mod file_set;
mod following;
pub mod generator;
pub mod group;
pub mod kv;
pub mod layout;
pub mod operation;
pub mod preset;
pub mod program;
pub mod report;
pub mod spec;
pub mod stream;
pub mod verify;
pub mod waits;
pub mod worker;

pub use file_set::FileSetWorker;
pub use group::{Gate, GroupState};
pub use layout::{LayoutFailure, LayoutPlan, LayoutWorker};
pub use program::ProgramWorker;
pub use report::StreamReport;
pub use spec::Workload;
pub use stream::StreamWorker;
pub use worker::{RunKind, Step, WholeOperation, Worker};
