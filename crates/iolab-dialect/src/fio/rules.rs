//! Rules of a job about what is measured while it runs: steadystate, `latency_target`,
//! `max_latency`, and the errors that end nothing.
//!
//! Facts: fio 3.33 as it behaves. A search begins with a depth of 1 and doubles it; only the last
//! window is told. A depth of 1 that misses the target ends nothing. ENOSPC ends a job in spite of
//! `continue_on_error`, unless `ignore_error` names it.

use iolab_model::Ns;
use iolab_workload::spec::rules::{
    DepthSearch, LeastRate, RateOf, SteadyRule, TenantRules, Tolerance,
};
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::geometry::Wrong;
use super::job::Job;
use super::result::{Entry, WorkerResult};
use super::value;
use crate::diagnostic::Problem;

/// Rules that a job asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// steadystate, as typed and understood.
    pub steady: Option<Steady>,
    /// `steadystate_duration`.
    pub steady_ns: u64,
    /// `steadystate_ramp_time`.
    pub steady_ramp_ns: u64,
    /// `latency_target`; 0: none.
    pub target_ns: u64,
    /// `latency_window`.
    pub window_ns: u64,
    /// `latency_percentile`.
    pub percent: Option<f64>,
    /// `latency_run`.
    pub goes_on: bool,
    /// `rate_min` and `rate_iops_min` of reads and writes; 0: any.
    pub least: [[u64; 2]; 2],
    /// `rate_cycle`; absent: 1000 ms.
    pub cycle_ms: Option<u64>,
    /// `max_latency` of reads and writes.
    pub longest_ns: [Option<u64>; 2],
    /// `continue_on_error`: reads, writes, blocks that are not what was written.
    pub continues: [bool; 3],
    /// `ignore_error`: of reads, of writes.
    pub ignored: [Vec<i32>; 2],
    /// `verify_fatal`: the first block that is not what was written ends the job in any case.
    pub ends_at_mismatch: bool,
}

/// A steadystate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Rate that is judged.
    pub of: RateOf,
    /// The slope is judged.
    pub is_slope: bool,
    /// The limit.
    pub limit: f64,
    /// ... in percent.
    pub is_percent: bool,
}

const FORMS: &str = "write for instance iops:2%, bw_slope:0.5% or iops:100";

impl Steady {
    /// From `iops:10%` and the like.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn read(text: &str) -> Result<Self, Problem> {
        let wrong = |what: String| Problem::new(what, FORMS);
        let known = [
            ("iops", RateOf::Ops, false),
            ("bw", RateOf::Bytes, false),
            ("iops_slope", RateOf::Ops, true),
            ("bw_slope", RateOf::Bytes, true),
        ];
        let (name, limit) = text
            .split_once(':')
            .ok_or_else(|| wrong(format!("steadystate={text} has no limit")))?;
        let found = known.iter().find(|row| row.0 == name);
        let Some((_, of, is_slope)) = found.copied() else {
            let hint = iolab_model::nearest::did_you_mean(name, known.iter().map(|row| row.0));
            return Err(wrong(format!("steadystate has no rate '{name}'{hint}")));
        };
        let (number, is_percent) = match limit.strip_suffix('%') {
            Some(number) => (number, true),
            None => (limit, false),
        };
        match number.parse::<f64>() {
            Ok(limit) if limit > 0.0 && limit.is_finite() => {
                Ok(Self { of, is_slope, limit, is_percent })
            }
            _ => Err(wrong(format!("steadystate: '{limit}' is no limit above 0"))),
        }
    }

    fn name(self) -> &'static str {
        match (self.of, self.is_slope) {
            (RateOf::Ops, false) => "iops",
            (RateOf::Bytes, false) => "bw",
            (RateOf::Ops, true) => "iops_slope",
            (RateOf::Bytes, true) => "bw_slope",
        }
    }

    fn sign(self) -> &'static str {
        if self.is_percent { "%" } else { "" }
    }
}

/// Names of errors that may be ignored, as errno(3) has them.
const ERRNOS: [(&str, i32); 12] = [
    ("EPERM", 1),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EBUSY", 16),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("EILSEQ", 84),
    ("ETIMEDOUT", 110),
];

/// `ignore_error`: errors of reads, of writes and of verification between commas, several of one
/// kind between colons.
///
/// # Errors
///
/// Something that is no error.
pub fn ignored(text: &str) -> Result<[Vec<i32>; 2], Problem> {
    let mut found = [Vec::new(), Vec::new()];
    for (place, part) in text.split(',').enumerate() {
        for name in part.split(':').map(str::trim).filter(|name| !name.is_empty()) {
            let known = ERRNOS.iter().find(|(known, _)| *known == name);
            let number = known.map(|(_, number)| *number).or_else(|| name.parse().ok());
            let Some(number) = number.filter(|number: &i32| (1..4096).contains(number)) else {
                let hint = iolab_model::nearest::did_you_mean(name, ERRNOS.iter().map(|r| r.0));
                let what = format!("ignore_error: '{name}' is no error{hint}");
                return Err(Problem::new(what, "write a name as ENOSPC, or its number"));
            };
            match place {
                // A check fails with an error of reading.
                0 | 2 => found[0].push(number),
                1 => found[1].push(number),
                _ => {
                    let what = "ignore_error has at most three lists".to_owned();
                    return Err(Problem::new(what, "write READS,WRITES,VERIFIES"));
                }
            }
        }
    }
    Ok(found)
}

/// `max_latency`.
///
/// # Errors
///
/// Something that is no time.
pub fn longest(text: &str, kb_base: u64) -> Result<[Option<u64>; 2], Problem> {
    let one = |part: &str| value::time(part, value::TimeUnit::Us, kb_base);
    let [reads, writes, _] = value::triple(text, one).map_err(|fault| fault.1)?;
    Ok([reads, writes].map(|time| time.filter(|ns| *ns > 0)))
}

impl Asked {
    /// True if errors are counted, and told.
    pub fn counts_errors(&self) -> bool {
        self.continues.contains(&true) || self.ignored.iter().any(|list| !list.is_empty())
    }

    fn is_any(&self) -> bool {
        self.steady.is_some()
            || self.target_ns > 0
            || self.longest_ns != [None; 2]
            || self.least != [[0; 2]; 2]
            || self.counts_errors()
    }
}

/// The rules that a job's workers follow.
///
/// # Errors
///
/// What contradicts itself, and what is not done together.
pub fn of(job: &Job) -> Result<TenantRules, Wrong> {
    let wrong = |name, what: &str, remedy: &str| Err((name, Problem::new(what, remedy)));
    let asked = &job.rules;
    let steady = match asked.steady {
        Some(Steady { of, is_slope, limit, is_percent }) => {
            let samples = u32::try_from(asked.steady_ns / 1_000_000_000).unwrap_or(u32::MAX);
            if samples == 0 {
                let what = "steadystate needs steadystate_duration";
                return wrong("steadystate", what, "write ss_dur=30s, for instance");
            }
            let after_ns = Ns(asked.steady_ramp_ns.saturating_add(job.ramp_ns));
            Some(SteadyRule { of, is_slope, limit, is_percent, samples, after_ns })
        }
        None if asked.steady_ns + asked.steady_ramp_ns > 0 => {
            let what = "steadystate_duration needs steadystate";
            return wrong("steadystate_duration", what, "write ss=iops:2%, or leave it out");
        }
        None => None,
    };
    let depth_search = if asked.target_ns > 0 {
        if asked.window_ns == 0 {
            let what = "latency_target needs latency_window";
            return wrong("latency_target", what, "write latency_window=5s, for instance");
        }
        if job.ramp_ns > 0 || job.rate != [0; 3] || job.rate_iops != [0; 3] || steady.is_some() {
            let what = "latency_target beside ramp_time, a rate or steadystate is not done";
            return wrong("latency_target", what, "leave one of them out");
        }
        Some(DepthSearch {
            target_ns: Ns(asked.target_ns),
            window_ns: Ns(asked.window_ns),
            percent: asked.percent.unwrap_or(100.0),
            depth_max: u32::try_from(job.depth).unwrap_or(u32::MAX),
            goes_on: asked.goes_on,
        })
    } else {
        None
    };
    let [reads, writes, mismatches] = asked.continues;
    let [errnos_of_reads, errnos_of_writes] = asked.ignored.clone();
    let tolerance = asked.counts_errors().then_some(Tolerance {
        reads,
        writes,
        mismatches,
        ends_at_mismatch: asked.ends_at_mismatch,
        errnos_of_reads,
        errnos_of_writes,
    });
    let longest = asked.longest_ns.map(|longest| longest.map(Ns));
    let longest_ns = (longest != [None; 2]).then_some(longest);
    // A direction that the job does not have is not too slow.
    let has = [job.rw.reads(), job.rw.writes()];
    let of_job = |rates: [u64; 2]| [0, 1].map(|place| if has[place] { rates[place] } else { 0 });
    let [bytes_per_s, ops_per_s] = asked.least.map(of_job);
    for (name, least, rates) in
        [("rate_min", bytes_per_s, job.rate), ("rate_iops_min", ops_per_s, job.rate_iops)]
    {
        if (0..2).any(|place| rates[place] > 0 && least[place] > rates[place]) {
            let what = "the least rate (rate_min, rate_iops_min) is above the rate itself";
            return wrong(name, what, "write a lower one");
        }
    }
    let cycle_ns = Ns::from_ms(asked.cycle_ms.unwrap_or(1000).max(1));
    let is_least = [bytes_per_s, ops_per_s] != [[0; 2]; 2];
    let least = is_least.then_some(LeastRate { bytes_per_s, ops_per_s, cycle_ns });
    Ok(TenantRules { steady, depth_search, longest_ns, least, tolerance })
}

/// Refuses rules that are not followed by what works on names.
///
/// # Errors
///
/// The option.
pub fn refuse(job: &Job, engine: Engine) -> Result<(), Wrong> {
    if engine.is_of_names() && job.rules.is_any() {
        let what = format!(
            "steadystate, latency_target, rate_min and max_latency are not done with ioengine={}",
            engine.name
        );
        return Err(("ioengine", Problem::new(what, "leave them out")));
    }
    Ok(())
}

/// Way in which the rules of a unit are told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FioRulesShow")]
pub struct RulesShow {
    /// The rule that ends it when rates are steady.
    #[serde(default)]
    pub steady: Option<SteadyRule>,
    /// `latency_target`.
    #[serde(default)]
    pub target_ns: u64,
    /// `latency_window`.
    #[serde(default)]
    pub window_ns: u64,
    /// `latency_percentile`.
    #[serde(default)]
    pub percent: Option<f64>,
    /// iodepth, as typed.
    #[serde(default)]
    pub depth: u32,
    /// Errors that ended nothing are told.
    #[serde(default)]
    pub has_errors: bool,
}

/// Way in which the rules of `job` are told.
pub fn shown(job: &Job, rules: &TenantRules) -> RulesShow {
    RulesShow {
        steady: rules.steady,
        target_ns: rules.depth_search.map_or(0, |search| search.target_ns.0),
        window_ns: rules.depth_search.map_or(0, |search| search.window_ns.0),
        percent: rules.depth_search.map(|search| search.percent),
        depth: u32::try_from(job.depth).unwrap_or(u32::MAX),
        has_errors: job.rules.counts_errors(),
    }
}

/// Results of the rules of the jobs that are told together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleResults {
    /// Ops and bytes of the last seconds, of all workers.
    pub samples: Vec<(u64, u64)>,
    /// Workers whose rate did not become steady.
    pub restless: u64,
    /// The depth that a search came to.
    pub depth: Option<u32>,
    /// Errors that ended nothing, and the number of the first.
    pub errors: (u64, u32),
}

impl RuleResults {
    /// Adds what a worker saw.
    pub fn add(&mut self, worker: &WorkerResult) {
        if let Some(steady) = &worker.steady {
            self.restless += u64::from(!steady.is_attained);
            let of = steady.ops_per_s.iter().copied().zip(steady.bytes_per_s.iter().copied());
            self.add_samples(&of.collect::<Vec<_>>());
        }
        self.depth = self.depth.max(worker.depth_found);
        if let Some(told) = &worker.tolerated {
            self.add_errors((told.errors, told.first_errno.unsigned_abs()));
        }
        if worker.mismatch_count > 0 {
            self.errors.1 = if self.errors.1 == 0 { super::result::EILSEQ } else { self.errors.1 };
        }
    }

    /// Adds what others saw.
    pub fn merge(&mut self, other: &Self) {
        self.restless += other.restless;
        self.add_samples(&other.samples);
        self.depth = self.depth.max(other.depth);
        self.add_errors(other.errors);
    }

    fn add_samples(&mut self, more: &[(u64, u64)]) {
        if self.samples.len() < more.len() {
            self.samples.resize(more.len(), (0, 0));
        }
        for (sum, one) in self.samples.iter_mut().zip(more) {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        }
    }

    fn add_errors(&mut self, (count, first): (u64, u32)) {
        self.errors.0 += count;
        self.errors.1 = if self.errors.1 == 0 { first } else { self.errors.1 };
    }
}

/// Steady state as fio tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyTold {
    /// `iops:10.000000%`.
    pub rule: String,
    /// Seconds.
    pub duration: u64,
    /// True if the rate became steady.
    pub is_attained: bool,
    /// Number and perhaps a percent sign.
    pub criterion: String,
    /// The same as a number.
    pub value: f64,
    /// Largest distance to the mean; 0 where the slope is judged.
    pub deviation: f64,
    /// Slope; 0 where it is not judged.
    pub slope: f64,
    /// Means of bytes and ops per second.
    pub means: (f64, f64),
    /// Samples of ops and bytes, zeros where there are none yet.
    pub samples: Vec<(u64, u64)>,
    /// Rate that is judged, and whether by its slope.
    pub steady: Steady,
}

/// Steady state of an entry that has a rule for it, as it is told.
pub fn steady_told(one: &Entry<'_>) -> Option<SteadyTold> {
    let rule = one.unit.rules.steady?;
    let SteadyRule { of, is_slope, limit, is_percent, samples, .. } = rule;
    let steady = Steady { of, is_slope, limit, is_percent };
    let mut seen = one.rules.samples.clone();
    let is_whole = seen.len() >= samples as usize;
    let of_samples = |pick: fn(&(u64, u64)) -> u64| seen.iter().map(pick).collect::<Vec<_>>();
    let (ops, bytes) = (of_samples(|sample| sample.0), of_samples(|sample| sample.1));
    let judged = rule.judge(if of == RateOf::Ops { &ops } else { &bytes });
    let value = if is_whole && judged.criterion.is_finite() { judged.criterion } else { 0.0 };
    let means = (rule.judge(&bytes).mean, rule.judge(&ops).mean);
    // A window of hours is not filled up.
    seen.resize((samples as usize).min(86_400).max(seen.len()), (0, 0));
    let is_told = |is_wanted: bool, value: f64| if is_whole && is_wanted { value } else { 0.0 };
    Some(SteadyTold {
        rule: format!("{}:{limit:.6}{}", steady.name(), steady.sign()),
        duration: u64::from(samples),
        is_attained: one.rules.restless == 0 && is_whole,
        criterion: format!("{value:.6}{}", steady.sign()),
        value,
        deviation: is_told(!is_slope, judged.deviation),
        slope: is_told(is_slope, judged.slope),
        means,
        samples: seen,
        steady,
    })
}

impl SteadyTold {
    /// Name of the criterion in the text.
    pub fn name(&self) -> &'static str {
        match (self.steady.of, self.steady.is_slope) {
            (RateOf::Ops, false) => "iops mean dev",
            (RateOf::Bytes, false) => "bw mean dev",
            (RateOf::Ops, true) => "iops slope",
            (RateOf::Bytes, true) => "bw slope",
        }
    }

    /// Behind the criterion.
    pub fn sign(&self) -> &'static str {
        self.steady.sign()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_states_are_read() {
        let told = Steady::read("iops_slope:0.3%").unwrap();
        assert_eq!((told.of, told.is_slope, told.is_percent), (RateOf::Ops, true, true));
        assert!((told.limit - 0.3).abs() < 1e-12);
        for wrong in ["iops", "iop:3%", "iops:", "bw:-1", "bw:0%", "bw:nan", "bw:1k", ":3%"] {
            assert!(Steady::read(wrong).is_err(), "{wrong}");
        }
        assert!(Steady::read("iop:3%").unwrap_err().what.contains("iops"));
    }

    #[test]
    fn ignored_errors_are_lists_between_commas() {
        assert_eq!(ignored("EIO:ENOSPC,28").unwrap(), [vec![5, 28], vec![28]]);
        assert_eq!(ignored(",ENOSPC").unwrap(), [vec![], vec![28]]);
        assert_eq!(ignored(",,EILSEQ").unwrap(), [vec![84], vec![]]);
        for wrong in ["ENOSPACE", "0", "-5", "5,5,5,5", "99999999999"] {
            assert!(ignored(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn longest_latencies_are_those_of_reads_and_of_writes() {
        assert_eq!(longest("1us", 1024).unwrap(), [Some(1000), Some(1000)]);
        assert_eq!(longest("0,5ms", 1024).unwrap(), [None, Some(5_000_000)]);
        assert!(longest("soon", 1024).is_err());
    }
}
