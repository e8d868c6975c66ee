//! The child that performs the I/O of one trial: reads a request, runs its phases, answers.
//!
//! It runs in the agent's mount namespace and, if asked, in a memory cgroup. It changes no setting;
//! all it touches is the directory it is given, and the page cache if it may.

#![allow(unsafe_code, reason = "fork, signals and counters; every block says why it is sound")]

mod caveats;
mod child;
mod clients;
mod counter_series;
mod counters;
mod observer;
mod pairs;
mod probe;
mod processes;
mod request;
mod several;
mod slices;
mod users_files;
mod waits;

pub use child::main;
