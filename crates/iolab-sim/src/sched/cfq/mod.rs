//! cfq: completely fair queueing, time slices of the device for every process.
//!
//! Each process has a queue of its synchronous requests; asynchronous writes of all processes
//! share one queue per priority. One queue at a time owns the device, for a slice of time whose
//! length follows its I/O priority. While a queue that is expected to ask again soon is empty, the
//! device is kept idle for it: that is what makes sequential readers fast on a disk, and what
//! makes cfq slow on devices without a head.
//!
//! One file per mechanism: `settings` (tunables), `queue`, `process`, `tree` and `group` (who is
//! next), `slice` (how long), `select` (the decision at each dispatch), `idle`, `preemption`,
//! `cooperator` (queues that read the same place), `think` and `seek` (statistics), `choice` (order
//! inside a queue), `flow` (a request's way in and out), `merge`, `clock` (ticks) and `preset`
//! (states for scenario files).
//!
//! Left out: control groups (there is one, the root; its rules and its accounting are here), the
//! forced drain at a switch of schedulers, wrap-around of the tick counter, memory shortage.
//! Positions of queues, which the kernel lets go stale after a dispatch, are exact here.
//!
//! Source: Linux 4.1 block/cfq-iosched.c (behaviour), with the default of `slice_idle` on
//! non-rotational devices of 4.2 and the rule of 4.8 that only requests of one queue are joined.

mod choice;
mod clock;
mod cooperator;
mod flow;
mod group;
mod idle;
mod merge;
mod preemption;
mod preset;
mod process;
mod queue;
mod scheduler;
mod seek;
mod select;
mod settings;
mod slice;
mod think;
mod tree;

#[cfg(test)]
mod tests;

pub use scheduler::Cfq;
