//! Work of a worker between two cuts of a phase: a setting was changed there, and a histogram of
//! the whole phase would mix before and after.

use iolab_model::Ns;
use iolab_model::op::OpClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recorder::ClassHistograms;

/// Ops that ended between two cuts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// From the beginning of the phase's timed region.
    pub from_ns: u64,
    /// The next cut; absent: the end of the phase.
    pub to_ns: Option<u64>,
    /// Transfers.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their service times, and those of flushes.
    pub service: ClassHistograms,
}

/// The segments of one worker.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// End of each one, counted from the worker's own beginning.
    ends: Vec<Ns>,
    parts: Vec<Segment>,
}

impl Segments {
    /// Segments between `cuts` of the phase, for a worker whose region begins at `begins`.
    pub fn new(cuts: &[Ns], begins: Ns) -> Self {
        if cuts.is_empty() {
            return Self::default();
        }
        let froms = std::iter::once(0).chain(cuts.iter().map(|cut| cut.0));
        let tos = cuts.iter().map(|cut| Some(cut.0)).chain(std::iter::once(None));
        let part = |(from_ns, to_ns)| Segment { from_ns, to_ns, ..Segment::default() };
        Self {
            ends: cuts.iter().map(|cut| cut.since(begins)).collect(),
            parts: froms.zip(tos).map(part).collect(),
        }
    }

    /// Tell whether there are no cuts.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Counts an op of `class` that ended so long after the worker's beginning, with its service
    /// time and the bytes it moved.
    #[inline]
    pub fn record(&mut self, class: OpClass, after: Ns, (service, bytes): (Ns, u64)) {
        if self.parts.is_empty() {
            return;
        }
        let index = self.ends.partition_point(|end| *end <= after);
        let part = &mut self.parts[index];
        part.service.record(class, service);
        if matches!(class, OpClass::Read | OpClass::Write) {
            part.ops += 1;
            part.bytes += bytes;
        }
    }

    /// Tell whether so long after the worker's beginning is behind the last cut.
    #[inline]
    pub fn is_last(&self, after: Ns) -> bool {
        self.ends.last().is_none_or(|end| *end <= after)
    }

    /// Counts, in order of time; empty without cuts.
    pub fn into_parts(self) -> Vec<Segment> {
        self.parts
    }
}

/// Adds the segments of another worker of the same tenant.
pub fn merge(total: &mut Vec<Segment>, other: &[Segment]) {
    if total.is_empty() {
        total.extend_from_slice(other);
        return;
    }
    for (sum, one) in total.iter_mut().zip(other) {
        sum.ops += one.ops;
        sum.bytes += one.bytes;
        sum.service.merge(&one.service);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const ENDED: (Ns, u64) = (Ns(5), 4096);

    #[test]
    fn an_op_counts_where_it_ends_and_a_cut_belongs_to_what_follows() {
        // The worker begins 10 ns into the phase; the cut at 30 ns is 20 ns into its region.
        let mut segments = Segments::new(&[Ns(30), Ns(50)], Ns(10));
        for after in [5, 19, 20, 39, 40, 1000] {
            segments.record(OpClass::Read, Ns(after), ENDED);
        }
        segments.record(OpClass::Sync, Ns(25), ENDED);
        let parts = segments.into_parts();
        let seen: Vec<_> = parts.iter().map(|p| (p.from_ns, p.to_ns, p.ops)).collect();
        assert_eq!(seen, [(0, Some(30), 2), (30, Some(50), 2), (50, None, 2)]);
        assert_eq!(parts[1].service.sync.as_ref().map(iolab_model::Histogram::count), Some(1));
    }

    #[test]
    fn workers_add_up() {
        let one = |ops| {
            let mut segments = Segments::new(&[Ns(10)], Ns(0));
            (0..ops).for_each(|_| segments.record(OpClass::Write, Ns(5), ENDED));
            segments.into_parts()
        };
        let mut total = Vec::new();
        merge(&mut total, &one(2));
        merge(&mut total, &one(3));
        assert_eq!((total[0].ops, total[0].bytes, total[1].ops), (5, 5 * 4096, 0));
        let reads = total[0].service.write.as_ref().map(iolab_model::Histogram::count);
        assert_eq!(reads, Some(5));
    }

    #[test]
    fn without_cuts_nothing_is_kept() {
        let mut segments = Segments::new(&[], Ns(0));
        segments.record(OpClass::Read, Ns(5), ENDED);
        assert!(segments.into_parts().is_empty());
    }
}
