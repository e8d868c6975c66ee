//! Access patterns of applications: which places of which files they read and write, in which
//! order, how much at once, how often they wait for stable storage.
//!
//! Sources are texts of strace(1) and truss(1), recordings of the kernel's trace points of system
//! calls, and block traces of every format that `iolab-trace` reads. Left out: transfers through
//! memory maps and `io_uring`, which no trace of system calls shows; the report says where there
//! were some.

#![forbid(unsafe_code)]

pub mod access;
pub mod analysis;
pub mod calls;
pub mod descriptors;
pub mod emit;
pub mod points;
pub mod processes;
pub mod report;
pub mod sentence;
pub mod show;
pub mod stream;
pub mod text;
