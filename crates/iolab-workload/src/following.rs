//! Rules of a tenant as its workers follow them ([`crate::spec::rules`]): everything happens at the
//! end of an op, so that no worker without rules is slower for it.

use iolab_model::Ns;
use iolab_model::error::Errno;
use iolab_model::op::OpClass;

use crate::report::{StreamReport, Tolerated};
use crate::spec::Tenant;
use crate::spec::rules::{DepthSearch, LeastRate, RateOf, SAMPLE, SteadyRule, TenantRules};
use crate::stream::class_name;

/// Number of the error of an op that took too long (`ETIMEDOUT`).
pub(crate) const TIMED_OUT: i32 = 110;

/// Consequence of the end of an op that counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heed {
    /// None.
    On,
    /// Too long an op: words that a file follows.
    Late(String),
    /// Too slow a worker: words that a file follows.
    Slow(String),
    /// Nothing more is to begin after this instant.
    Until(Ns),
    /// Counting begins anew.
    Anew,
}

/// The rules that a worker follows, and what they have seen.
#[derive(Debug)]
pub(crate) struct Following {
    rules: TenantRules,
    steady: Option<Steady>,
    search: Option<Search>,
    least: Option<Least>,
    tolerated: Tolerated,
    /// Time at which counting has just begun anew.
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

/// Settling of a worker, before its rate is judged (fio's).
const SETTLING: Ns = Ns::from_ms(2000);

/// A lowest rate, and what was moved in the cycle at hand.
#[derive(Debug)]
struct Least {
    rule: LeastRate,
    /// Beginning of the cycle; absent: none has begun.
    from: Option<Ns>,
    /// Transfers and bytes of reads, and of writes.
    moved: [(u64, u64); 2],
}

impl Least {
    /// A transfer has ended; answers what was too slow in the cycle that ended with it.
    fn ended(
        &mut self,
        started: Ns,
        completed: Ns,
        (place, bytes): (usize, u64),
    ) -> Option<String> {
        if completed.since(started) < SETTLING {
            return None;
        }
        let spent = completed.since(*self.from.get_or_insert(completed));
        let mut slow = None;
        if spent >= self.rule.cycle_ns {
            for (place, (ops, bytes)) in self.moved.into_iter().enumerate() {
                let kinds = [
                    (bytes, self.rule.bytes_per_s[place], "bytes"),
                    (ops, self.rule.ops_per_s[place], "transfers"),
                ];
                for (moved, least, unit) in kinds {
                    let rate = (u128::from(moved) * 1_000_000_000 / u128::from(spent.0)) as u64;
                    if rate < least {
                        let direction = ["reading", "writing"][place];
                        slow.get_or_insert(format!(
                            "{direction} at {rate} {unit}/s, and at least {least} were asked for,"
                        ));
                    }
                }
            }
            (self.from, self.moved) = (Some(completed), [(0, 0); 2]);
        }
        self.moved[place].0 += 1;
        self.moved[place].1 += bytes;
        slow
    }
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

/// Consequence of the end of a window.
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
    fn ended(&mut self, (submitted, completed): (Ns, Ns)) -> Verdict {
        let from = *self.from.get_or_insert(submitted);
        self.ops += 1;
        self.late += u64::from(completed.since(submitted) > self.rule.target_ns);
        if completed.since(from) < self.rule.window_ns {
            return Verdict::On;
        }
        let is_kept = 100.0 * (self.ops - self.late) as f64 >= self.rule.percent * self.ops as f64;
        (self.from, self.ops, self.late) = (Some(completed), 0, 0);
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
    /// Rules that a worker of `tenant` follows; absent: none.
    pub(crate) fn of(tenant: &Tenant) -> Option<Box<Self>> {
        let rules = &tenant.manner.rules;
        if *rules == TenantRules::default() {
            return None;
        }
        Some(Box::new(Self {
            steady: rules.steady.map(Steady::new),
            search: rules.depth_search.map(Search::new),
            least: rules.least.map(|rule| Least { rule, from: None, moved: [(0, 0); 2] }),
            tolerated: Tolerated::default(),
            rules: rules.clone(),
            anew: None,
        }))
    }

    /// Number of `depth` slots that stay empty; absent: nobody searches for a depth.
    pub(crate) fn idle_slots(&self, depth: u32) -> Option<u32> {
        self.search.as_ref().map(|search| depth.saturating_sub(search.depth))
    }

    /// Adds what it has seen.
    pub(crate) fn add_to(&self, report: &mut StreamReport) {
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

    /// An op has failed, at a place in words: absent, if the worker ends; else whether it was the
    /// last one.
    #[cold]
    pub(crate) fn tolerates(
        &mut self,
        class: OpClass,
        errno: Errno,
        place: impl FnOnce() -> String,
    ) -> Option<bool> {
        let tolerance = self.rules.tolerance.as_ref()?;
        if !tolerance.covers(class, errno) {
            return None;
        }
        let told = &mut self.tolerated;
        told.errors += 1;
        if told.first_errno == 0 {
            told.first_errno = errno.0;
            let reason = std::io::Error::from_raw_os_error(errno.0);
            told.first = format!("{}{}: {reason}", class_name(class), place());
        }
        let is_mismatch = class == OpClass::Read && errno == Errno::EILSEQ;
        Some(tolerance.ends_at_mismatch && is_mismatch)
    }

    /// An op that counts has ended, of a worker whose timed region began at `started`.
    #[cold]
    pub(crate) fn ended(
        &mut self,
        started: Ns,
        (class, bytes): (OpClass, u64),
        (submitted, completed): (Ns, Ns),
    ) -> Heed {
        let took = completed.since(submitted);
        let place = usize::from(class != OpClass::Read);
        if let Some(longest) = self.rules.longest_ns.and_then(|longest| longest[place])
            && took > longest
        {
            let (name, took, most) = (class_name(class), took.0, longest.0);
            return Heed::Late(format!("{name} took {took} ns, and at most {most} were allowed,"));
        }
        if matches!(class, OpClass::Sync | OpClass::Other) {
            return Heed::On;
        }
        if let Some(least) = &mut self.least
            && let Some(slow) = least.ended(started, completed, (place, bytes))
        {
            return Heed::Slow(slow);
        }
        if let Some(steady) = &mut self.steady
            && let Some(at) = steady.ended(started, completed, bytes)
        {
            // It ended behind the instant at which nothing more was to come.
            return Heed::Until(at);
        }
        let Some(search) = &mut self.search else { return Heed::On };
        match search.ended((submitted, completed)) {
            Verdict::On => Heed::On,
            Verdict::Anew => {
                self.anew = Some(completed);
                Heed::Anew
            }
            Verdict::End => Heed::Until(completed),
        }
    }

    /// True if counting has begun anew, and that was not told yet.
    pub(crate) fn is_anew(&self) -> bool {
        self.anew.is_some()
    }

    /// Time at which counting began anew, told once.
    pub(crate) fn take_anew(&mut self) -> Option<Ns> {
        self.anew.take()
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
    fn a_rate_below_the_least_is_told_at_the_end_of_its_cycle_after_settling() {
        let rule =
            LeastRate { bytes_per_s: [1000, 0], ops_per_s: [0, 0], cycle_ns: Ns::from_ms(500) };
        let mut least = Least { rule, from: None, moved: [(0, 0); 2] };
        let at = |ms| Ns::from_ms(ms);
        // While it settles nothing is judged, and a cycle begins with the first end behind it.
        assert_eq!(least.ended(Ns(0), at(1000), (0, 1)), None);
        assert_eq!(least.ended(Ns(0), at(2000), (0, 500)), None);
        assert_eq!(least.ended(Ns(0), at(2500), (0, 400)), None, "1000 bytes/s");
        let slow = least.ended(Ns(0), at(3000), (0, 0)).unwrap();
        assert!(slow.contains("reading at 800 bytes/s, and at least 1000"), "{slow}");
        // Of writes nothing is asked.
        assert_eq!(least.ended(Ns(0), at(3100), (1, 0)), None);
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
