//! Write patterns as text, run on a file system's decider with a small machine around it.
//!
//! `tools/record_extents.py` runs the same text on the kernel. Lines are calls with names and
//! numbers (`4k`, `64k*i+32k`, `4k*i*37%4096`); `for i 10` to `end` repeats; `f{i}` is a name.
//! `blocks NAME 3 1 2` is one write of 4 KiB for each number of a block.
#![allow(dead_code, reason = "each test uses a part")]

pub mod recorded;
pub mod small;
pub mod text;

pub use text::Pattern;
