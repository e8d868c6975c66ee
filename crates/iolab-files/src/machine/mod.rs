//! The machine of operations over time: memory, names, files, and who waits for what.

mod buffered_read;
mod buffered_write;
mod call;
mod clustered;
mod contents;
mod daemon;
mod direct;
mod edges;
mod effects;
mod engine;
mod facts;
mod failure;
mod flush;
mod lock;
mod mapped;
mod name;
mod node;
mod page_io;
mod power;
mod processors;
mod records;
mod request;
mod settings;
mod stream;
mod task;
mod tree;
mod write_out;

pub use call::{Call, FLAGS, HandleInfo};
pub use engine::{Deciders, Machine, MachineEnded};
pub use request::{Outgoing, OutgoingId, OutgoingKind};
pub use settings::{MachineCost, MachineSettings, SLICE};
pub use task::RunBy;
