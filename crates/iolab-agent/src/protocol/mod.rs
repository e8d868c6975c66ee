//! The agent's two contracts: with its front end (`iolab-protocol`) and with its measuring child.

mod child;
mod request;
#[cfg(test)]
mod tests;

pub use child::{Counter, GroupSeat, MeasureLine, MeasureOrder, MeasureResult, RawDevice};
pub use iolab_protocol::agent::*;
pub use request::{Call, answer, call_of, parse};
