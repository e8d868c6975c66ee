//! Clients of a simulated store in virtual time: its model decides ([`iolab_lsm`]), its files lie
//! on the target, its threads are actors beside the clients.
//!
//! A database is as old as its phase: a run loads it before, untimed, and nobody finds it later.
//! Left out: values, and so their comparison; lines about the progress.

mod client;
mod files;
mod keys;
mod run;
mod shared;
mod thread;

pub use run::run_simulated_kv;
