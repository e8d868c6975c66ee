//! A worker on a simulated Solaris stack.

pub mod worker;
