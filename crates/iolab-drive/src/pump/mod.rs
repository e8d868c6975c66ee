//! Pumps: real time with threads, and virtual time on one thread.

mod either;
mod events;
mod inline;
mod layout;
mod simulated;
mod slices;
mod threads;
mod worker;
mod workplace;

pub use events::{Actor, run_events};
pub use inline::InlineGroup;
pub use layout::{Laid, lay_out};
pub(crate) use simulated::ObservedGroup;
pub use simulated::run_simulated;
pub use slices::{SliceCount, SliceDriver, SliceLength, Turn, is_flushed, run_slices};
pub use threads::{Part, Seat, get_ready, run_threads, seats};
pub use worker::drive;
pub use workplace::Workplace;
