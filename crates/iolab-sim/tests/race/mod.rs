//! Workers that race each other on a simulated stack.

pub mod workers;
