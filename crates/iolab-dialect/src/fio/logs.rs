//! The logs of a job: which files there are, and whose transfers are in them.
//!
//! Facts: fio 3.33 as it behaves. What stands in a log is the front end's business, which reads the
//! engine's logs of single ops: here are the names, the sources and how values are summed up.

use iolab_model::Ns;
use serde::{Deserialize, Serialize};

use super::geometry::Wrong;
use super::job::Job;
use super::lower::{Places, Work};
use crate::diagnostic::Problem;
use iolab_workload::spec::Phase;

const NS_PER_MS: u64 = 1_000_000;

/// Kind of numbers in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioLogKind")]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// KiB per second of a window; kB per second of a single transfer.
    Bandwidth,
    /// Transfers per second of a window; 1 for a single transfer.
    Iops,
    /// Nanoseconds from the beginning of the submission to the end.
    Latency,
    /// Nanoseconds of the submission; nothing of engines that wait for each transfer.
    Submission,
    /// Nanoseconds from the end of the submission on.
    Completion,
    /// Counts of latencies in fio's buckets.
    Histogram,
    /// All transfers, trims and flushes, to be done again.
    Actions,
}

/// Options of a job about its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Asked {
    /// `write_bw_log`; empty: called by the job's name.
    pub bandwidth: Option<String>,
    /// `write_lat_log`.
    pub latency: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_hist_log`.
    pub histogram: Option<String>,
    /// `write_iolog`.
    pub iolog: Option<String>,
    /// `log_avg_msec`; 0: a line per transfer.
    pub window_ms: u64,
    /// `log_hist_msec`.
    pub histogram_ms: u64,
    /// `log_hist_coarseness`.
    pub coarseness: u32,
    /// `log_max_value`.
    pub is_maximum: bool,
    /// `log_offset`.
    pub has_offsets: bool,
    /// `log_unix_epoch`.
    pub is_unix_time: bool,
    /// `per_job_logs` is off.
    pub is_shared: bool,
}

/// A clone's work in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioLogSource")]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Ordinal of the phase.
    pub phase: usize,
    /// Tenant of the phase.
    pub tenant: usize,
    /// Worker of the tenant.
    pub worker: usize,
    /// The engine's log of it.
    pub file: String,
    /// That log has times of submission.
    #[serde(default)]
    pub has_submissions: bool,
    /// Number of the first of its files among those of the engine's log.
    #[serde(default)]
    pub first_path: usize,
    /// Place of that file among the log's.
    #[serde(default)]
    pub first_target: usize,
}

/// One log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "FioLog")]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct LogShow {
    /// Its numbers.
    pub kind: LogKind,
    /// Its name, in the current directory.
    pub file: String,
    /// Clones in it, one after the other; each with the phases that it works in.
    pub clones: Vec<Vec<Source>>,
    /// The engine's logs have one entry per window of so long; 0: per transfer.
    pub engine_window_ns: u64,
    /// A line per window of so long; 0: per transfer.
    pub window_ns: u64,
    /// The largest value of a window, not the mean.
    pub is_maximum: bool,
    /// A column of offsets.
    pub has_offsets: bool,
    /// Milliseconds since 1970.
    pub is_unix_time: bool,
    /// Time from the beginning that is left out.
    pub ramp_ns: u64,
    /// The column of the priority.
    pub priority: u32,
    /// Two to this power of fio's buckets are told together.
    pub coarseness: u32,
    /// The column of the block size of a histogram.
    pub block_bytes: u64,
    /// The files that are worked on, in a log of actions.
    pub targets: Vec<String>,
}

impl Asked {
    /// Tell whether there are any.
    pub fn is_any(&self) -> bool {
        let all = [&self.bandwidth, &self.latency, &self.iops, &self.histogram, &self.iolog];
        all.iter().any(|it| it.is_some())
    }

    /// Window of the entries of the engine's logs: some of fio's need every transfer.
    pub fn engine_window(&self) -> Ns {
        let is_single = self.histogram.is_some() || self.iolog.is_some();
        if is_single { Ns(0) } else { Ns(self.window_ms * NS_PER_MS) }
    }

    /// Prefix, kind and what stands between prefix and number.
    fn files(&self) -> Vec<(&str, LogKind, &'static str)> {
        use LogKind::{Actions, Bandwidth, Completion, Histogram, Iops, Latency, Submission};
        let all = [
            (&self.latency, Latency, "lat"),
            (&self.latency, Submission, "slat"),
            (&self.latency, Completion, "clat"),
            (&self.histogram, Histogram, "clat_hist"),
            (&self.bandwidth, Bandwidth, "bw"),
            (&self.iops, Iops, "iops"),
            (&self.iolog, Actions, ""),
        ];
        all.into_iter()
            .filter_map(|(prefix, kind, name)| Some((prefix.as_deref()?, kind, name)))
            .collect()
    }
}

/// Refuses logs of what is no transfer, and windows of no length.
pub fn check(job: &Job, moves_nothing: bool) -> Result<(), Wrong> {
    let asked = &job.logs;
    if asked.is_any() && moves_nothing {
        let first = [
            ("write_bw_log", &asked.bandwidth),
            ("write_lat_log", &asked.latency),
            ("write_iops_log", &asked.iops),
            ("write_hist_log", &asked.histogram),
            ("write_iolog", &asked.iolog),
        ];
        let name = first.into_iter().find(|(_, it)| it.is_some()).map_or("", |(name, _)| name);
        let what = format!("logs with ioengine={} are not done", job.engine);
        return Err((name, Problem::new(what, "leave it out: results have the times of names")));
    }
    if asked.histogram.is_some() && asked.histogram_ms == 0 {
        let what = "write_hist_log needs log_hist_msec";
        return Err(("write_hist_log", Problem::new(what, "write log_hist_msec=1000")));
    }
    Ok(())
}

/// All logs of a plan, in the order of jobs.
pub fn logs(jobs: &[Job], works: &[Work], places: &[Places], phases: &[Phase]) -> Vec<LogShow> {
    let mut found: Vec<LogShow> = Vec::new();
    let mut number = 0;
    for (index, (work, place)) in works.iter().zip(places).enumerate() {
        let job = &jobs[work.unit.job];
        for worker in 0..work.unit.clones as usize {
            number += 1;
            let sources = [Some(place.work), place.verified].into_iter().flatten();
            let sources: Vec<Source> =
                sources.map(|(phase, tenant)| source(phases, phase, tenant, worker)).collect();
            for log in of_clone(job, number) {
                let known = found.iter().position(|known| known.file == log.file);
                let place = known.unwrap_or_else(|| {
                    found.push(log);
                    found.len() - 1
                });
                let log = &mut found[place];
                let mut sources = sources.clone();
                if log.kind == LogKind::Actions {
                    let before = paths_before(works, index);
                    let first = targeted(log, (work, job, worker));
                    for source in &mut sources {
                        (source.first_path, source.first_target) = (before, first);
                    }
                }
                log.clones.push(sources);
            }
        }
    }
    found
}

/// Paths of the engine's lanes in front of those of a work: programs that run at once share a list.
fn paths_before(works: &[Work], index: usize) -> usize {
    let work = &works[index];
    if work.set.is_none() {
        return 0;
    }
    let beside = works[..index].iter().filter(|other| other.unit.level == work.unit.level);
    beside.filter_map(|other| other.set.as_ref()).map(|set| set.files as usize).sum()
}

/// Place of the first file of a clone among those of a log, which has them all then.
fn targeted(log: &mut LogShow, (work, job, worker): (&Work, &Job, usize)) -> usize {
    let names = match work.set {
        Some(_) => work.targets(job),
        None => vec![work.target(job, worker)],
    };
    let known = log.targets.windows(names.len()).position(|some| some == names);
    let end = log.targets.len();
    if known.is_none() {
        log.targets.extend(names);
    }
    known.unwrap_or(end)
}

fn source(phases: &[Phase], phase: usize, tenant: usize, worker: usize) -> Source {
    let tenants = &phases[phase].tenants;
    let before: usize = tenants[..tenant].iter().map(|tenant| tenant.workers as usize).sum();
    let file = format!("{}.{}", phases[phase].name, before + worker);
    let has_submissions = tenants[tenant].manner.submission_group > 0;
    Source { phase, tenant, worker, file, has_submissions, first_path: 0, first_target: 0 }
}

/// Logs of clone `number` of the whole run, from 1 on; nothing is in them yet.
fn of_clone(job: &Job, number: u64) -> Vec<LogShow> {
    const REAL_TIME: u64 = 1;
    let asked = &job.logs;
    let reads = usize::from(!job.rw.reads());
    let log = |(prefix, kind, name): (&str, LogKind, &str)| {
        let is_actions = kind == LogKind::Actions;
        let prefix = if prefix.is_empty() || prefix == "1" { &job.name } else { prefix };
        let file = if is_actions {
            prefix.to_owned()
        } else if asked.is_shared {
            format!("{prefix}_{name}.log")
        } else {
            format!("{prefix}_{name}.{number}.log")
        };
        let is_histogram = kind == LogKind::Histogram;
        let window_ms = match kind {
            LogKind::Actions => 0,
            _ if is_histogram => asked.histogram_ms,
            _ => asked.window_ms,
        };
        LogShow {
            kind,
            file,
            clones: Vec::new(),
            engine_window_ns: asked.engine_window().0,
            window_ns: window_ms * NS_PER_MS,
            is_maximum: asked.is_maximum,
            has_offsets: asked.has_offsets,
            is_unix_time: asked.is_unix_time,
            ramp_ns: job.ramp_ns,
            priority: u32::from(job.prio_class == Some(REAL_TIME)),
            coarseness: asked.coarseness,
            block_bytes: job.sizes()[reads].0,
            targets: Vec::new(),
        }
    };
    asked.files().into_iter().map(log).collect()
}
