//! How a worker follows the rules of its tenant ([`crate::spec::rules`]): everything happens at the
//! end of an op, so that no worker without rules is slower for it.

use iolab_model::error::Errno;
use iolab_model::op::OpClass;
use iolab_model::{Completion, Ns};

use super::{StreamWorker, class_name};
use crate::group::GroupState;
use crate::report::{StreamReport, Tolerated};
use crate::spec::Tenant;
use crate::spec::rules::{DepthSearch, RateOf, SAMPLE, SteadyRule, WorkerRules};

/// The rules that a worker follows, and what they have seen.
#[derive(Debug)]
pub(super) struct Following {
    rules: WorkerRules,
    steady: Option<Steady>,
    search: Option<Search>,
    tolerated: Tolerated,
    /// When counting has just begun anew.
    anew: Option<Ns>,
}

/// Samples of a rate.
#[derive(Debug)]
struct Steady {
    rule: SteadyRule,
    /// End of the sample that is being taken; 0: none has begun.
    until: Ns,
    ops: u64,
    bytes: u64,
    /// Of the last samples, oldest first: ops and bytes.
    samples: Vec<(u64, u64)>,
    is_attained: bool,
}

/// A search for a depth.
#[derive(Debug)]
struct Search {
    rule: DepthSearch,
    depth: u32,
    /// The largest depth that kept the target, and the least that did not.
    kept: u32,
    missed: Option<u32>,
    /// Beginning of the window; absent: not begun.
    from: Option<Ns>,
    ops: u64,
    late: u64,
    is_last: bool,
}

/// What follows from the end of a window.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The next window, perhaps with another depth.
    On,
    /// The depth is found: counting begins anew.
    Anew,
    /// The worker ends.
    End,
}

impl Search {
    fn new(rule: DepthSearch) -> Self {
        Self { rule, depth: 1, kept: 1, missed: None, from: None, ops: 0, late: 0, is_last: false }
    }

    /// An op has ended.
    fn ended(&mut self, completion: &Completion) -> Verdict {
        let from = *self.from.get_or_insert(completion.submitted);
        self.ops += 1;
        let took = completion.completed.since(completion.submitted);
        self.late += u64::from(took > self.rule.target_ns);
        if completion.completed.since(from) < self.rule.window_ns {
            return Verdict::On;
        }
        let is_kept = 100.0 * (self.ops - self.late) as f64 >= self.rule.percent * self.ops as f64;
        (self.from, self.ops, self.late) = (Some(completion.completed), 0, 0);
        self.next_depth(is_kept)
    }

    /// Decides about the next window.
    fn next_depth(&mut self, is_kept: bool) -> Verdict {
        let before = self.depth;
        if is_kept {
            self.kept = before;
            self.depth = match self.missed {
                Some(missed) => before.midpoint(missed),
                None => before.saturating_mul(2).min(self.rule.depth_max),
            };
            if self.depth != before || self.rule.goes_on {
                return Verdict::On;
            }
            if self.is_last {
                return Verdict::End;
            }
            self.is_last = true;
            return Verdict::Anew;
        }
        if before == 1 {
            // Nothing smaller can be tried: it goes on, as long as its other limits let it.
            return Verdict::On;
        }
        self.missed = Some(before);
        // What was kept before may not be kept any more.
        self.kept = if self.kept >= before { before - 1 } else { self.kept };
        self.depth = before.midpoint(self.kept).max(1);
        self.is_last = false;
        Verdict::On
    }
}

impl Steady {
    fn new(rule: SteadyRule) -> Self {
        Self { rule, until: Ns(0), ops: 0, bytes: 0, samples: Vec::new(), is_attained: false }
    }

    /// An op that moved so much has ended; answers when its rate was found to be steady.
    fn ended(&mut self, started: Ns, completed: Ns, bytes: u64) -> Option<Ns> {
        let first = started + self.rule.after_ns;
        if completed < first {
            return None;
        }
        if self.until.0 == 0 {
            self.until = first + SAMPLE;
        }
        while completed >= self.until {
            let at = self.until;
            if self.samples.len() == self.rule.samples as usize {
                self.samples.remove(0);
            }
            self.samples.push((self.ops, self.bytes));
            (self.ops, self.bytes, self.until) = (0, 0, at + SAMPLE);
            if self.is_met() {
                self.is_attained = true;
                return Some(at);
            }
        }
        self.ops += 1;
        self.bytes += bytes;
        None
    }

    fn is_met(&self) -> bool {
        if self.samples.len() < self.rule.samples as usize {
            return false;
        }
        let of = self.rule.of;
        let rate = |(ops, bytes): &(u64, u64)| if of == RateOf::Ops { *ops } else { *bytes };
        let values: Vec<u64> = self.samples.iter().map(rate).collect();
        self.rule.judge(&values).is_met
    }
}

impl Following {
    /// What a worker of `tenant` follows; absent: nothing.
    pub(super) fn of(tenant: &Tenant) -> Option<Box<Self>> {
        let rules = &tenant.manner.rules;
        if *rules == WorkerRules::default() {
            return None;
        }
        Some(Box::new(Self {
            steady: rules.steady.map(Steady::new),
            search: rules.depth_search.map(Search::new),
            tolerated: Tolerated::default(),
            rules: rules.clone(),
            anew: None,
        }))
    }

    /// How many of `depth` slots stay empty.
    pub(super) fn idle_slots(&self, depth: u32) -> u32 {
        self.search.as_ref().map_or(0, |search| depth.saturating_sub(search.depth))
    }

    /// Adds what it has seen.
    pub(super) fn add_to(&self, report: &mut StreamReport) {
        report.depth_found = self.search.as_ref().map(|search| search.depth);
        if let Some(steady) = &self.steady {
            report.steady = Some(crate::report::SteadyReport {
                is_attained: steady.is_attained,
                ops_per_s: steady.samples.iter().map(|sample| sample.0).collect(),
                bytes_per_s: steady.samples.iter().map(|sample| sample.1).collect(),
            });
        }
        let is_asked = self.rules.tolerance.is_some();
        report.tolerated = is_asked.then(|| self.tolerated.clone());
    }
}

impl<G: GroupState> StreamWorker<G> {
    /// An op has failed: whether the worker goes on all the same.
    #[cold]
    pub(super) fn tolerates(&mut self, class: OpClass, errno: Errno, place: &str) -> bool {
        let file = self.tenant.file_name(self.report.worker);
        let Some(following) = &mut self.following else { return false };
        let Some(tolerance) = &following.rules.tolerance else { return false };
        if !tolerance.covers(class, errno) {
            return false;
        }
        let told = &mut following.tolerated;
        told.errors += 1;
        if told.first_errno == 0 {
            told.first_errno = errno.0;
            let reason = std::io::Error::from_raw_os_error(errno.0);
            told.first = format!("{}{place} of file {file}: {reason}", class_name(class));
        }
        true
    }

    /// An op that counts has ended: follows the rules; answers whether it still counts.
    #[cold]
    pub(super) fn obey(&mut self, completion: &Completion, class: OpClass, bytes: u64) -> bool {
        const TIMED_OUT: Errno = Errno(110);
        let took = completion.completed.since(completion.submitted);
        let Some(following) = &mut self.following else { return true };
        if let Some(longest) = following.rules.longest_ns
            && let Some(longest) = longest[usize::from(class != OpClass::Read)]
            && took > longest
        {
            let what = format!(
                "{} took {} ns, and at most {} were allowed:",
                class_name(class),
                took.0,
                longest.0
            );
            self.fail(TIMED_OUT, &what);
            return true;
        }
        if matches!(class, OpClass::Sync | OpClass::Other) {
            return true;
        }
        if let Some(steady) = &mut following.steady
            && let Some(at) = steady.ended(self.started, completion.completed, bytes)
        {
            // It ended behind the instant at which nothing more was to come.
            self.deadline = self.deadline.min(at);
            return true;
        }
        let Some(search) = &mut following.search else { return true };
        let verdict = search.ended(completion);
        self.idle_slots = following.idle_slots(self.tenant.depth);
        match verdict {
            Verdict::On => true,
            Verdict::Anew => {
                following.anew = Some(completion.completed);
                self.count_anew(completion.completed);
                false
            }
            Verdict::End => {
                self.deadline = self.deadline.min(completion.completed);
                true
            }
        }
    }

    /// Forgets what was counted before `now`.
    fn count_anew(&mut self, now: Ns) {
        let worker = self.report.worker;
        self.report = StreamReport { worker, ..StreamReport::default() };
        (self.started, self.ended) = (now, now);
        self.busy_from = None;
    }

    /// When counting began anew, told once.
    #[cold]
    pub(super) fn take_anew(&mut self) -> Option<Ns> {
        self.following.as_mut().and_then(|following| following.anew.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depths that are tried when those up to `good` keep the target, until the search ends.
    fn depths(good: u32, most: u32) -> (Vec<u32>, usize) {
        let rule = DepthSearch {
            target_ns: Ns(1000),
            window_ns: Ns(10),
            percent: 99.0,
            depth_max: most,
            goes_on: false,
        };
        let mut search = Search::new(rule);
        let (mut tried, mut anew) = (Vec::new(), 0);
        for _ in 0..64 {
            tried.push(search.depth);
            match search.next_depth(search.depth <= good) {
                Verdict::On => {}
                Verdict::Anew => anew += 1,
                Verdict::End => return (tried, anew),
            }
        }
        (tried, anew)
    }

    #[test]
    fn a_search_doubles_then_halves_and_ends_with_one_window_of_what_it_found() {
        assert_eq!(depths(16, 16), (vec![1, 2, 4, 8, 16, 16], 1));
        assert_eq!(depths(99, 12), (vec![1, 2, 4, 8, 12, 12], 1));
        assert_eq!(depths(5, 64), (vec![1, 2, 4, 8, 6, 5, 5], 1));
        assert_eq!(depths(1, 2), (vec![1, 2, 1, 1], 1));
        for (good, most) in (1..70).flat_map(|good| [(good, 64), (good, 37)]) {
            let (tried, anew) = depths(good, most);
            assert_eq!((tried.last(), anew), (Some(&good.min(most)), 1), "{good} of {most}");
        }
    }

    #[test]
    fn a_depth_of_one_that_fails_never_ends_by_itself() {
        let (tried, anew) = depths(0, 8);
        assert!(tried.len() == 64 && anew == 0 && tried.iter().all(|depth| *depth == 1));
    }

    #[test]
    fn seconds_without_an_op_are_samples_too() {
        let rule = SteadyRule {
            of: RateOf::Ops,
            is_slope: false,
            limit: 0.5,
            is_percent: false,
            samples: 2,
            after_ns: Ns(0),
        };
        let mut steady = Steady::new(rule);
        assert_eq!(steady.ended(Ns(0), Ns::from_ms(100), 1), None);
        assert_eq!(steady.ended(Ns(0), Ns::from_ms(3100), 1), Some(Ns::from_ms(3000)));
        assert_eq!(steady.samples, [(0, 0), (0, 0)]);
    }
}
