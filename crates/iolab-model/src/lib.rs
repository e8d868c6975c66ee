//! The words of the domain: what an operation is, what operations are sent to, and what comes back.
//!
//! Types and traits only. Nothing in this crate performs I/O, starts a thread, reads a clock or
//! keeps a global; a real kernel, a simulated stack and a null device all implement the same
//! [`Target`] and [`Lane`], and [`conformance`] says what that promises.

pub mod blktrace;
pub mod calendar;
pub mod completion;
pub mod conformance;
pub mod erased;
pub mod error;
pub mod histogram;
pub mod iolog;
pub mod kv;
pub mod listing;
pub mod nearest;
pub mod op;
pub mod priority;
pub mod readings;
pub mod registry;
pub mod seed;
pub mod target;
pub mod trace_event;
pub mod units;
pub mod visible;

pub use calendar::Calendar;
pub use completion::{Completion, Outcome};
pub use erased::Erased;
pub use error::{Errno, Error};
pub use histogram::Histogram;
pub use op::{Op, Submission, Token};
pub use priority::Priority;
pub use seed::Seed;
pub use target::{Accepted, Capabilities, Lane, LaneRequest, Target, VirtualTime};
pub use trace_event::TraceEvent;
pub use units::{Bytes, Ns, Sector};
