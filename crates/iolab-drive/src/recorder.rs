//! What is kept of every op: service time, response time, and the series; nothing per op is stored.

use iolab_model::op::{OpClass, Token};
use iolab_model::{Completion, Histogram, Ns, Submission};
use serde::{Deserialize, Serialize};

use crate::series::Series;

/// One histogram per class of op that occurred.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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

    /// Sum of all recorded times.
    pub fn sum_ns(&self) -> f64 {
        let sum = |h: &Option<Histogram>| {
            h.as_ref().and_then(|h| h.mean().map(|mean| mean * h.count() as f64)).unwrap_or(0.0)
        };
        sum(&self.read) + sum(&self.write) + sum(&self.sync)
    }
}

/// Records the ops of one worker; its memory does not grow with the number of ops.
#[derive(Debug)]
pub struct Recorder {
    /// From the start of the call to its end.
    pub service: ClassHistograms,
    /// From the intended start to the end; only under a rate limit.
    pub response: Option<ClassHistograms>,
    /// Over time.
    pub series: Series,
    slots: Vec<(OpClass, Ns)>,
}

impl Recorder {
    /// A recorder for a lane of `depth` slots.
    pub fn new(depth: u32, interval: Ns, is_rate_limited: bool) -> Self {
        Self {
            service: ClassHistograms::default(),
            response: is_rate_limited.then(ClassHistograms::default),
            series: Series::new(interval),
            slots: vec![(OpClass::Other, Ns(0)); depth as usize],
        }
    }

    /// Notes a submission.
    #[inline]
    pub fn submitted(&mut self, submission: &Submission) {
        let Token(slot) = submission.token;
        self.slots[slot as usize] = (submission.op.class(), submission.intended);
        if submission.is_timed {
            self.series.begin(submission.intended);
        }
    }

    /// Records the completion of an op that counts.
    #[inline]
    pub fn completed(&mut self, completion: &Completion) {
        let (class, intended) = self.slots[completion.token.0 as usize];
        let service = completion.service();
        if let Some(histogram) = self.service.of(class) {
            histogram.record(service.0);
        }
        if let Some(histogram) = self.response.as_mut().and_then(|r| r.of(class)) {
            histogram.record(completion.completed.since(intended).0);
        }
        let bytes = completion.outcome.map_or(0, |moved| moved.0);
        self.series.record(completion.completed, bytes, service);
    }
}
