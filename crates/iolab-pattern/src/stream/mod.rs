//! Streams of accesses, measured one access at a time in bounded memory.

pub mod class;
pub mod order;
pub mod pauses;
pub mod phases;
pub mod reuse;
pub mod sizes;
pub mod tally;
