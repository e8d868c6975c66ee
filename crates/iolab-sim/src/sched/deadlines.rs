//! Common part of deadline and mq-deadline: tunables, and the choice of a batch's direction.
//!
//! Source: Linux 4.20 block/deadline-iosched.c and 6.18 block/mq-deadline.c; names, units, defaults
//! and ranges are those of sysfs. Left out: negative `writes_starved`.

use core::marker::PhantomData;

use iolab_model::Ns;

use super::common::{INT_MAX, TickClock};
use crate::api::request::Direction;
use crate::api::scheduler::Hz;
use crate::tunable::{Tunable, TunableInfo, Unit};

// Linux 6.18 block/mq-deadline.c, the same in 4.20 block/deadline-iosched.c: `read_expire` HZ/2,
// `write_expire` 5 HZ, `fifo_batch` 16, `writes_starved` 2.
const READ_EXPIRE_MS: u64 = 500;
const WRITE_EXPIRE_MS: u64 = 5_000;
const FIFO_BATCH: u64 = 16;
const WRITES_STARVED: u64 = 2;

/// The tunables that both have.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Tick rate.
    pub hz: Hz,
    /// Time in ticks.
    pub clock: TickClock,
    /// Whole ticks, per direction.
    pub expire: [Ns; 2],
    /// Longest batch, in requests.
    pub fifo_batch: u64,
    /// Read batches that may start while writes wait.
    pub writes_starved: u64,
    /// Look in the order by sector for front merges.
    pub has_front_merges: bool,
}

impl Settings {
    /// The defaults.
    pub const fn new(hz: Hz) -> Self {
        Self {
            hz,
            clock: TickClock::new(hz),
            expire: [hz.time_of_ms(READ_EXPIRE_MS), hz.time_of_ms(WRITE_EXPIRE_MS)],
            fifo_batch: FIFO_BATCH,
            writes_starved: WRITES_STARVED,
            has_front_merges: true,
        }
    }

    /// The instant at which a request that comes now has expired.
    pub fn deadline(&mut self, now: Ns, direction: Direction) -> Ns {
        self.clock.floor(now) + self.expire[direction.index()]
    }
}

/// Number of batches of reads that have started while writes waited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Starvation {
    starved: u64,
}

impl Starvation {
    /// Batches of reads that have passed waiting writes.
    pub const fn batches(&self) -> u64 {
        self.starved
    }

    /// The direction of the next batch, given which ones have requests: reads, until `limit`
    /// batches of them have passed waiting writes.
    pub const fn choose(
        &mut self,
        limit: u64,
        has_reads: bool,
        has_writes: bool,
    ) -> Option<Direction> {
        if has_reads {
            if !has_writes {
                return Some(Direction::Read);
            }
            let before = self.starved;
            self.starved += 1;
            if before < limit {
                return Some(Direction::Read);
            }
        } else if !has_writes {
            return None;
        }
        self.starved = 0;
        Some(Direction::Write)
    }
}

/// A scheduler with [`Settings`].
pub trait HasSettings: 'static {
    /// To read.
    fn settings(&self) -> &Settings;
    /// To change.
    fn settings_mut(&mut self) -> &mut Settings;
}

/// Rows for the table of a scheduler that has [`Settings`].
pub struct Rows<S>(PhantomData<S>);

impl<S: HasSettings> Rows<S> {
    /// `read_expire`.
    pub const READ_EXPIRE: Tunable<S> = Tunable {
        info: TunableInfo {
            name: "read_expire",
            unit: Unit::Milliseconds,
            default: READ_EXPIRE_MS,
            min: 0,
            max: INT_MAX,
            about: "Age at which a new batch of reads starts at the oldest read.",
        },
        get: |s| s.settings().hz.ms_of_time(s.settings().expire[0]),
        set: |s, ms| s.settings_mut().expire[0] = s.settings().hz.time_of_ms(ms),
    };

    /// `write_expire`.
    pub const WRITE_EXPIRE: Tunable<S> = Tunable {
        info: TunableInfo {
            name: "write_expire",
            unit: Unit::Milliseconds,
            default: WRITE_EXPIRE_MS,
            min: 0,
            max: INT_MAX,
            about: "Age at which a new batch of writes starts at the oldest write.",
        },
        get: |s| s.settings().hz.ms_of_time(s.settings().expire[1]),
        set: |s, ms| s.settings_mut().expire[1] = s.settings().hz.time_of_ms(ms),
    };

    /// `writes_starved`.
    pub const WRITES_STARVED: Tunable<S> = Tunable {
        info: TunableInfo {
            name: "writes_starved",
            unit: Unit::Count,
            default: WRITES_STARVED,
            min: 0,
            max: INT_MAX,
            about: "Batches of reads that may start while a write waits.",
        },
        get: |s| s.settings().writes_starved,
        set: |s, batches| s.settings_mut().writes_starved = batches,
    };

    /// `front_merges`.
    pub const FRONT_MERGES: Tunable<S> = Tunable {
        info: TunableInfo {
            name: "front_merges",
            unit: Unit::Switch,
            default: 1,
            min: 0,
            max: 1,
            about: "Look in the order by sector for a request that starts where a bio ends.",
        },
        get: |s| u64::from(s.settings().has_front_merges),
        set: |s, on| s.settings_mut().has_front_merges = on == 1,
    };

    /// `fifo_batch`.
    pub const FIFO_BATCH: Tunable<S> = Tunable {
        info: TunableInfo {
            name: "fifo_batch",
            unit: Unit::Requests,
            default: FIFO_BATCH,
            min: 0,
            max: INT_MAX,
            about: "Longest batch; with 0 or 1 every request is chosen anew.",
        },
        get: |s| s.settings().fifo_batch,
        set: |s, requests| s.settings_mut().fifo_batch = requests,
    };
}

#[cfg(test)]
mod tests {
    use iolab_model::Seed;

    use super::*;
    use crate::api::bio::Operation;
    use crate::api::request::{Request, RequestId, Requests};
    use crate::sched::SchedulerKind;
    use crate::sched::exercise::{CONTEXT, bio};

    /// Longest time, in dispatched requests, that the oldest request of a direction waits once it
    /// has expired. Other requests come all the time.
    fn longest_wait(kind: SchedulerKind, batch: u64, starved: u64) -> [u64; 2] {
        let mut scheduler = kind.attach(&CONTEXT);
        for (name, value) in [
            ("read_expire", 20),
            ("write_expire", 20),
            ("fifo_batch", batch),
            ("writes_starved", starved),
        ] {
            scheduler.tune(name, value).unwrap();
        }
        let mut random = Seed(3).stream("starvation", batch);
        let mut requests = Requests::default();
        let mut queued: [Vec<(RequestId, Ns)>; 2] = Default::default();
        let mut overdue: [Option<(RequestId, u64)>; 2] = [None; 2];
        let mut longest = [0; 2];
        for step in 0..20_000 {
            let now = Ns::from_ms(step);
            while requests.len() < 64 {
                let is_write = random.below(2) == 1;
                let operation = if is_write { Operation::Write } else { Operation::Read };
                let request = Request::of(&bio(operation, random.below(100_000) * 8), now);
                let id = requests.add(request);
                scheduler.insert(now, &requests, id);
                queued[usize::from(is_write)].push((id, now));
            }
            for direction in 0..2 {
                let head = queued[direction].first();
                let expired = head.filter(|(_, since)| now >= *since + Ns::from_ms(20));
                let id = expired.map(|&(id, _)| id);
                if id != overdue[direction].map(|(id, _)| id) {
                    overdue[direction] = id.map(|id| (id, 0));
                }
            }
            let id = scheduler.dispatch(now, &requests).unwrap();
            for direction in 0..2 {
                queued[direction].retain(|(queued, _)| *queued != id);
                if let Some((_, waited)) = &mut overdue[direction] {
                    *waited += 1;
                    longest[direction] = longest[direction].max(*waited);
                }
            }
            scheduler.activate(now, &requests, id);
            scheduler.complete(now, &requests, id);
            requests.remove(id);
        }
        longest
    }

    /// Expiry never interrupts a batch nor chooses the direction. So the oldest read, once
    /// expired, waits for the rest of the present batch and at most one batch of writes; the
    /// oldest write for the present batch and `writes_starved` batches of reads.
    #[test]
    fn the_oldest_expired_request_waits_for_a_bounded_number_of_batches() {
        for kind in [SchedulerKind::Deadline, SchedulerKind::MqDeadline] {
            for (batch, starved) in [(1, 1), (4, 2), (16, 2), (8, 5)] {
                let [read, write] = longest_wait(kind, batch, starved);
                let bounds = [2 * batch + 1, (1 + starved) * batch + 1];
                assert!(read <= bounds[0], "{kind}: a read waited for {read}, {bounds:?}");
                assert!(write <= bounds[1], "{kind}: a write waited for {write}, {bounds:?}");
                // The bound is no empty one: waits come close to it.
                assert!(write > starved * batch / 2, "{kind}: {write} of {bounds:?}");
            }
        }
    }

    #[test]
    fn writes_wait_for_so_many_read_batches_and_no_more() {
        use Direction::{Read, Write};
        let mut starvation = Starvation::default();
        let directions: Vec<_> = (0..6).filter_map(|_| starvation.choose(2, true, true)).collect();
        assert_eq!(directions, [Read, Read, Write, Read, Read, Write]);
        assert_eq!(starvation.choose(2, false, false), None);
        assert_eq!(starvation.choose(0, true, true), Some(Write));
    }
}
