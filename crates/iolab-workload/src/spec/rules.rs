//! Rules that look at what a worker measures while it works: when its rates are steady, how many
//! ops may be in flight, which failures end nothing.
//!
//! They are fio's steadystate, `latency_target`, `max_latency`, `rate_min`, `continue_on_error`
//! and `ignore_error`. Each worker follows them for itself, by the clock of its target.

use iolab_model::Ns;
use iolab_model::error::Errno;
use iolab_model::op::OpClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::manner::Problem;
use super::{Tenant, is_default};

/// Length of a sample of a rate.
pub const SAMPLE: Ns = Ns::from_ms(1000);

/// Rate that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateOf {
    /// Operations per second.
    Ops,
    /// Bytes per second.
    Bytes,
}

/// Ends a worker when its rate is steady: one sample per second, judged over the last ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyRule {
    /// Rate that is judged.
    pub of: RateOf,
    /// The slope through the samples is judged; otherwise their largest distance to the mean.
    pub is_slope: bool,
    /// Limit of the judged figure: in percent of the mean, or per second.
    pub limit: f64,
    /// The limit is in percent.
    pub is_percent: bool,
    /// So many samples are judged.
    pub samples: u32,
    /// From the beginning of the timed region to the first sample.
    pub after_ns: Ns,
}

/// Judgement of a rule on its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SteadyJudgement {
    /// Mean of the samples.
    pub mean: f64,
    /// Largest distance to the mean.
    pub deviation: f64,
    /// Slope of the least squares, per second.
    pub slope: f64,
    /// Figure that is compared with the limit, in its unit.
    pub criterion: f64,
    /// True if the figure is below the limit.
    pub is_met: bool,
}

impl SteadyRule {
    /// Judges samples of the rate, oldest first.
    pub fn judge(&self, samples: &[u64]) -> SteadyJudgement {
        let count = samples.len() as f64;
        if samples.is_empty() {
            return SteadyJudgement::default();
        }
        let values = || samples.iter().map(|sample| *sample as f64);
        let mean = values().sum::<f64>() / count;
        let deviation = values().map(|value| (value - mean).abs()).fold(0.0, f64::max);
        let middle = (count - 1.0) / 2.0;
        let (mut products, mut squares) = (0.0, 0.0);
        for (index, value) in values().enumerate() {
            let x = index as f64 - middle;
            products += x * (value - mean);
            squares += x * x;
        }
        let slope = if squares > 0.0 { products / squares } else { 0.0 };
        let plain = if self.is_slope { slope } else { deviation };
        let criterion = match (self.is_percent, mean > 0.0) {
            (false, _) => plain,
            (true, true) => 100.0 * plain / mean,
            (true, false) => f64::INFINITY,
        };
        SteadyJudgement { mean, deviation, slope, criterion, is_met: criterion.abs() < self.limit }
    }
}

/// Searches for the largest number of ops in flight at which latencies stay below a target.
///
/// It begins with one and doubles as long as a window keeps the target; after the first window that
/// does not, it halves the distance to the largest number that did. When that is found, counting
/// begins anew and the worker ends after one more window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DepthSearch {
    /// Service times are to be at most this.
    pub target_ns: Ns,
    /// Time for which a depth is tried.
    pub window_ns: Ns,
    /// Percent of the ops that must keep the target.
    pub percent: f64,
    /// The largest depth that is tried; more ops than the lane takes are not in flight.
    pub depth_max: u32,
    /// True if the depth is adapted until something else ends the tenant; everything is counted.
    pub goes_on: bool,
}

/// Lowest rates: a worker fails when it was slower in a cycle, after two seconds of settling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeastRate {
    /// Bytes per second of reads, and of writes; 0: any.
    pub bytes_per_s: [u64; 2],
    /// Transfers per second of reads, and of writes; 0: any.
    pub ops_per_s: [u64; 2],
    /// Length of a cycle, at the end of which the rate is judged.
    pub cycle_ns: Ns,
}

/// Failures that do not end a worker: they are counted, and the op is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Tolerance {
    /// Reads that the storage fails (EIO).
    pub reads: bool,
    /// Writes and flushes that the storage fails (EIO).
    pub writes: bool,
    /// Blocks that are not what was written (EILSEQ).
    pub mismatches: bool,
    /// The first of these blocks ends the worker, as if all of its work was done.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ends_at_mismatch: bool,
    /// Numbers of further errors of reads.
    #[serde(default)]
    pub errnos_of_reads: Vec<i32>,
    /// Numbers of further errors of writes and flushes.
    #[serde(default)]
    pub errnos_of_writes: Vec<i32>,
}

impl Tolerance {
    /// True if a worker goes on after this failure.
    pub fn covers(&self, class: OpClass, errno: Errno) -> bool {
        let (is_asked, listed) = match class {
            OpClass::Read => (self.reads, &self.errnos_of_reads),
            OpClass::Write | OpClass::Sync => (self.writes, &self.errnos_of_writes),
            OpClass::Other => return false,
        };
        let is_mismatch = class == OpClass::Read && errno == Errno::EILSEQ;
        (is_asked && errno == Errno::EIO)
            || (is_mismatch && self.mismatches)
            || listed.contains(&errno.0)
    }
}

/// All rules of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantRules {
    /// Ends when the rate is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyRule>,
    /// Searches for a depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_search: Option<DepthSearch>,
    /// A read, or a write or flush, that takes longer fails; absent: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<[Option<Ns>; 2]>,
    /// Lowest rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<LeastRate>,
    /// Failures that end nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
}

impl TenantRules {
    /// Contradiction with the rest of `tenant`.
    pub(super) fn problem(&self, tenant: &Tenant) -> Option<Problem> {
        if let Some(steady) = &self.steady
            && (steady.samples < 1 || steady.limit.is_nan() || steady.limit <= 0.0)
        {
            let problem = format!("a limit of {} over {} samples", steady.limit, steady.samples);
            return Some((problem, "use a limit above 0 and at least one sample"));
        }
        if self.least.is_some_and(|least| least.cycle_ns.0 == 0) {
            let problem = "lowest rates over no time".to_owned();
            return Some((problem, "use a cycle above 0"));
        }
        let search = self.depth_search.as_ref()?;
        let is_share = search.percent > 0.0 && search.percent <= 100.0;
        let is_range = search.depth_max > 0;
        if search.window_ns.0 == 0 || search.target_ns.0 == 0 || !is_share || !is_range {
            let problem = "a search for a depth without target, window or share".to_owned();
            return Some((problem, "use times above 0, and 0 to 100 percent"));
        }
        if tenant.rate_ops_per_s.is_some() || self.steady.is_some() {
            let problem = "a search for a depth beside a rate or another rule".to_owned();
            return Some((problem, "use one of them"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(is_slope: bool, limit: f64, is_percent: bool) -> SteadyRule {
        let (of, samples, after_ns) = (RateOf::Ops, 3, Ns(0));
        SteadyRule { of, is_slope, limit, is_percent, samples, after_ns }
    }

    #[test]
    fn samples_are_judged_as_fio_3_33_judged_the_same() {
        // Of its own results: criterion 0.066622 %, deviation 0.666667.
        let told = rule(false, 10.0, true).judge(&[1001, 1000, 1001]);
        assert!((told.criterion - 0.066_622).abs() < 1e-6 && told.is_met, "{told:?}");
        assert!((told.deviation - 0.666_667).abs() < 1e-6);
        assert!(told.slope.abs() < 1e-12);
        let told = rule(true, 0.05, true).judge(&[1001, 1000]);
        assert!((told.slope + 1.0).abs() < 1e-12);
        // fio calls every falling rate steady: -0.1 is below 0.05.
        assert!((told.criterion + 0.0999).abs() < 1e-3 && !told.is_met, "{told:?}");
        let told = rule(false, 1.0, false).judge(&[4_164_333, 3_841_263]);
        assert!((told.criterion - 161_535.0).abs() < 1e-6 && !told.is_met);
    }

    #[test]
    fn only_the_failures_that_were_named_end_nothing() {
        let reads = Tolerance { reads: true, errnos_of_writes: vec![28], ..Tolerance::default() };
        let tell = |class, errno| reads.covers(class, Errno(errno));
        assert!(tell(OpClass::Read, 5) && !tell(OpClass::Read, 28) && !tell(OpClass::Read, 84));
        assert!(!tell(OpClass::Write, 5) && tell(OpClass::Write, 28) && tell(OpClass::Sync, 28));
        let mismatches = Tolerance { mismatches: true, ..Tolerance::default() };
        assert!(mismatches.covers(OpClass::Read, Errno::EILSEQ));
        assert!(!mismatches.covers(OpClass::Write, Errno::EILSEQ));
    }

    #[test]
    fn a_rate_of_nothing_is_never_steady_in_percent() {
        assert!(!rule(false, 50.0, true).judge(&[0, 0, 0]).is_met);
        assert!(!rule(false, 50.0, true).judge(&[]).is_met);
    }
}
