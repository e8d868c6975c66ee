//! A part of a trace: what happened between two times.

use std::ops::Range;

use crate::error::{Caveat, Error};
use crate::event::{Action, Device, Event};
use crate::source::{Facts, Source};

/// Times between which events are wanted: from the first on, before the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Times {
    /// On the clock of the trace.
    OnClock(Range<u64>),
    /// Since the first event, as `show` prints them.
    SinceBegin(Range<u64>),
}

/// A source without the events of other times. Notes tell of the trace: they stay.
///
/// A request that was under way at one of both times has events on one side only.
pub struct Part {
    inner: Box<dyn Source>,
    times: Times,
    begin_ns: Option<u64>,
    latest_ns: u64,
    is_met: bool,
    /// Times of the last event before the part, and of the first behind it.
    beside_ns: [Option<u64>; 2],
}

impl Part {
    /// Events between these times.
    pub fn new(inner: Box<dyn Source>, times: Times) -> Self {
        Self { inner, times, begin_ns: None, latest_ns: 0, is_met: false, beside_ns: [None; 2] }
    }

    fn is_within(&mut self, event: &Event) -> bool {
        let begin_ns = *self.begin_ns.get_or_insert(event.time_ns);
        self.latest_ns = self.latest_ns.max(event.time_ns);
        let (time_ns, times) = match &self.times {
            Times::OnClock(times) => (event.time_ns, times),
            Times::SinceBegin(times) => (event.time_ns.saturating_sub(begin_ns), times),
        };
        let is_within = times.contains(&time_ns);
        self.is_met |= is_within;
        if time_ns < times.start {
            self.beside_ns[0] = Some(time_ns);
        } else if !is_within {
            self.beside_ns[1].get_or_insert(time_ns);
        }
        is_within
    }

    /// The error of a part that no event is of, if somebody asked for it.
    fn missing(&self) -> Option<Error> {
        let Times::SinceBegin(times) = &self.times else { return None };
        self.begin_ns?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let part = match times.end {
            u64::MAX => format!("from {} s on", seconds(times.start)),
            end => format!("from {} to {} s", seconds(times.start), seconds(end)),
        };
        let beside: Vec<String> =
            self.beside_ns.iter().flatten().map(|ns| format!("{} s", seconds(*ns))).collect();
        (!self.is_met).then(|| Error::OtherTime { part, beside: beside.join(" and ") })
    }
}

impl Source for Part {
    fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
        while self.inner.next(event)? {
            let is_note = matches!(event.action, Action::NoteProcess | Action::NoteTime);
            if is_note || self.is_within(event) {
                return Ok(true);
            }
        }
        self.missing().map_or(Ok(false), Err)
    }

    fn caveats(&self) -> &[Caveat] {
        self.inner.caveats()
    }

    fn begin_ns(&self) -> Option<u64> {
        self.begin_ns
    }

    fn bounds_ns(&self) -> Option<(u64, u64)> {
        // An operation of a study is measured from its first event to its last.
        let Times::SinceBegin(times) = &self.times else { return None };
        let on_clock = |ns: u64| self.begin_ns.map(|begin_ns| begin_ns.saturating_add(ns));
        Some((on_clock(times.start)?, on_clock(times.end)?.min(self.latest_ns)))
    }

    fn devices(&self) -> Vec<(Device, String)> {
        self.inner.devices()
    }

    fn facts(&self) -> Facts {
        self.inner.facts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Vec<Event>);

    impl Source for Given {
        fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
            let next = self.0.pop();
            let is_there = next.is_some();
            *event = next.unwrap_or_default();
            Ok(is_there)
        }

        fn caveats(&self) -> &[Caveat] {
            &[]
        }
    }

    fn times(times: Times) -> Result<Vec<u64>, String> {
        let at = |(action, time_ns)| Event { time_ns, action, ..Event::default() };
        let mut events = vec![
            at((Action::NoteProcess, 0)),
            at((Action::Queued, 1_000)),
            at((Action::Message, 1_500)),
            at((Action::Issued, 2_000)),
            at((Action::Completed, 3_000)),
        ];
        events.reverse();
        let mut part = Part::new(Box::new(Given(events)), times);
        let (mut event, mut found) = (Event::default(), Vec::new());
        while part.next(&mut event).map_err(|error| error.to_string())? {
            found.push(event.time_ns);
        }
        assert_eq!(part.begin_ns(), Some(1_000), "notes have no times of the trace");
        Ok(found)
    }

    #[test]
    fn events_of_other_times_are_left_out_and_notes_are_not() {
        assert_eq!(times(Times::SinceBegin(0..1_000)).unwrap(), [0, 1_000, 1_500]);
        assert_eq!(times(Times::SinceBegin(1_000..u64::MAX)).unwrap(), [0, 2_000, 3_000]);
        assert_eq!(times(Times::OnClock(1_500..2_001)).unwrap(), [0, 1_500, 2_000]);
        assert_eq!(times(Times::OnClock(7_000..8_000)).unwrap(), [0]);
    }

    #[test]
    fn a_part_without_an_event_is_an_error_that_tells_how_long_the_trace_is() {
        let told = times(Times::SinceBegin(5_000_000_000..6_500_000_000)).unwrap_err();
        assert!(told.contains("from 5 to 6.5 s: the nearest is at 0.000002 s"), "{told}");
        let told = times(Times::SinceBegin(600..900)).unwrap_err();
        assert!(told.contains("is at 0.0000005 s and 0.000001 s"), "{told}");
        let told = times(Times::SinceBegin(5_000_000_000..u64::MAX)).unwrap_err();
        assert!(told.contains("from 5 s on"), "{told}");
    }
}
