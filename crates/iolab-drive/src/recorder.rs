//! Values that are kept of every op: service time, response time, and the series; nothing per op is
//! stored, unless somebody asks for a log ([`crate::op_log`]), which does not grow memory either.

use iolab_model::op::{OpClass, Token};
use iolab_model::{Completion, Histogram, Ns, Submission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interim::Telling;
use crate::op_log::OpLog;
use crate::segment::Segments;
use crate::series::Series;

/// One histogram per class of op that occurred.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassHistograms {
    /// Reads.
    pub read: Option<Histogram>,
    /// Writes.
    pub write: Option<Histogram>,
    /// Flushes.
    pub sync: Option<Histogram>,
}

impl ClassHistograms {
    #[inline]
    fn of(&mut self, class: OpClass) -> Option<&mut Histogram> {
        let slot = match class {
            OpClass::Read => &mut self.read,
            OpClass::Write => &mut self.write,
            OpClass::Sync => &mut self.sync,
            OpClass::Other => return None,
        };
        Some(slot.get_or_insert_default())
    }

    /// Gets the memory of these classes now.
    fn get_ready(&mut self, classes: &[OpClass]) {
        for class in classes {
            match class {
                OpClass::Read => self.read = Some(Histogram::resident()),
                OpClass::Write => self.write = Some(Histogram::resident()),
                OpClass::Sync => self.sync = Some(Histogram::resident()),
                OpClass::Other => {}
            }
        }
    }

    /// Counts a time of a class of op.
    #[inline]
    pub(crate) fn record(&mut self, class: OpClass, time: Ns) {
        if let Some(histogram) = self.of(class) {
            histogram.record(time.0);
        }
    }

    /// Counts ops of one period that were due and never begun, with the least that each waited:
    /// the last of them less than a period, the one before it at least one, and so on. Many of them
    /// are counted in groups.
    fn record_missed(&mut self, missed: u64, period: Ns) {
        const GROUPS_MAX: u64 = 100_000;
        let count = |h: &Option<Histogram>| h.as_ref().map_or(0, Histogram::count);
        let is_write = count(&self.write) > count(&self.read);
        let class = if is_write { OpClass::Write } else { OpClass::Read };
        let histogram = self.of(class).expect("transfers have a histogram");
        let size = missed.div_ceil(GROUPS_MAX).max(1);
        let mut first = 0;
        while first < missed {
            let here = size.min(missed - first);
            histogram.record_many(first * period.0, here);
            first += here;
        }
    }

    /// Adds another set's counts.
    pub fn merge(&mut self, other: &Self) {
        let pairs = [
            (OpClass::Read, &other.read),
            (OpClass::Write, &other.write),
            (OpClass::Sync, &other.sync),
        ];
        for (class, theirs) in pairs {
            if let (Some(theirs), true) = (theirs, theirs.as_ref().is_some_and(|h| h.count() > 0)) {
                self.of(class).expect("these classes have histograms").merge(theirs);
            }
        }
    }

    /// Adds another set; what this one has none of is taken as it is, without touching its memory.
    pub fn absorb(&mut self, other: Self) {
        let pairs = [
            (&mut self.read, other.read),
            (&mut self.write, other.write),
            (&mut self.sync, other.sync),
        ];
        for (mine, theirs) in pairs {
            match (mine, theirs.filter(|histogram| histogram.count() > 0)) {
                (Some(mine), Some(theirs)) => mine.merge(&theirs),
                (mine @ None, Some(theirs)) => *mine = Some(theirs),
                (_, None) => {}
            }
        }
    }

    /// Sum of all recorded times.
    pub fn sum_ns(&self) -> f64 {
        let sum = |h: &Option<Histogram>| {
            h.as_ref().and_then(|h| h.mean().map(|mean| mean * h.count() as f64)).unwrap_or(0.0)
        };
        sum(&self.read) + sum(&self.write) + sum(&self.sync)
    }
}

/// Times of handing ops over, and from there to their ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmissionTimes {
    /// From the submission to the return of the call that handed the op over.
    pub submission: ClassHistograms,
    /// From that return to the end.
    pub completion: ClassHistograms,
}

impl SubmissionTimes {
    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
    }
}

/// Records the ops of one worker; its memory does not grow with the number of ops.
#[derive(Debug)]
pub struct Recorder {
    /// From the start of the call to its end.
    pub service: ClassHistograms,
    /// From the intended start to the end; only under a rate limit.
    pub response: Option<ClassHistograms>,
    /// Of their submission and completion apart, if that was asked for.
    pub submissions: Option<Box<SubmissionTimes>>,
    /// Most ops that are handed over together then.
    pub submission_group: u32,
    /// Over time.
    pub series: Series,
    /// Between the cuts of the phase.
    pub segments: Segments,
    /// Ops that ended later than a period after their intended start.
    pub late_ops: u64,
    /// Every op that counts, one by one.
    pub op_log: Option<Box<OpLog>>,
    /// The way to tell what was counted so far, if somebody wants to know.
    pub telling: Option<Box<Telling>>,
    /// Between two intended starts.
    period: Option<Ns>,
    origin: Option<Ns>,
    slots: Vec<(OpClass, Ns)>,
}

impl Recorder {
    /// A recorder for a lane of `depth` slots, perhaps of a worker with a rate limit.
    pub fn new(depth: u32, interval: Ns, period: Option<Ns>) -> Self {
        Self {
            service: ClassHistograms::default(),
            response: period.map(|_| ClassHistograms::default()),
            submissions: None,
            submission_group: u32::MAX,
            series: Series::new(interval),
            segments: Segments::default(),
            late_ops: 0,
            op_log: None,
            telling: None,
            period,
            origin: None,
            slots: vec![(OpClass::Other, Ns(0)); depth as usize],
        }
    }

    /// Keeps what lies between `cuts` of the phase apart; the worker begins at `begins`.
    #[must_use]
    pub fn cut_at(self, (cuts, begins): (&[Ns], Ns)) -> Self {
        Self { segments: Segments::new(cuts, begins), ..self }
    }

    /// Also writes every op that counts into `log`.
    #[must_use]
    pub fn logged_to(self, log: Option<OpLog>) -> Self {
        Self { op_log: log.map(Box::new), ..self }
    }

    /// Also tells what was counted so far.
    #[must_use]
    pub fn told_by(self, telling: Option<Telling>) -> Self {
        Self { telling: telling.map(Box::new), ..self }
    }

    /// Tell whether it is time to tell what was counted so far.
    #[inline]
    pub fn is_telling_due(&self, now: Ns) -> bool {
        self.telling.as_ref().is_some_and(|telling| telling.is_due(now))
    }

    /// Also keeps times of submission, of so many ops together at most; 0: it does not.
    #[must_use]
    pub fn with_submissions(self, group: u32) -> Self {
        let submissions = (group > 0).then(Box::default);
        Self { submissions, submission_group: group, ..self }
    }

    /// Gets all memory that ops of these classes will need: what is recorded in a timed region must
    /// not fetch any there.
    #[must_use]
    pub fn ready_for(mut self, classes: &[OpClass]) -> Self {
        self.service.get_ready(classes);
        if let Some(response) = &mut self.response {
            response.get_ready(classes);
        }
        if let Some(times) = &mut self.submissions {
            times.submission.get_ready(classes);
            times.completion.get_ready(classes);
        }
        self.series.get_ready();
        self
    }

    /// Notes a submission.
    #[allow(clippy::inline_always, reason = "counted in instructions, see docs/design/0010")]
    #[inline(always)]
    pub fn submitted(&mut self, submission: &Submission) {
        let Token(slot) = submission.token;
        self.slots[slot as usize] = (submission.op.class(), submission.intended);
        if let Some(log) = &mut self.op_log {
            log.submitted(submission.token, &submission.op);
            if submission.is_timed {
                log.begin(submission.intended);
            }
        }
        if submission.is_timed && self.origin.is_none() {
            self.begin(submission.intended);
        }
    }

    /// Counts the ops that were due and never begun: they are late, by at least what they waited.
    pub fn missed(&mut self, missed: u64) {
        if let (Some(response), Some(period)) = (&mut self.response, self.period)
            && missed > 0
        {
            response.record_missed(missed, period);
        }
    }

    /// Records the completion of an op that counts.
    #[inline]
    pub fn completed(&mut self, completion: &Completion) {
        let (class, intended) = self.slots[completion.token.0 as usize];
        if let Some(log) = &mut self.op_log {
            log.completed(completion);
        }
        if let (Some(response), Some(period)) = (&mut self.response, self.period) {
            let waited = completion.completed.since(intended);
            response.record(class, waited);
            let is_transfer = matches!(class, OpClass::Read | OpClass::Write);
            self.late_ops += u64::from(is_transfer && waited > period);
        }
        let bytes = completion.outcome.map_or(0, |moved| moved.0);
        self.count(class, completion.submitted, completion.completed, bytes);
    }

    /// Logs the completion of an op that does not count, if it is one that logs are to have.
    #[inline]
    pub fn uncounted(&mut self, completion: &Completion) {
        if let Some(log) = &mut self.op_log {
            log.uncounted(completion);
        }
    }

    /// Records how long it took to hand over the op that `completion` is of, before it is recorded
    /// itself; of a phase with cuts only what ends behind the last of them, but for logs.
    #[inline]
    pub fn handed_over(&mut self, completion: &Completion, took: Ns) {
        if let Some(log) = &mut self.op_log {
            log.handed_over(took);
        }
        let (class, _) = self.slots[completion.token.0 as usize];
        let after = completion.completed.since(self.origin.unwrap_or(completion.completed));
        if let Some(times) = &mut self.submissions
            && took.0 > 0
            && self.segments.is_last(after)
        {
            let service = completion.completed.since(completion.submitted);
            times.submission.record(class, took);
            times.completion.record(class, service.since(took));
        }
    }

    /// Tell whether [`Recorder::count`] is all there is to do at the end of an op, and nothing at
    /// its submission, after [`Recorder::begin`].
    pub fn is_plain(&self) -> bool {
        self.op_log.is_none() && self.response.is_none() && self.submissions.is_none()
    }

    /// The timed region begins, if it has not yet.
    pub fn begin(&mut self, now: Ns) {
        self.series.begin(now);
        self.origin.get_or_insert(now);
        if let Some(telling) = &mut self.telling {
            telling.begin(now);
        }
    }

    /// Forgets what was counted before `now`; logs of single ops keep it.
    #[cold]
    pub fn begin_anew(&mut self, now: Ns) {
        self.service = ClassHistograms::default();
        self.submissions = self.submissions.take().map(|_| Box::default());
        self.series = Series::new(Ns(self.series.interval_ns));
        self.late_ops = 0;
        self.series.begin(now);
        self.origin = Some(now);
    }

    /// Counts ops of `class` that followed each other without a pause, each of `bytes`: the first
    /// was submitted then, each other one when the one before it ended.
    #[inline]
    pub fn count_run(&mut self, class: OpClass, submitted: Ns, ended: &[Ns], bytes: u64) {
        let ([first, .., last] | [first @ last]) = ended else { return };
        let begins = std::iter::once(&submitted).chain(ended);
        let services = begins.zip(ended).map(|(begin, end)| end.since(*begin));
        if self.segments.is_empty()
            && let Some(histogram) = self.service.of(class)
        {
            let longest = histogram.record_each(services.clone().map(|service| service.0));
            let alike = (ended.len() as u64, bytes);
            if !self.series.record_run((*first, *last), alike, Ns(longest)) {
                for (end, service) in ended.iter().zip(services) {
                    self.series.record(*end, bytes, service);
                }
            }
            return;
        }
        for (end, service) in ended.iter().zip(services) {
            self.count(class, Ns(end.0 - service.0), *end, bytes);
        }
    }

    /// Counts an op of `class`.
    #[inline]
    pub fn count(&mut self, class: OpClass, submitted: Ns, completed: Ns, bytes: u64) {
        let service = completed.since(submitted);
        self.service.record(class, service);
        let origin = self.origin.unwrap_or(completed);
        self.segments.record(class, completed.since(origin), (service, bytes));
        self.series.record(completed, bytes, service);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(class: OpClass, values: &[u64]) -> ClassHistograms {
        let mut found = ClassHistograms::default();
        found.get_ready(&[OpClass::Sync]);
        for value in values {
            found.record(class, Ns(*value));
        }
        found
    }

    #[test]
    fn a_set_that_is_given_away_counts_as_one_that_is_added() {
        let parts = [
            times(OpClass::Read, &[5, 900]),
            times(OpClass::Write, &[7]),
            times(OpClass::Read, &[12_345]),
        ];
        let (mut added, mut taken) = (ClassHistograms::default(), ClassHistograms::default());
        for part in parts {
            added.merge(&part);
            taken.absorb(part);
        }
        assert_eq!((&added.read, &added.write), (&taken.read, &taken.write));
        assert!(taken.sync.is_none(), "a class without times has no histogram");
        assert!((taken.sum_ns() - 13_257.0).abs() < 1e-6, "{}", taken.sum_ns());
    }
}
