//! Clients of a key-value store, as YCSB's core workload has them: what they draw and what is
//! counted of them.
//!
//! [`KvClient`] is passive: it says what comes next and makes values; who calls the store and reads
//! the clock is a pump's business. It is no [`crate::program`], because keys, fields, results and
//! reports follow another program's rules to the letter (docs/design/0012).

pub mod codec;
pub mod count;
pub mod description;
mod draw;
pub mod generate;
pub mod hdr;
mod stage;

pub use count::{
    KvCounts, KvEnd, KvLatency, KvRecord, KvReturned, KvSeries, KvSeriesRecord, KvStatus,
};
pub use description::{KvAction, KvInterval, KvLength, KvMeasured, KvMix, KvOrder, KvWork};
pub use draw::{FieldChoice, KvClient, KvRequest};
pub use stage::KvStage;

#[cfg(test)]
mod tests;
