//! Pumps: real time with threads, and virtual time on one thread.

mod events;
mod inline;
mod threads;
mod worker;

pub use events::{VirtualTime, run_events};
pub use threads::{Seat, run_threads, seats};
pub use worker::drive;
