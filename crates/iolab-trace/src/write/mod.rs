//! Formats that are written.

pub mod blkparse;
pub mod blkparse_totals;
mod blkparse_track;
