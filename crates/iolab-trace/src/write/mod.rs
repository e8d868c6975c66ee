//! Formats that are written.

pub mod blkparse;
pub mod blkparse_totals;
mod blkparse_track;
pub mod blktrace;
pub mod columns;
pub mod events_csv;
pub mod iolog;
