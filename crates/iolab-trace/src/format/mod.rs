//! Formats that are read, and how they are told apart: by their content.

pub mod blktrace;
