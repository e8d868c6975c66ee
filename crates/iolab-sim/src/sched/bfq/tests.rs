//! bfq against its specification, against naive twins, and against its own bookkeeping.
//!
//! The scenarios `bfq-01` to `bfq-10` are judged by the runner of scenario files.

mod agenda;
mod behaviour;
mod driver;
mod formulas;
mod properties;
