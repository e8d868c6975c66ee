//! Measures of a trace: how long each stage of a request takes, how deep the queues are, where on
//! the device the requests lie, and which process they belong to.
//!
//! The stages are those of btt(1); the counting rules, and where they depart from btt's, stand in
//! [`pairing`]. Everything is counted while the trace goes by: memory is bounded.

pub mod activity;
pub mod btt;
pub mod calls;
pub mod compare;
pub mod counts;
pub mod groups;
pub mod pairing;
mod pending;
pub mod periods;
pub mod processes;
pub mod report;
pub mod seeks;
pub mod text;

pub use groups::{By, Stage};
pub use pairing::{Pairing, Rules};
pub use report::Report;
