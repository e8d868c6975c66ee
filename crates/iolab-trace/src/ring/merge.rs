//! Events of several CPUs in the order of time, as far as no earlier one can come any more.

use std::collections::VecDeque;

use crate::event::Event;

/// Time for which an event may be reserved in the ring buffer and not yet readable.
pub const SLACK_NS: u64 = 10_000_000;

/// Events of one CPU, in the order of time.
#[derive(Debug, Default)]
pub struct CpuEvents(VecDeque<Event>);

impl CpuEvents {
    /// Adds an event. A note may be told late: it takes its place among the last ones.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let queue = &mut self.0;
        let mut at = queue.len();
        while at > 0 && queue[at - 1].time_ns > event.time_ns {
            at -= 1;
        }
        if at == queue.len() { queue.push_back(event) } else { queue.insert(at, event) }
    }
}

/// Events that wait for earlier ones of other CPUs: a queue per CPU, whose heads are compared, so
/// that no event is moved but in and out.
#[derive(Debug, Default)]
pub struct Merger {
    queues: Vec<((u32, u32), CpuEvents)>,
}

impl Merger {
    /// Adds an event; those of one CPU come in their order.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.queue_of(0, event.cpu).push(event);
    }

    /// The queue of a CPU of one of several recorders.
    pub fn queue_of(&mut self, recorder: u32, cpu: u32) -> &mut CpuEvents {
        let key = (cpu, recorder);
        let place = match self.queues.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(place) => place,
            Err(place) => {
                self.queues.insert(place, (key, CpuEvents::default()));
                place
            }
        };
        &mut self.queues[place].1
    }

    /// Events that wait.
    pub fn len(&self) -> usize {
        self.queues.iter().map(|(_, queue)| queue.0.len()).sum()
    }

    /// Tell whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// Events up to a time; of those at the same time the one of the lower CPU comes first.
    fn take_until(&mut self, limit_ns: u64) -> impl Iterator<Item = Event> + '_ {
        let (mut from, mut bound) = (0, None);
        std::iter::from_fn(move || {
            let is_first = |event: &Event| bound.is_some_and(|bound| (event.time_ns, from) < bound);
            let goes_on =
                self.queues.get(from).and_then(|(_, queue)| queue.0.front()).is_some_and(is_first);
            if !goes_on {
                (from, bound) = self.next_run(limit_ns)?;
            }
            self.queues[from].1.0.pop_front()
        })
    }

    /// Queue with the earliest event up to a time, and the event of another one up to which it goes
    /// on: its time and its queue.
    fn next_run(&self, limit_ns: u64) -> Option<(usize, Option<(u64, usize)>)> {
        let (mut first, mut second) = (None, (limit_ns, usize::MAX));
        for (place, (_, queue)) in self.queues.iter().enumerate() {
            let Some(event) = queue.0.front() else { continue };
            let head = (event.time_ns, place);
            match first {
                Some(known) if known < head => second = second.min(head),
                known => {
                    second = known.map_or(second, |known: (u64, usize)| second.min(known));
                    first = Some(head);
                }
            }
        }
        let (time_ns, place) = first.filter(|(time_ns, _)| *time_ns <= limit_ns)?;
        debug_assert!((time_ns, place) <= second, "the first is before the second");
        Some((place, Some(second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event((time_ns, cpu): (u64, u32)) -> Event {
        Event { time_ns, cpu, ..Event::default() }
    }

    fn place(event: &Event) -> (u64, u32) {
        (event.time_ns, event.cpu)
    }

    #[test]
    fn events_come_in_order_and_late_ones_are_waited_for() {
        let mut merger = Merger::default();
        for time in [5, 9, 90_000_000] {
            merger.push(event((time, 0)));
        }
        for time in [4, 9, 10] {
            merger.push(event((time, 1)));
        }
        let first: Vec<(u64, u32)> =
            merger.take_before(20_000_000).map(|event| place(&event)).collect();
        assert_eq!(first, [(4, 1), (5, 0), (9, 0), (9, 1), (10, 1)]);
        assert_eq!(merger.len(), 1);
        assert_eq!(merger.take_all().count(), 1);
        assert!(merger.is_empty());
    }

    proptest! {
        /// The slow twin sorts.
        #[test]
        fn merging_is_sorting(
            pushed in prop::collection::vec((0_u64..40, 0_u32..5), 0..200),
            limit_ns in 0_u64..50,
        ) {
            let mut merger = Merger::default();
            pushed.iter().copied().map(event).for_each(|event| merger.push(event));
            let mut sorted = pushed;
            sorted.sort_unstable();
            let taken = merger.take_before(limit_ns + SLACK_NS);
            let first: Vec<(u64, u32)> = taken.map(|event| place(&event)).collect();
            let split = sorted.partition_point(|(time_ns, _)| *time_ns <= limit_ns);
            prop_assert_eq!(&first[..], &sorted[..split]);
            let rest: Vec<(u64, u32)> = merger.take_all().map(|event| place(&event)).collect();
            prop_assert_eq!(&rest[..], &sorted[split..]);
        }
    }
}
