//! Work on the records of a store, as YCSB's core workload describes it.

use iolab_model::kv::KvOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

iolab_model::registry! {
    /// Part of the work.
    pub enum KvAction as "action" {
        /// Insert every record once.
        Load = "load",
        /// Perform operations on records that are there.
        Run = "run",
    }
}

iolab_model::registry! {
    /// Instant from which a latency is counted.
    pub enum KvInterval as "measurement interval" {
        /// Begin of the call.
        Operation = "op",
        /// Begin that was planned, under a target rate.
        Intended = "intended",
        /// Both, in series of their own.
        Both = "both",
    }
}

/// Clients of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct KvWork {
    /// Loading or running.
    pub action: KvAction,
    /// The store and its settings.
    pub store: KvOptions,
    /// Records in the store before a run.
    pub record_count: u64,
    /// Operations of all clients together; inserts of a load; 0: until the time is over.
    pub operation_count: u64,
    /// First key number of these clients.
    pub insert_start: u64,
    /// Number of keys of these clients.
    pub insert_count: u64,
    /// Fields of a record.
    pub field_count: u32,
    /// Name of a field, before its number.
    pub field_prefix: String,
    /// Length of a field's value.
    pub field_length: KvLength,
    /// A read returns all fields, or one.
    pub reads_all_fields: bool,
    /// An update writes all fields, or one.
    pub writes_all_fields: bool,
    /// Values follow from key and field, and what is read is compared.
    pub is_verified: bool,
    /// Weights of the operations.
    pub mix: KvMix,
    /// Choice of keys.
    pub order: KvOrder,
    /// Least number of digits of a key.
    pub zero_padding: u32,
    /// Keys are hashes of their numbers.
    pub is_hashed: bool,
    /// Records of a scan.
    pub scan_length: KvLength,
    /// Operations per second of all clients together; 0: as fast as they can.
    pub target_per_s: f64,
    /// Waiting clients keep the processor.
    pub is_spinning: bool,
    /// Nothing is begun after so many seconds; 0: no limit.
    pub time_limit_s: u64,
    /// Repetitions of an insert that failed, when loading.
    pub insert_retries: u32,
    /// Mean pause before each of them.
    pub retry_interval_s: f64,
    /// Loading goes on after an insert that failed.
    pub goes_on_after_errors: bool,
    /// Records are put before a run into a store that was made just then.
    pub loads_new_store: bool,
    /// Extent of what is kept of every operation.
    pub measured: KvMeasured,
}

/// Weights of the operations; they need not add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvMix {
    /// Reads.
    pub read: f64,
    /// Updates.
    pub update: f64,
    /// Inserts.
    pub insert: f64,
    /// Scans.
    pub scan: f64,
    /// A read and an update of the same record.
    pub read_modify_write: f64,
}

/// A length, or a number of records, and how it is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum KvLength {
    /// Always the same.
    Constant {
        /// The length.
        length: u64,
    },
    /// Each as likely as any other.
    Uniform {
        /// The least.
        from: u64,
        /// The largest.
        to: u64,
    },
    /// Short ones are likely.
    Zipfian {
        /// The least.
        from: u64,
        /// The largest.
        to: u64,
    },
    /// As often as counted.
    Histogram {
        /// Bytes of a part.
        part_bytes: u64,
        /// Counts, by part.
        counts: Vec<u64>,
    },
}

impl KvLength {
    /// The largest that can be drawn.
    pub fn most(&self) -> u64 {
        match self {
            Self::Constant { length } => *length,
            Self::Uniform { to, .. } | Self::Zipfian { to, .. } => *to,
            Self::Histogram { part_bytes, counts } => part_bytes * counts.len() as u64,
        }
    }
}

/// Choice of keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum KvOrder {
    /// Each as likely as any other.
    Uniform,
    /// Popular ones, scattered over all keys.
    Zipfian,
    /// The newest are the most popular.
    Latest,
    /// A part of the keys gets a share of the operations.
    Hotspot {
        /// Size of the part, 0 to 1.
        data_fraction: f64,
        /// Its share, 0 to 1.
        ops_fraction: f64,
    },
    /// The newer, the likelier, exponentially.
    Exponential {
        /// Percent of the draws ...
        percentile: f64,
        /// ... in this share of the records.
        fraction: f64,
    },
    /// One after the other, all clients together.
    Sequential,
}

/// Extent of what is kept of every operation beside its histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvMeasured {
    /// Begin of a latency.
    pub interval: KvInterval,
    /// Parts of a millisecond each, beside one for all that is longer; 0: none.
    pub ms_parts: u32,
    /// Width of windows with a mean each; 0: none.
    pub window_ms: u64,
    /// Time between two lines about the progress; 0: none.
    pub status_s: f64,
    /// Text before each of these lines.
    pub label: String,
}

impl KvWork {
    /// Keys that are drawn from before any is inserted: an empty table counts as 2^31 - 1, as in
    /// the reference.
    pub fn known_records(&self) -> u64 {
        if self.record_count == 0 { u64::from(i32::MAX as u32) } else { self.record_count }
    }

    /// Bytes of a record at most, with its key.
    pub fn record_bytes(&self) -> u64 {
        let name = self.field_prefix.len() as u64 + 10;
        u64::from(self.field_count) * (8 + name + self.field_length.most())
            + 4
            + u64::from(self.zero_padding.max(20))
    }

    /// Tell whether any operation reads.
    pub fn reads(&self) -> bool {
        self.action == KvAction::Run
    }

    /// Tell whether any operation writes.
    pub fn writes(&self) -> bool {
        let mix = self.mix;
        self.action == KvAction::Load
            || mix.update + mix.insert + mix.read_modify_write > 0.0
            || self.loads_new_store
    }

    /// Contradiction, and advice.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        let mix = self.mix;
        let weights = [mix.read, mix.update, mix.insert, mix.scan, mix.read_modify_write];
        let is_wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
        if let Some(weight) = weights.iter().find(|weight| is_wrong(weight)) {
            return Some((format!("a proportion of {weight}"), "use a number of at least 0"));
        }
        if self.action == KvAction::Run && weights.iter().sum::<f64>() <= 0.0 {
            return Some(("no operation has a proportion".into(), "give one, as readproportion=1"));
        }
        if self.field_count == 0 {
            return Some(("records without fields".into(), "use fieldcount=1 or more"));
        }
        for length in [&self.field_length, &self.scan_length] {
            if let KvLength::Uniform { from, to } | KvLength::Zipfian { from, to } = length
                && from > to
            {
                let problem = format!("a length from {from} to {to}");
                return Some((problem, "let the least not be larger than the largest"));
            }
        }
        if self.record_bytes() > RECORD_BYTES_MAX {
            let problem = format!("records of up to {} bytes", self.record_bytes());
            return Some((problem, "use fewer or shorter fields: at most 64 MiB each"));
        }
        if self.is_verified && !matches!(self.field_length, KvLength::Constant { .. }) {
            return Some((
                "data integrity of fields of several lengths".into(),
                "use fieldlengthdistribution=constant, or leave dataintegrity out",
            ));
        }
        if self.operation_count == 0 && self.time_limit_s == 0 && self.action == KvAction::Run {
            let remedy = "set operationcount, or maxexecutiontime in seconds";
            return Some(("no number of operations and no time limit".into(), remedy));
        }
        self.order_problem()
    }

    fn order_problem(&self) -> Option<(String, &'static str)> {
        let is_share = |value: f64| (0.0..=1.0).contains(&value);
        match self.order {
            KvOrder::Hotspot { data_fraction, ops_fraction }
                if !is_share(data_fraction) || !is_share(ops_fraction) =>
            {
                let problem = format!("a hot spot of {data_fraction} with {ops_fraction}");
                Some((problem, "use hotspotdatafraction and hotspotopnfraction from 0 to 1"))
            }
            KvOrder::Exponential { percentile, fraction }
                if !(percentile > 0.0 && percentile < 100.0 && fraction > 0.0) =>
            {
                let problem = format!("{percentile} % of the draws in {fraction} of the records");
                Some((problem, "use a percentile below 100 and a fraction above 0"))
            }
            KvOrder::Latest if self.known_records() < 2 => {
                Some(("the latest of fewer than two records".into(), "use a larger recordcount"))
            }
            _ if !self.target_per_s.is_finite() || self.target_per_s < 0.0 => {
                let problem = format!("a target of {} operations per second", self.target_per_s);
                Some((problem, "use a number of at least 0"))
            }
            _ => None,
        }
    }
}

/// Larger records fit into no store's write buffers.
const RECORD_BYTES_MAX: u64 = 64 << 20;
