//! Tests of all volumes, by subject.

mod errors;
mod fan_out;
mod geometry;
mod plan;
