//! Single mechanisms, each shown by a run.

use iolab_model::Ns;

use super::driver::{Driver, START, Shape, bio};
use crate::Calendar;
use crate::api::bio::{Operation, PriorityClass, ProcessId};
use crate::sched::bfq::marks::Mark;
use crate::sched::bfq::raising::RAISE;
use crate::tunable::Tunables;

const MS: u64 = 1_000_000;

/// Closed loop: each process has `depth` requests outstanding at all times.
struct Loop {
    shape: Shape,
    depth: u32,
    next: u64,
    is_sequential: bool,
    /// From a completion to the next request.
    think: Ns,
}

impl Loop {
    fn random(process: u32, depth: u32) -> Self {
        let shape = Shape { process, ..Shape::default() };
        let next = u64::from(process);
        Self { shape, depth, next, is_sequential: false, think: Ns(0) }
    }

    fn bio(&mut self) -> crate::api::bio::Bio {
        if self.is_sequential {
            self.shape.sector = self.next;
            self.next += u64::from(self.shape.sectors);
        } else {
            // A fixed sequence that jumps all over two million sectors.
            self.next = (self.next * 1_103_515_245 + 12_345) % (1 << 31);
            self.shape.sector = self.next % 2_000_000 / 8 * 8;
        }
        bio(self.shape)
    }
}

/// Runs processes in closed loops for so long.
fn run(driver: &mut Driver, loops: &mut [Loop], length: Ns) {
    let mut plan = Calendar::default();
    for (index, source) in loops.iter().enumerate() {
        (0..source.depth).for_each(|_| plan.plan(START, index));
    }
    let end = START + length;
    let mut bios = Vec::new();
    loop {
        let now = plan.next_event().min(driver.next_event());
        if now >= end {
            return;
        }
        bios.clear();
        while let Some((_, index)) = plan.take_due(now) {
            bios.push(loops[index].bio());
        }
        for process in driver.step(now, &bios) {
            let index = loops.iter().position(|source| source.shape.process == process);
            let index = index.expect("only these processes submit");
            plan.plan(now + loops[index].think, index);
        }
    }
}

fn queue_of(driver: &Driver, process: u32) -> u32 {
    let found = driver.bfq.processes.find(ProcessId(process)).expect("it has submitted");
    driver.bfq.processes.get(found).sync.expect("it has read")
}

fn sectors_of(driver: &Driver, process: u32) -> u64 {
    let mine = driver.log.iter().filter(|row| row.process == process);
    mine.map(|row| u64::from(row.sectors)).sum()
}

#[test]
fn sectors_follow_weights() {
    let mut driver = Driver::new(true);
    driver.bfq.tune("low_latency", 0).unwrap();
    let mut loops = [Loop::random(1, 4), Loop::random(2, 4)];
    loops[0].shape.level = 0;
    loops[1].shape.level = 6;
    for process in &mut loops {
        process.shape.sectors = 256;
    }
    run(&mut driver, &mut loops, Ns::from_seconds(60));
    let ratio = sectors_of(&driver, 1) as f64 / sectors_of(&driver, 2) as f64;
    assert!((3.6..4.4).contains(&ratio), "weights 80 and 20 gave {ratio}");
}

#[test]
fn async_writes_are_charged_three_times() {
    let mut driver = Driver::new(true);
    driver.bfq.tune("low_latency", 0).unwrap();
    let mut loops = [Loop::random(1, 4), Loop::random(2, 4)];
    loops[1].shape.operation = Operation::Write;
    for process in &mut loops {
        process.shape.sectors = 256;
    }
    run(&mut driver, &mut loops, Ns::from_seconds(60));
    let ratio = sectors_of(&driver, 1) as f64 / sectors_of(&driver, 2) as f64;
    assert!((2.7..3.3).contains(&ratio), "reads to async writes: {ratio}");
}

#[test]
fn the_idle_class_is_served_every_200_ms() {
    let mut driver = Driver::new(true);
    driver.bfq.tune("low_latency", 0).unwrap();
    let mut loops = [Loop::random(1, 8), Loop::random(2, 2)];
    loops[1].shape.class = PriorityClass::Idle;
    run(&mut driver, &mut loops, Ns::from_seconds(10));
    let idle: Vec<Ns> =
        driver.log.iter().filter(|row| row.process == 2).map(|row| row.at).collect();
    assert!(idle.len() >= 10, "served {} times", idle.len());
    let longest = idle.windows(2).map(|pair| (pair[1] - pair[0]).0).max().unwrap();
    // 200 ms, then the slot in progress (125 ms) and the next one end first.
    assert!(longest <= 460 * MS, "{} ms without service", longest / MS);
}

#[test]
fn nobody_of_one_class_starves() {
    let mut driver = Driver::new(true);
    driver.depth = 4;
    let mut loops: Vec<Loop> = (1..=8).map(|process| Loop::random(process, 4)).collect();
    for (level, process) in loops.iter_mut().enumerate() {
        process.shape.level = level as u8;
    }
    run(&mut driver, &mut loops, Ns::from_seconds(30));
    for process in 1..=8 {
        let waits = driver.log.iter().filter(|row| row.process == process);
        let longest = waits.map(|row| row.waited).max().expect("everybody is served");
        assert!(longest < Ns::from_seconds(8), "process {process} waited {longest:?}");
    }
}

#[test]
fn a_new_process_is_raised_until_its_time_is_over() {
    let mut driver = Driver::new(true);
    let mut loops = [Loop::random(1, 2)];
    run(&mut driver, &mut loops, Ns::from_seconds(1));
    assert_eq!(driver.bfq.entity(0).raise, RAISE);
    assert_eq!(driver.bfq.entity(0).weight, 40 * RAISE);
    driver.drain();
    let mut driver = Driver::new(true);
    run(&mut driver, &mut loops, Ns::from_seconds(11));
    // 10.5 s on a rotational device whose rate is not known better.
    assert_eq!((driver.bfq.entity(0).raise, driver.bfq.entity(0).weight), (1, 40));
}

#[test]
fn eight_queues_at_once_are_a_large_burst_and_not_raised() {
    let mut driver = Driver::new(true);
    let bios: Vec<_> = (1..=9)
        .map(|process| {
            bio(Shape { process, sector: u64::from(process) * 1_000_000, ..Shape::default() })
        })
        .collect();
    driver.depth = 0;
    driver.step(START, &bios);
    assert!(driver.bfq.burst.is_large);
    let raised = (0..9).filter(|&id| driver.bfq.is_raised(id)).count();
    // Those before the burst was large are raised until their next request.
    assert_eq!(raised, 7);
    assert!((0..9).all(|id| driver.bfq.queue(id).has(Mark::InLargeBurst)));
}

#[test]
fn on_flash_processes_started_together_share_a_queue() {
    let mut driver = Driver::new(false);
    driver.depth = 0;
    let at = |process| {
        bio(Shape { process, sector: 8_000_000 * u64::from(process), ..Shape::default() })
    };
    driver.step(START, &[at(1)]);
    driver.step(START + Ns::from_ms(100), &[at(2)]);
    driver.step(START + Ns::from_ms(400), &[at(3)]);
    assert_eq!(queue_of(&driver, 1), queue_of(&driver, 2));
    assert_ne!(queue_of(&driver, 1), queue_of(&driver, 3), "more than 180 ms apart");
}

#[test]
fn interleaved_readers_share_a_queue_on_a_disk() {
    let mut driver = Driver::new(true);
    driver.depth = 0;
    let at = |process, sector| bio(Shape { process, sector, ..Shape::default() });
    driver.step(START, &[at(1, 1_000_000)]);
    driver.step(START + Ns::from_ms(1), &[at(3, 9_000_000)]);
    driver.step(START + Ns::from_ms(2), &[at(2, 1_000_100)]);
    let first = queue_of(&driver, 1);
    assert_eq!(queue_of(&driver, 2), first);
    assert_ne!(queue_of(&driver, 3), first);
    assert!(driver.bfq.queue(first).has(Mark::Shared));
}

#[test]
fn requests_of_others_fill_the_wait_for_a_slow_thinker() {
    let mut driver = Driver::new(false);
    driver.bfq.tune("low_latency", 0).unwrap();
    // Weights differ, so flash is idled for guarantees. Process 1 thinks for 10 ms.
    let mut thinker = Loop { think: Ns::from_ms(10), ..Loop::random(1, 1) };
    thinker.shape.level = 0;
    run(&mut driver, &mut [thinker, Loop::random(2, 4)], Ns::from_seconds(2));
    let id = queue_of(&driver, 1);
    assert!(!driver.bfq.queue(id).has(Mark::ShortThink));
    assert!(driver.bfq.queue(id).habits.inject_limit >= 1);
    let served = driver.log.iter().filter(|row| row.process == 2).count();
    // Without injection 8 of every 18.5 ms would pass idle.
    assert!(served > 3_000, "{served} requests of the other process in 2 s, of 4000 possible");
}

#[test]
fn an_old_request_is_served_before_a_near_one_once_per_slot() {
    let mut driver = Driver::new(true);
    driver.bfq.tune("low_latency", 0).unwrap();
    driver.bfq.tune("fifo_expire_sync", 10).unwrap();
    driver.service = Ns::from_ms(4);
    let at = |sector| bio(Shape { sector, ..Shape::default() });
    // Ascending from 100 000; the one at 10 (far back) is the oldest but one.
    driver.step(START, &[at(100_000), at(10_000_000), at(100_100), at(100_200), at(100_300)]);
    driver.drain();
    let order: Vec<u64> = driver.log.iter().map(|row| row.sector).collect();
    // Ages are examined when the first request leaves: nothing is old then, so nothing jumps.
    assert_eq!(order, [100_000, 100_100, 100_200, 100_300, 10_000_000]);
    let second: Vec<_> = [at(100_400), at(20_000_000), at(10_000_100)].to_vec();
    driver.depth = 0;
    let now = START + Ns::from_seconds(5);
    driver.step(now, &second);
    driver.depth = 1;
    driver.step(now + Ns::from_ms(20), &[]);
    driver.drain();
    let order: Vec<u64> = driver.log.iter().skip(5).map(|row| row.sector).collect();
    assert_eq!(order, [10_000_100, 100_400, 20_000_000], "the oldest waiting one comes second");
}
