//! The pump of clients of a key-value store: a thread per client, all on one store.
//!
//! A store answers by itself, so there is no lane: a call blocks its client. What comes next and
//! what is counted is `iolab_workload::kv`'s; here are threads, gates, the clock and the calls.
//! In virtual time clients and store are [`simulated`]. Left out: clients as processes.

mod client;
mod log;
mod nothing;
mod run;
mod simulated;
mod status;

pub use nothing::NoStore;
pub use run::{KvMeans, run_kv};
pub use simulated::run_simulated_kv;
