//! Write-back throttling in whole stacks: who waits, that nobody is lost, and what it is good for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use iolab_model::{Ns, Sector, Seed};
use iolab_sim::device::fixed::Fixed;
use iolab_sim::queue::{BlockQueue, QueueParameters};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::{Bio, BioId, Ended, Flags, Info, Layer, Operation, ProcessId, Submitter, device};
use proptest::prelude::*;

const EPOCH: Ns = Ns::from_seconds(1_000);
/// Everything ends long before this, or something was lost.
const PATIENCE: Ns = Ns::from_seconds(3_600);
/// Written back by the flusher.
const FLUSHER: Flags = Flags::BACKGROUND;
/// Written back for an fsync.
const FSYNC: Flags = Flags::SYNC.with(Flags::NO_IDLE);

fn bio(id: u32, operation: Operation, sector: u64, flags: Flags) -> Bio {
    let submitter = Submitter { process: ProcessId(id % 7), ..Submitter::default() };
    Bio {
        id: BioId(id),
        operation,
        sector: Sector(sector),
        sectors: 8,
        flags,
        submitter,
        segments: 0,
    }
}

/// Most limited writes and discards at a device at once.
#[derive(Debug, Default)]
struct Most {
    writes: u32,
    discards: u32,
}

/// A device that counts what it holds.
struct Watched {
    inner: Fixed,
    held: BTreeMap<BioId, Bio>,
    most: Rc<RefCell<Most>>,
}

impl Layer for Watched {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn submit(&mut self, now: Ns, bio: &Bio) {
        self.held.insert(bio.id, *bio);
        let is_limited = |b: &&Bio| b.operation == Operation::Write && b.flags != Flags::SYNC;
        let writes = self.held.values().filter(is_limited).count() as u32;
        let is_discard = |b: &&Bio| b.operation == Operation::Discard;
        let discards = self.held.values().filter(is_discard).count() as u32;
        let mut most = self.most.borrow_mut();
        most.writes = most.writes.max(writes);
        most.discards = most.discards.max(discards);
        drop(most);
        self.inner.submit(now, bio);
    }

    fn next_event(&self) -> Ns {
        self.inner.next_event()
    }

    fn advance(&mut self, now: Ns, done: &mut Vec<Ended>) {
        let first = done.len();
        self.inner.advance(now, done);
        for Ended { id, .. } in &done[first..] {
            self.held.remove(id);
        }
    }
}

fn watched(parameters: &QueueParameters, service: Ns) -> (BlockQueue, Rc<RefCell<Most>>) {
    let most = Rc::new(RefCell::new(Most::default()));
    let inner = Fixed::new(service, 64, false);
    let device = Watched { inner, held: BTreeMap::new(), most: Rc::clone(&most) };
    (BlockQueue::new(Ns(0), parameters, Box::new(device)).unwrap(), most)
}

fn throttled(scheduler: SchedulerKind, wbt_lat_usec: i32) -> QueueParameters {
    let wbt_lat_usec = Some(wbt_lat_usec);
    QueueParameters { scheduler, wbt_lat_usec, nomerges: 2, ..QueueParameters::default() }
}

/// Runs until nothing happens any more; the bios that ended, in order.
fn drain(queue: &mut BlockQueue) -> Vec<BioId> {
    let mut done = Vec::new();
    while queue.next_event() != Ns::MAX {
        let now = queue.next_event();
        assert!(now < EPOCH + PATIENCE, "no end in sight");
        queue.advance(now, &mut done);
    }
    done.iter().map(|ended: &Ended| ended.id).collect()
}

#[test]
fn the_device_sees_a_quarter_half_or_all_of_sixteen() {
    let most = |flags: Flags, operation: Operation, wbt_lat_usec: i32| {
        let parameters = throttled(SchedulerKind::None, wbt_lat_usec);
        let (mut queue, most) = watched(&parameters, Ns::from_us(100));
        for id in 0..40 {
            queue.submit(EPOCH, &bio(id, operation, u64::from(id) * 100, flags));
        }
        assert_eq!(drain(&mut queue).len(), 40);
        let most = most.borrow();
        most.writes.max(most.discards)
    };
    assert_eq!(most(FLUSHER, Operation::Write, 2000), 4);
    assert_eq!(most(Flags::NONE, Operation::Write, 2000), 8);
    // Seven processes: each sleeps once it has to wait, so the line is short but the gate is full.
    assert_eq!(most(FSYNC, Operation::Write, 2000), 16);
    assert_eq!(most(Flags::SYNC, Operation::Discard, 2000), 4);
    assert_eq!(most(FLUSHER, Operation::Write, 0), 40);
}

#[test]
fn a_bio_that_finds_a_request_to_join_never_waits() {
    let parameters = QueueParameters {
        nomerges: 0,
        queue_depth: Some(1),
        ..throttled(SchedulerKind::MqDeadline, 2000)
    };
    let (mut queue, _) = watched(&parameters, Ns::from_us(100));
    for id in 0..10_u32 {
        queue.submit(EPOCH, &bio(0, Operation::Write, 1_000 + u64::from(id) * 8, FLUSHER));
    }
    assert_eq!(queue.accounting().throttled, 0);
    assert_eq!(drain(&mut queue).len(), 10);
}

#[derive(Clone, Debug)]
struct Row {
    after: Ns,
    operation: Operation,
    flags: Flags,
    sector: u64,
}

fn row() -> impl Strategy<Value = Row> {
    let operation = prop::sample::select(vec![
        Operation::Read,
        Operation::Write,
        Operation::Write,
        Operation::Write,
        Operation::Discard,
    ]);
    let flags = prop::sample::select(vec![Flags::NONE, FLUSHER, FSYNC, Flags::SYNC, Flags::META]);
    (0_u64..3_000, operation, flags, 0_u64..60).prop_map(|(us, operation, flags, place)| Row {
        after: Ns::from_us(if us < 2_000 { 0 } else { us }),
        operation,
        flags,
        sector: place * 8,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Every bio of any arrivals ends exactly once, the run comes to an end by itself (an idle gate
    /// stops its windows), and no more are at the device than the gate can ever allow.
    #[test]
    fn nobody_is_lost_and_the_limit_holds(
        rows in prop::collection::vec(row(), 1..300),
        scheduler in prop::sample::select(vec![
            SchedulerKind::None,
            SchedulerKind::MqDeadline,
            SchedulerKind::Kyber,
            SchedulerKind::Bfq,
        ]),
        (nr_requests, look_ahead) in (1_u32..64, 0_u32..2),
        (latency_us, service_us) in (1_i32..5_000, 50_u64..20_000),
        (nomerges, wanted_depth) in (0_u8..3, 1_u32..64),
    ) {
        let parameters = QueueParameters {
            nr_requests: Some(nr_requests),
            queue_depth: Some(wanted_depth),
            look_ahead,
            nomerges,
            ..throttled(scheduler, latency_us)
        };
        let (mut queue, most) = watched(&parameters, Ns::from_us(service_us));
        let (mut now, mut done) = (EPOCH, Vec::new());
        for (id, row) in rows.iter().enumerate() {
            let at = now + row.after;
            while queue.next_event() <= at {
                now = now.max(queue.next_event());
                queue.advance(now, &mut done);
            }
            now = at;
            queue.submit(now, &bio(id as u32, row.operation, row.sector, row.flags));
        }
        let mut done: Vec<BioId> = done.iter().map(|ended: &Ended| ended.id).collect();
        done.extend(drain(&mut queue));
        done.sort_unstable();
        let all: Vec<BioId> = (0..rows.len() as u32).map(BioId).collect();
        prop_assert_eq!(done, all);
        // The depth begins at 16 and doubles to three quarters of the queue at most.
        let (slots, depth) = (nr_requests, wanted_depth);
        let slots = if scheduler == SchedulerKind::None { slots.min(depth) } else { slots };
        let queue_depth = if look_ahead == 0 { depth } else { slots };
        let limit = queue_depth.min(16).max(queue_depth * 3 / 4).max(2);
        let most = most.borrow();
        prop_assert!(most.writes <= limit && most.discards <= limit.div_ceil(4).max(1),
            "{:?} of {}", most, limit);
    }
}

/// A reader at depth 1 beside a flusher that always has 128 writes to give.
struct Mixed {
    reads: u32,
    read_time: Ns,
    writes: u32,
}

impl Mixed {
    fn mean_read_ms(&self) -> f64 {
        self.read_time.0 as f64 / f64::from(self.reads) / 1e6
    }
}

fn reader_beside_flusher(scheduler: SchedulerKind, wbt_lat_usec: i32, reads: u32) -> Mixed {
    let profile = device::profile("sata7200-4tb", &BTreeMap::new()).unwrap();
    let below = device::build(&profile, Seed(5), "throttling").unwrap();
    let capacity = below.info().capacity.0;
    let parameters = QueueParameters {
        wbt_lat_usec: Some(wbt_lat_usec),
        scheduler,
        ..QueueParameters::default()
    };
    let mut queue = BlockQueue::new(Ns(0), &parameters, below).unwrap();
    let mut random = Seed(9).stream("throttling", 0);
    let mut place = move || (random.next_u64() >> 8) % (capacity / 8) * 8;
    // Bio 0 is the reader's; each of the others has a process of its own, as many files are
    // written back at once.
    let mut submit = |queue: &mut BlockQueue, now: Ns, id: BioId| {
        let (operation, flags) = match id.0 {
            0 => (Operation::Read, Flags::SYNC),
            _ => (Operation::Write, FLUSHER),
        };
        let mut bio = bio(id.0, operation, place(), flags);
        bio.submitter.process = ProcessId(id.0);
        queue.submit(now, &bio);
    };
    for id in (0..=128).rev() {
        submit(&mut queue, EPOCH, BioId(id));
    }
    let mut mixed = Mixed { reads: 0, read_time: Ns(0), writes: 0 };
    let (mut now, mut since, mut done) = (EPOCH, EPOCH, Vec::new());
    while mixed.reads < reads {
        now = now.max(queue.next_event());
        queue.advance(now, &mut done);
        for Ended { id, .. } in done.drain(..) {
            if id.0 == 0 {
                mixed.reads += 1;
                mixed.read_time += now.since(since);
                since = now;
            } else {
                mixed.writes += 1;
            }
            submit(&mut queue, now, id);
        }
    }
    mixed
}

/// Purpose of the gate: a reader beside write-back waits less, and write-back still gets on.
#[test]
fn a_reader_beside_write_back_waits_less() {
    for scheduler in [SchedulerKind::None, SchedulerKind::MqDeadline] {
        let free = reader_beside_flusher(scheduler, 0, 400);
        let throttled = reader_beside_flusher(scheduler, -1, 400);
        let (free_ms, throttled_ms) = (free.mean_read_ms(), throttled.mean_read_ms());
        println!("{scheduler}: mean read {free_ms:.0} ms, throttled {throttled_ms:.0} ms");
        assert!(throttled_ms < 0.7 * free_ms, "{scheduler}: {throttled_ms} of {free_ms} ms");
        assert!(throttled.writes > 100, "{scheduler}: write-back is starved");
    }
}
