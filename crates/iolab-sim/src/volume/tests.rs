//! Tests of all volumes, by subject.

mod array;
mod discards;
mod errors;
mod fan_out;
mod geometry;
mod nvram;
mod pages;
mod plan;
mod queues;
