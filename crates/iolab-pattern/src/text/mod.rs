//! System calls as text: what strace(1) of Linux and truss(1) of Solaris print.

pub mod line;
pub mod reader;
pub mod scan;
