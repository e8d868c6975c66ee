//! kyber: first in, first out per kind of operation, with few enough at the device to meet latency
//! targets.
//!
//! Requests are staged per CPU and domain (reads, writes, discards, the rest), where bios may still
//! merge into the last eight. Domains take turns in batches. A request needs one of its domain's
//! tokens, from dispatch to completion. Every 100 ms at most, histograms of latency decide how many
//! tokens a domain has: when any domain is too slow at the device, those that meet their target
//! shrink; those that miss it grow.
//!
//! Left out: several hardware queues; that shrinking a token map forgets the tokens in use beyond
//! its new end (here all tokens in use count); the timer wheel's coarseness.
//!
//! Source: Linux 6.18 block/kyber-iosched.c (behaviour and constants).

use std::collections::VecDeque;

use iolab_model::Ns;

use super::common::PerRequest;
use crate::api::bio::{Bio, Flags, Operation};
use crate::api::request::{Request, RequestId, Requests};
use crate::api::scheduler::{Attach, Framework, Hz, Merge, MergeEnd, Scheduler, SchedulerContext};
use crate::tunable::{Tunable, TunableInfo, Tuned, Unit};

// Linux 6.18 block/kyber-iosched.c: order of the domains, their greatest depths, batch sizes and
// targets.
const READ: usize = 0;
const WRITE: usize = 1;
const DISCARD: usize = 2;
const OTHER: usize = 3;
const NAMES: [&str; 4] = ["read", "write", "discard", "other"];
const TOKENS_MAX: [u32; 4] = [256, 128, 64, 16];
const BATCH: [u32; 4] = [16, 8, 1, 1];
const TARGETS: [Ns; 3] = [Ns::from_ms(2), Ns::from_ms(10), Ns::from_seconds(5)];

/// Linux 6.18 block/kyber-iosched.c: `KYBER_ASYNC_PERCENT`.
const ASYNC_PERCENT: u32 = 75;
/// Linux 6.18 block/blk-merge.c: how many requests of a list are tried for a merge.
const MERGE_CANDIDATES: usize = 8;
/// Linux 6.18 block/kyber-iosched.c: `KYBER_LATENCY_BUCKETS`, of a quarter of the target each; the
/// first `KYBER_GOOD_BUCKETS` meet it.
const BUCKETS: usize = 8;
const GOOD_BUCKETS: usize = 4;
/// Linux 6.18 block/kyber-iosched.c: samples that suffice for a percentile at once.
const SAMPLES_ENOUGH: u32 = 500;

/// The kyber scheduler.
#[derive(Clone, Debug)]
pub struct Kyber {
    hz: Hz,
    /// Per CPU.
    staging: Vec<[VecDeque<RequestId>; 4]>,
    /// Number of staged requests per domain.
    staged: [usize; 4],
    flushed: [VecDeque<RequestId>; 4],
    domain: usize,
    batching: u32,
    tokens: [u32; 4],
    in_use: [u32; 4],
    has_token: PerRequest<bool>,
    targets: [Ns; 3],
    monitors: [Monitor; 3],
    timer: Ns,
}

/// Latencies of one domain.
#[derive(Clone, Copy, Debug, Default)]
struct Monitor {
    /// From allocation to completion.
    total: [u32; BUCKETS],
    /// From the device's start to completion.
    device: [u32; BUCKETS],
    /// Tick at which few samples suffice.
    timeout: Option<u64>,
    /// Remembered for the next congestion: bucket of the 99th percentile of the total latency.
    p99: Option<usize>,
}

/// Bucket of a latency: 0 to 3 meet the target.
fn bucket(latency: Ns, target: Ns) -> usize {
    let width = (target.0 / GOOD_BUCKETS as u64).max(1);
    (latency.0.saturating_sub(1) / width).min(BUCKETS as u64 - 1) as usize
}

/// New number of tokens for a 99th percentile in that bucket.
fn resized(tokens: u32, p99: usize, max: u32) -> u32 {
    (tokens * (p99 as u32 + 1) / GOOD_BUCKETS as u32).clamp(1, max)
}

/// Bucket of a percentile, if there are samples enough by now; takes the histogram with it.
fn percentile(
    histogram: &mut [u32; BUCKETS],
    timeout: &mut Option<u64>,
    percent: u32,
    (tick, second): (u64, u64),
) -> Option<usize> {
    let samples: u32 = histogram.iter().sum();
    if samples == 0 {
        return None;
    }
    let timeout_at = *timeout.get_or_insert(tick + second);
    if samples < SAMPLES_ENOUGH && timeout_at > tick {
        return None;
    }
    *timeout = None;
    let mut rest = (samples * percent).div_ceil(100);
    let mut bucket = 0;
    while bucket < BUCKETS - 1 && histogram[bucket] < rest {
        rest -= histogram[bucket];
        bucket += 1;
    }
    *histogram = [0; BUCKETS];
    Some(bucket)
}

const fn domain_of(operation: Operation) -> usize {
    match operation {
        Operation::Read => READ,
        Operation::Write => WRITE,
        Operation::Discard => DISCARD,
        Operation::Flush => OTHER,
    }
}

/// End at which the bio would be merged into the request, if the two are of a kind.
fn merge_end(request: &Request, bio: &Bio) -> Option<MergeEnd> {
    let barriers = Flags::NO_MERGE.with(Flags::PREFLUSH).with(Flags::FUA);
    if request.submitter.priority != bio.submitter.priority
        || request.flags.with(bio.flags).intersects(barriers)
    {
        return None;
    }
    if request.end() == bio.sector {
        Some(MergeEnd::Back)
    } else if request.sector == bio.end() {
        Some(MergeEnd::Front)
    } else {
        None
    }
}

impl Kyber {
    /// The next request of the present domain, if it has one and a token is free.
    fn try_domain(&mut self) -> Option<RequestId> {
        let domain = self.domain;
        if self.flushed[domain].is_empty() && self.staged[domain] == 0
            || self.in_use[domain] >= self.tokens[domain]
        {
            return None;
        }
        if self.flushed[domain].is_empty() {
            for lists in &mut self.staging {
                self.flushed[domain].append(&mut lists[domain]);
            }
            self.staged[domain] = 0;
        }
        let id = self.flushed[domain].pop_front()?;
        self.in_use[domain] += 1;
        self.batching += 1;
        self.has_token.set(id, true);
        Some(id)
    }

    fn free_token(&mut self, requests: &Requests, id: RequestId) {
        if core::mem::take(self.has_token.get_mut(id)) {
            self.in_use[domain_of(requests[id].operation)] -= 1;
        }
    }

    fn resize(&mut self, tick: u64) {
        let times = (tick, u64::from(self.hz.0));
        let mut is_congested = false;
        for Monitor { device, timeout, .. } in &mut self.monitors {
            let p90 = percentile(device, timeout, 90, times);
            is_congested |= p90.is_some_and(|p90| p90 >= GOOD_BUCKETS);
        }
        for (domain, monitor) in self.monitors.iter_mut().enumerate() {
            let mut p99 = percentile(&mut monitor.total, &mut monitor.timeout, 99, times);
            if is_congested {
                p99 = p99.or(monitor.p99);
                monitor.p99 = None;
            } else if p99.is_some() {
                monitor.p99 = p99;
            }
            if let Some(p99) = p99
                && (is_congested || p99 >= GOOD_BUCKETS)
            {
                self.tokens[domain] = resized(self.tokens[domain], p99, TOKENS_MAX[domain]);
            }
        }
    }
}

impl Attach for Kyber {
    const FRAMEWORK: Framework = Framework::MultiQueue;
    const FINDS_OWN_MERGES: bool = true;

    fn attach(context: &SchedulerContext) -> Self {
        Self {
            hz: context.hz,
            staging: (0..context.cpus).map(|_| Default::default()).collect(),
            staged: [0; 4],
            flushed: Default::default(),
            domain: READ,
            batching: 0,
            tokens: TOKENS_MAX,
            in_use: [0; 4],
            has_token: PerRequest::default(),
            targets: TARGETS,
            monitors: Default::default(),
            timer: Ns::MAX,
        }
    }
}

impl Scheduler for Kyber {
    fn insert(&mut self, _: Ns, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let (cpu, domain) = (usize::from(request.submitter.cpu), domain_of(request.operation));
        if self.staging.len() <= cpu {
            self.staging.resize_with(cpu + 1, Default::default);
        }
        self.staging[cpu][domain].push_back(id);
        self.staged[domain] += 1;
    }

    fn insert_at_head(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.insert(now, requests, id);
        let request = &requests[id];
        let (cpu, domain) = (usize::from(request.submitter.cpu), domain_of(request.operation));
        self.staging[cpu][domain].rotate_right(1);
    }

    fn dispatch(&mut self, _: Ns, _: &Requests) -> Option<RequestId> {
        if self.batching < BATCH[self.domain] {
            let id = self.try_domain();
            if id.is_some() {
                return id;
            }
        }
        self.batching = 0;
        (0..NAMES.len()).find_map(|_| {
            self.domain = (self.domain + 1) % NAMES.len();
            self.try_domain()
        })
    }

    fn complete(&mut self, now: Ns, requests: &Requests, id: RequestId) {
        self.free_token(requests, id);
        let request = &requests[id];
        let domain = domain_of(request.operation);
        if domain == OTHER {
            return;
        }
        let (monitor, target) = (&mut self.monitors[domain], self.targets[domain]);
        monitor.total[bucket(now - request.allocated, target)] += 1;
        monitor.device[bucket(now.since(request.issued), target)] += 1;
        // Linux 6.18 block/kyber-iosched.c: the timer runs HZ/10 after the first completion.
        if self.timer == Ns::MAX {
            self.timer = Ns((self.hz.ticks(now) + u64::from(self.hz.0 / 10)) * self.hz.tick().0);
        }
    }

    /// Goes to the head of its domain; its token is free.
    fn requeue(&mut self, _: Ns, requests: &Requests, id: RequestId) {
        self.free_token(requests, id);
        self.flushed[domain_of(requests[id].operation)].push_front(id);
    }

    fn next_timer(&self) -> Ns {
        self.timer
    }

    fn timer(&mut self, now: Ns, _: &Requests) {
        self.timer = Ns::MAX;
        self.resize(self.hz.ticks(now));
    }

    fn has_requests(&self) -> bool {
        self.staged.iter().any(|&staged| staged > 0)
            || self.flushed.iter().any(|list| !list.is_empty())
    }

    fn limit_depth(&self, bio: &Bio, slots: u32) -> u32 {
        if bio.is_sync() { slots } else { (slots * ASYNC_PERCENT / 100).max(1) }
    }

    fn merge_bio(&mut self, _: Ns, requests: &Requests, bio: &Bio) -> Option<Merge> {
        let lists = self.staging.get(usize::from(bio.submitter.cpu));
        let list = lists.map(|lists| &lists[domain_of(bio.operation)]);
        let mut candidates = list.into_iter().flatten().rev().take(MERGE_CANDIDATES);
        candidates.find_map(|&into| {
            let end = merge_end(&requests[into], bio)?;
            Some(Merge { into, end })
        })
    }

    /// Kyber has no neighbours, so nothing joins by itself; a queue that joins all the same is
    /// served.
    fn joined(&mut self, _: Ns, requests: &Requests, _: RequestId, absorbed: RequestId) {
        let request = &requests[absorbed];
        let (cpu, domain) = (usize::from(request.submitter.cpu), domain_of(request.operation));
        let staged = &mut self.staging[cpu][domain];
        if let Some(index) = staged.iter().position(|&id| id == absorbed) {
            staged.remove(index);
            self.staged[domain] -= 1;
        } else {
            self.flushed[domain].retain(|&id| id != absorbed);
        }
    }

    /// The batch, then every domain.
    fn describe(&self, _: Ns, requests: &Requests) -> Vec<String> {
        let batch = format!(
            "batch: {}s, {} of {} issued",
            NAMES[self.domain], self.batching, BATCH[self.domain]
        );
        let domains = (0..NAMES.len()).map(|domain| {
            let first = self.flushed[domain].front();
            let first = first.map_or_else(String::new, |&id| {
                format!(", first is sector {}", requests[id].sector.0)
            });
            format!(
                "{}: {} staged, {} taken over{first}; {} of {} tokens in use",
                NAMES[domain],
                self.staged[domain],
                self.flushed[domain].len(),
                self.in_use[domain],
                self.tokens[domain]
            )
        });
        std::iter::once(batch).chain(domains).collect()
    }

    /// "write domain depth resized to 1 token (read 256, discard 64, other 16)".
    fn preset(&mut self, state: &str) -> bool {
        let Some((name, rest)) = state.split_once(" domain depth resized to ") else {
            return false;
        };
        let (tokens, others) = rest.split_once(" token").unwrap_or((rest, ""));
        let others = others.trim_start_matches('s').trim().trim_matches(['(', ')']);
        let others = others.split(", ").filter(|text| !text.is_empty());
        let pairs = others.map(|text| text.split_once(' ').unwrap_or((text, "")));
        for (name, tokens) in pairs.chain([(name, tokens)]) {
            let domain = NAMES.iter().position(|known| *known == name);
            let (Some(domain), Ok(tokens)) = (domain, tokens.parse::<u32>()) else {
                return false;
            };
            self.tokens[domain] = tokens.clamp(1, TOKENS_MAX[domain]);
        }
        true
    }
}

const fn target_info(name: &'static str, domain: usize, about: &'static str) -> TunableInfo {
    let default = TARGETS[domain].0;
    TunableInfo { name, unit: Unit::Nanoseconds, default, min: 0, max: u64::MAX, about }
}

impl Tuned for Kyber {
    const TUNABLES: &'static [Tunable<Self>] = &[
        Tunable {
            info: target_info("read_lat_nsec", READ, "Latency that reads should keep to."),
            get: |s| s.targets[READ].0,
            set: |s, target| s.targets[READ] = Ns(target),
        },
        Tunable {
            info: target_info("write_lat_nsec", WRITE, "Latency that writes should keep to."),
            get: |s| s.targets[WRITE].0,
            set: |s, target| s.targets[WRITE] = Ns(target),
        },
    ];
}

#[cfg(test)]
mod tests;
