//! Block traces: read, converted, paired and summed up.
//!
//! Every format is read into the same [`Event`]s, one at a time, so that memory does not grow with
//! the length of a trace. What a reader finds wrong is a [`Caveat`](error::Caveat) with its place;
//! what comes before it can be used. Nothing here prints. Left out: capture, of which
//! only the decoding of the kernel's pages (`ring`) is here.

#![forbid(unsafe_code)]

pub mod choice;
pub mod convert;
pub mod density;
pub mod error;
pub mod event;
pub mod format;
pub mod names;
pub mod native;
pub mod number;
pub mod part;
pub mod plot;
pub mod ring;
pub mod show;
pub mod simulated;
pub mod source;
pub mod stages;
pub mod write;

pub use error::Error;
pub use event::Event;
pub use source::{Input, Source};
