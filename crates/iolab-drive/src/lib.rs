//! Pumps: they ask workers for ops, hand these to lanes, and record what comes back.
//!
//! The pumps know neither the kernel nor the simulator; a [`iolab_model::Target`] is handed to
//! them. [`target`] holds the two that need no device: `null` (measures the harness itself) and
//! `memory`.

pub mod blend;
pub mod clock;
pub mod coordinate;
pub mod group;
pub mod interim;
pub mod kv;
pub mod needs;
pub mod op_log;
pub mod overhead;
pub mod pump;
pub mod record;
pub mod recorded;
pub mod recorder;
mod run_delay;
pub mod segment;
pub mod series;
pub mod submission;
pub mod target;
mod thread_use;
pub mod verify;

pub use coordinate::{Observer, PhaseOutcome, TenantOutcome, WorkerOutcome};
pub use group::SharedGroup;
pub use recorder::Recorder;
