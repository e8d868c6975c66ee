//! A simulated block stack: I/O schedulers, volumes, disks and flash drives.
//!
//! Everything is a [`Layer`] that takes bios from above and sends bios below; a stack is layers in
//! layers. Time is an argument everywhere, so the same seed gives the same events on every machine.
//! Policies ([`Scheduler`]) are deciders: plain data in, decisions out.
//!
//! Left out for now: file systems and the page cache.

pub mod api;
pub mod calendar;
pub mod compare;
pub mod device;
pub mod error;
pub mod limits;
pub mod probe;
pub mod profile;
pub mod queue;
pub mod replay;
pub mod scenario;
pub mod sched;
pub mod software;
pub mod stack;
pub mod target;
pub mod tunable;
pub mod volume;

pub use api::bio::{
    Bio, BioId, Ended, Flags, Operation, Priority, PriorityClass, ProcessId, Submitter,
};
pub use api::layer::{Info, Layer, WriteCache};
pub use api::request::{Direction, Request, RequestId, Requests};
pub use api::scheduler::{Framework, Hz, Merge, MergeEnd, Scheduler, SchedulerContext};
pub use calendar::Calendar;
pub use error::SimError;
pub use profile::Profile;
