//! Counts of a client, by series: latencies, results, and what a report may ask for beside them.

use iolab_model::{Histogram, Ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::description::{KvInterval, KvMeasured};
use super::hdr::Hdr;

iolab_model::registry! {
    /// Series of latencies.
    pub enum KvSeries as "series" {
        /// Reads.
        Read = "READ",
        /// Updates.
        Update = "UPDATE",
        /// Inserts.
        Insert = "INSERT",
        /// Scans.
        Scan = "SCAN",
        /// A read and an update of one record.
        ReadModifyWrite = "READ-MODIFY-WRITE",
        /// Comparison of what was read.
        Verify = "VERIFY",
        /// Closing of the store.
        Cleanup = "CLEANUP",
        /// Reads without success.
        ReadFailed = "READ-FAILED",
        /// Updates without success.
        UpdateFailed = "UPDATE-FAILED",
        /// Inserts without success.
        InsertFailed = "INSERT-FAILED",
        /// Scans without success.
        ScanFailed = "SCAN-FAILED",
    }
}

iolab_model::registry! {
    /// Result of an operation.
    pub enum KvStatus as "status" {
        /// Success.
        Ok = "OK",
        /// No record has the key.
        NotFound = "NOT_FOUND",
        /// The store failed.
        Error = "ERROR",
        /// The record is not what was written.
        UnexpectedState = "UNEXPECTED_STATE",
    }
}

impl KvSeries {
    /// The series of latencies of operations without success.
    const fn failed(self) -> Self {
        match self {
            Self::Read => Self::ReadFailed,
            Self::Update => Self::UpdateFailed,
            Self::Insert => Self::InsertFailed,
            Self::Scan => Self::ScanFailed,
            other => other,
        }
    }
}

/// End of an operation.
#[derive(Clone, Copy, Debug)]
pub struct KvEnd {
    /// Result.
    pub status: KvStatus,
    /// Planned begin.
    pub intended: Ns,
    /// Begin.
    pub began: Ns,
    /// End.
    pub ended: Ns,
}

impl KvEnd {
    const fn latency_us(&self) -> u64 {
        self.ended.since(self.began).0 / NS_PER_US
    }

    const fn response_us(&self) -> u64 {
        self.ended.since(self.intended).0 / NS_PER_US
    }
}

const NS_PER_US: u64 = 1000;
const US_PER_MS: u64 = 1000;

/// Latencies in whole microseconds.
#[derive(Clone, Debug, Default)]
struct Latency {
    hdr: Hdr,
    sum: u64,
    squares: f64,
    min: u64,
    max: u64,
    ms: Vec<u64>,
    windows: Vec<(u64, u64)>,
}

impl Latency {
    #[inline]
    fn record(&mut self, us: u64, after: Ns, measured: &KvMeasured) {
        self.min = if self.hdr.count() == 0 { us } else { self.min.min(us) };
        self.max = self.max.max(us);
        self.hdr.record(us);
        self.sum += us;
        self.squares += us as f64 * us as f64;
        if measured.ms_parts > 0 {
            let place = (us / US_PER_MS).min(u64::from(measured.ms_parts)) as usize;
            self.ms.resize(self.ms.len().max(place + 1), 0);
            self.ms[place] += 1;
        }
        if measured.window_ms > 0 {
            let place = (after.0 / (measured.window_ms * 1_000_000)) as usize;
            self.windows.resize(self.windows.len().max(place + 1), (0, 0));
            self.windows[place].0 += us;
            self.windows[place].1 += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.hdr.count() == 0 {
            return;
        }
        self.min = if self.hdr.count() == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.hdr.merge(&other.hdr);
        self.sum += other.sum;
        self.squares += other.squares;
        self.ms.resize(self.ms.len().max(other.ms.len()), 0);
        self.ms.iter_mut().zip(&other.ms).for_each(|(mine, theirs)| *mine += theirs);
        self.windows.resize(self.windows.len().max(other.windows.len()), (0, 0));
        for (mine, theirs) in self.windows.iter_mut().zip(&other.windows) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
    }

    fn record_of(&self) -> KvLatency {
        let (hdr_parts, hdr_counts) =
            self.hdr.parts().map(|(index, count)| (index as u32, count)).unzip();
        KvLatency {
            ops: self.hdr.count(),
            sum_us: self.sum,
            sum_squares_us2: self.squares,
            min_us: self.min,
            max_us: self.max,
            hdr_parts,
            hdr_counts,
            ms_counts: self.ms.clone(),
            window_sums_us: self.windows.iter().map(|window| window.0).collect(),
            window_ops: self.windows.iter().map(|window| window.1).collect(),
        }
    }
}

/// Counts of one series.
#[derive(Clone, Debug)]
struct One {
    latency: Latency,
    intended: Option<Latency>,
    returned: [u64; KvStatus::ALL.len()],
    ns: Histogram,
    response_ns: Option<Histogram>,
    bytes: u64,
}

/// Counts of a client.
#[derive(Clone, Debug)]
pub struct KvCounts {
    measured: KvMeasured,
    /// Begin of the timed region.
    pub origin: Ns,
    series: Vec<Option<Box<One>>>,
}

impl KvCounts {
    /// Nothing yet.
    pub fn new(measured: &KvMeasured) -> Self {
        let series = vec![None; KvSeries::ALL.len()];
        Self { measured: measured.clone(), origin: Ns(0), series }
    }

    /// Makes room for a series: no memory is fetched for its first operation.
    pub fn expect(&mut self, series: KvSeries) {
        let has_plan = self.measured.interval != KvInterval::Operation;
        self.series[series as usize].get_or_insert_with(|| {
            Box::new(One {
                latency: Latency::default(),
                intended: has_plan.then(Latency::default),
                returned: [0; KvStatus::ALL.len()],
                ns: Histogram::resident(),
                response_ns: has_plan.then(Histogram::resident),
                bytes: 0,
            })
        });
    }

    fn one(&mut self, series: KvSeries) -> &mut One {
        if self.series[series as usize].is_none() {
            self.expect(series);
        }
        self.series[series as usize].as_mut().expect("it was made just now")
    }

    /// Counts an operation, and its result.
    #[inline]
    pub fn record(&mut self, series: KvSeries, end: &KvEnd, bytes: u64) {
        let is_ok = end.status == KvStatus::Ok;
        self.one(series).returned[end.status as usize] += 1;
        let series = if is_ok { series } else { series.failed() };
        self.record_latency(series, end, bytes);
    }

    /// Counts a latency alone: of operations that are made of others.
    #[inline]
    pub fn record_latency(&mut self, series: KvSeries, end: &KvEnd, bytes: u64) {
        let after = end.ended.since(self.origin);
        if self.series[series as usize].is_none() {
            self.expect(series);
        }
        let Self { measured, series: all, .. } = self;
        let one = all[series as usize].as_mut().expect("it was made just now");
        one.latency.record(end.latency_us(), after, measured);
        one.ns.record(end.ended.since(end.began).0);
        one.bytes += bytes;
        if let (Some(intended), Some(ns)) = (&mut one.intended, &mut one.response_ns) {
            intended.record(end.response_us(), after, measured);
            ns.record(end.ended.since(end.intended).0);
        }
    }

    /// Adds another client's counts.
    pub fn merge(&mut self, other: &Self) {
        for series in KvSeries::ALL {
            let Some(theirs) = &other.series[*series as usize] else { continue };
            let mine = self.one(*series);
            mine.latency.merge(&theirs.latency);
            if let (Some(mine), Some(theirs)) = (&mut mine.intended, &theirs.intended) {
                mine.merge(theirs);
            }
            mine.returned.iter_mut().zip(theirs.returned).for_each(|(sum, more)| *sum += more);
            mine.ns.merge(&theirs.ns);
            if let (Some(mine), Some(theirs)) = (&mut mine.response_ns, &theirs.response_ns) {
                mine.merge(theirs);
            }
            mine.bytes += theirs.bytes;
        }
    }

    /// Forgets what was counted.
    pub fn clear(&mut self) {
        self.series.fill(None);
    }

    /// Series that counted something, in the order of the list.
    pub fn records(&self) -> Vec<KvSeriesRecord> {
        let all = KvSeries::ALL.iter().filter_map(|series| {
            let one = self.series[*series as usize].as_ref()?;
            let returned: Vec<KvReturned> = KvStatus::ALL
                .iter()
                .map(|status| (status, one.returned[*status as usize]))
                .filter(|(_, count)| *count > 0)
                .map(|(status, count)| KvReturned { status: status.name().to_owned(), count })
                .collect();
            let is_empty = one.latency.hdr.count() == 0 && returned.is_empty();
            (!is_empty).then(|| KvSeriesRecord {
                name: series.name().to_owned(),
                returned,
                latency: one.latency.record_of(),
                intended: one.intended.as_ref().map(Latency::record_of),
            })
        });
        all.collect()
    }

    /// Number of operations, their bytes, times and response times of a series.
    pub fn histograms(
        &self,
        series: KvSeries,
    ) -> Option<(u64, u64, &Histogram, Option<&Histogram>)> {
        let one = self.series[series as usize].as_ref()?;
        Some((one.ns.count(), one.bytes, &one.ns, one.response_ns.as_ref()))
    }

    /// HDR histogram of a series, as a line about the progress tells of it.
    pub fn told(&self) -> impl Iterator<Item = (KvSeries, &Hdr)> {
        let all = KvSeries::ALL.iter().copied();
        all.filter_map(|series| {
            let one = self.series[series as usize].as_ref()?;
            (one.latency.hdr.count() > 0).then_some((series, &one.latency.hdr))
        })
    }
}

/// Latencies of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvLatency {
    /// Number of operations.
    pub ops: u64,
    /// Sum, each in whole microseconds.
    pub sum_us: u64,
    /// Sum of the squares.
    pub sum_squares_us2: f64,
    /// Shortest.
    pub min_us: u64,
    /// Longest.
    pub max_us: u64,
    /// Ordinals of the parts of `HdrHistogram` (three digits, microseconds) that hold something.
    pub hdr_parts: Vec<u32>,
    /// Counts of these parts.
    pub hdr_counts: Vec<u64>,
    /// Counts by whole milliseconds, the last for all that is longer; if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ms_counts: Vec<u64>,
    /// Sums in equal windows of time; if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub window_sums_us: Vec<u64>,
    /// Operations in the same windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub window_ops: Vec<u64>,
}

/// Counts of a series of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvSeriesRecord {
    /// Its name in YCSB's reports.
    pub name: String,
    /// Results, of operations that have one.
    pub returned: Vec<KvReturned>,
    /// From the begin of the call on.
    pub latency: KvLatency,
    /// From the planned begin on; only where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<KvLatency>,
}

/// Number of operations with a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvReturned {
    /// The result.
    pub status: String,
    /// Number of operations.
    pub count: u64,
}

/// Counts of clients of a store, and values that the store tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvRecord {
    /// Name of the store.
    pub store: String,
    /// Version of its library, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Opening of the store.
    pub opening_ns: u64,
    /// From the begin of the timed region until the last client has closed the store.
    pub running_ns: u64,
    /// Begin of the timed region, in milliseconds of Unix time.
    pub began_unix_ms: u64,
    /// Records that were put before it, because the store was new.
    pub loaded: u64,
    /// Bytes of keys and values that the clients handed over to be stored.
    pub user_write_bytes: u64,
    /// Series.
    pub series: Vec<KvSeriesRecord>,
    /// Values that the store tells of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<iolab_model::kv::KvFact>,
    /// The first failure that the store told, in its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}
