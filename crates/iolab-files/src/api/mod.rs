//! Interfaces between the machine and its deciders.

pub mod block;
pub mod context;
pub mod file_system;
pub mod frame;
pub mod make;
pub mod options;
pub mod own_cache;
pub mod read_ahead;
pub mod write_back;
