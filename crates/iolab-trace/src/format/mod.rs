//! Formats that are read, and how they are told apart: by their content, never by their name.

pub mod blkparse;
pub mod blktrace;
pub mod disksim;
pub mod events_csv;
pub mod fields;
pub mod ftrace;
pub mod iolog;
mod list;
pub mod msr;
pub mod text;

pub use list::{FORMATS, Format, open, open_windows};
