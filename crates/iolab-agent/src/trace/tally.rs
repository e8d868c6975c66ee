//! Block events summed up second by second, while they come.
//!
//! Memory is bounded: what is not finished yet is forgotten from a number on, and that is counted.
//! Bytes and requests count when they are completed, bytes of processes when they are asked for.
//! Left out: requests that were issued before the watching began have no times.

use std::collections::{BTreeMap, HashMap};

use iolab_model::histogram::Histogram;
use iolab_trace::Event;
use iolab_trace::event::{Action, Categories};
use iolab_trace::names::cleaned;

use crate::protocol::{LIVE_RANGES, LiveAmount, LiveDepth, LiveLatency, LiveProcess, LiveSecond};

/// Length of an interval.
pub const INTERVAL_NS: u64 = 1_000_000_000;
/// A last interval that is shorter is left out.
const REST_NS_MIN: u64 = INTERVAL_NS / 10;
/// Requests that are waited for at once, and bios.
const WAITING_MAX: usize = 1 << 16;
const NAMES_MAX: usize = 1 << 16;
const PROCESSES_SHOWN: usize = 16;
/// Processes that are told apart in an interval.
const PROCESSES_MAX: usize = 1 << 12;
/// End of the first range of latencies.
const FIRST_RANGE_NS: u64 = 1_000;

/// Trace points that are needed.
pub const POINTS: &[&str] = &[
    "block_bio_queue",
    "block_split",
    "block_rq_issue",
    "block_rq_requeue",
    "block_rq_complete",
    "block_bio_complete",
];

/// Requests that wait for their completion, by device, first sector and time of its beginning.
type Waiting = BTreeMap<(u32, u64, u64), u32>;

/// Requests at once, over the time of an interval.
#[derive(Debug, Default)]
struct Depth {
    now: u64,
    max: u64,
    /// Sum of the number times the time that it was so.
    area: u128,
    since_ns: u64,
}

impl Depth {
    fn change(&mut self, now_ns: u64, to: usize) {
        self.area += u128::from(self.now) * u128::from(now_ns.saturating_sub(self.since_ns));
        self.since_ns = self.since_ns.max(now_ns);
        self.now = to as u64;
        self.max = self.max.max(self.now);
    }

    fn take(&mut self, end_ns: u64, interval_ns: u64) -> LiveDepth {
        self.change(end_ns, self.now as usize);
        let mean = self.area as f64 / interval_ns.max(1) as f64;
        let told = LiveDepth { mean, max: self.max };
        (self.area, self.max) = (0, self.now);
        told
    }
}

/// Latencies of an interval.
struct Latencies {
    exact: Histogram,
    ranges: [u64; LIVE_RANGES],
}

impl Default for Latencies {
    fn default() -> Self {
        Self { exact: Histogram::new(), ranges: [0; LIVE_RANGES] }
    }
}

impl Latencies {
    fn record(&mut self, ns: u64) {
        self.exact.record(ns);
        let doublings = (ns / FIRST_RANGE_NS).checked_ilog2().map_or(0, |it| it as usize + 1);
        self.ranges[doublings.min(LIVE_RANGES - 1)] += 1;
    }

    fn told(&self) -> LiveLatency {
        let of = |share| self.exact.quantile(share).unwrap_or(0);
        LiveLatency {
            count: self.exact.count(),
            p50_ns: of(0.5),
            p99_ns: of(0.99),
            max_ns: self.exact.max().unwrap_or(0),
            ranges: self.ranges.to_vec(),
        }
    }
}

/// Sums of the interval that is under way.
#[derive(Default)]
struct Sums {
    /// Reads, writes and discards.
    amounts: [LiveAmount; 3],
    flushes: u64,
    errors: u64,
    device: Latencies,
    whole: Latencies,
    /// Bytes of reads and writes by process.
    processes: HashMap<u32, [u64; 2]>,
    other_bytes: u64,
    events: u64,
    forgotten: u64,
}

/// Events of devices, summed up.
pub struct Tally {
    /// Names of processes; the latest of each.
    names: HashMap<u32, String>,
    queued: Waiting,
    issued: Waiting,
    in_queue: Depth,
    in_device: Depth,
    sums: Sums,
    begin_ns: u64,
    number: u64,
    done: Vec<LiveSecond>,
    /// Events so far.
    pub events: u64,
}

impl Tally {
    /// Begins now.
    pub fn new(now_ns: u64) -> Self {
        let depth = || Depth { since_ns: now_ns, ..Depth::default() };
        Self {
            names: HashMap::new(),
            queued: Waiting::new(),
            issued: Waiting::new(),
            in_queue: depth(),
            in_device: depth(),
            sums: Sums::default(),
            begin_ns: now_ns,
            number: 0,
            done: Vec::new(),
            events: 0,
        }
    }

    /// Takes an event; they come in the order of time.
    pub fn push(&mut self, event: &Event) {
        self.reach(event.time_ns);
        if event.action.is_note() {
            return self.note(event);
        }
        self.events += 1;
        self.sums.events += 1;
        match event.action {
            Action::Queued => self.queue(event),
            Action::Split => self.split(event),
            Action::Issued => self.issue(event),
            Action::Requeued => {
                take_oldest(&mut self.issued, (event.device.0, event.sector));
                self.in_device.change(event.time_ns, self.issued.len());
            }
            Action::Completed => self.complete(event),
            _ => {}
        }
    }

    /// All events before `now_ns` have come: ends the intervals that are over.
    pub fn reach(&mut self, now_ns: u64) {
        while now_ns >= self.begin_ns + INTERVAL_NS {
            self.end_interval(INTERVAL_NS);
        }
    }

    /// Ends the last interval.
    pub fn finish(&mut self, now_ns: u64) {
        self.reach(now_ns);
        let rest = now_ns.saturating_sub(self.begin_ns);
        if rest >= REST_NS_MIN {
            self.end_interval(rest);
        }
    }

    /// Takes the intervals that have ended.
    pub fn take_done(&mut self) -> Vec<LiveSecond> {
        std::mem::take(&mut self.done)
    }

    fn note(&mut self, event: &Event) {
        match event.action {
            Action::NoteProcess => {
                if self.names.len() >= NAMES_MAX {
                    self.names.clear();
                }
                self.names.insert(event.pid, cleaned(event.name()));
            }
            // Events are missing: what waits may wait for ever.
            Action::Message => self.forget(event.time_ns),
            _ => {}
        }
    }

    fn queue(&mut self, event: &Event) {
        self.sums.flushes += u64::from(event.categories.has(Categories::FLUSH));
        if event.bytes == 0 {
            return;
        }
        insert(&mut self.queued, event, &mut self.sums.forgotten);
        self.in_queue.change(event.time_ns, self.queued.len());
        if event.categories.has(Categories::DISCARD) {
            return;
        }
        let is_full = self.sums.processes.len() >= PROCESSES_MAX;
        if is_full && !self.sums.processes.contains_key(&event.pid) {
            self.sums.other_bytes += u64::from(event.bytes);
            return;
        }
        let bytes = self.sums.processes.entry(event.pid).or_default();
        bytes[usize::from(event.is_write())] += u64::from(event.bytes);
    }

    /// A bio became two: the second entered the queue when the whole did.
    fn split(&mut self, event: &Event) {
        let first = (event.device.0, event.sector);
        let Some((key, bytes)) = oldest(&self.queued, first) else { return };
        let at = event.number();
        let left = at.saturating_sub(event.sector).saturating_mul(512);
        if at <= event.sector || left >= u64::from(bytes) || self.queued.len() >= WAITING_MAX {
            return;
        }
        self.queued.insert(key, left as u32);
        self.queued.insert((key.0, at, key.2), bytes - left as u32);
        self.in_queue.change(event.time_ns, self.queued.len());
    }

    fn issue(&mut self, event: &Event) {
        if event.bytes > 0 {
            insert(&mut self.issued, event, &mut self.sums.forgotten);
            self.in_device.change(event.time_ns, self.issued.len());
        }
    }

    fn complete(&mut self, event: &Event) {
        self.sums.errors += u64::from(event.error != 0);
        if event.bytes == 0 {
            return;
        }
        let place = match () {
            () if event.categories.has(Categories::DISCARD) => 2,
            () => usize::from(event.is_write()),
        };
        let (device, now_ns) = (event.device.0, event.time_ns);
        let issued = take_oldest(&mut self.issued, (device, event.sector));
        // A part of a request: the rest is still to come, and the time ends with it.
        let rest = issued.filter(|(_, bytes)| *bytes > event.bytes);
        if let Some(((_, _, begin_ns), bytes)) = rest {
            self.issued.insert((device, event.end(), begin_ns), bytes - event.bytes);
        } else if let Some(((_, _, begin_ns), _)) = issued {
            self.sums.device.record(now_ns.saturating_sub(begin_ns));
        }
        self.in_device.change(now_ns, self.issued.len());
        let amount = &mut self.sums.amounts[place];
        amount.bytes += u64::from(event.bytes);
        amount.count += u64::from(rest.is_none());
        self.complete_bios(event);
    }

    /// Ends the bios within a completion: of several for the same place the oldest.
    fn complete_bios(&mut self, event: &Event) {
        let device = event.device.0;
        let within = self.queued.range((device, event.sector, 0)..(device, event.end(), 0));
        let mut ended: Vec<(u32, u64, u64)> = within.map(|(key, _)| *key).collect();
        ended.dedup_by_key(|(_, sector, _)| *sector);
        for key in ended {
            self.queued.remove(&key);
            self.sums.whole.record(event.time_ns.saturating_sub(key.2));
        }
        self.in_queue.change(event.time_ns, self.queued.len());
    }

    fn end_interval(&mut self, interval_ns: u64) {
        let end_ns = self.begin_ns + interval_ns;
        self.number += 1;
        let sums = std::mem::take(&mut self.sums);
        let [reads, writes, discards] = sums.amounts;
        let (processes, rest) = self.most_bytes(sums.processes);
        self.done.push(LiveSecond {
            number: self.number,
            interval_ns,
            reads,
            writes,
            discards,
            flushes: sums.flushes,
            errors: sums.errors,
            device: sums.device.told(),
            whole: sums.whole.told(),
            in_device: self.in_device.take(end_ns, interval_ns),
            in_queue: self.in_queue.take(end_ns, interval_ns),
            processes,
            other_bytes: sums.other_bytes + rest,
            events: sums.events,
            lost: 0,
            forgotten: sums.forgotten,
        });
        self.begin_ns = end_ns;
    }

    /// Processes with the most bytes, and the bytes of the others.
    fn most_bytes(&self, all: HashMap<u32, [u64; 2]>) -> (Vec<LiveProcess>, u64) {
        let mut rows: Vec<(u32, [u64; 2])> = all.into_iter().collect();
        rows.sort_by_key(|(pid, bytes)| (std::cmp::Reverse(bytes[0] + bytes[1]), *pid));
        let others = rows.split_off(rows.len().min(PROCESSES_SHOWN));
        let row = |(pid, [read_bytes, write_bytes]): (u32, [u64; 2])| {
            let name = self.names.get(&pid).cloned().unwrap_or_default();
            LiveProcess { pid, name, read_bytes, write_bytes }
        };
        let rest = others.iter().map(|(_, bytes)| bytes[0] + bytes[1]).sum();
        (rows.into_iter().map(row).collect(), rest)
    }

    fn forget(&mut self, now_ns: u64) {
        self.sums.forgotten += (self.issued.len() + self.queued.len()) as u64;
        self.issued.clear();
        self.queued.clear();
        self.in_device.change(now_ns, 0);
        self.in_queue.change(now_ns, 0);
    }
}

fn insert(waiting: &mut Waiting, event: &Event, forgotten: &mut u64) {
    if waiting.len() >= WAITING_MAX {
        *forgotten += 1;
        return;
    }
    waiting.insert((event.device.0, event.sector, event.time_ns), event.bytes);
}

/// The first one that began at a place.
fn oldest(waiting: &Waiting, (device, sector): (u32, u64)) -> Option<((u32, u64, u64), u32)> {
    let mut at = waiting.range((device, sector, 0)..=(device, sector, u64::MAX));
    at.next().map(|(key, bytes)| (*key, *bytes))
}

fn take_oldest(waiting: &mut Waiting, place: (u32, u64)) -> Option<((u32, u64, u64), u32)> {
    let found = oldest(waiting, place)?;
    waiting.remove(&found.0);
    Some(found)
}

#[cfg(test)]
mod tests {
    use iolab_trace::event::Device;

    use super::*;

    const MS: u64 = 1_000_000;

    fn event(time_ns: u64, action: Action, letters: &str, sector: u64, bytes: u32) -> Event {
        Event {
            time_ns,
            action,
            categories: Categories::of_letters(letters.as_bytes()).unwrap(),
            sector,
            bytes,
            pid: 7,
            device: Device::new(7, 3),
            ..Event::default()
        }
    }

    fn tally(events: &[Event]) -> Vec<LiveSecond> {
        let mut tally = Tally::new(0);
        for event in events {
            tally.push(event);
        }
        tally.finish(2 * INTERVAL_NS);
        tally.take_done()
    }

    #[test]
    fn two_bios_in_one_request_have_their_own_whole_times() {
        let mut name = Event::default();
        name.set_process(7, b"dd");
        let seconds = tally(&[
            name,
            event(100 * MS, Action::Queued, "W", 8, 4096),
            event(101 * MS, Action::Queued, "WS", 16, 4096),
            event(104 * MS, Action::Issued, "W", 8, 8192),
            event(114 * MS, Action::Completed, "W", 8, 8192),
            event(1200 * MS, Action::Queued, "R", 0, 512),
        ]);
        assert_eq!(seconds.len(), 2);
        let first = &seconds[0];
        assert_eq!((first.writes.count, first.writes.bytes, first.reads.count), (1, 8192, 0));
        assert_eq!((first.device.count, first.device.max_ns), (1, 10 * MS));
        assert_eq!((first.whole.count, first.whole.max_ns), (2, 14 * MS));
        // 10 ms lie from 8.192 to 16.384 ms: 14 ranges behind the first.
        assert_eq!(first.device.ranges.iter().position(|count| *count == 1), Some(14));
        assert_eq!(first.device.ranges.len(), LIVE_RANGES);
        assert_eq!(first.in_queue.max, 2);
        assert!((first.in_device.mean - 0.010).abs() < 1e-12, "{}", first.in_device.mean);
        let process = &first.processes[0];
        assert_eq!((process.name.as_str(), process.write_bytes), ("dd", 8192));
        assert_eq!((seconds[1].in_queue.max, seconds[1].events), (1, 1));
    }

    #[test]
    fn a_device_without_requests_has_whole_times_alone() {
        let seconds = tally(&[
            event(MS, Action::Queued, "R", 0, 4096),
            event(MS + 500, Action::Completed, "R", 0, 4096),
        ]);
        let first = &seconds[0];
        assert_eq!((first.reads.count, first.device.count, first.whole.count), (1, 0, 1));
        assert_eq!(first.whole.ranges[0], 1, "500 ns are below 1 us");
    }

    #[test]
    fn parts_of_a_request_are_one_request() {
        let seconds = tally(&[
            event(MS, Action::Issued, "R", 0, 8192),
            event(2 * MS, Action::Completed, "R", 0, 4096),
            event(5 * MS, Action::Completed, "R", 8, 4096),
        ]);
        let first = &seconds[0];
        assert_eq!((first.reads.count, first.reads.bytes), (1, 8192));
        assert_eq!((first.device.count, first.device.max_ns), (1, 4 * MS));
    }

    #[test]
    fn a_split_bio_is_waited_for_in_both_parts() {
        let mut split = event(2 * MS, Action::Split, "R", 0, 8192);
        split.payload = 8_u64.to_be_bytes().to_vec();
        let seconds = tally(&[
            event(MS, Action::Queued, "R", 0, 8192),
            split,
            event(3 * MS, Action::Completed, "R", 0, 4096),
            event(5 * MS, Action::Completed, "R", 8, 4096),
        ]);
        assert_eq!((seconds[0].whole.count, seconds[0].whole.max_ns), (2, 4 * MS));
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_counted() {
        let events: Vec<Event> = (0..WAITING_MAX as u64 + 5)
            .map(|number| event(number, Action::Issued, "R", number * 8, 4096))
            .collect();
        assert_eq!(tally(&events)[0].forgotten, 5);
    }

    #[test]
    fn bytes_of_the_processes_that_are_not_shown_are_told() {
        let events: Vec<Event> = (0..PROCESSES_SHOWN as u32 + 2)
            .map(|pid| Event { pid, ..event(MS, Action::Queued, "R", u64::from(pid) * 8, 512) })
            .collect();
        let first = &tally(&events)[0];
        assert_eq!((first.processes.len(), first.other_bytes), (PROCESSES_SHOWN, 1024));
    }

    #[test]
    fn what_was_lost_is_not_waited_for() {
        let mut tally = Tally::new(0);
        tally.push(&event(MS, Action::Issued, "R", 0, 4096));
        tally.push(&Event { action: Action::Message, time_ns: 2 * MS, ..Event::default() });
        tally.push(&event(3 * MS, Action::Completed, "R", 0, 4096));
        tally.finish(INTERVAL_NS);
        let done = tally.take_done();
        assert_eq!((done[0].forgotten, done[0].device.count, done[0].reads.count), (1, 0, 1));
    }
}
