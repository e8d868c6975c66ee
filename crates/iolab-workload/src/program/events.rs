//! Sources of events of a steady rate that steps take from, and conditions that end a worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use iolab_model::Ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deed::Deed;
use super::description::Program;
use super::node::Node;

/// Seconds of events that a source keeps at most, as Filebench's.
const KEPT_S: f64 = 5.0;
/// Bytes for which one event is taken.
const BYTES_EACH: u64 = 1 << 20;

/// Events that a step takes from a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Name of the source; steps of a phase that name the same share its events.
    pub source: String,
    /// Events per second that the source makes; equal wherever it is named.
    pub per_s: f64,
    /// Thing that an event is taken for.
    pub each: EventsFor,
    /// Step of the same worker that is counted (its id); absent: all workers of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// Thing that an event is taken for, since the step took the last ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventsFor {
    /// The step itself.
    Step,
    /// Each operation on files.
    Operation,
    /// Each operation that moves data.
    Transfer,
    /// Each MiB that is moved, rounded up.
    Mebibyte,
}

/// Condition that ends a worker; whichever comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// After so many operations on files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// After more bytes than this, read and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Step of the same worker that is counted (its id); absent: all workers of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The worker fails, because it was to work until its time is over.
    #[serde(default, skip_serializing_if = "super::node::is_default")]
    pub fails: bool,
}

/// Contradiction in the events or the condition of a step, and advice.
pub(super) fn problem(node: &Node) -> Option<(String, &'static str)> {
    if let Some(events) = &node.events
        && !(events.per_s.is_finite() && events.per_s > 0.0)
    {
        return Some((format!("{} events per second", events.per_s), "use a number above 0"));
    }
    let until = node.until.as_ref()?;
    let is_never = until.ops.is_none() && until.bytes.is_none();
    is_never.then(|| ("a condition without a number".to_owned(), "give ops or bytes"))
}

/// Counts of all workers of a phase, where some step asks for them.
#[derive(Debug, Default)]
pub(super) struct Done {
    is_asked: bool,
    ops: AtomicU64,
    transfers: AtomicU64,
    bytes: AtomicU64,
}

impl Done {
    /// Counters for programs, of which some may ask.
    pub(super) fn of<'a>(mut programs: impl Iterator<Item = &'a Program>) -> Self {
        let asks = |node: &Node| {
            let is_each = node.events.as_ref().is_some_and(|it| it.each == EventsFor::Step);
            let is_own = node.counted_step().is_some();
            matches!(node.does, Deed::Limit | Deed::Finish) && !is_own && !is_each
        };
        let is_asked = programs.any(|program| program.all_nodes().any(asks));
        Self { is_asked, ..Self::default() }
    }

    /// Counts an operation that has ended.
    pub(super) fn count(&self, is_transfer: bool, bytes: u64) {
        if !self.is_asked {
            return;
        }
        self.ops.fetch_add(1, Ordering::Relaxed);
        if is_transfer {
            self.transfers.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Operations and bytes so far.
    pub(super) fn all(&self) -> (u64, u64) {
        (self.ops.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Number that events are counted by.
    pub(super) fn number(&self, each: EventsFor) -> u64 {
        match each {
            EventsFor::Step => 0,
            EventsFor::Operation => self.ops.load(Ordering::Relaxed),
            EventsFor::Transfer => self.transfers.load(Ordering::Relaxed),
            EventsFor::Mebibyte => self.bytes.load(Ordering::Relaxed),
        }
    }
}

impl EventsFor {
    /// Events for so much more of what is counted.
    pub(super) fn events(self, more: u64) -> u64 {
        match self {
            Self::Step => 1,
            Self::Operation | Self::Transfer => more,
            Self::Mebibyte => more.div_ceil(BYTES_EACH),
        }
    }
}

/// A source of events.
#[derive(Debug)]
pub(super) struct EventSource {
    pub(super) name: String,
    per_s: f64,
    level: Mutex<Level>,
}

/// Events that are there; below 0: taken by workers that still wait for them.
#[derive(Debug, Default)]
struct Level {
    events: f64,
    at: Option<Ns>,
}

impl EventSource {
    /// Every source that programs name.
    pub(super) fn of<'a>(programs: impl Iterator<Item = &'a Program>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for node in programs.flat_map(Program::all_nodes) {
            if let Some(events) = &node.events
                && all.iter().all(|known| known.name != events.source)
            {
                let (name, per_s) = (events.source.clone(), events.per_s);
                all.push(Self { name, per_s, level: Mutex::default() });
            }
        }
        all
    }

    /// Its clock runs from the first worker's beginning on.
    pub(super) fn begin(&self, now: Ns) {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        level.at.get_or_insert(now);
    }

    /// Takes events, in the order of those who ask; answers when they are there.
    pub(super) fn take(&self, count: u64, now: Ns) -> Ns {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *level.at.get_or_insert(now);
        // Readings of the clock by several threads may come in another order.
        let passed = now.since(before).as_seconds();
        level.at = Some(before.max(now));
        level.events = (level.events + passed * self.per_s).min(self.per_s * KEPT_S) - count as f64;
        if level.events >= 0.0 {
            return now;
        }
        let wait = Ns((-level.events / self.per_s * 1e9) as u64);
        before.max(now) + wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(per_s: f64) -> EventSource {
        EventSource { name: "e".into(), per_s, level: Mutex::default() }
    }

    #[test]
    fn events_come_at_their_rate_and_five_seconds_are_kept() {
        let source = source(100.0);
        source.begin(Ns(0));
        // Two that ask at once wait one after the other.
        assert_eq!(source.take(1, Ns(0)), Ns::from_ms(10));
        assert_eq!(source.take(2, Ns(0)), Ns::from_ms(30));
        // After an hour there are 500, not 360000.
        let late = Ns::from_ms(3_600_000);
        assert_eq!(source.take(500, late), late);
        assert_eq!(source.take(1, late), late + Ns::from_ms(10));
    }

    #[test]
    fn a_million_events_take_as_long_as_their_rate_says() {
        let source = source(1000.0);
        let mut now = Ns(0);
        for _ in 0..10_000 {
            now = source.take(1, now);
        }
        assert!(now.0.abs_diff(10_000_000_000) < 20_000, "{now:?}");
    }
}
