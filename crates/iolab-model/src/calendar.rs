//! The event queue: what happens next, in total order by time, then by insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Ns;

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Ns,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// Events and their instants; equal instants keep insertion order.
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<E> Calendar<E> {
    /// Plans an event.
    pub fn plan(&mut self, at: Ns, event: E) {
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, event }));
        self.sequence += 1;
    }

    /// Instant of the first event; [`Ns::MAX`] if there is none.
    pub fn next_event(&self) -> Ns {
        self.heap.peek().map_or(Ns::MAX, |Reverse(entry)| entry.at)
    }

    /// Takes the first event that is due at `now`.
    pub fn take_due(&mut self, now: Ns) -> Option<(Ns, E)> {
        if self.next_event() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// Number of planned events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Tell whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_then_insertion() {
        let mut calendar = Calendar::default();
        for (at, name) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            calendar.plan(Ns(at), name);
        }
        assert_eq!(calendar.next_event(), Ns(3));
        assert_eq!(calendar.take_due(Ns(2)), None);
        let order: String =
            std::iter::from_fn(|| calendar.take_due(Ns(9))).map(|(_, name)| name).collect();
        assert_eq!(order, "abcd");
        assert!(calendar.is_empty());
    }
}
