//! A simulated block stack: I/O schedulers, volumes, disks and flash drives.
//!
//! Everything is a [`Layer`] that takes bios from above and sends bios below; a stack is layers in
//! layers. Time is an argument everywhere, so the same seed gives the same events on every machine.
//! Policies ([`Scheduler`]) are deciders: plain data in, decisions out.
//!
//! A file system may lie on a stack ([`files`]); it and the page cache are the crate
//! `iolab-files`.

pub mod api;

pub mod compare;
pub mod device;
pub mod error;
pub mod files;
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
pub mod vdev_queue;
pub mod volume;

pub use api::bio::{
    Bio, BioId, Ended, Flags, Operation, Priority, PriorityClass, ProcessId, Submitter,
};
pub use api::layer::{Info, Layer, WriteCache};
pub use api::request::{Direction, Request, RequestId, Requests};
pub use api::scheduler::{Framework, Hz, Merge, MergeEnd, Scheduler, SchedulerContext};
pub use error::SimError;
pub use iolab_model::Calendar;
pub use profile::Profile;
