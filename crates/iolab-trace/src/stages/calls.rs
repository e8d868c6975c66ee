//! Events of other layers: how many of each, and how long system calls took.
//!
//! A call begins with `sys_enter_NAME` and ends with `sys_exit_NAME` of the same task. Left out: a
//! call whose beginning or end is not in the trace, such as one during which the recording ended.

use std::collections::{BTreeMap, HashMap};

use iolab_model::histogram::Histogram;
use serde::Serialize;

use crate::event::Event;
use crate::names::push_clean;

/// Names that are told apart; events of others are counted together.
const NAMES_MAX: usize = 1024;
/// Tasks that are in a call at once.
const TASKS_MAX: usize = 1 << 16;
/// System calls whose result is a number of bytes.
const SIZED: [&[u8]; 14] = [
    b"read",
    b"write",
    b"pread64",
    b"pwrite64",
    b"readv",
    b"writev",
    b"preadv",
    b"pwritev",
    b"preadv2",
    b"pwritev2",
    b"copy_file_range",
    b"sendfile64",
    b"splice",
    b"sendfile",
];
const OTHERS: &[u8] = b"others";

/// Events of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "TracePointRow")]
pub struct PointRow {
    /// `SYSTEM:NAME`.
    pub name: String,
    /// Number of them.
    pub count: u64,
}

/// One system call.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "TraceCallRow")]
pub struct CallRow {
    /// Its name, without `sys_`.
    pub name: String,
    /// Calls whose beginning and end are in the trace.
    pub count: u64,
    /// Those that failed.
    pub errors: u64,
    /// Bytes that were moved, where the result says so.
    pub bytes: u64,
    /// Arithmetic mean of the exact durations.
    pub mean_ns: f64,
    /// Half of all are at most this long; percentiles are at most 1/128 too long.
    pub p50_ns: u64,
    /// 99 of 100.
    pub p99_ns: u64,
    /// Longest, exact.
    pub max_ns: u64,
    /// Sum of the exact durations.
    pub sum_ns: u64,
}

/// Calls of one name.
struct Calls {
    durations: Histogram,
    errors: u64,
    bytes: u64,
    is_sized: bool,
}

impl Calls {
    fn row(&self, name: String) -> Option<CallRow> {
        let durations = &self.durations;
        Some(CallRow {
            name,
            count: durations.count(),
            errors: self.errors,
            bytes: self.bytes,
            mean_ns: durations.mean()?,
            p50_ns: durations.quantile(0.5)?,
            p99_ns: durations.quantile(0.99)?,
            max_ns: durations.max()?,
            sum_ns: u64::try_from(durations.sum()).unwrap_or(u64::MAX),
        })
    }
}

/// Events seen of other layers.
#[derive(Default)]
pub struct Layers {
    points: BTreeMap<Box<[u8]>, u64>,
    calls: BTreeMap<Box<[u8]>, Calls>,
    /// Call and beginning by task.
    running: HashMap<u32, (Box<[u8]>, u64)>,
}

impl Layers {
    /// Takes the event of a trace point.
    pub fn add(&mut self, event: &Event) {
        let (name, fields) = event.point();
        if let Some(count) = self.points.get_mut(name) {
            *count += 1;
        } else {
            let is_full = self.points.len() >= NAMES_MAX;
            *self.points.entry(if is_full { OTHERS } else { name }.into()).or_default() += 1;
        }
        if let Some(call) = name.strip_prefix(b"syscalls:sys_enter_") {
            if self.running.len() < TASKS_MAX {
                self.running.insert(event.pid, (call.into(), event.time_ns));
            }
        } else if let Some(call) = name.strip_prefix(b"syscalls:sys_exit_") {
            let begun = self.running.remove(&event.pid).filter(|(begun, _)| **begun == *call);
            if let Some((call, begin_ns)) = begun {
                self.end(call, event.time_ns.saturating_sub(begin_ns), result_in(fields));
            }
        }
    }

    fn end(&mut self, call: Box<[u8]>, took_ns: u64, result: i64) {
        if self.calls.len() >= NAMES_MAX && !self.calls.contains_key(&call) {
            return;
        }
        let is_sized = SIZED.contains(&&*call);
        let calls = self.calls.entry(call).or_insert_with(|| Calls {
            durations: Histogram::new(),
            errors: 0,
            bytes: 0,
            is_sized,
        });
        calls.durations.record(took_ns);
        calls.errors += u64::from(result < 0);
        if calls.is_sized {
            calls.bytes = calls.bytes.saturating_add(u64::try_from(result).unwrap_or(0));
        }
    }

    /// Events by name, the most frequent first.
    pub fn point_rows(&self) -> Vec<PointRow> {
        let mut rows = Vec::new();
        for (name, count) in &self.points {
            rows.push(PointRow { name: clean(name), count: *count });
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// Calls by name, those that took the longest in sum first.
    pub fn call_rows(&self) -> Vec<CallRow> {
        let mut rows: Vec<CallRow> = Vec::new();
        for (name, calls) in &self.calls {
            rows.extend(calls.row(clean(name)));
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
        rows
    }
}

fn clean(name: &[u8]) -> String {
    let mut text = Vec::new();
    push_clean(&mut text, name);
    String::from_utf8_lossy(&text).into_owned()
}

/// The value of `ret=` in the fields of an event; 0 without one.
fn result_in(fields: &[u8]) -> i64 {
    let words = fields.split(|byte| *byte == b' ');
    let value = words.filter_map(|word| word.strip_prefix(b"ret=")).next_back();
    value.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;

    fn event(pid: u32, time_ns: u64, text: &str) -> Event {
        let payload = text.as_bytes().to_vec();
        Event { action: Action::Point, pid, time_ns, payload, ..Event::default() }
    }

    #[test]
    fn calls_of_tasks_that_overlap_are_timed_by_task() {
        let mut layers = Layers::default();
        for (pid, time_ns, text) in [
            (1, 0, "syscalls:sys_exit_read ret=5"),
            (1, 10, "syscalls:sys_enter_pread64 fd=3 count=4096 pos=0"),
            (2, 15, "syscalls:sys_enter_fsync fd=4"),
            (1, 30, "syscalls:sys_exit_pread64 ret=4096"),
            (1, 40, "syscalls:sys_enter_pread64 fd=3 count=4096 pos=4096"),
            (1, 41, "syscalls:sys_exit_pread64 ret=-5"),
            (2, 1015, "syscalls:sys_exit_fsync ret=0"),
            (3, 1016, "jbd2:jbd2_end_commit transaction=3"),
            (4, 1017, "syscalls:sys_enter_write fd=1 count=1"),
            (4, 1018, "syscalls:sys_exit_read ret=1"),
        ] {
            layers.add(&event(pid, time_ns, text));
        }
        let calls = layers.call_rows();
        let names: Vec<&str> = calls.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["fsync", "pread64"], "what took longest comes first");
        let (fsync, pread) = (&calls[0], &calls[1]);
        assert_eq!((fsync.count, fsync.sum_ns, fsync.bytes, fsync.errors), (1, 1000, 0, 0));
        assert_eq!((pread.count, pread.sum_ns, pread.bytes, pread.errors), (2, 21, 4096, 1));
        let points = layers.point_rows();
        assert_eq!(points.iter().map(|row| row.count).sum::<u64>(), 10);
        assert_eq!(points.last().unwrap().count, 1);
    }

    #[test]
    fn names_without_end_are_counted_together() {
        let mut layers = Layers::default();
        for number in 0..NAMES_MAX as u64 + 50 {
            layers.add(&event(1, number, &format!("x:{number} a=1")));
        }
        let rows = layers.point_rows();
        assert_eq!(rows.len(), NAMES_MAX + 1);
        assert_eq!((rows[0].name.as_str(), rows[0].count), ("others", 50));
    }
}
