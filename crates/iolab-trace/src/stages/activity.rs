//! Depth of the queues over time: bios between entering and completion, requests in the device.
//!
//! Integrals of the depth over time are exact, so that Little's law can be checked: the integral of
//! the outstanding bios is the sum of their times from queue to completion.

use serde::Serialize;

/// Slices of the series; when a trace needs more, two become one.
const SLICES_MAX: usize = 256;
/// Width of the first slices as a power of two of nanoseconds: about a millisecond.
const FIRST_SHIFT: u32 = 20;

/// A number that changes, with its integral over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    /// Now.
    pub now: u64,
    /// Largest so far.
    pub max: u64,
    /// Number times nanoseconds.
    pub integral: u128,
    /// Time at which it was not zero.
    pub busy_ns: u64,
}

impl Level {
    fn pass(&mut self, ns: u64) {
        self.integral += u128::from(self.now) * u128::from(ns);
        if self.now > 0 {
            self.busy_ns = self.busy_ns.saturating_add(ns);
        }
    }

    const fn add(&mut self, count: u64) {
        self.now += count;
        if self.now > self.max {
            self.max = self.now;
        }
    }

    const fn remove(&mut self, count: u64) {
        self.now = self.now.saturating_sub(count);
    }
}

/// A piece of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    outstanding: u128,
    in_flight: u128,
    in_flight_max: u64,
    busy_ns: u64,
    completed: u64,
    bytes: u64,
}

impl Slice {
    fn merge(&mut self, other: &Self) {
        self.outstanding += other.outstanding;
        self.in_flight += other.in_flight;
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.busy_ns += other.busy_ns;
        self.completed += other.completed;
        self.bytes += other.bytes;
    }
}

/// A slice as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SliceRow {
    /// Begin, from the first event.
    pub begin_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// Mean number of bios between queue and completion.
    pub outstanding_mean: f64,
    /// Mean number of requests in the device.
    pub in_flight_mean: f64,
    /// Largest number of requests in the device.
    pub in_flight_max: u64,
    /// Share of the slice at which the device had a request.
    pub busy_share: f64,
    /// Bios completed.
    pub completed: u64,
    /// Bytes completed.
    pub completed_bytes: u64,
}

/// Depths of one device.
#[derive(Clone)]
pub struct Activity {
    /// Bios between queue and completion.
    pub outstanding: Level,
    /// Requests between issue and completion.
    pub in_flight: Level,
    now_ns: u64,
    shift: u32,
    slices: Vec<Slice>,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            outstanding: Level::default(),
            in_flight: Level::default(),
            now_ns: 0,
            shift: FIRST_SHIFT,
            slices: Vec::new(),
        }
    }
}

impl Activity {
    /// Lets time go on; an event that is earlier than the one before happens at the same time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        if now_ns <= self.now_ns {
            return;
        }
        let whole = now_ns - self.now_ns;
        self.outstanding.pass(whole);
        self.in_flight.pass(whole);
        while self.now_ns < now_ns {
            let index = self.slice_of(now_ns, self.now_ns);
            let end = (index as u64 + 1).saturating_mul(1 << self.shift).min(now_ns);
            let ns = end - self.now_ns;
            let (outstanding, in_flight) = (self.outstanding.now, self.in_flight.now);
            let slice = &mut self.slices[index];
            slice.outstanding += u128::from(outstanding) * u128::from(ns);
            slice.in_flight += u128::from(in_flight) * u128::from(ns);
            slice.busy_ns += if in_flight > 0 { ns } else { 0 };
            slice.in_flight_max = slice.in_flight_max.max(in_flight);
            self.now_ns = end;
        }
    }

    /// Index of the slice of a time, widened so that `last_ns` has one, too.
    fn slice_of(&mut self, last_ns: u64, at_ns: u64) -> usize {
        while last_ns >> self.shift >= SLICES_MAX as u64 {
            self.shift += 1;
            let halves = self.slices.chunks(2).map(|pair| {
                let mut first = pair[0];
                if let Some(second) = pair.get(1) {
                    first.merge(second);
                }
                first
            });
            self.slices = halves.collect();
        }
        let index = (at_ns >> self.shift) as usize;
        if self.slices.len() <= index {
            self.slices.resize(index + 1, Slice::default());
        }
        index
    }

    /// Bios enter.
    pub const fn enter(&mut self, count: u64) {
        self.outstanding.add(count);
    }

    /// Counts time that a part of a split bio was outstanding before the split.
    pub fn enter_late(&mut self, since_ns: u64) {
        self.outstanding.add(1);
        self.outstanding.integral += u128::from(self.now_ns.saturating_sub(since_ns));
    }

    /// A request is issued.
    pub const fn issue(&mut self) {
        self.in_flight.add(1);
    }

    /// Requests come back without being completed.
    pub const fn put_back(&mut self, requests: u64) {
        self.in_flight.remove(requests);
    }

    /// Bios that nothing will be heard of any more.
    pub const fn forget(&mut self, bios: u64) {
        self.outstanding.remove(bios);
    }

    /// Nothing is under way any more, as far as is known.
    pub const fn give_up(&mut self) {
        (self.outstanding.now, self.in_flight.now) = (0, 0);
    }

    /// Bios are completed, of which some had been seen to enter, and requests.
    pub fn complete(&mut self, [bios, entered, requests]: [u64; 3], bytes: u64) {
        self.outstanding.remove(entered);
        self.in_flight.remove(requests);
        let index = self.slice_of(self.now_ns, self.now_ns);
        self.slices[index].completed += bios;
        self.slices[index].bytes += bytes;
    }

    /// The series up to now.
    pub fn rows(&self) -> Vec<SliceRow> {
        let rows = self.slices.iter().enumerate().map(|(index, slice)| {
            let begin_ns = (index as u64) << self.shift;
            let length_ns = (1 << self.shift).min(self.now_ns.saturating_sub(begin_ns)).max(1);
            let length = length_ns as f64;
            SliceRow {
                begin_ns,
                length_ns,
                outstanding_mean: slice.outstanding as f64 / length,
                in_flight_mean: slice.in_flight as f64 / length,
                in_flight_max: slice.in_flight_max,
                busy_share: slice.busy_ns as f64 / length,
                completed: slice.completed,
                completed_bytes: slice.bytes,
            }
        });
        rows.collect()
    }
}
