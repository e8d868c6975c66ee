//! Events of several CPUs in the order of time, as far as no earlier one can come any more.

use crate::event::Event;

/// Time for which an event may be reserved in the ring buffer and not yet readable.
const SLACK_NS: u64 = 10_000_000;

/// Events that wait for earlier ones of other CPUs.
#[derive(Debug, Default)]
pub struct Merger {
    waiting: Vec<Event>,
}

impl Merger {
    /// Adds an event; those of one CPU come in their order.
    pub fn push(&mut self, event: Event) {
        self.waiting.push(event);
    }

    /// Events that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes all events that came well before `drained_ns`: a time when all CPUs were still to be
    /// read, and which all of them were read beyond.
    pub fn take_before(&mut self, drained_ns: u64) -> impl Iterator<Item = Event> + '_ {
        let limit = drained_ns.saturating_sub(SLACK_NS);
        self.take_until(limit)
    }

    /// Takes all events.
    pub fn take_all(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.take_until(u64::MAX)
    }

    fn take_until(&mut self, limit_ns: u64) -> impl Iterator<Item = Event> + '_ {
        // Stable: events of one CPU at the same time keep their order. The order is a few runs.
        self.waiting.sort_by_key(|event| event.time_ns);
        let count = self.waiting.partition_point(|event| event.time_ns <= limit_ns);
        self.waiting.drain(..count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_and_late_ones_are_waited_for() {
        let mut merger = Merger::default();
        let event = |time_ns, cpu| Event { time_ns, cpu, ..Event::default() };
        for (time, cpu) in [(5, 0), (9, 0), (90_000_000, 0), (4, 1), (9, 1), (10, 1)] {
            merger.push(event(time, cpu));
        }
        let first: Vec<(u64, u32)> =
            merger.take_before(20_000_000).map(|it| (it.time_ns, it.cpu)).collect();
        assert_eq!(first, [(4, 1), (5, 0), (9, 0), (9, 1), (10, 1)]);
        assert_eq!(merger.len(), 1);
        assert_eq!(merger.take_all().count(), 1);
        assert!(merger.is_empty());
    }
}
