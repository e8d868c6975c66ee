//! The published rows of a guest (tests/golden/published, D2) beside the simulated guest.
//!
//! The delay of the guest is fitted to noop's initial writes and reads alone; nothing is fitted to
//! a row of deadline or cfq. Rows of one operation differ by up to 5 % between runs and schedulers
//! that do the same, which is what the wider gates allow for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iolab_model::op::{Access, Durability, Handle, OpenHow, PathId, Token};
use iolab_model::target::Content;
use iolab_model::{Bytes, Lane as _, LaneRequest, Ns, Op, Seed, Submission, Target as _};
use iolab_sim::sched::SchedulerKind;
use iolab_sim::stack::{QueueOverrides, Stack};
use iolab_sim::target::SimTarget;

/// Operations of the published table, and whether they write and go anywhere.
const OPERATIONS: [(&str, bool, bool); 7] = [
    ("Initial write", true, false),
    ("Rewrite", true, false),
    ("Read", false, false),
    ("Re-read", false, false),
    ("Stride read", false, true),
    ("Random read", false, true),
    ("Random write", true, true),
];

/// Published means, KiB/s, by scheduler, record in bytes and operation.
fn published() -> BTreeMap<(String, u64, String), f64> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/published");
    let text = std::fs::read_to_string(golden.join("iozone_vmware_pc601.csv")).unwrap();
    let mut means = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.splitn(10, ',').collect();
        if let ("mean", Ok(value)) = (cells[6], cells[7].parse()) {
            means.insert((cells[2].to_owned(), cells[4].parse().unwrap(), cells[5].into()), value);
        }
    }
    means
}

/// Rate of one process with one operation at a time on the simulated guest, KiB/s.
fn simulated(scheduler: SchedulerKind, record: u64, is_write: bool, is_random: bool) -> f64 {
    const OPERATIONS: u64 = 2_000;
    let overrides = QueueOverrides { scheduler: Some(scheduler), ..QueueOverrides::default() };
    let stack = Stack::of_profile("vmware-guest").unwrap();
    let target = SimTarget::new(stack.build(&overrides, Seed(1)).unwrap(), Vec::new());
    let mut lane = target
        .open(&LaneRequest {
            worker: 0,
            depth: 1,
            buffer_bytes: Bytes(record),
            content: Content::Zero,
            seed: Seed(7),
            priority: None,
            submitter_cpu: None,
            paths: Arc::from([PathBuf::from("/simulated/0")]),
        })
        .unwrap();
    let how = OpenHow {
        access: Access::Direct,
        durability: Durability::None,
        is_readable: true,
        is_writable: true,
        is_truncating: false,
        stream_buffer_bytes: Bytes(0),
        permissions: iolab_model::op::Permissions::Group,
        write_life: iolab_model::op::WriteLife::Unsaid,
        is_remembered: false,
    };
    let mut ask = |op: Op| {
        let submission = Submission { token: Token(0), op, intended: lane.now(), is_timed: true };
        let mut done = Vec::new();
        lane.submit_batch(lane.now(), &[submission], &mut done);
        lane.reap(1, Ns(u64::MAX - 1), &mut done).unwrap();
        assert!(done[0].outcome.is_ok());
        done[0].completed
    };
    ask(Op::Create { path: PathId(0), handle: Handle(0), how });
    let begun = ask(Op::Truncate { handle: Handle(0), length: Bytes(OPERATIONS * record) });
    let mut ended = begun;
    for index in 0..OPERATIONS {
        // A step that is prime to the number of records goes to each of them once.
        let place = if is_random { index * 787 % OPERATIONS } else { index };
        let (at, length) = (Bytes(place * record), Bytes(record));
        let op = if is_write {
            Op::write(Handle(0), at, length)
        } else {
            Op::read(Handle(0), at, length)
        };
        ended = ask(op);
    }
    (OPERATIONS * record) as f64 / 1024.0 / (ended.since(begun).0 as f64 / 1e9)
}

#[test]
fn noop_and_deadline_have_the_published_rates() {
    let means = published();
    for scheduler in [SchedulerKind::Noop, SchedulerKind::Deadline] {
        for record in [4_096, 32_768] {
            for (operation, is_write, is_random) in OPERATIONS {
                let key = (scheduler.to_string(), record, operation.to_owned());
                let Some(&mean) = means.get(&key) else { continue };
                let ratio = simulated(scheduler, record, is_write, is_random) / mean;
                println!("{scheduler} {record} {operation}: {ratio:.4}");
                let is_fitted = scheduler == SchedulerKind::Noop
                    && ["Initial write", "Read"].contains(&operation);
                // deadline's rewrite at 4 KiB was published 3.4 % above noop's; nothing in either
                // scheduler makes one writer faster.
                let is_outlier = operation == "Rewrite" && record == 4_096 && !is_fitted;
                let gate = if is_fitted {
                    0.01
                } else if is_outlier {
                    0.05
                } else {
                    0.03
                };
                assert!((ratio - 1.0).abs() <= gate, "{scheduler} {record} {operation}: {ratio}");
            }
        }
    }
}

/// cfq sets a timer at every end and has a worker of the kernel look for more.
#[test]
fn cfq_loses_time_as_published() {
    let means = published();
    let (mut lost, mut published_lost) = (0.0, 0.0);
    for record in [4_096, 32_768] {
        for (operation, is_write, is_random) in OPERATIONS {
            let mean = |scheduler: SchedulerKind| {
                means.get(&(scheduler.to_string(), record, operation.to_owned()))
            };
            let (Some(noop), Some(cfq)) = (mean(SchedulerKind::Noop), mean(SchedulerKind::Cfq))
            else {
                continue;
            };
            if operation == "Initial write" {
                continue;
            }
            let kib = record as f64 / 1024.0;
            let us = |rate: f64| kib / rate * 1e6;
            let own = |kind| us(simulated(kind, record, is_write, is_random));
            let published_us = us(*cfq) - us(*noop);
            let us = own(SchedulerKind::Cfq) - own(SchedulerKind::Noop);
            println!("{record} {operation}: {us:.1} us of {published_us:.1}");
            assert!(us > 0.0 && us < 2.0 * published_us, "{record} {operation}: {us}");
            lost += us;
            published_lost += published_us;
        }
    }
    let share = lost / published_lost;
    assert!((0.5..2.0).contains(&share), "cfq loses {share} of the published time");
}
