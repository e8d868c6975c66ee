//! Our own file of a trace: compact, seekable, readable up to its last whole block.
//!
//! The layout stands in `docs/reference/trace-file.md`. All of it consists of zstd frames, so that
//! `zstd -t` checks a file and any zstd tool unpacks the columns; what only we need lies in
//! skippable frames (RFC 8878, section 3.1.2).

mod codec;
mod index;
mod layout;
mod reader;
mod writer;

pub use index::Index;
pub use layout::{FILE_CALLS, LAYERS_FACT, LOST_FACT, is_file};
pub use reader::Reader;
pub use writer::Writer;
