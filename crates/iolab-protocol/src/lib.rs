//! Every type that crosses a border, declared once: the agent's requests and answers, the record
//! that a trial leaves in the store, the workload's description.
//!
//! Types that a pump or a worker makes stay in their crates (`iolab-drive`, `iolab-workload`,
//! `iolab-model`); [`schema`] collects all of them. `make docs` writes Python's types
//! (`python/iolab/protocol.py`) and the page `docs/reference/agent-protocol.md` from that schema.

pub mod agent;
pub mod extension;
pub mod schema;
